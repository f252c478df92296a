"""Boundaries of tests that look at the data several times, and bounds on a mean difference that hold for rare flips."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.intervals import NORMAL, normal_probability, t_quantile


def crossing_probability(information: Sequence[float], boundary: float) -> float:
    """Probability that a standardised sum is above `boundary` at any look, where nothing is there to be found.

    With information ``I_1 < ... < I_K`` the statistic ``Z_k = S_k / sqrt(I_k)`` has ``S_k - S_{k-1} ~ N(0, I_k -
    I_{k-1})``, independent of what came before. The density of sums that have not crossed is carried from look to look
    (Armitage, McPherson & Rowe 1969) by Gauss-Legendre quadrature.
    """
    from scipy.special import ndtr  # noqa: PLC0415 (loading it takes a third of a verdict from two files)

    n_nodes = 96
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    # Of a standard normal: what lies below it has a probability below 1e-15.
    lowest = -8.0
    z = 0.5 * (boundary - lowest) * (nodes + 1.0) + lowest
    weights = 0.5 * (boundary - lowest) * weights
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    crossed = normal_probability(-boundary)
    for earlier, later in pairwise(information):
        step = np.sqrt(later - earlier)
        before, now = z * np.sqrt(earlier), np.sqrt(later)
        crossed += float((weights * density) @ ndtr((before - boundary * now) / step))
        move = (z[:, None] * now - before) / step
        density = (np.exp(-0.5 * move**2) * (now / step / np.sqrt(2.0 * np.pi))) @ (weights * density)
    return crossed


@lru_cache(maxsize=64)
def constant_boundary(information: tuple[float, ...], error: float) -> float:
    """Return the boundary, the same at all looks, that is crossed with probability `error` (one-sided; Pocock 1977)."""
    least = -NORMAL.inv_cdf(error)
    if len(information) < 2:
        return least
    most = 1e-9 - NORMAL.inv_cdf(error / len(information))  # Bonferroni's
    while most - least > 1e-8:
        middle = 0.5 * (least + most)
        if crossing_probability(information, middle) > error:
            least = middle
        else:
            most = middle
    return most


def student_boundary(boundary: float, degrees: float) -> float:
    """Return the boundary of a Student variable that is crossed as rarely as `boundary` is by a normal one."""
    return -t_quantile(normal_probability(-boundary), degrees)


Known = float | FloatArray
"""A number, or one for each of several differences; all of them are broadcast together."""


def lower_bound(
    value: Known,  # Mean difference
    variance: Known,  # Its squared standard error
    unit: Known,  # Squared standard error of a mean of responses with variance one; 0 where nothing is known of flips
    flips: tuple[Known, Known],  # Fractions of the items that fell, and rose, of responses that are right or wrong
    boundary: Known,  # c
) -> FloatArray:
    """Return the lower confidence bound of a difference, at least -1: a score test rejects all below it.

    A difference d is rejected if ``value - d > c sqrt(max(variance, unit v(d)))``, with v(d) the variance of a paired
    difference of right and wrong answers that is most likely if its mean is d (`null_variance`; Tango 1998, Statist.
    Med. 17). So few flips, which by themselves tell of little variance, are not taken for proof of a small difference.
    """
    value = np.asarray(value, dtype=np.float64)

    def is_rejected(difference: FloatArray) -> BoolArray:
        reach = boundary * np.sqrt(np.maximum(variance, unit * null_variance(difference, flips)))
        return np.asarray(value - difference > reach)

    plain = np.maximum(value - boundary * np.sqrt(variance), -1.0)
    if not np.any(unit):
        return plain
    low = np.full(plain.shape, -1.0)
    high, is_open = np.broadcast_to(value, plain.shape), is_rejected(low)
    for _ in range(40):
        middle = 0.5 * (low + high)
        is_below = is_rejected(middle)
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.where(np.asarray(unit) > 0.0, np.where(is_open, high, -1.0), plain)


def upper_bound(value: Known, variance: Known, unit: Known, flips: tuple[Known, Known], boundary: Known) -> FloatArray:
    """Return the upper confidence bound: `lower_bound` with signs changed."""
    return -lower_bound(-np.asarray(value), variance, unit, flips[::-1], boundary)


def null_variance(difference: Known, flips: tuple[Known, Known]) -> FloatArray:
    """Variance of one paired difference with mean d, at the most likely fractions of falls and rises.

    With m = abs(d), q the rarer of the true fractions and q + m the other, the likelihood of the observed fractions r
    and f is highest at the root of ``2 q^2 + b q - r m (1 - m)``, ``b = 2 (1 - f - r) m - (f + r) (1 - m) + 2 r m``.
    The variance is then ``2 q + m - m^2``.
    """
    m, is_fall = np.abs(difference), np.asarray(difference) < 0.0
    f, r = np.where(is_fall, flips[0], flips[1]), np.where(is_fall, flips[1], flips[0])
    b = 2.0 * (1.0 - f - r) * m - (f + r) * (1.0 - m) + 2.0 * r * m
    q = (np.sqrt(b * b + 8.0 * r * m * (1.0 - m)) - b) / 4.0
    return np.asarray(2.0 * q + m - m * m)
