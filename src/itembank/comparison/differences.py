"""Differences of full scores and the size of their errors, for all pairs and targets."""

from dataclasses import dataclass

import numpy as np

from itembank.comparison.calibration_errors import MINIMUM_MODELS, CalibrationErrors
from itembank.comparison.error_model import NO_ERROR, PairErrorModel, fit_pair_errors
from itembank.comparison.pairs import PairedDifferences, model_pairs
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """Numbers of items that models, calibration errors and the benchmark have, for each target."""

    observed: IntArray  # (n_models, n_targets): Items of the target that each model answered
    calibration: IntArray  # (n_targets,): Items that the calibration models' errors come from
    total: IntArray  # (n_targets,): Items of the whole benchmark


@dataclass(frozen=True, slots=True)
class TargetErrors:
    """Errors of one target, learnt from calibration models."""

    model: PairErrorModel
    size: float  # Root mean square error of the score of one model


def learn_errors(
    calibration: CalibrationErrors, disagreement: FloatArray, targets: IntArray, *, level: float
) -> list[TargetErrors | None]:
    """Return the error model of every target; None where too few calibration models have errors.

    Parameters
    ----------
    calibration : CalibrationErrors
    disagreement : (n_pairs, n_targets)
        Classical variance of the paired difference of the calibration models' responses.
    targets : (n_targets,)
        Where the targets stand among those of the errors.
    level : float
    """
    return [
        _learn(calibration.errors[:, k], calibration.standard_errors[:, k], disagreement[:, t], level=level)
        for t, k in enumerate(targets)
    ]


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


def raw_standard_errors(errors: list[TargetErrors | None], counts: ItemCounts) -> FloatArray:
    """Find standard errors of weighted means, (n_models, n_targets), by past models' errors; NaN where none is known.

    The errors were learnt on n items of N; for m they are scaled by ``(1/m - 1/N) / (1/n - 1/N)``, as the classical
    variance scales by itself.
    """
    columns = [
        np.full(counts.observed.shape[0], np.nan)
        if error is None
        else error.size * np.sqrt(_scaling(counts.observed[:, t], int(counts.calibration[t]), int(counts.total[t])))
        for t, error in enumerate(errors)
    ]
    return np.column_stack(columns)


def error_variance(
    pairs: PairedDifferences,
    counts: ItemCounts,
    standard_errors: FloatArray,
    errors: TargetErrors | None,
    target: int,
) -> FloatArray:
    """Return the expected squared error of each pair's difference on one target, (n_pairs,).

    On the same items it is ``a (s_a^2 + s_b^2) + b V`` (`fit_pair_errors`) with the standard errors of both models'
    scores (n_models, n_targets), on different items ``s_a^2 + s_b^2``. With some items in common it is interpolated by
    their fraction. V is never below `least_variance`: models that answered all shared items alike, or all of them
    differently, may differ on the unseen items.
    """
    shared = pairs.n_shared[:, target]
    classical = np.maximum(pairs.variance[:, target], least_variance(shared, int(counts.total[target])))
    if errors is None or errors.size < NO_ERROR:
        return np.where(shared > 0, classical, np.nan)
    observed = counts.observed[:, target]
    first, second = model_pairs(observed.shape[0])
    square = standard_errors[:, target] ** 2
    apart = square[first] + square[second]
    together = errors.model.constant * apart + errors.model.slope * classical
    # Jaccard index: shared items over the items that at least one of the two answered
    in_common = shared / np.maximum(observed[first] + observed[second] - shared, 1)
    # without shared items V is infinite or unknown; its weight is zero, but 0 * inf would be NaN
    result: FloatArray = in_common * np.where(shared > 0, together, 0.0) + (1.0 - in_common) * apart
    return result


def least_variance(n_shared: IntArray, n_total: int) -> FloatArray:
    """Squared standard error of a difference that no shared item shows, (n_pairs,).

    ``(1 - n / N) 2 / (n + 2)^2``: that of n items answered alike with one more on which each model is better, as in
    the adjusted interval of Bonett and Price (2012, J. Educ. Behav. Stat. 37), for a finite population.
    """
    result: FloatArray = np.maximum(1.0 - n_shared / n_total, 0.0) * 2.0 / (n_shared + 2.0) ** 2
    return result


def _learn(
    errors: FloatArray, standard_errors: FloatArray, disagreement: FloatArray, *, level: float
) -> TargetErrors | None:
    known = ~(np.isnan(errors) | np.isnan(standard_errors))
    if known.sum() < MINIMUM_MODELS:
        return None
    first, second = model_pairs(errors.shape[0])
    usable = known[first] & known[second] & ~np.isnan(disagreement)
    first, second = first[usable], second[usable]
    number = np.cumsum(known) - 1
    model = fit_pair_errors(
        errors[known],
        disagreement[usable],
        number[first],
        number[second],
        independent=standard_errors[first] ** 2 + standard_errors[second] ** 2,
        level=level,
    )
    return TargetErrors(model, float(np.sqrt(np.mean(errors[known] ** 2))))


def _scaling(observed: IntArray, n_items: int, total: int) -> FloatArray:
    """``(1/m - 1/N) / (1/n - 1/N)``; 0 for all items, NaN for none."""
    if n_items >= total:
        return np.where(observed >= total, 0.0, 1.0)
    number = np.where(observed > 0, observed, np.nan)
    result: FloatArray = (1.0 / number - 1.0 / total) / (1.0 / n_items - 1.0 / total)
    return result
