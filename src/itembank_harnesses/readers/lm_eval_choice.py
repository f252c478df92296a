"""Which metric and filter of a harness task is the response."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from typing import TypeAlias

import numpy as np

from itembank.errors import did_you_mean, remedy, shown
from itembank.numerics.arrays import FloatArray
from itembank.readers.reading_specs import ReadingSpec, Response, choices_for, how
from itembank.readers.refusals import WaysOut
from itembank.readers.settling import POOLED, range_advice
from itembank.responses.choice_scores import (
    bits_per_byte,
    choice_accuracy,
    choice_probability,
    probability_per_character,
)
from itembank.tables import plural
from itembank_harnesses.readers.lm_eval_samples import Metric, Options, Samples

METRIC_OF_RESPONSE: Mapping[Response, str] = {
    "accuracy": "choice_accuracy",
    "accuracy-per-character": "choice_accuracy_per_character",
    "probability": "choice_probability",
    "probability-per-character": "choice_probability_per_character",
}
"""Name that each response goes by among the metrics of a task, and in the item table."""
COMPARING = ("choice_accuracy", "choice_accuracy_per_character", "choice_probability")
"""Those that compare options, and need two at least."""

SCORES: Mapping[str, Callable[[Options], FloatArray]] = {
    "choice_accuracy": lambda one: choice_accuracy(one.log_likelihood, one.is_right),
    "choice_accuracy_per_character": lambda one: choice_accuracy(one.log_likelihood, one.is_right, one.n_characters),
    "choice_probability": lambda one: choice_probability(one.log_likelihood, one.is_right),
    "choice_probability_per_character": lambda one: probability_per_character(
        one.log_likelihood, one.is_right, one.n_characters
    ),
    "bits_per_byte": lambda one: bits_per_byte(one.log_likelihood, one.is_right, one.n_bytes),
}


def needs_options(spec: ReadingSpec) -> bool:
    """Whether the response of some task is made of log-likelihoods."""
    chosen = {name.partition("=")[2] or name for name in spec.metric}
    return spec.response != "metric" or not chosen.isdisjoint(METRIC_OF_RESPONSE.values())


def with_choice_metrics(samples: Samples) -> Samples:
    """Add the metrics that are made of answer options; those that cannot be made say why."""
    options = samples.options
    if options is None:
        return samples
    made = {name: _metric(name, options) for name in METRIC_OF_RESPONSE.values()}
    return replace(samples, metrics={**samples.metrics, **made})


def _metric(name: str, options: Options) -> Metric:
    """One metric of the options, or why there is none."""
    problem = options.problem
    if not problem and name in COMPARING and not options.has_alternatives:
        one_alone = remedy(
            "response='probability-per-character'", "response = 'probability-per-character' in the file of --spec"
        )
        problem = f"compares options, and some samples have only one; {one_alone} needs one alone"
    if problem:
        return Metric(np.full(options.log_likelihood.shape[0], np.nan), None, problem)
    return Metric(SCORES[name](options))


DEFAULT_METRICS = ("acc", "exact_match")
"""Taken, in this order, from a task that logs several metrics when nobody chose."""
DEFAULT_FILTERS = ("none", "strict-match")
CHOICE_METRICS = frozenset(METRIC_OF_RESPONSE.values())
"""Taken only when asked for."""


Chosen: TypeAlias = tuple[str, str]
"""A name, and what is in the way of it; one of the two is empty."""


def choose_metric(task: str, samples: Sequence[Samples], spec: ReadingSpec, notes: list[str]) -> Chosen:
    """Name of the metric to take for a task."""
    names = list(dict.fromkeys(name for one in samples for name in one.metrics))
    made = [METRIC_OF_RESPONSE[spec.response]] if spec.response != "metric" else []
    wanted = choices_for(task, spec.metric) or made
    if wanted:
        name, problem = _asked("metric", task, wanted, names)
        problem = problem or _metric_problem(name, samples, spec, is_chosen=True)
        return name, f"task {task!r}: {problem}." if name and problem else problem
    names = [name for name in names if name not in CHOICE_METRICS]
    problems = {name: _metric_problem(name, samples, spec, is_chosen=False) for name in names}
    usable = [name for name in names if not problems[name]]
    if len(usable) == 1:
        return usable[0], ""
    if not usable:
        reasons = "; ".join(problems.values()) or "it logs none"
        return "", f"task {task!r} has no metric that can be a response: {reasons}."
    return _default("metric", task, usable, DEFAULT_METRICS, notes)


def choose_filter(task: str, samples: Sequence[Samples], spec: ReadingSpec, notes: list[str]) -> Chosen:
    """Name of the filter to take for a task."""
    names = list(dict.fromkeys(name for one in samples for name in one.filters))
    wanted = choices_for(task, spec.filter_name)
    if wanted:
        chosen, problem = _asked("filter", task, wanted, names)
    elif len(names) == 1:
        chosen, problem = names[0], ""
    else:
        chosen, problem = _default("filter", task, names, DEFAULT_FILTERS, notes)
    without = [str(one.file.path) for one in samples if chosen not in one.filters]
    if without and not problem:
        found = f"got {len(without)} without: {shown(without)}"
        return "", f"task {task!r}: every run must have the filter {chosen!r}, {found}."
    return chosen, problem


def _asked(word: str, task: str, wanted: Sequence[str], names: Sequence[str]) -> Chosen:
    """Take the first of the wanted names that there is."""
    near = did_you_mean(wanted, names)
    problem = f"unknown {word} {shown(wanted)} for task {task!r}: it has {shown(names, 20)}.{near}"
    return next(((name, "") for name in wanted if name in names), ("", problem))


def _default(word: str, task: str, names: Sequence[str], preferred: Sequence[str], notes: list[str]) -> Chosen:
    """Take the first preferred name, with a note; without any, ask."""
    for name in preferred:
        if name in names:
            others = [other for other in names if other != name]
            notes.append(f"{word} {name!r} of task {task!r} (it also has {shown(others)})")
            return name, ""
    return "", f"task {task!r} has several {word}s: {shown(names, 20)}. Choose one."


def _metric_problem(name: str, samples: Sequence[Samples], spec: ReadingSpec, *, is_chosen: bool) -> str:
    """Why a metric cannot be the response; empty when it can."""
    without = [str(one.file.path) for one in samples if name not in one.metrics]
    if without:
        return f"metric {name!r} is absent from {plural(len(without), 'run')}: {shown(without)}"
    bad = [one.metrics[name] for one in samples if one.metrics[name].problem]
    if bad and any(metric.lengths is None for metric in bad):
        return f"metric {name!r} {bad[0].problem}"
    if bad and not (spec.repeats in POOLED and is_chosen):
        ways = f"counted ({how(repeats='count')}) or averaged ({how(repeats='mean')})"
        return f"metric {name!r} {bad[0].problem}; they are {ways} only when asked for"
    if any(one.lower_is_better(name) for one in samples):
        return (
            f"metric {name!r} is better when lower, and a response must be better when higher; turn it round in a table"
        )
    return _range(name, samples, spec)


def _range(name: str, samples: Sequence[Samples], spec: ReadingSpec) -> str:
    values = np.concatenate([one.metrics[name].values for one in samples]) / spec.max_response
    known = values[~np.isnan(values)]
    if known.size == 0:
        return f"metric {name!r} has no values"
    low, high = float(known.min()), float(known.max())
    if low >= 0.0 and high <= 1.0:
        return ""
    if spec.max_response != 1.0:
        return (
            f"metric {name!r} must lie in [0, 1] after division by {spec.max_response:g}, got values from {low:g} to "
            f"{high:g}"
        )
    advice = range_advice(known, has_marks=False, only={"tasks": (samples[0].file.task,)}).removesuffix(".")
    return f"metric {name!r} must lie in [0, 1], got values from {low:g} to {high:g}. {advice}".rstrip(". ")


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """The metric and filter of a task, or what is in the way of them."""

    metric: str
    filter_name: str
    problems: tuple[str, ...]


def choose(task: str, samples: Sequence[Samples], spec: ReadingSpec, notes: list[str]) -> TaskChoice:
    """Choose the metric and filter of a task; choices made by default are noted."""
    spec = _with_filters(spec, {name for one in samples for name in one.metrics})
    metric, metric_problem = choose_metric(task, samples, spec, notes)
    filter_name, filter_problem = choose_filter(task, samples, spec, notes)
    return TaskChoice(metric, filter_name, tuple(one for one in (metric_problem, filter_problem) if one))


def _with_filters(spec: ReadingSpec, names: Container[str]) -> ReadingSpec:
    """Take 'exact_match,strict-match', as the harness calls a result, for a metric and its filter."""
    metrics, filters = [], []
    for one in spec.metric:
        task, equals, name = one.rpartition("=")
        metric, comma, filter_name = name.partition(",")
        if comma and name not in names:
            filters.append(f"{task}{equals}{filter_name}")
            name = metric
        metrics.append(f"{task}{equals}{name}")
    return replace(spec, metric=tuple(metrics), filter_name=(*filters, *spec.filter_name)) if filters else spec


def ways_out(
    tasks: Mapping[str, Sequence[Samples]], refused: Sequence[str], spec: ReadingSpec, *, has_bad_files: bool
) -> WaysOut:
    """Return what makes the logs readable; nothing where nothing could be read.

    `tasks` are those of files that can be read; `refused` are those whose metric or filter cannot be chosen. No choice
    of tasks and metrics mends bad files, which are to be mended, or left out, besides.
    """
    can_skip = len(refused) < len(tasks)
    if not refused:
        return WaysOut(can_skip=can_skip)
    metrics: list[str] = []
    filters: list[str] = []
    excluded: list[str] = []
    pairs: dict[str, str] = {}
    for task in refused:
        pattern = escape(task)
        found = next(_fitting(task, pattern, tasks[task], spec), None)
        if found is None:
            excluded.append(pattern)
        else:
            metrics.extend(found.metric[len(spec.metric) :])
            added = found.filter_name[len(spec.filter_name) :]
            filters.extend(added)
            if added:
                metric = choose(task, tasks[task], found, []).metric
                pairs[pattern] = f"{pattern}={metric},{added[0][len(pattern) + 1 :]}"
    if len(excluded) == len(tasks):
        return WaysOut(can_skip=can_skip)
    if not has_bad_files:  # whose tasks may have other metrics
        metrics = _in_general(tasks, metrics, filters, excluded, spec)
    others = [one for one in metrics if one.rpartition("=")[0] not in pairs]
    return WaysOut(tuple(metrics), tuple(filters), tuple(excluded), can_skip, (*others, *pairs.values()), has_bad_files)


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
    filters = list(dict.fromkeys(name for one in samples for name in one.filters))
    for metric in ((), *((f"{pattern}={name}",) for name in names)):
        for filter_name in ((), *((f"{pattern}={name}",) for name in filters)):
            tried = replace(spec, metric=(*spec.metric, *metric), filter_name=(*spec.filter_name, *filter_name))
            if not choose(task, samples, tried, []).problems:
                yield tried
