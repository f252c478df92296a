"""The mean of a response, ``p = g + (u - g) sigmoid(x)``, with its derivatives in the logit x, elementwise."""

from typing import NamedTuple

import numpy as np

from itembank.irt.logistic import Asymptotes, log_probabilities
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_pair

LARGEST_LOGIT = 150.0
"""Up to it ``1 / (phi p)^3`` does not overflow, even for phi = 0.01 (it does from 231 on). Only trial steps that are
refused lead further."""


class Mean(NamedTuple):
    """``p`` and ``q = 1 - p`` with their logs, and ``p', p'', p'''``; all keep their digits in both tails."""

    p: FloatArray
    q: FloatArray
    log_p: FloatArray
    log_q: FloatArray
    first: FloatArray
    second: FloatArray
    third: FloatArray


def mean_terms(x: FloatArray, asymptotes: Asymptotes | None) -> Mean:
    """Evaluate the mean at logits x; asymptotes broadcast to x."""
    sigmoid, complement = sigmoid_pair(x)
    slope = sigmoid * complement
    # s'' = s' (1 - 2 s) and s''' = s' (1 - 6 s').
    second, third = slope * (complement - sigmoid), slope * (1.0 - 6.0 * slope)
    log_p, log_q = log_probabilities(x, asymptotes)
    if asymptotes is None:
        return Mean(sigmoid, complement, log_p, log_q, slope, second, third)
    lower, one_minus_upper = np.exp(asymptotes.log_lower), np.exp(asymptotes.log_one_minus_upper)
    height = np.exp(asymptotes.log_upper) - lower
    return Mean(
        lower + height * sigmoid,
        one_minus_upper + height * complement,
        log_p,
        log_q,
        height * slope,
        height * second,
        height * third,
    )


def bounded_mean(x: FloatArray, asymptotes: Asymptotes | None) -> Mean:
    """Evaluate the mean at logits that are bounded by `LARGEST_LOGIT` on both sides."""
    return mean_terms(np.clip(x, -LARGEST_LOGIT, LARGEST_LOGIT), asymptotes)
