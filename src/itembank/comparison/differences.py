"""Differences of full scores and the size of their errors, for all pairs and targets."""

from dataclasses import dataclass

import numpy as np

from itembank.comparison.blending import blended_errors, estimator_share
from itembank.comparison.calibration_errors import MINIMUM_MODELS, CalibrationErrors
from itembank.comparison.error_model import PairErrorModel, fit_pair_errors
from itembank.comparison.pairs import PairedDifferences, model_pairs
from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """How many items stand behind what, for each target.

    Attributes
    ----------
    observed : (n_models, n_targets)
        Items of the target that each model answered.
    calibration : (n_targets,)
        Items that the calibration models' errors come from.
    total : (n_targets,)
        Items of the whole benchmark.
    """

    observed: IntArray
    calibration: IntArray
    total: IntArray


@dataclass(frozen=True, slots=True)
class TargetErrors:
    """What calibration models tell of one target.

    Attributes
    ----------
    share : float
        Of the estimator in the difference.
    model : PairErrorModel or None
        None where too few calibration models tell.
    single_variance : float
        Mean squared error of the score of one model.
    """

    share: float
    model: PairErrorModel | None
    single_variance: float


def learn_errors(
    calibration: CalibrationErrors, pairs: PairedDifferences, *, is_blend: bool, level: float
) -> list[TargetErrors]:
    """Share and error model of every target.

    Parameters
    ----------
    calibration : CalibrationErrors
        Of n_calibration models and n_targets targets.
    pairs : PairedDifferences
        Of the calibration models' responses.
    is_blend : bool
        Mix raw difference and estimator; otherwise the estimator alone, where there is one.
    level : float
    """
    first, second = model_pairs(calibration.responses.shape[0])
    found = []
    for target in range(calibration.raw.shape[1]):
        raw = calibration.raw[:, target]
        own = None if calibration.estimator is None else calibration.estimator[:, target]
        known = ~np.isnan(raw if own is None else raw + own) if own is None or is_blend else ~np.isnan(own)
        if np.sum(known) < MINIMUM_MODELS:
            found.append(TargetErrors(0.0 if own is None or is_blend else 1.0, None, np.nan))
            continue
        share, errors = _errors(raw[known], None if own is None else own[known], is_blend)
        disagreement = pairs.variance[:, target]
        usable = known[first] & known[second] & ~np.isnan(disagreement)
        number = np.cumsum(known) - 1
        model = fit_pair_errors(
            errors, disagreement[usable], number[first[usable]], number[second[usable]], level=level
        )
        found.append(TargetErrors(share, model, float(np.mean(errors**2))))
    return found


def unlearnt(n_targets: int, *, is_estimator: bool) -> list[TargetErrors]:
    """Stand in for `learn_errors` with too few calibration models."""
    return [TargetErrors(1.0 if is_estimator else 0.0, None, np.nan)] * n_targets


def differences(
    raw: FloatArray, estimates: FloatArray | None, pairs: PairedDifferences, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``(1 - c) raw + c estimate``, where one is unknown the other: of pairs and of models.

    Parameters
    ----------
    raw, estimates : (n_models, n_targets)
    pairs : PairedDifferences
        Of the same models: a raw difference is over the items that both answered.
    share : (n_targets,)
        c.

    Returns
    -------
    difference : (n_pairs, n_targets)
    score : (n_models, n_targets)
    """
    if estimates is None:
        return pairs.difference, raw
    first, second = model_pairs(raw.shape[0])
    return _mixed(pairs.difference, estimates[second] - estimates[first], share), _mixed(raw, estimates, share)


def error_variance(pairs: PairedDifferences, counts: ItemCounts, errors: TargetErrors, target: int) -> FloatArray:
    """Expect this squared error of each pair's difference on one target, (n_pairs,).

    On the same items it is ``a + b V`` (`fit_pair_errors`), on different ones ``s^2`` of each model. With a share
    of the items in common it lies that far between. a and ``s^2`` were learnt on n items out of N; for m they are
    scaled by ``(1/m - 1/N) / (1/n - 1/N)``, as V scales by itself.
    """
    classical = pairs.variance[:, target]
    if errors.model is None or errors.single_variance == 0.0:
        return np.where(pairs.n_shared[:, target] > 0, classical, np.nan)
    first, second = model_pairs(counts.observed.shape[0])
    observed, shared = counts.observed[:, target], pairs.n_shared[:, target]
    n, total = int(counts.calibration[target]), int(counts.total[target])
    single = errors.single_variance * _scaling(observed, n, total)
    apart = single[first] + single[second]
    together = errors.model.constant * _scaling(shared, n, total) + errors.model.slope * classical
    in_common = shared / np.maximum(observed[first] + observed[second] - shared, 1)
    together, apart = np.where(shared > 0, together, 0.0), np.where(in_common < 1.0, apart, 0.0)
    result: FloatArray = in_common * together + (1.0 - in_common) * apart
    return result


def _errors(raw: FloatArray, own: FloatArray | None, is_blend: bool) -> tuple[float, FloatArray]:
    if own is None:
        return 0.0, raw
    return (estimator_share(raw, own), blended_errors(raw, own)) if is_blend else (1.0, own)


def _mixed(raw: FloatArray, estimate: FloatArray, share: FloatArray) -> FloatArray:
    mixed = (1.0 - share) * np.where(np.isnan(raw), estimate, raw) + share * np.where(np.isnan(estimate), raw, estimate)
    result: FloatArray = mixed
    return result


def _scaling(observed: IntArray, n_items: int, total: int) -> FloatArray:
    """``(1/m - 1/N) / (1/n - 1/N)``; 0 for all items, infinite for none."""
    with np.errstate(divide="ignore"):
        own = 1.0 / observed.astype(np.float64)
    if n_items >= total:
        return np.where(observed >= total, 0.0, 1.0)
    result: FloatArray = (own - 1.0 / total) / (1.0 / n_items - 1.0 / total)
    return result
