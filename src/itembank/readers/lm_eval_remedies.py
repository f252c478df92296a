"""What to add to a command so that logs of lm-evaluation-harness which were refused can be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape

from itembank.readers.lm_eval_choice import CHOICE_METRICS, DEFAULT_METRICS, choose_filter, choose_metric
from itembank.readers.lm_eval_samples import Samples
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import WaysOut


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """The metric and filter of a task, or what is in the way of them."""

    metric: str
    filter_name: str
    problems: tuple[str, ...]


def choose(task: str, samples: Sequence[Samples], spec: ReadingSpec, notes: list[str]) -> TaskChoice:
    """Choose the metric and filter of a task; choices made by default are noted."""
    metric, metric_problem = choose_metric(task, samples, spec, notes)
    filter_name, filter_problem = choose_filter(task, samples, spec, notes)
    return TaskChoice(metric, filter_name, tuple(one for one in (metric_problem, filter_problem) if one))


def ways_out(
    tasks: Mapping[str, Sequence[Samples]], refused: Sequence[str], spec: ReadingSpec, *, has_bad_files: bool
) -> WaysOut:
    """Return what makes the logs readable; nothing where nothing could be read.

    Parameters
    ----------
    tasks : mapping of task to its samples
        Of the files that can be read.
    refused : sequence of tasks
        Those of which metric or filter cannot be chosen; none when only files are at fault.
    spec : ReadingSpec
        What was asked for.
    has_bad_files : bool
        Whether some files cannot be read, which no choice of tasks and metrics mends.
    """
    can_skip = len(refused) < len(tasks)
    if refused and not has_bad_files:
        metrics, filters, excluded = _additions(tasks, refused, spec)
        if len(excluded) < len(tasks):
            return WaysOut(tuple(metrics), tuple(filters), tuple(excluded), can_skip)
    return WaysOut(can_skip=can_skip)


def _additions(
    tasks: Mapping[str, Sequence[Samples]], refused: Sequence[str], spec: ReadingSpec
) -> tuple[list[str], list[str], list[str]]:
    """Metrics and filters to choose, and tasks to exclude; each was tried."""
    metrics: list[str] = []
    filters: list[str] = []
    excluded: list[str] = []
    for task in refused:
        pattern = escape(task)
        found = next(_fitting(task, pattern, tasks[task], spec), None)
        if found is None:
            excluded.append(pattern)
            continue
        metrics.extend(found.metric[len(spec.metric) :])
        filters.extend(found.filter_name[len(spec.filter_name) :])
    return _in_general(tasks, metrics, filters, excluded, spec), filters, excluded


def _in_general(
    tasks: Mapping[str, Sequence[Samples]],
    metrics: list[str],
    filters: Sequence[str],
    excluded: Sequence[str],
    spec: ReadingSpec,
) -> list[str]:
    """Shorten metrics of many tasks to an order of preference, where this changes nothing for any task.

    Not beside metrics chosen for tasks by name: for a new model's logs these are the bank's, which hold only where the
    command names no metric for all tasks.
    """
    names = tuple(dict.fromkeys(one.rpartition("=")[2] for one in metrics))
    is_by_task = spec.response != "metric" or any("=" in one for one in spec.metric)
    if is_by_task or len(names) == len(metrics):
        return metrics
    exact, general = (
        replace(spec, metric=(*spec.metric, *chosen), filter_name=(*spec.filter_name, *filters))
        for chosen in (metrics, names)
    )
    kept = [task for task in tasks if escape(task) not in excluded]
    is_same = all(choose(task, tasks[task], exact, []) == choose(task, tasks[task], general, []) for task in kept)
    return list(names) if is_same else metrics


def _fitting(task: str, pattern: str, samples: Sequence[Samples], spec: ReadingSpec) -> Iterator[ReadingSpec]:
    """Specs by which a task can be read, those that change least first."""
    names = list(dict.fromkeys(name for one in samples for name in one.metrics if name not in CHOICE_METRICS))
    names = sorted(
        names, key=lambda name: DEFAULT_METRICS.index(name) if name in DEFAULT_METRICS else len(DEFAULT_METRICS)
    )
    filters = list(dict.fromkeys(name for one in samples for name in one.filters.names.to_list()))
    for metric in ((), *((f"{pattern}={name}",) for name in names)):
        for filter_name in ((), *((f"{pattern}={name}",) for name in filters)):
            tried = replace(spec, metric=(*spec.metric, *metric), filter_name=(*spec.filter_name, *filter_name))
            if not choose(task, samples, tried, []).problems:
                yield tried
