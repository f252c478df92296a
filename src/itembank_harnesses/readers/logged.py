"""From the logs of an evaluation harness to rows: one metric a task, the same for all models, and items compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, first_few, remedy, shown, warn
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect, own_files
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.refusals import RefusedError, refuse, say_left_out
from itembank.readers.rows import ResponseRows
from itembank.responses.error_kinds import NO_ANSWER, error_kind
from itembank.responses.labels import numbered
from itembank.responses.prompts import NO_HASH
from itembank.tables import plural
from itembank_harnesses.readers.contents import Prompted, item_contents, item_prompts
from itembank_harnesses.readers.lm_eval_choice import choose, ways_out
from itembank_harnesses.readers.lm_eval_samples import NO_FILTER, Samples, metric_of
from itembank_harnesses.readers.runs import SampleFile, renamed, wanted


@dataclass(frozen=True, slots=True)
class LogKind:
    """How the logs of one program are spoken of."""

    files: str  # What its files are called
    content: str = "question and reference"  # What tells the content of an item
    causes: str = "The benchmark changed between the runs"  # Why an item may have another content in another run
    # Whether items are numbers in their task, by which the program can be told to run them.
    has_document_numbers: bool = False
    uses_groups: bool = True  # Whether a task always belongs to a scenario that its runs name
    source: str = ""  # Its name in `SOURCES`


def read_each_log(
    files: Sequence[SampleFile],
    read: Callable[[SampleFile], Samples],
    progress: ProgressCallback,
    *,
    in_processes: bool = True,
) -> tuple[list[Samples], list[str]]:
    """Read every file, and collect what is wrong; see `collect`."""
    return collect(
        files, read, progress, name=lambda file: f"{file.model_id} on {file.task}", in_processes=in_processes
    )


def logged_rows(
    kind: LogKind,
    read: Sequence[Samples],  # One a file, the oldest run first
    unread: Sequence[str],  # Why other files cannot be read
    spec: ReadingSpec,
    *,
    lonely: Sequence[Path] = (),  # Runs without samples
    # Warns where the samples are not those that the logs tell of.
    compare: Callable[[Sequence[Samples], Mapping[str, tuple[str, str]]], None] | None = None,
) -> ResponseRows:
    """Make rows of what was read of the logs of one program.

    The scenario is the task (or its group), the item ``task/document``. Of each task one metric and one filter are
    taken, the same for all models: those of `spec`, else the only one that can be a response, else ``acc`` or
    ``exact_match`` and ``none`` or ``strict-match``, with a `DataWarning`.
    """
    problems = list(unread)
    by_task: dict[str, list[Samples]] = {}
    for one in read:
        by_task.setdefault(one.file.task, []).append(one)
    notes: list[str] = []
    chosen = {task: choose(task, group, spec, notes) for task, group in by_task.items()}
    refused = [task for task, choice in chosen.items() if choice.problems]
    has_bad_files = bool(problems)
    problems.extend(" ".join(chosen[task].problems) for task in refused)
    if problems and not (spec.skip_unusable and len(refused) < len(by_task)):
        raise RefusedError(problems, ways_out(by_task, refused, spec, has_bad_files=has_bad_files), spec)
    choices = {task: (one.metric, one.filter_name) for task, one in chosen.items() if not one.problems}
    samples = [one for one in read if one.file.task in choices]
    if spec.skip_unusable and not spec.ignore_content:
        samples, changed = _without_changed(samples, choices, spec)
        problems.extend(changed)
    if notes:
        how = remedy("metric=..., filter_name=...", "--metric NAME, with a filter --metric NAME,FILTER")
        warn(f"taken by default: {first_few(notes)}. Choose with {how}.", DataWarning)
    if lonely:
        names = [path.name for path in lonely]
        warn(
            f"{plural(len(names), 'run', 'have')} no samples and {'is' if len(names) == 1 else 'are'} left "
            f"out: {shown(names)}.",
            DataWarning,
        )
    if compare is not None:
        compare(samples, choices)
    if spec.repeats == "count":
        warn_of_uncounted(samples, choices)
    rows = _rows(samples, choices, spec, kind)
    say_left_out(problems)
    return rows


def _rows(
    samples: Sequence[Samples], choices: Mapping[str, tuple[str, str]], spec: ReadingSpec, kind: LogKind
) -> ResponseRows:
    """Rows of the chosen metric and filter."""
    runs = [one.file for one in samples]
    frame = rows_together(runs, [_picked(one, *choices[one.file.task], spec) for one in samples])
    has_groups = spec.use_groups or kind.uses_groups
    groups = {task: group for run in runs for task, group in run.run.groups.items()} if has_groups else {}
    metric, filters = ({task: choice[place] for task, choice in choices.items()} for place in (0, 1))
    about: list[pl.Expr | str] = [
        pl.col("task").replace(groups).alias("scenario"),
        pl.when(pl.col("task").is_in(list(groups))).then("task").alias("subscenario"),
        "task",
        *([pl.col("document").cast(pl.Int64, strict=False).alias("doc_id")] if kind.has_document_numbers else []),
        "content_hash",
        pl.col("task").replace(metric).alias("metric"),
        pl.col("task").replace(filters).alias("filter"),
    ]
    return rows_of_runs(kind, runs, frame, spec, about=about)


def _picked(samples: Samples, metric: str, filter_name: str, spec: ReadingSpec) -> pl.DataFrame:
    """Rows of one filter, with the values of one metric.

    Attempts are those that the log counts, and each run is another where attempts are counted: two runs are two
    attempts then, and two copies of one run are one.
    """
    lengths = n_attempts(samples, metric)
    frame = samples.frame.with_columns(response=pl.Series(samples.metrics[metric].values))
    frame = frame if lengths is None else frame.with_columns(n_trials=pl.Series(lengths))
    told = pl.col("error") if "error" in frame.columns else pl.lit(0)
    frame = frame.filter(pl.col("filter") == filter_name).with_columns(
        error=pl.when(told > 0).then(told).otherwise(pl.col("response").is_nan().cast(pl.Int64) * NO_ANSWER)
    )
    if spec.repeats == "count":
        attempt = pl.col("attempt").cast(pl.String) if "attempt" in frame.columns else pl.lit("")
        named = pl.concat_str(pl.lit(f"{samples.file.date or samples.file.path}#"), attempt)
        frame = frame.with_columns(attempt=named.cast(pl.Categorical))
    return frame.with_columns(
        response=pl.when(pl.col("error") > 0).then(np.nan).otherwise("response") / spec.max_response,
        n_errors=(pl.col("error") > 0).cast(pl.Int64),
    )


def rows_together(runs: Sequence[SampleFile], parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put the rows of runs together, one table a run, and add `model_id`, `item_id`, `task` and `run`, its number."""
    named = (
        part.with_columns(
            model_id=pl.lit(run.model_id).cast(pl.Categorical),
            item_id=pl.concat_str(pl.lit(f"{run.task}/"), pl.col("document").cast(pl.String)).cast(pl.Categorical),
            task=pl.lit(run.task).cast(pl.Categorical),
            run=number,
        )
        for number, (run, part) in enumerate(zip(runs, parts, strict=True))
    )
    return pl.concat(named, how="diagonal")


def rows_of_runs(
    kind: LogKind,
    runs: Sequence[SampleFile],
    frame: pl.DataFrame,  # As `rows_together` makes it
    spec: ReadingSpec,
    *,
    about: Sequence[pl.Expr | str],  # Columns of the item table, made of `task`, `document` and `content_hash`
) -> ResponseRows:
    """Make rows of what all runs of one program tell; an item must have asked the same in all of them."""
    first = frame.unique("item_id", keep="first", maintain_order=True).select("item_id", "task", "document")
    first = first.cast(pl.String)
    items = numbered(frame["item_id"], first["item_id"])
    content = item_contents(frame, items, first["item_id"], spec, what=kind.content, advice=f"{kind.causes}.")
    hashes = frame["prompt"].to_numpy() if "prompt" in frame.columns else np.full(frame.height, NO_HASH)
    ends = np.cumsum(np.bincount(frame["run"].to_numpy(), minlength=len(runs)))[:-1]
    prompted = [
        Prompted(run.model_id, run.task, run.run.settings.get(run.task, {}), *own)
        for run, *own in zip(runs, np.split(items, ends), np.split(hashes, ends), strict=True)
    ]
    prompts = item_prompts(prompted, first["task"], spec)
    told = {
        "n_trials": pl.col("n_trials").fill_null(1),  # of runs whose logs do not count attempts
        "attempt": pl.col("attempt").cast(pl.String).fill_null("").cast(pl.Categorical),
        **{name: pl.col(name) for name in ("n_errors", "error") if (frame["n_errors"] > 0).any()},
        **{unit: pl.col(unit).fill_null(np.nan) for unit in frame.columns if unit in COST_COLUMNS},
    }
    told = {name: one for name, one in told.items() if name in frame.columns}
    return ResponseRows(
        str(runs[0].path) if len(runs) == 1 else f"{len(runs)} {kind.files} ({runs[0].path.name}, ...)",
        frame.select("model_id", "item_id", "response", **told),
        _model_table(runs, frame),
        first.with_columns(content_hash=content).select("item_id", *about).with_columns(prompts),
        {"model_id": "text", "item_id": "text"},
    )


def _without_changed(
    samples: Sequence[Samples], choices: Mapping[str, tuple[str, str]], spec: ReadingSpec
) -> tuple[list[Samples], list[str]]:
    """Leave out tasks whose items differ between runs, and say so; keep all when none would be left."""
    parts = [_picked(one, *choices[one.file.task], spec).select("document", "content") for one in samples]
    frame = rows_together([one.file for one in samples], parts)
    by_item = frame.group_by("item_id", "task", maintain_order=True).agg(pl.col("content").drop_nulls().n_unique())
    names = by_item.filter(pl.col("content") > 1)["task"].to_list()
    n_changed = {task: names.count(task) for task in dict.fromkeys(names)}
    kept = [one for one in samples if one.file.task not in n_changed]
    if not kept:
        return list(samples), []
    return kept, [
        f"task {task!r}: {plural(n, 'item', 'have')} another content in some runs." for task, n in n_changed.items()
    ]


PASS_RATES = ("pass@1", "pass_at_1", "pass1")
"""Metrics that are the share of right ones among all texts that were generated for an item."""


def n_attempts(samples: Samples, metric: str) -> IntArray | None:
    """Count the attempts behind each value of a metric, (n_rows,); None when every value is of one attempt.

    They are told by a metric that is a list, one number an attempt, and by a pass rate beside the texts it was taken
    of. Of other metrics the harness scores one text, whatever was generated: the first, or the majority's.
    """
    found = samples.metrics[metric]
    if found.lengths is not None:
        return found.lengths
    if metric not in PASS_RATES or samples.most_generated <= 1:
        return None
    n_generated = samples.frame["n_generated"].to_numpy()
    right = np.where(np.isnan(found.values), 0.0, found.values) * n_generated
    is_count = np.abs(right - np.rint(right)) <= 1e-6
    return np.maximum(n_generated, 1) if is_count.all() else None


def warn_of_uncounted(samples: Sequence[Samples], choices: Mapping[str, tuple[str, str]]) -> None:
    """Warn of tasks that generated several texts an item where the chosen metric scores one of them."""
    hidden: dict[str, str] = {}
    for one in samples:
        metric, filter_name = choices[one.file.task]
        if one.most_generated > 1 and n_attempts(one, metric) is None:
            hidden[one.file.task] = (
                f"{one.file.task!r} ({one.most_generated} texts, {metric!r} after the filter {filter_name!r})"
            )
    if hidden:
        message = (
            f"{plural(len(hidden), 'task')} generated several texts an item, of which the log scores one: "
            f"{first_few(list(hidden.values()))}. One trial is counted; to have all, log a metric of every text, or "
            "run the task with several seeds and read them as a table."
        )
        warn(message, DataWarning)


def _model_table(runs: Sequence[SampleFile], frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row a model: what its latest run tells, and on how many of the items of its tasks it was run.

    `n_items_full` and `is_partial` are null where nobody tells.
    """
    pairs = frame.select("model_id", "item_id", "task").unique(["model_id", "item_id"])
    n_run = {(model, task): n for model, task, n in pairs.group_by("model_id", "task").len().iter_rows()}
    about: dict[str, dict[str, Any]] = {}
    sizes: dict[tuple[str, str], int] = {}
    limited: dict[tuple[str, str], bool | None] = {}
    for file in runs:  # in order of date: later runs overwrite
        about.setdefault(file.model_id, {}).update(file.run.about)
        size = file.run.n_items.get(file.task)
        if size is not None:
            sizes[file.model_id, file.task] = max(size, sizes.get((file.model_id, file.task), 0))
        limited[file.model_id, file.task] = file.run.is_limited
    rows = []
    for name, told in about.items():
        own = [pair for pair in limited if pair[0] == name]
        full = [sizes[pair] for pair in own if pair in sizes]
        partial = [n_run.get(pair, 0) < sizes[pair] if pair in sizes else limited[pair] for pair in own]
        rows.append(
            {
                "model_id": name,
                **told,
                "n_items_run": sum(n_run.get(pair, 0) for pair in own),
                "n_items_full": sum(full) if len(full) == len(own) else None,
                "is_partial": any(partial) if any(partial) or None not in partial else None,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One answer of a model to an item."""

    document: str  # Id of the item in its task
    metrics: Mapping[str, Any]  # What the log says of the answer; of no use where it failed
    content: str | None = None  # Digest of the question and what is right
    attempt: str = "0"  # Which attempt at the item it is
    costs: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""  # What the answer ended in, where there is none because of an error


def samples_of(file: SampleFile, answers: Sequence[LoggedAnswer]) -> Samples:
    """Put the answers of one file together."""
    if not answers:
        raise DataError(f"{file.path}: there must be at least one answer, got none.")
    names = dict.fromkeys(name for one in answers if not one.error for name in one.metrics)
    told = ([one.document, NO_FILTER, one.content, one.attempt] for one in answers)
    schema = dict.fromkeys(("document", "filter", "content", "attempt"), pl.Categorical)
    frame = pl.DataFrame(told, schema=schema, orient="row")
    if frame["document"].n_unique() == frame.height:
        frame = frame.drop("attempt")
    units = [unit for unit in COST_COLUMNS if any(unit in one.costs for one in answers)]
    return Samples(
        file,
        frame.with_columns(
            pl.Series("error", [error_kind(one.error) for one in answers], dtype=pl.Int64),
            *(pl.Series(unit, _amounts([one.costs.get(unit) for one in answers])) for unit in units),
        ),
        {name: metric_of([None if one.error else one.metrics.get(name) for one in answers]) for name in names},
    )


def _amounts(values: Sequence[Any]) -> FloatArray:
    """Amounts as numbers, (n_rows,); NaN where there is none, or none that can be a cost."""
    is_amount = [isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 2**63 for one in values]
    return np.array([one if good else np.nan for one, good in zip(values, is_amount, strict=True)], dtype=np.float64)


def harness_rows(
    kind: LogKind,
    tell: Callable[[Path, ReadingSpec], SampleFile],  # Task and model of a file, by its name and place
    read: Callable[[SampleFile], Samples | Iterable[LoggedAnswer]],  # The answers of a file
    paths: Sequence[Path],
    spec: ReadingSpec,
    *,
    progress: ProgressCallback,
) -> ResponseRows:
    """Read the files of one program among these files and below these folders."""
    own = own_files(paths, kind.source, spec)
    found, problems = collect(own, lambda path: renamed(tell(path, spec), spec.task_names), silent, name=str)

    def samples_in(file: SampleFile) -> Samples:
        answers = read(file)
        return answers if isinstance(answers, Samples) else samples_of(file, list(answers))

    files = wanted(found, spec)
    if not files:
        refuse(problems)
    samples, unread = read_each_log(files, samples_in, progress)
    return logged_rows(kind, samples, [*problems, *unread], spec)
