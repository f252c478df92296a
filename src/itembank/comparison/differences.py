"""Differences of full scores and the size of their errors, for all pairs and targets."""

from dataclasses import dataclass

import numpy as np

from itembank.comparison.error_model import NO_ERROR, PairErrorModel, fit_pair_errors
from itembank.comparison.pairs import PairedDifferences, model_pairs
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

MINIMUM_MODELS = 15
"""With fewer calibration models the classical standard error is more reliable than one learnt from their errors."""


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """Numbers of items that models, calibration errors and the benchmark have, for each target.

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
    """Errors of one target, learnt from calibration models.

    Attributes
    ----------
    model : PairErrorModel
    single_variance : float
        Mean squared error of the score of one model.
    """

    model: PairErrorModel
    single_variance: float


def learn_errors(errors: FloatArray, pairs: PairedDifferences, *, level: float) -> list[TargetErrors | None]:
    """Return the error model of every target; None where too few calibration models have errors.

    Parameters
    ----------
    errors : (n_models, n_targets)
        Estimates of the calibration models, which did not know them, less the truth; NaN where unknown.
    pairs : PairedDifferences
        Of the calibration models' responses.
    level : float
    """
    return [_learn(errors[:, t], pairs.variance[:, t], level=level) for t in range(errors.shape[1])]


def differences(
    raw: FloatArray, estimates: FloatArray | None, pairs: PairedDifferences, is_learnt: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Differences of pairs, and scores of models: estimated ones, or raw ones where there is none.

    With learnt errors a raw difference is that of the two weighted means, each over all items that the model answered:
    `error_variance` is for these. Without learnt errors it is over the items that both answered, for which the
    classical variance holds. Where both answered the same items the two are equal.

    Parameters
    ----------
    raw, estimates : (n_models, n_targets)
    pairs : PairedDifferences
        Of the same models.
    is_learnt : (n_targets,)
        Whether the target's errors were learnt from calibration models.

    Returns
    -------
    difference : (n_pairs, n_targets)
    score : (n_models, n_targets)
    """
    first, second = model_pairs(raw.shape[0])
    score = raw if estimates is None else np.where(np.isnan(estimates), raw, estimates)
    of_scores = score[second] - score[first]
    return np.where(is_learnt | (estimates is not None), of_scores, pairs.difference), score


def error_variance(
    pairs: PairedDifferences, counts: ItemCounts, errors: TargetErrors | None, target: int
) -> FloatArray:
    """Return the expected squared error of each pair's difference on one target, (n_pairs,).

    On the same items it is ``a + b V`` (`fit_pair_errors`), on different items the sum of ``s^2`` of both models. With
    some items in common it is interpolated by their fraction. a and ``s^2`` were learnt on n items of N; for m they are
    scaled by ``(1/m - 1/N) / (1/n - 1/N)``, as V scales by itself. V is never below `least_variance`: models that
    answered all shared items alike, or all of them differently, may differ on the unseen items.
    """
    shared = pairs.n_shared[:, target]
    classical = np.maximum(pairs.variance[:, target], least_variance(shared, int(counts.total[target])))
    if errors is None or errors.single_variance < NO_ERROR**2:
        return np.where(shared > 0, classical, np.nan)
    first, second = model_pairs(counts.observed.shape[0])
    observed = counts.observed[:, target]
    n, total = int(counts.calibration[target]), int(counts.total[target])
    single = errors.single_variance * _scaling(observed, n, total)
    apart = single[first] + single[second]
    together = errors.model.constant * _scaling(shared, n, total) + errors.model.slope * classical
    # Jaccard index: shared items over the items that at least one of the two answered
    in_common = shared / np.maximum(observed[first] + observed[second] - shared, 1)
    # without shared items `together` may be infinite; its weight is zero, but 0 * inf would be NaN
    together, apart = np.where(shared > 0, together, 0.0), np.where(in_common < 1.0, apart, 0.0)
    result: FloatArray = in_common * together + (1.0 - in_common) * apart
    return result


def least_variance(n_shared: IntArray, n_total: int) -> FloatArray:
    """Squared standard error of a difference that no shared item shows, (n_pairs,).

    ``(1 - n / N) 2 / (n + 2)^2``: that of n items answered alike with one more on which each model is better, as in
    the adjusted interval of Bonett and Price (2012, J. Educ. Behav. Stat. 37), for a finite population.
    """
    result: FloatArray = np.maximum(1.0 - n_shared / n_total, 0.0) * 2.0 / (n_shared + 2.0) ** 2
    return result


def _learn(errors: FloatArray, disagreement: FloatArray, *, level: float) -> TargetErrors | None:
    known = ~np.isnan(errors)
    if known.sum() < MINIMUM_MODELS:
        return None
    first, second = model_pairs(errors.shape[0])
    usable = known[first] & known[second] & ~np.isnan(disagreement)
    number = np.cumsum(known) - 1
    model = fit_pair_errors(
        errors[known], disagreement[usable], number[first[usable]], number[second[usable]], level=level
    )
    return TargetErrors(model, float(np.mean(errors[known] ** 2)))


def _scaling(observed: IntArray, n_items: int, total: int) -> FloatArray:
    """``(1/m - 1/N) / (1/n - 1/N)``; 0 for all items, infinite for none."""
    if n_items >= total:
        return np.where(observed >= total, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        inverse = 1.0 / observed.astype(np.float64)
    result: FloatArray = (inverse - 1.0 / total) / (1.0 / n_items - 1.0 / total)
    return result
