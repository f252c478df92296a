"""Logistic terms that neither overflow nor lose their digits in the tails."""

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import FloatArray


def softplus(x: FloatArray) -> FloatArray:
    """``log(1 + exp(x))``, elementwise."""
    result: FloatArray = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return result


def log_sigmoid(x: FloatArray) -> FloatArray:
    """``log(1 / (1 + exp(-x)))``, elementwise; zero at infinity."""
    return -softplus(-x)


def sigmoid_slope(x: FloatArray) -> FloatArray:
    """``sigmoid(x) sigmoid(-x)``, elementwise; keeps its digits in both tails, zero at infinity."""
    result: FloatArray = expit(x) * expit(-x)
    return result
