"""Probabilities of the levels of graded items on nodes of ability, with derivatives (Samejima 1969).

Items are rows of slope a and falling thresholds c_k; ``a theta + c_k`` is the logit of reaching level k at all.
"""

import numpy as np

from itembank.irt import graded
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_pair


def level_probabilities(items: FloatArray, theta: FloatArray) -> FloatArray:
    """Probability of every level at every node, (n_items, n_levels, n_quadrature), never quite zero."""
    reached, missed = sigmoid_pair(items[:, :1, None] * theta + items[:, 1:, None])
    ends = np.ones((items.shape[0], 1, theta.size))
    # S_k - S_(k+1) as a product: the difference of two numbers near 1 would lose all digits
    result = np.concatenate([ends, reached], axis=1) * np.concatenate([missed, ends], axis=1)
    result[:, 1:-1] *= -np.expm1(np.diff(items[:, 1:], axis=1))[..., None]
    return np.maximum(result, graded.SMALLEST)


def level_derivatives(items: FloatArray, theta: FloatArray) -> FloatArray:
    """Differentiate level probabilities in slope and thresholds, (n_items, n_levels, n_levels, n_quadrature).

    The second axis is that of levels, the third that of parameters.
    """
    n_items, n_levels = items.shape
    result = np.zeros((n_items, n_levels, n_levels, theta.size))
    reached, missed = sigmoid_pair(items[:, :1, None] * theta + items[:, 1:, None])
    slope = reached * missed
    for step in range(n_levels - 1):  # P_k = S_k - S_(k+1), and threshold k moves S_k alone
        result[:, step + 1, step + 1] = slope[:, step]
        result[:, step, step + 1] = -slope[:, step]
    result[:, :, 0] = result[:, :, 1:].sum(axis=2) * theta
    return result


def start_thresholds(counts: FloatArray) -> FloatArray:
    """Thresholds at which the levels have these shares of the responses, (n_items, n_levels - 1).

    Parameters
    ----------
    counts : (n_items, n_levels)
        Above zero.
    """
    above = np.cumsum(counts[:, ::-1], axis=1)[:, -2::-1] / counts.sum(axis=1, keepdims=True)
    result: FloatArray = np.log(above) - np.log1p(-above)
    return result
