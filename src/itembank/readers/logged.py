"""From the logs of an evaluation harness to rows: one metric a task, the same for all models, and items compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from itembank.errors import DataWarning, first_few, remedy, shown, warn
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback
from itembank.readers.collecting import collect
from itembank.readers.contents import Prompted, item_contents, item_prompts
from itembank.readers.lm_eval_attempts import n_attempts, warn_of_uncounted
from itembank.readers.lm_eval_coverage import model_table
from itembank.readers.lm_eval_files import SampleFile
from itembank.readers.lm_eval_remedies import choose, ways_out
from itembank.readers.lm_eval_samples import Samples
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import RefusedError, say_left_out
from itembank.readers.rows import ResponseRows
from itembank.responses.labels import Labels, first_in_group, join_labels
from itembank.responses.prompts import NO_HASH


@dataclass(frozen=True, slots=True)
class LogKind:
    """How the logs of one program are spoken of."""

    files: str  # What its files are called
    content: str = "question and reference"  # What tells the content of an item
    causes: str = "The benchmark changed between the runs"  # Why an item may have another content in another run
    # Whether items are numbers in their task, by which the program can be told to run them.
    has_document_numbers: bool = False
    uses_groups: bool = True  # Whether a task always belongs to a scenario that its runs name


@dataclass(frozen=True, slots=True)
class Logs:
    """What was read of the logs of one program."""

    kind: LogKind
    samples: list[Samples]  # One a file, the oldest run first
    problems: list[str]  # Why other files cannot be read
    lonely: Sequence[Path] = ()  # Runs without samples
    # Warns where the samples are not those that the logs tell of.
    compare: Callable[[Sequence[Samples], Mapping[str, tuple[str, str]]], None] | None = None


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


def logged_rows(logs: Logs, spec: ReadingSpec) -> ResponseRows:
    """Make rows of logs.

    The scenario is the task (or its group), the item ``task/document``. Of each task one metric and one filter are
    taken, the same for all models: those of `spec`, else the only one that can be a response, else ``acc`` or
    ``exact_match`` and ``none`` or ``strict-match``, with a `DataWarning`.

    Raises
    ------
    DataError
        When nothing could be read; a metric or filter is unknown, or cannot be a response; items changed between runs.
    """
    problems = list(logs.problems)
    by_task: dict[str, list[Samples]] = {}
    for one in logs.samples:
        by_task.setdefault(one.file.task, []).append(one)
    notes: list[str] = []
    chosen = {task: choose(task, group, spec, notes) for task, group in by_task.items()}
    refused = [task for task, choice in chosen.items() if choice.problems]
    has_bad_files = bool(problems)
    problems.extend(" ".join(chosen[task].problems) for task in refused)
    if problems and not (spec.skip_unusable and len(refused) < len(by_task)):
        raise RefusedError(problems, ways_out(by_task, refused, spec, has_bad_files=has_bad_files), spec)
    choices = {task: (one.metric, one.filter_name) for task, one in chosen.items() if not one.problems}
    samples = [one for one in logs.samples if one.file.task in choices]
    if spec.skip_unusable and not spec.ignore_content:
        samples, changed = _without_changed(samples, choices)
        problems.extend(changed)
    _say(notes, logs.lonely)
    _say_failed(samples)
    if logs.compare is not None:
        logs.compare(samples, choices)
    if spec.repeats == "count":
        warn_of_uncounted(samples, choices)
    rows = _rows(samples, choices, spec, logs.kind)
    say_left_out(problems)
    return rows


def _rows(
    samples: Sequence[Samples], choices: dict[str, tuple[str, str]], spec: ReadingSpec, kind: LogKind
) -> ResponseRows:
    """Rows of the chosen metric and filter."""
    picked = [_Picked.of(one, *choices[one.file.task]) for one in samples]
    models, items = join_labels([part.models for part in picked]), join_labels([part.items for part in picked])
    hashes = join_labels([part.hashes for part in picked])
    content = item_contents(items, models, hashes, spec, what=kind.content, advice=f"{kind.causes}.")
    prompts = item_prompts(_prompted(samples, picked, items), items.n_names, spec)
    tasks = _tasks(samples, picked, items)
    has_groups = spec.use_groups or kind.uses_groups
    groups = {task: group for one in samples for task, group in one.file.run.groups.items()} if has_groups else {}
    has_lists = any(part.lengths is not None for part in picked)
    lengths = [np.ones(part.values.size, np.int64) if part.lengths is None else part.lengths for part in picked]
    units = dict.fromkeys(unit for one in samples for unit in one.costs)
    return ResponseRows(
        _source(samples, kind),
        models,
        items,
        np.concatenate([part.values for part in picked]) / spec.max_response,
        np.concatenate(lengths) if has_lists else None,
        {unit: np.concatenate([part.cost(unit) for part in picked]) for unit in units},
        _attempts(samples, picked, spec),
        model_table(samples, models, items, tasks),
        _item_table(items, tasks, content, choices=choices, groups=groups, kind=kind).with_columns(prompts),
    )


def _prompted(samples: Sequence[Samples], picked: Sequence["_Picked"], items: Labels) -> list[Prompted]:
    """Say how each run was asked."""
    runs = [one.file for one in samples]
    ends = np.cumsum([part.values.size for part in picked])[:-1]
    return [
        Prompted(file.model_id, file.task, file.run.settings.get(file.task, {}), rows, part.prompts)
        for file, rows, part in zip(runs, np.split(items.index, ends), picked, strict=True)
    ]


def _tasks(samples: Sequence[Samples], picked: Sequence["_Picked"], items: Labels) -> pl.Series:
    """Task of each item, (n_items,)."""
    names = list(dict.fromkeys(one.file.task for one in samples))
    code = {task: index for index, task in enumerate(names)}
    of_row = np.repeat([code[one.file.task] for one in samples], [part.values.size for part in picked])
    of_item = np.zeros(items.n_names, dtype=np.int64)
    of_item[items.index] = of_row
    return pl.Series("task", names, dtype=pl.String).gather(of_item)


def _attempts(samples: Sequence[Samples], picked: Sequence["_Picked"], spec: ReadingSpec) -> Labels | None:
    """Label rows by attempt: those that the log counts, and each run as another where attempts are counted.

    Two runs are two attempts then, and two copies of one run are one.
    """
    is_counted = spec.repeats == "count"
    if not is_counted and all(one.attempts is None for one in samples):
        return None
    parts = []
    for one, part in zip(samples, picked, strict=True):
        run = one.file.date or str(one.file.path) if is_counted else ""
        attempts = part.attempts or Labels(pl.Series("name", [""]), np.zeros(part.values.size, dtype=np.int64))
        parts.append(Labels(pl.Series("name", run + "#" + attempts.names), attempts.index))
    return join_labels(parts)


@dataclass(frozen=True, slots=True)
class _Picked:
    """Rows of one file that are taken, with names as the matrix has them."""

    models: Labels
    items: Labels
    hashes: Labels
    values: FloatArray
    lengths: IntArray | None
    prompts: IntArray
    costs: dict[str, FloatArray]
    attempts: Labels | None

    @classmethod
    def of(cls, samples: Samples, metric: str, filter_name: str) -> Self:
        """Take one metric of the rows of one filter."""
        rows = np.flatnonzero(samples.filters.index == samples.filters.names.to_list().index(filter_name))
        names = pl.Series("name", samples.file.task + "/" + samples.documents.names)
        lengths = n_attempts(samples, metric)
        attempts = samples.attempts
        return cls(
            Labels(pl.Series("name", [samples.file.model_id]), np.zeros(rows.size, dtype=np.int64), "text"),
            Labels(names, samples.documents.index[rows], "text"),
            Labels(samples.hashes.names, samples.hashes.index[rows]),
            samples.metrics[metric].values[rows],
            None if lengths is None else lengths[rows],
            np.full(rows.size, NO_HASH) if samples.prompts is None else samples.prompts[rows],
            {unit: cost[rows] for unit, cost in samples.costs.items()},
            None if attempts is None else Labels(attempts.names, attempts.index[rows]),
        )

    def cost(self, unit: str) -> FloatArray:
        """Cost of each row in this unit, NaN where the log does not tell."""
        return self.costs.get(unit, np.full(self.values.size, np.nan))


def _source(samples: Sequence[Samples], kind: LogKind) -> str:
    """Say where the rows come from."""
    first = samples[0].file.path
    return str(first) if len(samples) == 1 else f"{len(samples)} {kind.files} ({first.name}, ...)"


def _without_changed(
    samples: Sequence[Samples], choices: dict[str, tuple[str, str]]
) -> tuple[list[Samples], list[str]]:
    """Leave out tasks whose items differ between runs, and say so; keep all when none would be left."""
    picked = [_Picked.of(one, *choices[one.file.task]) for one in samples]
    items, hashes = join_labels([part.items for part in picked]), join_labels([part.hashes for part in picked])
    _, differing = first_in_group(items.index, items.n_names, hashes.index)
    names = _tasks(samples, picked, items).gather(np.unique(items.index[differing])).to_list()
    n_changed = {task: names.count(task) for task in dict.fromkeys(names)}
    kept = [one for one in samples if one.file.task not in n_changed]
    if not kept:
        return list(samples), []
    return kept, [f"task {task!r}: {n} items have another content in some runs." for task, n in n_changed.items()]


def _item_table(
    items: Labels,
    tasks: pl.Series,
    content: list[str | None],
    *,
    choices: dict[str, tuple[str, str]],
    groups: dict[str, str],
    kind: LogKind,
) -> pl.DataFrame:
    """Return what is known of each item."""
    table = pl.DataFrame({"item_id": items.names, "task": tasks, "content_hash": content})
    documents = pl.col("item_id").str.slice(pl.col("task").str.len_chars() + 1)
    numbers = [documents.cast(pl.Int64, strict=False).alias("doc_id")] if kind.has_document_numbers else []
    metric = {task: choice[0] for task, choice in choices.items()}
    filters = {task: choice[1] for task, choice in choices.items()}
    return table.select(
        "item_id",
        pl.col("task").replace(groups).alias("scenario"),
        pl.when(pl.col("task").is_in(list(groups))).then("task").alias("subscenario"),
        "task",
        *numbers,
        pl.col("content_hash").cast(pl.String),
        pl.col("task").replace(metric).alias("metric"),
        pl.col("task").replace(filters).alias("filter"),
    )


def _say(notes: Sequence[str], lonely: Sequence[Path]) -> None:
    """Warn of choices made by default, and of runs without samples."""
    if notes:
        how = remedy("metric=..., filter_name=...", "--metric, --filter")
        warn(f"taken by default: {first_few(notes)}. Choose with {how}.", DataWarning)
    if lonely:
        names = [path.name for path in lonely]
        warn(f"{len(names)} runs have no samples and are left out: {shown(names)}.", DataWarning)


def _say_failed(samples: Iterable[Samples]) -> None:
    """Say how many answers failed: they are missing, and not wrong."""
    failed: dict[str, int] = {}
    for one in samples:
        if one.n_failed:
            failed[one.file.model_id] = failed.get(one.file.model_id, 0) + one.n_failed
    if failed:
        names = [f"{n} of {model!r}" for model, n in failed.items()]
        message = f"{sum(failed.values())} answers ended in an error and are missing, not wrong: {first_few(names)}."
        warn(message, DataWarning)
