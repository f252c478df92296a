"""Logs of lm-evaluation-harness: the samples it writes with ``--log_samples``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from itembank.errors import DataWarning, first_few, quoted, remedy, shown, warn
from itembank.files.documents import read_json
from itembank.numerics.arrays import FloatArray, mean_where_known
from itembank.progress import ProgressCallback, silent
from itembank.readers.json_files import Record, each_record, mapping
from itembank.readers.matching import Document
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import is_wanted
from itembank.readers.rows import ResponseRows
from itembank.tables import plural
from itembank_harnesses.public.stores import LEADERBOARD_METRICS
from itembank_harnesses.readers.lm_eval_choice import needs_options, with_choice_metrics
from itembank_harnesses.readers.lm_eval_files import (
    RESULTS,
    SAMPLES,
    FoundFiles,
    find_sample_files,
    is_sample,
    json_or_none,
    results_path,
    run_of,
)
from itembank_harnesses.readers.lm_eval_samples import Samples, read_samples, samples_of
from itembank_harnesses.readers.logged import LogKind, logged_rows, read_each_log
from itembank_harnesses.readers.runs import RunKey, SampleFile

KIND = LogKind(
    "lm_eval samples files",
    "doc_hash",
    "The task changed between the runs, or shuffles its options anew, or unsorted ids were given to lm_eval --samples",
    has_document_numbers=True,
    uses_groups=False,
)


def is_lm_eval(record: Record) -> bool:
    """Whether an object is a sample of lm_eval, or the whole of its results."""
    return is_sample(record) or ("results" in record and not {"versions", "configs"}.isdisjoint(record))


def lm_eval_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read samples files and folders of them."""
    found = find_sample_files(paths, spec)
    with_options = needs_options(spec)

    def read(file: SampleFile) -> Samples:
        return with_choice_metrics(read_samples(file, with_options=with_options))

    samples, problems = read_each_log(found.files, read, progress)
    compare = partial(warn_of_other_results, found=found, spec=spec)
    return logged_rows(KIND, samples, [*found.problems, *problems], spec, lonely=found.lonely, compare=compare)


def lm_eval_documents(paths: Sequence[Path], spec: ReadingSpec, known: Collection[str]) -> Iterator[Document]:
    """Give the documents of samples files, if none of them is of a known task."""
    files = find_sample_files(paths, spec).files
    for file in files if set(known).isdisjoint(file.task for file in files) else ():
        for record in each_record(file.path):
            asked, own_hash = mapping(record.get("doc")), partial(record.get, "doc_hash")
            yield Document(file.task, str(record.get("doc_id")), asked, own_hash)


def lm_eval_record_rows(
    samples: Mapping[str, Sequence[Record]], results: Mapping[str, Any], model_id: str, spec: ReadingSpec
) -> ResponseRows:
    """Read samples that a run of the harness has just returned, without a file; the rest as `lm_eval_rows`."""
    run = run_of(results, "")
    files = [SampleFile(Path(f"samples of {task}"), task, "", run, model_id) for task in samples]
    read = [
        with_choice_metrics(samples_of(file, [samples[file.task]], with_options=needs_options(spec))) for file in files
    ]
    return logged_rows(KIND, read, [], spec)


ROUNDING = 5e-5
"""How far a mean of samples may be from a score that has four decimals at least."""
MEANS = ("acc", "acc_norm", "exact_match")
"""Metrics that the harness averages where a task does not say how its scores are made."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Samples of one run and task that were taken, beside what the results file tells of them."""

    file: SampleFile
    n_items: int
    column: str  # What the results file calls the scores; empty where they are no means of the values
    values: FloatArray  # (n_rows,): Of the chosen metric and filter, NaN where there is none
    stated: float | None  # The score of the task, where it is stated as a mean

    @classmethod
    def of(cls, samples: Samples, metric: str, filter_name: str, content: Mapping[str, Any]) -> Self:
        """Take what was read of one file."""
        task, found = samples.file.task, samples.metrics[metric]
        values = found.values[(samples.frame["filter"] == filter_name).to_numpy()]
        column = "" if found.problem or found.lengths is not None else f"{metric},{filter_name}"
        listed = _mapping(content, "configs", task).get("metric_list")
        listed = [way for way in listed if isinstance(way, dict)] if isinstance(listed, list) else []
        ways = [way.get("aggregation", "mean") for way in listed if way.get("metric") == metric]
        is_mean = bool(column) and (ways == ["mean"] or (not ways and metric in MEANS))
        stated = _number(content, "results", task, column) if is_mean else None
        return cls(samples.file, samples.frame["document"].n_unique(), column, values, stated)

    @property
    def mean(self) -> float:
        return float(mean_where_known(self.values))

    @property
    def differs(self) -> bool:
        """Whether the mean of what was read is not the score that is stated."""
        return self.stated is not None and not abs(self.stated - self.mean) <= ROUNDING


def warn_of_other_results(
    samples: Sequence[Samples], choices: Mapping[str, tuple[str, str]], found: FoundFiles, spec: ReadingSpec
) -> None:
    """Warn where the samples that were read are not those that the results files beside them tell of.

    Named are samples that are missing, texts that are empty, and scores of tasks, and of groups where groups are
    scenarios, that are not the means of what was read.
    """
    runs: dict[RunKey, list[Samples]] = {}
    unread: dict[RunKey, set[str]] = {}
    for file in found.files:
        unread.setdefault(file.run_key, set()).add(file.task)
    for one in samples:
        runs.setdefault(one.file.run_key, []).append(one)
        unread[one.file.run_key].discard(one.file.task)
    # the harness writes empty texts where an interface returned nothing, too
    empty = [(one, one.n_empty) for one in samples if one.n_empty]
    if empty:
        names = [f"{n} of {one.file.task} by {quoted(one.file.model_id)}" for one, n in empty]
        message = (
            f"{sum(n for _, n in empty)} generated texts are empty: {first_few(names)}. They count as they were "
            "scored. If an interface returned nothing in their place (a time-out, a content filter), run them again."
        )
        warn(message, DataWarning)
    missing: list[str] = []
    scores: list[str] = []
    groups: list[str] = []
    for key, of_run in runs.items():
        path = results_path(*key)
        if path is None:
            continue
        content = _by_new_names(json_or_none(path) or {}, spec.task_names)
        read = [_Read.of(one, *choices[one.file.task], content) for one in of_run]
        told = _other_counts(content, key, read, spec, is_walked=key in found.walked)
        missing.extend(words for task, words in told if task not in unread[key])
        scores += [
            f"{one.file.task} by {quoted(one.file.model_id)}: {one.stated:.4f}, read {one.mean:.4f}"
            for one in read
            if one.differs
        ]
        groups.extend(_other_groups(content, read) if spec.use_groups else ())
    moved = "Check whether files were moved, renamed or compressed, or belong to another run."
    macro = remedy("calibrate(..., within='macro')", "itembank calibrate --within macro")
    for words, (noun, verb), what, advice in (
        (missing, ("task", "have"), "other samples than the results beside them say", moved),
        (
            scores,
            ("score", "differ"),
            "from those in the results files",
            "Check whether samples and results are of one run.",
        ),
        (
            groups,
            ("group", "have"),
            "another score in lm_eval",
            f"Here the items of a group count alike, however deep its groups are; with {macro} its tasks count alike.",
        ),
    ):
        if words:
            warn(f"{plural(len(words), noun, verb)} {what}: {first_few(words)}. {advice}", DataWarning)


def _by_new_names(content: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Give tasks of a results file the names that they were read by."""
    by_task = {part: _mapping(content, part) for part in ("n-samples", "configs", "results")}
    return {**content, **{part: {names.get(task, task): one[task] for task in one} for part, one in by_task.items()}}


def _mapping(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return an object inside a results file, an empty one where there is none."""
    inside: Any = content
    for name in names:
        inside = inside.get(name) if isinstance(inside, dict) else None
    return inside if isinstance(inside, dict) else {}


def _number(content: Mapping[str, Any], *names: str) -> float | None:
    """Return a number inside a results file, None where there is none that fits."""
    value = _mapping(content, *names[:-1]).get(names[-1])
    largest = 1e15  # no score and no count is larger
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) > largest
    return value if is_number else None


def _other_counts(
    content: Mapping[str, Any], key: RunKey, found: Sequence[_Read], spec: ReadingSpec, *, is_walked: bool
) -> Iterator[tuple[str, str]]:
    """Give tasks of which another number of samples is told than was read, each with what to say of it.

    With ids given to ``lm_eval --samples`` some releases state the size of the whole task: where the score is the mean
    of what was read, nothing is missing.
    """
    read = {one.file.task: one for one in found}
    for task in _mapping(content, "n-samples"):
        n_told, one = _number(content, "n-samples", task, "effective"), read.get(task)
        n_items = 0 if one is None else one.n_items
        is_right = one is not None and one.stated is not None and not one.differs
        if not n_told or n_items == n_told or is_right or not is_wanted(task, spec) or not (one or is_walked):
            continue
        named = [] if one else [path.name for path in sorted(key[0].iterdir()) if task in path.name]
        near = [name for name in named if not (SAMPLES.fullmatch(name) or RESULTS.fullmatch(name))]
        beside = f" ({shown(near, 2)} has another name than samples files have)" if near else ""
        model = found[0].file.model_id
        yield task, f"results report {n_told:g} samples of {task} by {quoted(model)}, found {n_items}{beside}"


def _other_groups(content: Mapping[str, Any], found: Sequence[_Read]) -> Iterator[str]:
    """Name groups whose score is not the mean of the items that were read; those without a score name inner ones."""
    members: dict[str, list[_Read]] = {}
    for one in found:
        if one.file.task in one.file.run.groups:
            members.setdefault(one.file.run.groups[one.file.task], []).append(one)
    subtasks = _mapping(content, "group_subtasks")
    for group, tasks in members.items():
        columns = {one.column for one in tasks}
        column = columns.pop() if len(columns) == 1 else ""
        score, who = _group_score(content, group, column), f"{group} by {quoted(tasks[0].file.model_id)}"
        below = subtasks.get(group)
        inner = [str(name) for name in (below if isinstance(below, list) else ()) if subtasks.get(str(name))]
        inner = [name for name in inner if _group_score(content, name, column) is not None]
        micro = float(mean_where_known(np.concatenate([one.values for one in tasks])))
        macro = float(mean_where_known(np.array([one.mean for one in tasks])))
        if score is None and inner:
            yield f"{who} none, but the groups in it have: {shown(inner)}"
        elif score is not None and abs(score - micro) > ROUNDING:
            alike = "this is" if abs(score - macro) <= ROUNDING else f"{macro:.4f} is"
            yield f"{who} {score:.4f}, items read {micro:.4f} ({alike} the mean of its tasks)"


def _group_score(content: Mapping[str, Any], group: str, column: str) -> float | None:
    score = _number(content, "groups", group, column)
    return _number(content, "results", group, column) if score is None else score


def lm_eval_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give the score of each task of each run below a folder, in the metric the leaderboard takes."""
    for path in sorted(folder.rglob("results_*.json")):
        if RESULTS.fullmatch(path.name) is None:
            continue
        content = read_json(path)
        results = content.get("results", {}) if isinstance(content, dict) else {}
        model = content.get("model_name") if isinstance(content, dict) else None
        for task, scores in results.items() if model else ():
            metric = next((one for name in LEADERBOARD_METRICS if (one := f"{name},none") in scores), None)
            if metric is not None:
                yield str(model), str(task), float(scores[metric])
