"""From the logs of an evaluation harness to rows: one metric a task, the same for all models, and items compared."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, first_few, remedy, shown, warn
from itembank.files.documents import digest_of
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback
from itembank.readers.collecting import collect, own_files
from itembank.readers.contents import Prompted, item_contents, item_prompts
from itembank.readers.lm_eval_choice import choose, ways_out
from itembank.readers.lm_eval_files import SampleFile, oldest_first, renamed
from itembank.readers.lm_eval_samples import NO_FILTER, Samples, metric_of
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.refusals import RefusedError, refuse, say_left_out, wanted
from itembank.readers.rows import ResponseRows
from itembank.responses.error_kinds import NO_ANSWER, error_kind
from itembank.responses.labels import Labels, first_in_group, join_labels
from itembank.responses.lost_answers import LostAnswers
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
    source: str = ""  # Its name in `SOURCES`
    hint: str = ""  # Where its files are, for a folder without any


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
        samples, changed = _without_changed(samples, choices)
        problems.extend(changed)
    if notes:
        how = remedy("metric=..., filter_name=...", "--metric, --filter")
        warn(f"taken by default: {first_few(notes)}. Choose with {how}.", DataWarning)
    if lonely:
        names = [path.name for path in lonely]
        warn(f"{len(names)} runs have no samples and are left out: {shown(names)}.", DataWarning)
    if compare is not None:
        compare(samples, choices)
    if spec.repeats == "count":
        warn_of_uncounted(samples, choices)
    rows = _rows(samples, choices, spec, kind)
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
    runs = [one.file for one in samples]
    ends = np.cumsum([part.values.size for part in picked])[:-1]
    prompted = [
        Prompted(file.model_id, file.task, file.run.settings.get(file.task, {}), rows, part.prompts)
        for file, rows, part in zip(runs, np.split(items.index, ends), picked, strict=True)
    ]
    prompts = item_prompts(prompted, items.n_names, spec)
    tasks = _tasks(samples, picked, items)
    has_groups = spec.use_groups or kind.uses_groups
    groups = {task: group for one in samples for task, group in one.file.run.groups.items()} if has_groups else {}
    has_lists = any(part.lengths is not None for part in picked)
    lengths = [np.ones(part.values.size, np.int64) if part.lengths is None else part.lengths for part in picked]
    units = dict.fromkeys(unit for one in samples for unit in one.costs)
    first = samples[0].file.path
    lost = np.concatenate([part.lost for part in picked])
    return ResponseRows(
        str(first) if len(samples) == 1 else f"{len(samples)} {kind.files} ({first.name}, ...)",
        models,
        items,
        np.concatenate([part.values for part in picked]) / spec.max_response,
        np.concatenate(lengths) if has_lists else None,
        {unit: np.concatenate([part.cost(unit) for part in picked]) for unit in units},
        _attempts(samples, picked, spec),
        LostAnswers((lost > 0).astype(np.int64), lost) if lost.any() else None,
        None,
        model_table(samples, models, items, tasks),
        _item_table(items, tasks, content, choices=choices, groups=groups, kind=kind).with_columns(prompts),
    )


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
    lost: IntArray
    costs: dict[str, FloatArray]
    attempts: Labels | None

    @classmethod
    def of(cls, samples: Samples, metric: str, filter_name: str) -> Self:
        """Take one metric of the rows of one filter."""
        rows = np.flatnonzero(samples.filters.index == samples.filters.names.to_list().index(filter_name))
        names = pl.Series("name", samples.file.task + "/" + samples.documents.names)
        lengths = n_attempts(samples, metric)
        attempts = samples.attempts
        values = samples.metrics[metric].values[rows]
        lost = np.isnan(values).astype(np.int64) * NO_ANSWER
        if samples.errors is not None:
            lost = np.where(samples.errors[rows] > 0, samples.errors[rows], lost)
        return cls(
            Labels(pl.Series("name", [samples.file.model_id]), np.zeros(rows.size, dtype=np.int64), "text"),
            Labels(names, samples.documents.index[rows], "text"),
            Labels(samples.hashes.names, samples.hashes.index[rows]),
            np.where(lost > 0, np.nan, values),
            None if lengths is None else lengths[rows],
            np.full(rows.size, NO_HASH) if samples.prompts is None else samples.prompts[rows],
            lost,
            {unit: cost[rows] for unit, cost in samples.costs.items()},
            None if attempts is None else Labels(attempts.names, attempts.index[rows]),
        )

    def cost(self, unit: str) -> FloatArray:
        """Cost of each row in this unit, NaN where the log does not tell."""
        return self.costs.get(unit, np.full(self.values.size, np.nan))


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
    if metric not in PASS_RATES or samples.n_generated.max(initial=0) <= 1:
        return None
    right = np.where(np.isnan(found.values), 0.0, found.values) * samples.n_generated
    is_count = np.abs(right - np.rint(right)) <= 1e-6
    return np.maximum(samples.n_generated, 1) if is_count.all() else None


def warn_of_uncounted(samples: Sequence[Samples], choices: Mapping[str, tuple[str, str]]) -> None:
    """Warn of tasks that generated several texts an item where the chosen metric scores one of them."""
    hidden: dict[str, str] = {}
    for one in samples:
        metric, filter_name = choices[one.file.task]
        most = int(one.n_generated.max(initial=0))
        if most > 1 and n_attempts(one, metric) is None:
            hidden[one.file.task] = f"{one.file.task!r} ({most} texts, {metric!r} after the filter {filter_name!r})"
    if hidden:
        message = (
            f"{len(hidden)} tasks generated several texts an item, of which the log scores one: "
            f"{first_few(list(hidden.values()))}. One trial is counted; to have all, log a metric of every text, or "
            "run the task with several seeds and read them as a table."
        )
        warn(message, DataWarning)


def model_table(samples: Sequence[Samples], models: Labels, items: Labels, tasks: pl.Series) -> pl.DataFrame:
    """Return one row a model: what its latest run tells, and on how many of the items of its tasks it was run.

    `n_items_full` and `is_partial` are null where nobody tells.
    """
    task_of = pl.DataFrame({"item": np.arange(items.n_names), "task": tasks})
    pairs = pl.DataFrame({"model": models.index, "item": items.index}).unique().join(task_of, on="item")
    n_run = {(models.names[model], task): n for model, task, n in pairs.group_by("model", "task").len().iter_rows()}
    about: dict[str, dict[str, Any]] = {}
    sizes: dict[tuple[str, str], int] = {}
    limited: dict[tuple[str, str], bool | None] = {}
    for file in (one.file for one in samples):  # in order of date: later runs overwrite
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
    documents = Labels.of(pl.Series("name", [one.document for one in answers], dtype=pl.String))
    attempts = Labels.of(pl.Series("name", [one.attempt for one in answers], dtype=pl.String))
    units = [unit for unit in COST_COLUMNS if any(unit in one.costs for one in answers)]
    return Samples(
        file,
        documents,
        Labels(pl.Series("name", [NO_FILTER]), np.zeros(len(answers), dtype=np.int64)),
        Labels.of(pl.Series("name", [one.content for one in answers], dtype=pl.String)),
        {name: metric_of([None if one.error else one.metrics.get(name) for one in answers]) for name in names},
        np.zeros(len(answers), dtype=np.int64),
        costs={unit: _amounts([one.costs.get(unit) for one in answers]) for unit in units},
        attempts=attempts if documents.n_names < len(answers) else None,
        errors=np.array([error_kind(one.error) for one in answers], dtype=np.int64),
    )


def _amounts(values: Sequence[Any]) -> FloatArray:
    """Amounts as numbers, (n_rows,); NaN where there is none, or none that can be a cost."""
    is_amount = [isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 2**63 for one in values]
    return np.array([one if good else np.nan for one, good in zip(values, is_amount, strict=True)], dtype=np.float64)


def content_digest(*parts: Any) -> str:
    """Digest of whatever tells the content of an item."""
    return digest_of(json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str).encode())


def harness_rows(
    kind: LogKind,
    tell: Callable[[Path, ReadingSpec], SampleFile],  # Task and model of a file, by its name and place
    read: Callable[[SampleFile], Samples],  # The answers of a file
    paths: Sequence[Path],
    spec: ReadingSpec,
    *,
    progress: ProgressCallback,
) -> ResponseRows:
    """Read the files of one program among these files and below these folders."""
    found, problems = [], []
    for path in own_files(paths, kind.source, spec, kind.hint):
        try:
            found.append(renamed(tell(path, spec), spec.task_names))
        except DataError as error:
            problems.append(str(error))
    files = oldest_first(wanted(found, spec))
    if not files:
        refuse(problems)
    samples, unread = read_each_log(files, read, progress)
    return logged_rows(kind, samples, [*problems, *unread], spec)
