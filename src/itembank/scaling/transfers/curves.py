"""The curves that are predicted and what they turn out to be, for one part of the models."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.sampling.pass_at_k import unbiased_pass_at_k
from itembank.scaling.transfers.ability_link import MINIMUM_MODELS, Predictive, fit_line, predict, quantiles
from itembank.scaling.transfers.characteristic_curve import mean_curves


@dataclass(frozen=True, slots=True)
class CurvePrediction:
    """Predicted curves of n_models models, each (n_models, n_k): the median of what they may be, and an interval."""

    value: FloatArray  # (n_models, n_k): Mean score, or mean pass@k
    lower: FloatArray  # (n_models, n_k)
    upper: FloatArray  # (n_models, n_k)


def actual_curves(responses: ResponseMatrix, columns: IntArray, k: tuple[int, ...]) -> FloatArray:
    """Mean score (k = 1) or mean unbiased pass@k of the items each model answered, (n_models, n_k).

    NaN for a model that answered none, and for k above the fewest samples of its items.
    """
    mean = mean_where_known(responses.responses[:, columns], axis=1)
    curves = [mean if n_samples == 1 else _mean_pass_at_k(responses, columns, n_samples) for n_samples in k]
    return np.stack(curves, axis=1)


def _mean_pass_at_k(responses: ResponseMatrix, columns: IntArray, k: int) -> FloatArray:
    values = responses.responses[:, columns]
    if responses.n_trials is None:
        return np.full(values.shape[0], np.nan)
    known = ~np.isnan(values)
    n_trials = np.where(known, responses.n_trials[:, columns], 0).astype(np.float64)
    n_correct = np.rint(np.where(known, values, 0.0) * n_trials)
    enough = ~known | (n_trials >= k)
    passed = unbiased_pass_at_k(np.maximum(n_trials, k), n_correct, np.float64(k))
    n_answered = known.sum(axis=1)
    mean = np.where(known, passed, 0.0).sum(axis=1) / np.maximum(n_answered, 1)
    return np.where(enough.all(axis=1) & (n_answered > 0), mean, np.nan)


def counted_items(responses: ResponseMatrix, columns: IntArray) -> BoolArray:
    """Which items' curves stand for a model's target, (n_models, n_target): those it answered, or all for none.

    Both sides of a comparison are then of the same items.
    """
    answered = responses.observed[:, columns]
    return answered | ~answered.any(axis=1, keepdims=True)


def by_line(
    source: FloatArray,
    target: FloatArray,
    asked: FloatArray,
    *,
    source_errors: FloatArray,
    asked_errors: FloatArray,
    smallest: FloatArray,
    level: float,
) -> CurvePrediction:
    """Predict the logit of each target from a logit known of the source, by a line over the calibration models.

    Parameters
    ----------
    source, source_errors : (n_calibration, n_k)
        Logits, and their standard errors.
    target : (n_calibration, n_k)
        Mean scores or pass@k. NaN leaves a model out; a k with fewer than four models left is not predicted.
    asked, asked_errors : (n_models, n_k)
        Of the models asked about.
    smallest : (n_k,)
        Targets this near to 0 or 1 are at the floor or the ceiling: they cannot be told from 0 and 1.
    level : float
    """
    value, lower, upper = (np.full(asked.shape, np.nan) for _ in range(3))
    outcome = clipped_logit(target, smallest)
    for j in range(asked.shape[1]):
        if (np.isfinite(outcome[:, j]) & np.isfinite(source[:, j])).sum() < MINIMUM_MODELS:
            continue
        # clipped targets lie exactly there, which tells `fit_line` that they are censored
        end = float(logit(smallest[j]))
        link = fit_line(source[:, j], outcome[:, j], source_errors[:, j], bounds=(end, -end))
        bounds = quantiles(predict(link, asked[:, j], asked_errors[:, j]), level)
        value[:, j], lower[:, j], upper[:, j] = (expit(bound) for bound in bounds)
    lower, upper = np.where(lower <= smallest, 0.0, lower), np.where(upper >= 1.0 - smallest, 1.0, upper)
    return CurvePrediction(value, lower, upper)


def by_common_ability(
    parameters: ItemParameters, predictive: Predictive, counted: BoolArray, k: tuple[int, ...], level: float
) -> CurvePrediction:
    """Put the ability itself into the target's curve (IRSL 3.4), and the ends of its interval too."""
    value, low, high = (mean_curves(parameters, theta, k, counted) for theta in quantiles(predictive, level))
    return CurvePrediction(value, np.minimum(low, high), np.maximum(low, high))


def clipped_logit(score: FloatArray, smallest: FloatArray) -> FloatArray:
    """Logit of scores moved to at least `smallest` from 0 and 1; NaN stays NaN."""
    result: FloatArray = logit(np.clip(score, smallest, 1.0 - smallest))
    return result
