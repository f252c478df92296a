"""The generalised partial credit model (Muraki 1992): likelihood, information and mean in the logit x, elementwise.

With n_k for how many steps of the item lead up to level k, and t_k for their sum,

    log P_k = n_k x - t_k - log sum_l exp(n_l x - t_l).

That is an exponential family in x: the slope of ``log P_k`` is n_k less its mean, and the curvature is the variance of
n for every response. So the information is that variance, and its derivatives are the third and the fourth cumulant.
Of two levels it is the logistic model of right and wrong answers.
"""

import numpy as np

from itembank.irt.logistic import LikelihoodTerms
from itembank.irt.steps import Steps
from itembank.numerics.arrays import FloatArray

FARTHEST = 1e12
"""Logits are moved within this of zero: at infinity 0 times x has no value."""


def log_probabilities(x: FloatArray, steps: Steps) -> FloatArray:
    """Log-probability of every level at logits x (..., n_items), (..., n_items, n_levels).

    Minus infinity for levels that the item has not.
    """
    far = np.clip(x, -FARTHEST, FARTHEST)[..., None]
    logits = steps.numbers * far - steps.offsets
    largest = logits.max(axis=-1, keepdims=True)
    result: FloatArray = logits - largest - np.log(np.sum(np.exp(logits - largest), axis=-1, keepdims=True))
    return result


def mean_terms(x: FloatArray, steps: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of a response, its slope in the logit, the covariance of level and n_k, and the variance of the response."""
    p = np.exp(log_probabilities(x, steps))
    mean = p @ steps.levels
    away = steps.levels - mean[..., None]
    return mean, np.sum(p * away * _away(p, steps), axis=-1), np.sum(p * away**2, axis=-1)


def log_likelihood_terms(x: FloatArray, responses: FloatArray, steps: Steps) -> FloatArray:
    """``log P_k`` of the level nearest to each response."""
    level = steps.nearest(responses)[..., None]
    log_p = log_probabilities(x, steps)
    shape = np.broadcast_shapes(level.shape[:-1], log_p.shape[:-1])
    log_p, level = np.broadcast_to(log_p, (*shape, log_p.shape[-1])), np.broadcast_to(level, (*shape, 1))
    return np.take_along_axis(log_p, level, -1)[..., 0]


def likelihood_terms(x: FloatArray, responses: FloatArray, steps: Steps) -> LikelihoodTerms:
    """Log-likelihood, slope and curvature together; NaN where the response is."""
    p = np.exp(log_probabilities(x, steps))
    level = steps.nearest(responses)[..., None]
    numbers = np.broadcast_to(steps.numbers, (*level.shape[:-1], steps.levels.size))
    reached = np.take_along_axis(numbers, level, -1)[..., 0]
    unknown = np.where(np.isnan(responses), np.nan, 0.0)
    return LikelihoodTerms(
        log_likelihood_terms(x, responses, steps) + unknown,
        reached - np.sum(p * steps.numbers, axis=-1) + unknown,
        np.sum(p * _away(p, steps) ** 2, axis=-1) + unknown,
    )


def curvature_slopes(x: FloatArray, responses: FloatArray, steps: Steps) -> FloatArray:
    """Differentiate the curvature in the logit: the third cumulant of n, whatever the response."""
    return information_slopes(x, steps)[1] + 0.0 * np.nan_to_num(responses)


def information_slopes(x: FloatArray, steps: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fisher information in the logit, with its first and second derivatives: cumulants of n."""
    p = np.exp(log_probabilities(x, steps))
    away = _away(p, steps)
    second, third, fourth = (np.sum(p * away**power, axis=-1) for power in (2, 3, 4))
    return second, third, fourth - 3.0 * second**2


def divergence(x: FloatArray, other: FloatArray, steps: Steps) -> FloatArray:
    """Kullback-Leibler divergence of the levels at logits `other` from those at x, elementwise."""
    here, there = log_probabilities(x, steps), log_probabilities(other, steps)
    has = np.isfinite(here) & np.isfinite(there)
    difference = np.where(has, here, 0.0) - np.where(has, there, 0.0)
    result: FloatArray = np.sum(np.exp(here) * difference, axis=-1)
    return result


def _away(p: FloatArray, steps: Steps) -> FloatArray:
    """``n_k`` less its mean, (..., n_items, n_levels)."""
    numbers = steps.numbers
    result: FloatArray = numbers - np.sum(p * numbers, axis=-1, keepdims=True)
    return result
