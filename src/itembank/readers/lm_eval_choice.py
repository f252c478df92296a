"""Which metric and filter of a harness task is the response."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import numpy as np

from itembank.errors import did_you_mean, remedy, shown
from itembank.readers.lm_eval_samples import Samples
from itembank.readers.lm_eval_scores import METRIC_OF_RESPONSE
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.repeats import POOLED

DEFAULT_METRICS = ("acc", "exact_match")
"""Taken, in this order, from a task that logs several metrics when nobody chose."""
DEFAULT_FILTERS = ("none", "strict-match")
CHOICE_METRICS = frozenset(METRIC_OF_RESPONSE.values())
"""Taken only when asked for."""


def choose_metric(task: str, samples: Sequence[Samples], spec: ReadingSpec, notes: list[str]) -> tuple[str, str]:
    """Name of the metric to take for a task, and what is in the way of it (empty when nothing)."""
    names = list(dict.fromkeys(name for one in samples for name in one.metrics))
    wanted = _wanted(task, spec.metric)
    if not wanted and spec.response != "metric":
        wanted = [METRIC_OF_RESPONSE[spec.response]]
    if wanted:
        known = [name for name in wanted if name in names]
        if not known:
            near = did_you_mean(wanted, names)
            return "", f"unknown metric {shown(wanted)} for task {task!r}: it has {shown(names, 20)}.{near}"
        problem = _metric_problem(known[0], samples, spec, is_chosen=True)
        return known[0], f"task {task!r}: {problem}." if problem else ""
    names = [name for name in names if name not in CHOICE_METRICS]
    problems = {name: _metric_problem(name, samples, spec, is_chosen=False) for name in names}
    usable = [name for name in names if not problems[name]]
    if len(usable) == 1:
        return usable[0], ""
    if not usable:
        reasons = "; ".join(problems.values()) or "it logs none"
        return "", f"task {task!r} has no metric that can be a response: {reasons}."
    return _default("metric", task, usable, DEFAULT_METRICS, notes)


def choose_filter(task: str, samples: Sequence[Samples], spec: ReadingSpec, notes: list[str]) -> tuple[str, str]:
    """Name of the filter to take for a task, and what is in the way of it (empty when nothing)."""
    names = list(dict.fromkeys(name for one in samples for name in one.filters.names.to_list()))
    wanted = _wanted(task, spec.filter_name)
    if wanted:
        known = [name for name in wanted if name in names]
        if not known:
            near = did_you_mean(wanted, names)
            return "", f"unknown filter {shown(wanted)} for task {task!r}: it has {shown(names, 20)}.{near}"
        chosen, problem = known[0], ""
    elif len(names) == 1:
        chosen, problem = names[0], ""
    else:
        chosen, problem = _default("filter", task, names, DEFAULT_FILTERS, notes)
    if problem:
        return "", problem
    without = [str(one.file.path) for one in samples if chosen not in one.filters.names.to_list()]
    if without:
        return (
            "",
            f"task {task!r}: every run must have the filter {chosen!r}, got {len(without)} without: {shown(without)}.",
        )
    return chosen, ""


def _wanted(task: str, choices: Sequence[str]) -> list[str]:
    """Choices for a task, those made for it by name first."""
    own = [choice.split("=", 1) for choice in choices if "=" in choice]
    return [name for pattern, name in own if fnmatchcase(task, pattern)] + [name for name in choices if "=" not in name]


def _default(word: str, task: str, names: Sequence[str], preferred: Sequence[str], notes: list[str]) -> tuple[str, str]:
    """Take the first preferred name, with a note; without any, ask."""
    for name in preferred:
        if name in names:
            others = [other for other in names if other != name]
            notes.append(f"{word} {name!r} of task {task!r} (it also has {shown(others)})")
            return name, ""
    return "", f"task {task!r} has several {word}s: {shown(names, 20)}. Choose one."


def _metric_problem(name: str, samples: Sequence[Samples], spec: ReadingSpec, *, is_chosen: bool) -> str:
    """Why a metric cannot be the response; empty when it can."""
    checks: tuple[Callable[[], str], ...] = (
        lambda: _absence(name, samples),
        lambda: _foreign_values(name, samples, spec, is_chosen=is_chosen),
        lambda: _direction(name, samples),
        lambda: _range(name, samples, spec),
    )
    return next((problem for check in checks if (problem := check())), "")


def _absence(name: str, samples: Sequence[Samples]) -> str:
    without = [str(one.file.path) for one in samples if name not in one.metrics]
    return f"metric {name!r} is absent from {len(without)} runs: {shown(without)}" if without else ""


def _foreign_values(name: str, samples: Sequence[Samples], spec: ReadingSpec, *, is_chosen: bool) -> str:
    metrics = [one.metrics[name] for one in samples]
    problem = next((metric.problem for metric in metrics if metric.problem), "")
    if not problem:
        return ""
    if all(metric.lengths is not None for metric in metrics if metric.problem):
        if spec.repeats in POOLED and is_chosen:
            return ""
        count, mean = (remedy(f"repeats='{how}'", f"--repeats {how}") for how in ("count", "mean"))
        return f"metric {name!r} {problem}; they are counted ({count}) or averaged ({mean}) only when asked for"
    return f"metric {name!r} {problem}"


def _direction(name: str, samples: Sequence[Samples]) -> str:
    if not any(one.lower_is_better(name) for one in samples):
        return ""
    return f"metric {name!r} is better when lower, and a response must be better when higher; turn it round in a table"


def _range(name: str, samples: Sequence[Samples], spec: ReadingSpec) -> str:
    values = np.concatenate([one.metrics[name].values for one in samples]) / spec.max_response
    known = values[~np.isnan(values)]
    if known.size == 0:
        return f"metric {name!r} has no values"
    low, high = float(known.min()), float(known.max())
    if low >= 0.0 and high <= 1.0:
        return ""
    divided = "" if spec.max_response == 1.0 else f" after division by {spec.max_response:g}"
    return (
        f"metric {name!r} must lie in [0, 1]{divided}, got values from {low:g} to {high:g}; rescale it with "
        f"{remedy('max_response=100', '--max-response 100')} if its maximum is 100"
    )
