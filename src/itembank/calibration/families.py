"""Which family of responses is fitted, the responses as its likelihood takes them, and items without variance.

Items that every past model answered the same way are left out: their parameters come from the other items.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.calibration.fits import Fit, PreparedResponses
from itembank.errors import ConvergenceWarning, DataError, DataWarning, remedy, shown, unsaid, warn
from itembank.irt.beta import clip_probabilities
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.family_names import KINDS, Family
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.responses.responses import ResponseMatrix
from itembank.responses.sizes import warn_of_assumed_sizes, with_assumed_sizes
from itembank.tables import plural


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
    with unsaid(DataWarning), unsaid(ConvergenceWarning, "slopes should be at most"):
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
            f"every response must have at least one trial, got none for {plural(int(wrong.sum()), 'response')}, in "
            f"items {shown(names)}. Leave the responses out, or give their trials."
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


def find_degenerate(responses: FloatArray) -> BoolArray:
    """Which items were answered right every time, or wrong every time, by all who answered, (n_items,)."""
    low = np.nanmin(responses, axis=0)
    high = np.nanmax(responses, axis=0)
    same: BoolArray = (low == high) & ((low == 0.0) | (low == 1.0))
    return same


def put_back(
    fit: Fit,  # Of the items that were not left out
    prepared: PreparedResponses,  # Of all items
    lower_asymptote: FloatArray,  # (n_items,)
    *,
    is_majority: bool = False,  # Whether the others predict the common answer for every model
) -> tuple[ItemParameters, FloatArray]:
    """Give parameters and covariances of all items, from those of the items that were fitted.

    A degenerate item is taken to be like the others: the fitted items' (loadings, intercept) are its normal prior,
    and it gets the mode and the curvature of its posterior given the past models' abilities. Its curve so
    rises with ability from where all of them are. (A constant probability fits them as well, but a new model
    beyond their range then never gets the credit: on AlpacaEval split by date it made p-IRT's error six times as
    large, `benchmarks/tables/tables.md`.) With `is_majority` it is that constant (WILD A.1), of
    ``(n + 1/2) / (n + 1)`` for n equal answers.

    Returns parameters, and covariances (n_items, n_dims + 1, n_dims + 1).
    """
    is_degenerate, n_dims = prepared.is_left_out, fit.loadings.shape[1]
    n_items = is_degenerate.shape[0]
    coefficients = np.zeros((n_items, n_dims + 1))
    covariance = np.zeros((n_items, n_dims + 1, n_dims + 1))
    coefficients[~is_degenerate] = np.column_stack([fit.loadings, fit.intercept])
    covariance[~is_degenerate] = fit.item_covariance
    if is_majority:
        responses = prepared.values[:, is_degenerate]
        n_answers = np.sum(~np.isnan(responses), axis=0)
        if prepared.n_trials is not None:
            n_answers = prepared.n_trials[:, is_degenerate].sum(axis=0)
        sign = np.where(np.nanmax(responses, axis=0) > 0.5, 1.0, -1.0)
        # p = (n + 1/2) / (n + 1) has the logit log(2 n + 1) and 1 - p = 1 / (2 n + 2); n + 1 answers inform the
        # intercept by (n + 1) p (1 - p).
        coefficients[is_degenerate, -1] = sign * np.log(2.0 * n_answers + 1.0)
        q = 1.0 / (2.0 * n_answers + 2.0)
        covariance[is_degenerate, -1, -1] = 1.0 / ((n_answers + 1.0) * q * (1.0 - q))
    else:
        fitted = coefficients[~is_degenerate]
        spread = np.eye(n_dims + 1)
        if len(fitted) > n_dims + 1:  # enough for a covariance; equal parameters (a common slope) can be inverted, too
            spread = np.cov(fitted.T) + 1e-6 * spread
        prior = AbilityPrior(fitted.mean(axis=0), spread)
        for lower in np.unique(lower_asymptote[is_degenerate]):
            all_alike = np.flatnonzero(is_degenerate & (lower_asymptote == lower))
            for alike in (all_alike[run] for run in row_blocks(all_alike.size, len(fit.abilities), times=30)):
                trials = None if prepared.n_trials is None else prepared.n_trials[:, alike]
                coefficients[alike], covariance[alike] = _by_prior(
                    prepared.values[:, alike], trials, fit.abilities, prior, lower=lower
                )
    parameters = ItemParameters.create(
        coefficients[:, :-1], coefficients[:, -1], lower_asymptote, family=prepared.family, precision=fit.precision
    )
    return parameters, covariance


def _by_prior(
    responses: FloatArray, n_trials: IntArray | None, abilities: FloatArray, prior: AbilityPrior, *, lower: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior mode and covariance of (loadings, intercept) of items given abilities.

    Item and model change places: with ``x_l = (theta_l, 1)`` the logit ``x_l . (a_i, c_i)`` is that of a "model"
    whose "ability" is ``(a_i, c_i)`` on an "item" of loadings ``x_l``, so the ability kernel finds it.
    """
    places = ItemParameters.create(
        np.column_stack([abilities, np.ones(len(abilities))]), np.zeros(len(abilities)), lower
    )
    if n_trials is not None:
        posterior = map_abilities(places, responses.T, prior, weights=n_trials.T.astype(np.float64))
        return posterior.theta, posterior.covariance
    # few patterns differ: without missing responses all right and all wrong are the only ones
    coded = np.where(np.isnan(responses), -1.0, responses).astype(np.int8)
    patterns, which = np.unique(coded, axis=1, return_inverse=True)
    posterior = map_abilities(places, np.where(patterns < 0, np.nan, patterns).T, prior)
    return posterior.theta[which.ravel()], posterior.covariance[which.ravel()]
