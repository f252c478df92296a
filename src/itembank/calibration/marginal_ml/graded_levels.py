"""Probabilities of the levels of graded items on nodes of ability, with derivatives, by either link.

Items are rows of slope a and thresholds c_k, the logit of step k is ``a theta + c_k``. By the cumulative link that is
the logit of reaching level k at all (Samejima 1969), by the adjacent one that of level k against the one before (Muraki
1992).
"""

import numpy as np

from itembank.irt import graded
from itembank.irt.family_names import Link
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_pair


def level_probabilities(items: FloatArray, theta: FloatArray, link: Link) -> FloatArray:
    """Probability of every level at every node, (n_items, n_levels, n_quadrature), never quite zero."""
    steps = items[:, :1, None] * theta + items[:, 1:, None]
    if link == "adjacent":
        logits = np.concatenate([np.zeros_like(steps[:, :1]), np.cumsum(steps, axis=1)], axis=1)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: FloatArray = np.maximum(weights / weights.sum(axis=1, keepdims=True), graded.SMALLEST)
        return shares
    reached, _ = sigmoid_pair(steps)
    ends = np.ones((items.shape[0], 1, theta.size))
    whole = np.concatenate([ends, reached, 0.0 * ends], axis=1)
    result: FloatArray = np.maximum(whole[:, :-1] - whole[:, 1:], graded.SMALLEST)
    return result


def level_derivatives(items: FloatArray, theta: FloatArray, link: Link) -> FloatArray:
    """Differentiate level probabilities in slope and thresholds, (n_items, n_levels, n_levels, n_quadrature).

    The second axis is that of levels, the third that of parameters.
    """
    n_items, n_levels = items.shape
    result = np.zeros((n_items, n_levels, n_levels, theta.size))
    if link == "adjacent":
        p = level_probabilities(items, theta, link)
        above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]  # P(Y >= v_k)
        for step in range(1, n_levels):  # threshold j raises the logits of all levels from j on
            is_above = (np.arange(n_levels) >= step)[None, :, None]
            result[:, :, step] = p * (is_above - above[:, step : step + 1])
    else:
        reached, missed = sigmoid_pair(items[:, :1, None] * theta + items[:, 1:, None])
        slope = reached * missed
        for step in range(n_levels - 1):  # P_k = S_k - S_(k+1), and threshold k moves S_k alone
            result[:, step + 1, step + 1] = slope[:, step]
            result[:, step, step + 1] = -slope[:, step]
    result[:, :, 0] = result[:, :, 1:].sum(axis=2) * theta
    return result


def start_thresholds(counts: FloatArray, link: Link) -> FloatArray:
    """Thresholds at which the levels have these shares of the responses, (n_items, n_levels - 1).

    Parameters
    ----------
    counts : (n_items, n_levels)
        Above zero.
    link : {'cumulative', 'adjacent'}
    """
    if link == "adjacent":
        return np.diff(np.log(counts), axis=1)
    above = np.cumsum(counts[:, ::-1], axis=1)[:, -2::-1] / counts.sum(axis=1, keepdims=True)
    result: FloatArray = np.log(above) - np.log1p(-above)
    return result
