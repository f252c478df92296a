"""Logistic terms that neither overflow nor lose their digits in the tails.

All but one use exp(-|x|), which underflows to zero where it no longer matters, and never overflows.
"""

import numpy as np

from itembank.numerics.arrays import FloatArray


def softplus(x: FloatArray) -> FloatArray:
    """``log(1 + exp(x))``, elementwise."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-x))``, elementwise, without scipy.special, which takes a third of a short command to load."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def sigmoid_slope(x: FloatArray) -> FloatArray:
    """``sigmoid(x) sigmoid(-x)``, elementwise; keeps its digits in both tails, zero at infinity."""
    small = np.exp(-np.abs(x))
    return small / (1.0 + small) ** 2


def sigmoid_pair(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``sigmoid(x)`` and ``sigmoid(-x)``, elementwise, from one exponential; both keep their digits in both tails."""
    small = np.exp(-np.abs(x))
    larger = 1.0 / (1.0 + small)  # sigmoid(|x|)
    smaller = small * larger  # sigmoid(-|x|)
    is_positive = x >= 0.0
    return np.where(is_positive, larger, smaller), np.where(is_positive, smaller, larger)


def sigmoid_terms(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``log(1 + e^x)``, ``sigmoid(x)`` and its slope, from one exponential: solvers need all three."""
    small = np.exp(-np.abs(x))
    larger = 1.0 / (1.0 + small)  # sigmoid(|x|)
    smaller = small * larger  # sigmoid(-|x|)
    is_positive = x >= 0.0
    return np.maximum(x, 0.0) + np.log1p(small), np.where(is_positive, larger, smaller), smaller * larger
