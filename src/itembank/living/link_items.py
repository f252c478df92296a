"""The verb `link_items`: new items on the scale of a bank, from a few models that answered both."""

from typing import NamedTuple, get_args

import numpy as np

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.calibration.calibrate import calibrate
from itembank.calibration.families import without_repeated_warnings
from itembank.checks import check_one_of
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.estimation.folds import spec_of
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.living.anchor_drift import drifted_anchors
from itembank.living.fixed_parameters import (
    FixedFit,
    FixedParameters,
    ability_grid,
    calibrate_fixed,
    expected_curves,
)
from itembank.living.linked_items import Anchors, LinkedItems, LinkMethod, OtherLink
from itembank.living.linking_answers import FEW_MODELS, LinkingAnswers, linking_answers
from itembank.living.linking_data import LinkingData
from itembank.living.linking_error import jackknife_error
from itembank.living.prediction_errors import prediction_error
from itembank.living.spread import covered_range, spread_over
from itembank.living.stocking_lord import ScaleLink, stocking_lord
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix

HALF = 0.5
"""Of the range of the bank's scores that the linking models should span."""
MOST_APART = 2.0
"""Linking errors by which the two links may differ; with few linking models a calibration of theirs alone is poor."""
N_FURTHER = 5
"""Models that are proposed."""
SPEC = FixedParameters(n_quadrature=3, tolerance=0.003)
AGAIN = FixedParameters(n_quadrature=3, tolerance=0.01, max_steps=20)
"""For links that differ from a known one by a model or a group."""


@one_blas_thread()
def link_items(
    bank: GivenBank, responses: GivenResponses, *, method: LinkMethod = "fixed", progress: ProgressCallback = silent
) -> LinkedItems:
    """Find the parameters of new items on a bank's scale, from models that answered new items and the bank's.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of 3 models at least, 10 to 20 that span the abilities of the bank's models if you can. 30 to 60 old items for
        each are nearly as good as all. Models of the bank need no old items here: the bank has their answers.
    method : {'fixed', 'stocking-lord'}
        'fixed': fixed-parameter calibration, with a prior that is fitted to the new items. 'stocking-lord', in one
        dimension: old and new items are calibrated apart, and linked by the curves of the old ones.
    progress : ProgressCallback

    Returns
    -------
    LinkedItems
        With a `DataWarning` below 10 linking models, where they span less than half of the range of the bank's
        scores, where old items moved, or where the other method says something else.

    Raises
    ------
    DataError
        As `linking_answers`.

    Examples
    --------
    >>> linked = link_items(bank, responses)  # doctest: +SKIP
    >>> linked.linking_error, linked.further_models  # doctest: +SKIP
    """
    check_one_of("method", method, get_args(LinkMethod))
    bank = as_bank(bank)
    return link(whole_bank(bank), as_new_responses(bank, responses), method=method, progress=progress)


def link(bank: Bank, responses: ResponseMatrix, *, method: LinkMethod, progress: ProgressCallback) -> LinkedItems:
    """Link new items to a whole bank."""
    answers = linking_answers(bank, responses)
    anchors = _anchors(bank, answers)
    data = answers.data.without_old(anchors.is_unlinked)
    progress("linking", 0.0)
    fit = calibrate_fixed(data, SPEC)
    items, covariance = expected_curves(data, fit), fit.covariance
    separate = _separate_link(bank, data)
    other = None if separate is None else _other(data, items, separate)
    if method == "stocking-lord":
        items, covariance = _required(separate, data)
    strength, known = _scores(bank, fit.nodes.mean), _scores(bank, bank.calibration.abilities)
    error = max(
        _jackknife(data, fit, strength, part_of(progress, 0.3, 1.0)),
        prediction_error(bank, bank.n_items, data.n_new, np.random.default_rng(0)) / np.sqrt(data.n_models),
    )
    covered = covered_range(strength, known)
    _warn(covered, anchors, other if data.n_models >= FEW_MODELS else None, error)
    progress("linking", 1.0)
    new = answers.responses
    return LinkedItems(
        bank_id=bank.bank_id,
        item_ids=tuple(new.item_ids),
        scenarios=tuple(new.items["scenario"]),
        parameters=ItemParameters.create(items[:, :-1], items[:, -1], data.new_lower, family=data.family),
        item_covariance=covariance,
        n_answers=new.observed.sum(axis=0),
        mean_response=np.nanmean(new.responses, axis=0),
        method=method,
        model_ids=tuple(new.model_ids),
        abilities=fit.nodes.mean,
        anchors=anchors,
        linking_error=error,
        covered=covered,
        other=other,
        further_models=spread_over(known, strength, bank.responses.model_ids, new.model_ids, N_FURTHER),
        converged=fit.converged,
    )


def mean_curve(data: LinkingData, items: FloatArray, points: FloatArray) -> FloatArray:
    """Mean score on the new items at abilities points (n_points, n_dims), (n_points,)."""
    result: FloatArray = probability(ItemParameters.create(items[:, :-1], items[:, -1], data.new_lower), points).mean(
        axis=1
    )
    return result


class _Separate(NamedTuple):
    """Stocking and Lord's line, with the new items (n_new, 2) and their covariances on the bank's scale."""

    line: ScaleLink
    items: FloatArray
    covariance: FloatArray


def _separate_link(bank: Bank, data: LinkingData) -> _Separate | None:
    """Calibrate the linking models' answers apart and link them; None where that cannot be done."""
    if data.prior.n_dims > 1 or np.any(data.new_lower > 0.0) or np.any(data.old.lower_asymptote > 0.0):
        return None
    trials = None if data.trials is None else data.trials.astype(np.int64)
    try:
        with without_repeated_warnings():
            free = calibrate(ResponseMatrix.create(data.responses, n_trials=trials), spec_of(bank.calibration))
    except DataError:  # nothing tells so few models apart
        return None
    n_old = data.old.n_items
    points, weights = ability_grid(data.prior)
    # all old items, also those that these few models answered alike: leaving them out would shift the scale
    line = stocking_lord(data.old, free.parameters.take(np.arange(n_old)), points[:, 0], weights)
    new = free.parameters.take(np.arange(n_old, n_old + data.n_new))
    loadings, intercept = line.apply(new.loadings, new.intercept)
    turn = np.array([[1.0 / line.slope, 0.0], [-line.intercept / line.slope, 1.0]])
    return _Separate(line, np.column_stack([loadings, intercept]), turn @ free.item_covariance[n_old:] @ turn.T)


def _required(separate: _Separate | None, data: LinkingData) -> tuple[FloatArray, FloatArray]:
    """Return items and covariances of Stocking and Lord's link, or say why there are none."""
    if separate is None:
        raise DataError(
            "Stocking and Lord's link needs one dimension, no known guessing, and linking models whose answers can be "
            f"calibrated by themselves, got {data.n_models} models and {data.prior.n_dims} dimensions. "
            "Use method 'fixed'."
        )
    return separate.items, separate.covariance


def _other(data: LinkingData, items: FloatArray, separate: _Separate) -> OtherLink:
    """Compare the two links."""
    points, weights = ability_grid(data.prior)
    difference = mean_curve(data, separate.items, points) - mean_curve(data, items, points)
    return OtherLink(separate.line.slope, separate.line.intercept, _root_mean_square(difference, weights))


def _jackknife(data: LinkingData, fit: FixedFit, strength: FloatArray, progress: ProgressCallback) -> float:
    """Jackknife the mean score on the new items over the linking models."""
    points, weights = ability_grid(data.prior)

    def curve(part: LinkingData) -> FloatArray:
        return mean_curve(part, expected_curves(part, calibrate_fixed(part, AGAIN, start=fit)), points)

    return _root_mean_square(jackknife_error(data, curve, strength, progress=progress), weights)


def _anchors(bank: Bank, answers: LinkingAnswers) -> Anchors:
    """Displacements of the old items, and which do not link."""
    variance = np.nan_to_num(bank.calibration.item_covariance[answers.old, -1, -1])  # NaN: the method gives none
    found = drifted_anchors(answers.data, variance)
    ids = tuple(bank.item_ids[k] for k in answers.old)
    return Anchors(ids, found.value, found.standard_error, found.is_unlinked)


def _scores(bank: Bank, theta: FloatArray) -> FloatArray:
    """Return expected overall scores, which order models in any number of dimensions."""
    result: FloatArray = probability(bank.parameters, theta) @ bank.targets.overall_weights
    return result


def _root_mean_square(values: FloatArray, weights: FloatArray) -> float:
    return float(np.sqrt(weights @ values**2))


def _warn(covered: float, anchors: Anchors, other: OtherLink | None, error: float) -> None:
    """Say what makes the link doubtful."""
    if covered < HALF:
        warn(
            f"linking models should span at least half of the range of the bank's scores, got {covered:.0%}: curves of "
            "the new items are guesses beyond it. Run models of other strength on them.",
            DataWarning,
        )
    if anchors.unlinked:
        warn(
            f"{len(anchors.unlinked)} of {len(anchors.item_ids)} old items are easier or harder for the linking models "
            f"than the bank says, and do not link: {shown(anchors.unlinked)}. Did their text, key or prompt change?",
            DataWarning,
        )
    if other is not None and other.difference > MOST_APART * error:
        warn(
            f"fixed parameters and Stocking and Lord's link should agree within {MOST_APART:g} linking errors of "
            f"{100 * error:.1f} points of the score on the new items, got {100 * other.difference:.1f} points between "
            "them. Add linking models.",
            DataWarning,
        )
