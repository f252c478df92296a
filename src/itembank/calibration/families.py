"""Which family of responses is fitted, and the responses as its likelihood takes them."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.calibration.degenerate import find_degenerate
from itembank.calibration.fits import PreparedResponses
from itembank.errors import ConvergenceWarning, DataError, DataWarning, remedy, shown, warn
from itembank.irt.beta import clip_probabilities
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.family_names import KINDS, Family
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.sizes import warn_of_assumed_sizes, with_assumed_sizes


def sized(responses: ResponseMatrix, spec: CalibrationSpec) -> ResponseMatrix:
    """Return the responses with the numbers of questions that are assumed of published scores, and say so.

    A family that was asked for takes responses as they are.
    """
    if spec.family != "auto":
        return responses
    found = with_assumed_sizes(responses)
    warn_of_assumed_sizes(responses, found)
    return found


def with_family(spec: CalibrationSpec, responses: ResponseMatrix) -> CalibrationSpec:
    """Return the spec with the family that 'auto' begins with: 'binomial' where there are repeated trials."""
    if spec.family != "auto":
        return spec
    n_trials = responses.n_trials
    has_repeats = n_trials is not None and bool(np.any((n_trials > 1) & responses.observed))
    return replace(spec, family="binomial" if has_repeats else "bernoulli")


def prepare(responses: ResponseMatrix, spec: CalibrationSpec) -> PreparedResponses:
    """Make responses what the spec's family takes.

    Raises
    ------
    DataError
        For counts without numbers of trials, and probabilities that are all 0 or 1.
    """
    family = cast("Family", spec.family)
    values, n_items = responses.responses, responses.n_items
    takes = KINDS[family].takes
    if takes == "probabilities":
        if responses.is_binary:
            raise DataError(
                f"family must be 'bernoulli' or 'auto' for responses that are all 0 or 1, got {family!r}, which is for "
                "probabilities between 0 and 1."
            )
        clipped, note = clip_probabilities(values)
        if note:
            warn(note, DataWarning)
        return PreparedResponses(family, clipped, None, {}, np.zeros(n_items, dtype=bool))
    if takes == "answers":
        scenarios = responses.items["scenario"].to_list()
        thresholds = {} if responses.is_binary else scenario_thresholds(values, scenarios)
        warn_of_thresholds(values, scenarios, thresholds)
        if thresholds:
            values = apply_thresholds(values, item_thresholds(thresholds, scenarios))
        return PreparedResponses(family, values, None, thresholds, find_degenerate(values))
    return PreparedResponses(family, values, _trials(responses, family), {}, find_degenerate(values))


def warn_of_thresholds(responses: FloatArray, scenarios: Sequence[str], thresholds: Mapping[str, float]) -> None:
    """Say in a `DataWarning` where every response is made binary: marks of items, or benchmarks' scores by mistake."""
    names = np.asarray(scenarios, dtype=object)
    for name, threshold in thresholds.items():
        values = responses[:, names == name]
        if not np.any((values == 0.0) | (values == 1.0)):
            each = remedy("each in a scenario of its own", "--column scenario=item_id")
            warn(
                f"responses in {name!r} lie between 0 and 1, and the item model takes them as right from "
                f"{threshold:.3g} on. If they are scores of whole benchmarks, that loses most of what they say: give "
                f"their numbers of questions, n_trials, or {each}.",
                DataWarning,
            )


@contextmanager
def without_repeated_warnings() -> Iterator[None]:
    """Fit parts of responses without saying again what was said of the whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.filterwarnings("ignore", message="slopes should be at most", category=ConvergenceWarning)
        yield


def precision_index(spec: CalibrationSpec, scenarios: list[str]) -> IntArray:
    """Which items share a precision, (n_items,)."""
    if spec.precision != "scenario":
        return np.zeros(len(scenarios), dtype=np.int64)
    return np.unique(scenarios, return_inverse=True)[1].astype(np.int64)


def _trials(responses: ResponseMatrix, family: Family) -> IntArray | None:
    """Trials behind each response, none where it is missing; None where there is one behind each."""
    if responses.n_trials is None:
        if not responses.is_binary:
            raise DataError(
                f"family {family!r} needs the number of trials behind each response (n_trials, or n_correct and "
                "n_trials in the table), got rates alone. Give them, or use family 'beta'."
            )
        return None
    n_trials = np.where(responses.observed, responses.n_trials, 0)
    wrong = responses.observed & (n_trials < 1)
    if wrong.any():
        names = np.asarray(responses.item_ids, dtype=object)[wrong.any(axis=0)].tolist()
        raise DataError(
            f"every response must have at least one trial, got none for {int(wrong.sum())} responses, in items "
            f"{shown(names)}. Leave the responses out, or give their trials."
        )
    if n_trials.max() == 1:
        return None
    return n_trials.astype(np.int64)


def scenario_thresholds(responses: FloatArray, scenarios: Sequence[str]) -> dict[str, float]:
    """Threshold of every scenario that has a response other than 0 and 1.

    Parameters
    ----------
    responses : (n_models, n_items)
        In [0, 1], NaN where missing.
    scenarios : n_items names

    Returns
    -------
    dict of scenario to threshold
        Empty for binary responses. A scenario that is binary as it stands has no entry.
    """
    names = np.asarray(scenarios, dtype=object)
    thresholds = {}
    for name in dict.fromkeys(scenarios):
        values = responses[:, names == name]
        values = values[~np.isnan(values)]
        if np.any((values != 0.0) & (values != 1.0)):
            thresholds[name] = best_threshold(values)
    return thresholds


def best_threshold(values: FloatArray) -> float:
    """Threshold c whose count of values >= c is closest to the sum of the values (tinyBenchmarks 4.3).

    The candidates are the distinct values and one just above the largest; of equally good ones the largest wins.
    """
    distinct, counts = np.unique(values, return_counts=True)
    candidates = np.append(distinct, np.nextafter(distinct[-1], np.inf))
    at_or_above = np.append(np.cumsum(counts[::-1])[::-1], 0)
    misfit = np.abs(at_or_above - values.sum())
    return float(candidates[np.flatnonzero(misfit == misfit.min())[-1]])
