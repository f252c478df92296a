"""Logs of Inspect: what `inspect eval` writes, finished or not."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, first_few, quoted, remedy, shown, warn
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect
from itembank.readers.contents import Prompted, item_contents, item_prompts
from itembank.readers.inspect_runs import InspectRun, inspect_files, read_log, run_of, together
from itembank.readers.inspect_samples import Sample, choose_scorer, score_value
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.refusals import RefusedError, WaysOut, say_left_out, shortened, wanted
from itembank.readers.rows import ResponseRows, row_problems
from itembank.responses.error_kinds import NO_ANSWER
from itembank.responses.labels import Labels
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.prompts import NO_HASH, TASK_NAME


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the results: all epochs of a sample, or one of them."""

    run: InspectRun
    sample: Sample
    response: float
    n_trials: int
    lost: Sequence[int]  # Kinds of what the attempts without a score ended in
    costs: tuple[float, ...]
    attempt: str


def inspect_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read logs and folders of them.

    The scenario is the task, the item ``task/sample_id``. Of each task one scorer's scores are taken, the same for all
    models: that of `spec.metric`, else the first, with a `DataWarning` where there are others. Epochs of one run are
    trials. What has no score is a lost answer, of the kind of its error or limit; what ended in an error and was scored
    counts.
    """
    runs, problems = _read_all(inspect_files(paths, spec), spec, progress)
    if problems and not (spec.skip_unusable and runs):
        raise RefusedError(problems, WaysOut(can_skip=bool(runs)), spec)
    filled = [run for run in runs if run.samples]
    if not filled:
        raise DataError(f"{first_few([str(path) for path in paths])}: the logs hold no samples.")
    empty = [run.path.name for run in runs if not run.samples]
    if empty:
        warn(f"{len(empty)} logs hold no samples and are left out: {shown(empty)}.", DataWarning)
    scorers = _scorers(filled, spec, problems)
    filled = [run for run in filled if run.task in scorers]
    # samples that were cut off and scored all the same count
    samples = [sample for run in filled for sample in run.samples.values()]
    n_scored = sum(bool(sample.failure) and sample.is_scored for sample in samples)
    if n_scored:
        message = (
            f"{n_scored} of {len(samples)} samples ended in an error or at a limit and were scored anyway; they count, "
            "as in Inspect's own metrics."
        )
        warn(message, DataWarning)
    rows = _rows(_as_rows(filled, scorers, spec, problems), scorers, spec)
    wrong = row_problems(rows, max_response=spec.max_response)
    if wrong:
        raise DataError(f"{rows.source}: " + " ".join(wrong))
    say_left_out(problems)
    return rows


def _read_all(
    files: Sequence[Path], spec: ReadingSpec, progress: ProgressCallback
) -> tuple[list[InspectRun], list[str]]:
    """Read every log of the tasks that are wanted, and collect what is wrong."""
    runs, problems = collect(
        files, lambda path: run_of(read_log(path), spec), progress, name=lambda path: path.name, in_processes=True
    )
    if not files:
        problems.append("there must be at least one log of Inspect (*.eval, or a .json that it wrote), got none.")
    new = spec.task_names  # the name that Inspect knows is kept
    runs = [
        replace(run, task=new[run.task], settings={TASK_NAME: run.task, **run.settings}) if run.task in new else run
        for run in runs
    ]
    return together(wanted(runs, spec)), problems


def _scorers(runs: Sequence[InspectRun], spec: ReadingSpec, problems: list[str]) -> dict[str, str]:
    """Scorer of each task whose scores are the responses; tasks that nobody scored are refused, or left out."""
    names: dict[str, dict[str, None]] = {}
    for run in runs:
        for sample in run.samples.values():
            names.setdefault(run.task, {}).update(dict.fromkeys(sample.scores))
    notes: list[str] = []
    chosen: dict[str, str] = {}
    refused: list[str] = []
    metrics: list[str] = []
    unscored = [task for task, found in names.items() if not found]
    if unscored:
        refused.append(
            f"a task must have scored samples, got {len(unscored)} tasks without: {shown(unscored)}. Score their logs "
            f"('inspect score LOG'), or leave the tasks out ({remedy('exclude_tasks=...', '--exclude-task')})."
        )
    for task in (task for task, found in names.items() if found):
        try:
            chosen[task] = choose_scorer(task, list(names[task]), spec.metric, notes)
        except DataError as error:
            refused.append(str(error))
            metrics.append(f"{escape(task)}={next(iter(names[task]))}")
    if refused and not (spec.skip_unusable and chosen):
        excluded = tuple(map(escape, unscored)) if len(unscored) < len(names) else ()
        mends = not problems and (excluded or not unscored)
        choices = WaysOut(tuple(metrics), (), excluded) if mends else WaysOut()
        raise RefusedError([*problems, *refused], replace(choices, can_skip=bool(chosen)), spec)
    problems.extend(refused)
    if notes:
        warn(f"taken by default: {first_few(notes)}. Choose with {remedy('metric=...', '--metric')}.", DataWarning)
    return chosen


def _as_rows(runs: Sequence[InspectRun], scorers: dict[str, str], spec: ReadingSpec, problems: list[str]) -> list[_Row]:
    """Rows of all runs; every score that cannot be a response is collected, and refused once, or its task left out."""
    bad: dict[str, list[str]] = {}
    bad_tasks: set[str] = set()
    rows: list[_Row] = []
    for run in runs:
        by_item: dict[str, list[tuple[Sample, float]]] = {}
        for sample in run.samples.values():
            try:
                value = score_value(sample.scores.get(scorers[run.task])) if sample.is_scored else math.nan
            except DataError as error:
                bad.setdefault(str(error), []).append(f"{run.task}/{sample.id}")
                bad_tasks.add(run.task)
                continue
            by_item.setdefault(str(sample.id), []).append((sample, value / spec.max_response))
        for epochs in by_item.values():
            rows.extend(_epoch_rows(run, epochs, spec))
    if bad:
        reasons = [f"{reason[:-1]} for {len(items)} samples: {shown(items)}." for reason, items in bad.items()]
        problem = (
            f"{runs[0].path}: {' '.join(shortened(reasons))} Inspect takes such scores for 0; choose another scorer, "
            "or make a table of them."
        )
        rows = [row for row in rows if row.run.task not in bad_tasks]
        if not (spec.skip_unusable and rows):
            raise RefusedError([problem], WaysOut(can_skip=bool(rows)), spec)
        problems.append(problem)
    return rows


def _epoch_rows(run: InspectRun, epochs: Sequence[tuple[Sample, float]], spec: ReadingSpec) -> Iterator[_Row]:
    """One row for all epochs of a sample; one for each where the caller says what becomes of repeated attempts."""
    if len(epochs) == 1 or spec.repeats != "error":
        for sample, value in epochs:
            attempt = f"{run.run_id}/{sample.epoch}"
            lost = [sample.failure or NO_ANSWER] if math.isnan(value) else []
            yield _Row(run, sample, value, 0 if math.isnan(value) else 1, lost, _costs([sample]), attempt)
        return
    first = epochs[0][0]
    values = [value for _, value in epochs if not math.isnan(value)]
    if any(value not in {0.0, 1.0} for value in values):
        ways = remedy("repeats='mean' or 'last'", "--repeats mean or --repeats last")
        raise DataError(
            f"{run.path}: epochs are counted as trials where every score is right or wrong (1 or 0), got "
            f"{first_few([f'{value:g}' for value in values])} for {quoted(f'{run.task}/{first.id}')}. Ask for their "
            f"mean, or for the last one ({ways})."
        )
    mean = sum(values) / len(values) if values else math.nan
    lost = [sample.failure or NO_ANSWER for sample, value in epochs if math.isnan(value)]
    yield _Row(run, first, mean, len(values), lost, _costs([sample for sample, _ in epochs]), run.run_id)


def _costs(samples: Sequence[Sample]) -> tuple[float, ...]:
    """Mean cost of one attempt in each usual unit, NaN where unknown."""
    known = ([sample.costs[unit] for sample in samples if unit in sample.costs] for unit in COST_COLUMNS)
    return tuple(sum(amounts) / len(amounts) if amounts else math.nan for amounts in known)


def _rows(found: Sequence[_Row], scorers: dict[str, str], spec: ReadingSpec) -> ResponseRows:
    models = Labels.of(pl.Series("name", [row.run.model_id for row in found], dtype=pl.String), "text")
    items = Labels.of(pl.Series("name", [f"{row.run.task}/{row.sample.id}" for row in found]), "text")
    hashes = Labels.of(pl.Series("name", [row.sample.content for row in found], dtype=pl.String))
    advice = "The task changed between the runs, or shuffles its samples and numbers them anew."
    contents = item_contents(items, models, hashes, spec, what="input and target", advice=advice)
    prompts = item_prompts(_prompted(found, items), items.n_names, spec)
    n_trials = np.array([row.n_trials for row in found], dtype=np.int64)
    n_lost = np.array([len(row.lost) for row in found], dtype=np.int64)
    kinds = np.array([max(row.lost, default=0) for row in found], dtype=np.int64)
    costs = np.array([row.costs for row in found], dtype=np.float64).reshape(-1, len(COST_COLUMNS))
    table = pl.DataFrame({"item_id": [f"{row.run.task}/{row.sample.id}" for row in found]})
    table = table.with_columns(
        scenario=pl.Series([row.run.task for row in found]),
        task=pl.Series([row.run.task for row in found]),
        sample_id=pl.Series([str(row.sample.id) for row in found]),
        metric=pl.Series([scorers[row.run.task] for row in found]),
    ).unique("item_id", keep="first", maintain_order=True)
    runs = list({id(row.run): row.run for row in found}.values())
    return ResponseRows(
        str(runs[0].path) if len(runs) == 1 else f"{len(runs)} runs of Inspect ({runs[0].path.name}, ...)",
        models,
        items,
        np.array([row.response for row in found], dtype=np.float64),
        n_trials if (n_trials > 1).any() else None,
        {unit: costs[:, place] for place, unit in enumerate(COST_COLUMNS) if not np.isnan(costs[:, place]).all()},
        Labels.of(pl.Series("name", [row.attempt for row in found])),
        LostAnswers(n_lost, kinds) if n_lost.any() else None,
        None,
        _model_table(runs),
        table.with_columns(content_hash=pl.Series(contents, dtype=pl.String)).with_columns(prompts),
    )


def _prompted(found: Sequence[_Row], items: Labels) -> list[Prompted]:
    """Say how each run asked its items; of prompts themselves its log keeps too little to compare them."""
    rows: dict[int, list[int]] = {}
    for number, row in enumerate(found):
        rows.setdefault(id(row.run), []).append(number)
    prompted = []
    for numbers in rows.values():
        run, hashes = found[numbers[0]].run, np.full(len(numbers), NO_HASH)
        prompted.append(Prompted(run.model_id, run.task, run.settings, items.index[numbers], hashes))
    return prompted


def _model_table(runs: Sequence[InspectRun]) -> pl.DataFrame:
    """Return one row a model: what its latest run tells, and how much of its tasks it was run on."""
    table: dict[str, dict[str, object]] = {}
    covered: dict[str, dict[str, tuple[set[str], int]]] = {}
    for run in runs:
        table.setdefault(run.model_id, {"model_id": run.model_id}).update(run.about)
        ids, size = covered.setdefault(run.model_id, {}).get(run.task, (set(), 0))
        covered[run.model_id][run.task] = (ids | {place[0] for place in run.samples}, max(size, run.n_items or 0))
    for model_id, tasks in covered.items():
        n_run, n_full = sum(len(ids) for ids, _ in tasks.values()), sum(size for _, size in tasks.values())
        is_known = all(size for _, size in tasks.values())
        table[model_id] |= {
            "n_items_run": n_run,
            "n_items_full": n_full if is_known else None,
            "is_partial": any(len(ids) < size for ids, size in tasks.values()) if is_known else None,
        }
    return pl.DataFrame(list(table.values()), infer_schema_length=None)
