"""Logs of Inspect: what `inspect eval` writes, finished or not."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path

import polars as pl

from itembank.errors import DataError, DataWarning, first_few, quoted, remedy, shown, warn
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect
from itembank.readers.json_files import Record, mapping
from itembank.readers.matching import Document
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec, how
from itembank.readers.refusals import RefusedError, WaysOut, say_left_out, shortened
from itembank.readers.rows import ResponseRows
from itembank.readers.settling import row_problems
from itembank.responses.error_kinds import NO_ANSWER
from itembank.tables import plural
from itembank_harnesses.readers.inspect_runs import InspectRun, inspect_files, read_log, run_of, together
from itembank_harnesses.readers.inspect_samples import Sample, choose_scorer, content_hash, score_value
from itembank_harnesses.readers.logged import LogKind, rows_of_runs, rows_together
from itembank_harnesses.readers.runs import renamed, wanted

KIND = LogKind(
    "runs of Inspect",
    "input and target",
    "The task changed between the runs, or shuffles its samples and numbers them anew",
)


SCHEMA = {
    **dict.fromkeys(("document", "content"), pl.Categorical),
    "response": pl.Float64,
    "n_trials": pl.Int64,
    "attempt": pl.Categorical,
    **dict.fromkeys(("n_errors", "error"), pl.Int64),
    **dict.fromkeys(COST_COLUMNS, pl.Float64),
}
"""What is taken of each sample."""


def is_inspect(record: Record) -> bool:
    """Whether an object is a log of Inspect."""
    return isinstance(record.get("eval"), dict) and not {"status", "samples", "plan"}.isdisjoint(record)


def inspect_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read logs and folders of them.

    The scenario is the task, the item ``task/sample_id``. Of each task one scorer's scores are taken, the same for all
    models: that of `spec.metric`, else the first, with a `DataWarning` where there are others. Epochs of one run are
    trials. What has no score is a lost answer, of the kind of its error or limit; what ended in an error and was scored
    counts.
    """
    files = inspect_files(paths, spec)
    runs, problems = collect(
        files, lambda path: run_of(read_log(path), spec), progress, name=lambda path: path.name, in_processes=True
    )
    if not files:
        problems.append("there must be at least one log of Inspect (*.eval, or a .json that it wrote), got none.")
    runs = [renamed(run, spec.task_names) for run in runs]  # the name that Inspect knows is kept
    runs = together(wanted(runs, spec))
    if problems and not (spec.skip_unusable and runs):
        raise RefusedError(problems, WaysOut(can_skip=bool(runs)), spec)
    filled = [run for run in runs if run.samples]
    if not filled:
        raise DataError(f"{first_few([str(path) for path in paths])}: the logs hold no samples.")
    empty = [run.path.name for run in runs if not run.samples]
    if empty:
        warn(
            f"{plural(len(empty), 'log', 'hold')} no samples and {'is' if len(empty) == 1 else 'are'} left "
            f"out: {shown(empty)}.",
            DataWarning,
        )
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
    filled, parts = _parts(filled, scorers, spec, problems)
    frame = rows_together(filled, parts)
    unknown = [unit for unit in COST_COLUMNS if frame[unit].is_nan().all()]
    frame = frame.drop(unknown, *(() if (frame["n_trials"] > 1).any() else ("n_trials",)))
    about: list[pl.Expr | str] = [
        pl.col("task").alias("scenario"),
        "task",
        pl.col("document").alias("sample_id"),
        pl.col("task").replace(scorers).alias("metric"),
        "content_hash",
    ]
    rows = rows_of_runs(KIND, filled, frame, spec, about=about)
    wrong = row_problems(rows, max_response=spec.max_response, alone=lambda task: {"tasks": (task,)})
    if wrong:
        raise DataError(f"{rows.source}: " + " ".join(wrong))
    say_left_out(problems)
    return rows


def inspect_documents(paths: Sequence[Path], spec: ReadingSpec, known: Collection[str]) -> list[Document] | None:
    """Return the samples of logs as documents; None if a log is of a known task."""
    found = []
    for path in inspect_files(paths, spec):
        log = read_log(path)
        task = run_of(log, spec).task
        task = spec.task_names.get(task, task)
        if task in known:
            return None
        found += [sample_document(task, record, is_whole=False) for record in log.samples]
    return found


def sample_document(task: str, record: Record, *, is_whole: bool) -> Document:
    """Make a document of a sample of Inspect, as its logs have it: its metadata are fields beside its own."""
    asked, target, metadata = record.get("input"), record.get("target", ""), record.get("metadata")
    fields = dict(mapping(metadata))
    fields |= {name: record.get(name) for name in ("id", "input", "target", "choices")}
    return Document(task, str(record.get("id")), fields, lambda: content_hash(asked, target), is_whole)


def _scorers(runs: Sequence[InspectRun], spec: ReadingSpec, problems: list[str]) -> dict[str, str]:
    """Scorer of each task whose scores are the responses; tasks that nobody scored are refused, or left out."""
    names: dict[str, dict[str, None]] = {}
    by_run: dict[str, dict[Path, set[str]]] = {}
    for run in runs:
        # those of the sample with most first, in Inspect's order: a sample may lack the score of some
        of_samples = sorted((sample.scores for sample in run.samples.values()), key=len, reverse=True)
        found = dict.fromkeys(name for scores in of_samples for name in scores)
        names.setdefault(run.task, {}).update(found)
        if found:
            by_run.setdefault(run.task, {})[run.path] = set(found)
    notes: list[str] = []
    chosen: dict[str, str] = {}
    refused: list[str] = []
    metrics: list[str] = []
    unscored = [task for task, found in names.items() if not found]
    whole = {run.task for run in runs if not run.ended}
    ended = {run.task: f"{run.path.name} has {run.ended}" for run in runs if run.task in {*unscored} - whole}
    out = f"or leave the tasks out ({how(exclude_tasks=['NAME'])})."
    if ended:
        refused.append(
            f"a task must have scored samples, got {plural(len(ended), 'task')} whose samples ended before: "
            f"{shown([*ended])}. {first_few([*ended.values()])}. Mend the cause and run them again ('inspect "
            f"eval-retry LOG'), {out}"
        )
    if len(ended) < len(unscored):
        others = {run.task: run.path.name for run in runs if run.task in unscored and not run.ended}
        refused.append(
            f"a task must have scored samples, got {plural(len(others), 'task')} without: {shown([*others])} (in "
            f"{first_few([*others.values()])}). Score their logs ('inspect score LOG'), {out}"
        )
    for task in (task for task, found in names.items() if found):
        in_all = [name for name in names[task] if all(name in own for own in by_run[task].values())]
        try:
            name = choose_scorer(task, list(dict.fromkeys([*in_all, *names[task]])), spec.metric, notes)
            without = [path.name for path, own in by_run[task].items() if name not in own]
            if without:
                raise DataError(
                    f"scorer {quoted(name)} of task {quoted(task)} must have scored every run, got {len(without)} with "
                    f"scores of others only: {shown(without)}. Score those logs again ('inspect score LOG')."
                )
            chosen[task] = name
        except DataError as error:
            refused.append(str(error))
            metrics.extend(f"{escape(task)}={one}" for one in in_all[:1])
            unscored.extend([] if in_all else [task])  # by no scorer that all have
    if refused and not (spec.skip_unusable and chosen):
        excluded = tuple(map(escape, unscored)) if len(unscored) < len(names) else ()
        mends = excluded or not unscored
        choices = WaysOut(tuple(metrics), (), excluded, has_others=bool(problems)) if mends else WaysOut()
        raise RefusedError([*problems, *refused], replace(choices, can_skip=bool(chosen)), spec)
    problems.extend(refused)
    if notes:
        warn(f"taken by default: {first_few(notes)}. Choose with {remedy('metric=...', '--metric')}.", DataWarning)
    return chosen


def _parts(
    runs: Sequence[InspectRun], scorers: Mapping[str, str], spec: ReadingSpec, problems: list[str]
) -> tuple[list[InspectRun], list[pl.DataFrame]]:
    """Return runs and the rows of each.

    Scores that cannot be responses are collected, and refused once, or their tasks left out.
    """
    bad: dict[str, list[str]] = {}
    bad_tasks: set[str] = set()
    parts: list[tuple[InspectRun, list[Record]]] = []
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
        parts.append((run, [row for epochs in by_item.values() for row in _epoch_rows(run, epochs, spec)]))
    if bad:
        reasons = [
            f"{reason[:-1]} for {plural(len(items), 'sample')}: {shown(items)}." for reason, items in bad.items()
        ]
        problem = (
            f"{runs[0].path}: {' '.join(shortened(reasons))} Inspect takes such scores for 0; choose another scorer, "
            "or make a table of them."
        )
        parts = [(run, rows) for run, rows in parts if run.task not in bad_tasks]
        if not (spec.skip_unusable and parts):
            raise RefusedError([problem], WaysOut(can_skip=bool(parts)), spec)
        problems.append(problem)
    return [run for run, _ in parts], [pl.DataFrame(rows, schema=SCHEMA) for _, rows in parts]


def _epoch_rows(run: InspectRun, epochs: Sequence[tuple[Sample, float]], spec: ReadingSpec) -> Iterator[Record]:
    """One row for all epochs of a sample; one for each where the caller says what becomes of repeated attempts."""
    if len(epochs) == 1 or spec.repeats != "error":
        for sample, value in epochs:
            yield _row([(sample, value)], f"{run.run_id}/{sample.epoch}")
        return
    values = [value for _, value in epochs if not math.isnan(value)]
    if any(value not in {0.0, 1.0} for value in values):
        ways = remedy("repeats='mean' or 'last'", "--repeats mean or --repeats last")
        raise DataError(
            f"{run.path}: epochs are counted as trials where every score is right or wrong (1 or 0), got "
            f"{first_few([f'{value:g}' for value in values])} for {quoted(f'{run.task}/{epochs[0][0].id}')}. Ask for "
            f"their mean, or for the last one ({ways})."
        )
    yield _row(epochs, run.run_id)


def _row(epochs: Sequence[tuple[Sample, float]], attempt: str) -> Record:
    """Row of some epochs of a sample: what all scored, lost and cost."""
    values = [value for _, value in epochs if not math.isnan(value)]
    lost = [sample.failure or NO_ANSWER for sample, value in epochs if math.isnan(value)]
    known = {unit: [sample.costs[unit] for sample, _ in epochs if unit in sample.costs] for unit in COST_COLUMNS}
    return {
        "document": str(epochs[0][0].id),
        "content": epochs[0][0].content,
        "response": sum(values) / len(values) if values else math.nan,
        "n_trials": len(values),
        "attempt": attempt,
        "n_errors": len(lost),
        "error": max(lost, default=0),
        # the mean cost of one attempt
        **{unit: sum(amounts) / len(amounts) if amounts else math.nan for unit, amounts in known.items()},
    }
