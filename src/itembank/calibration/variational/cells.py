"""Expected log-likelihood of one response under a normal logit, and the quadratic that replaces it.

A binary response y of logit eta has ``log p = (y - 1/2) eta - log(2 cosh(eta / 2))``. Both rules take mean m and
variance v of eta and give the expected ``log(2 cosh(eta / 2))``, with a curvature w and a correction t. If eta is
linear in a parameter, the best normal posterior of it, given all other parameters, is that of the pseudo-likelihood
``(y - 1/2 + t) eta - w eta^2 / 2``.

- `jaakkola_jordan`: an upper bound of the expectation (Jaakkola & Jordan 2000; the mean field of the Polya-Gamma
  augmentation of Polson, Scott & Windle 2013). Updates can never overshoot, but far from eta = 0 its curvature is
  many times the true one: slopes come out too small, standard errors much too small, and progress is slow.
- `normal_expectation`: the expectation itself, by three Gauss-Hermite nodes, with its own derivatives.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import FloatArray

SMALLEST_VARIANCE = 1e-6
"""Of a logit: the curvature is a difference over ``sqrt(3 v)``, which for less would hold rounding only."""


def node_step(variance: FloatArray) -> FloatArray:
    """Return how far the outer two of three nodes lie from the mean of a logit: ``sqrt(3 v)``."""
    return np.sqrt(3.0 * np.maximum(variance, SMALLEST_VARIANCE))


CellTerms: TypeAlias = tuple[FloatArray | None, FloatArray, FloatArray]
"""Correction, curvature and log cosh that a rule gives each cell, (n_block, n_models) each; no correction is zero."""
LogisticRule: TypeAlias = Callable[[FloatArray, FloatArray], CellTerms]


class Cells(NamedTuple):
    """What the updates need of each cell, (n_block, n_models) each; zero where missing."""

    # Coefficient of the logit in the pseudo-likelihood: the gradient of the expected log-likelihood in the mean of the
    # logit, plus curvature times that mean.
    linear: FloatArray
    curvature: FloatArray  # Minus twice its slope in the variance of the logit
    value: FloatArray  # The expected log-likelihood itself


def jaakkola_jordan(mean: FloatArray, variance: FloatArray) -> CellTerms:
    """Bound: ``w = tanh(xi / 2) / (2 xi)`` and ``log(2 cosh(xi / 2))`` with ``xi^2 = m^2 + v``."""
    # Of xi^2: at zero `tanh(xi / 2) / (2 xi)` would be 0 / 0.
    smallest_square = 1e-8
    size = np.sqrt(np.maximum(mean**2 + variance, smallest_square))
    small = np.exp(-size)  # tanh(xi / 2) = (1 - e) / (1 + e)
    curvature = 0.5 * (1.0 - small)
    small += 1.0
    curvature /= small * size
    return None, curvature, 0.5 * size + np.log(small)


def normal_expectation(mean: FloatArray, variance: FloatArray) -> CellTerms:
    """Three nodes ``m, m +- h`` with ``h = sqrt(3 v)`` and weights 2/3, 1/6, 1/6.

    The curvature is minus twice the derivative by v of that very sum, so that a fixed point of the updates
    is a stationary point of the objective.

    With ``c = |m| / 2`` and ``g = h / 2`` two exponentials and one logarithm do for all nodes: of
    ``e = exp(-2 c)``, ``a = exp(-2 (c + g))`` and ``b = exp(-2 (c - g))`` the first and ``exp(-2 g)`` give the others,
    ``tanh x = (1 - exp(-2 x)) / (1 + exp(-2 x))`` and ``log(2 cosh x) = x + log(1 + exp(-2 x))``. The sign of the mean
    is put back at the end.
    """
    # Of half a logit, reached at a standard deviation of 46 logits: float32 overflows beyond exp(88).
    largest_half_step = 40.0
    # half of sqrt(3 v), of a variance cut to what gives no less and no more (a third of the time of two comparisons)
    half_step = np.sqrt(0.75 * np.clip(variance, SMALLEST_VARIANCE, largest_half_step**2 / 0.75))
    size = 0.5 * np.abs(mean)
    centre, below = np.exp(-2.0 * size), np.exp(-2.0 * half_step)
    above = centre * below
    np.divide(centre, below, out=below)
    # tanh(c + g) - tanh(c - g) = 2 (b - a) / ((1 + a) (1 + b))
    curvature = below - above
    above += 1.0
    below += 1.0
    outer = np.multiply(above, below, out=above)
    half_step *= outer
    curvature *= 0.25
    curvature /= half_step
    # tanh(c + g) + tanh(c - g) = 2 (1 - a b) / ((1 + a) (1 + b)), and a b = e^2
    slope = 1.0 - centre * centre
    slope /= outer
    inner = np.subtract(1.0, centre, out=below)
    centre += 1.0
    inner /= centre
    slope += 2.0 * inner
    slope *= 1.0 / 6.0
    np.copysign(slope, mean, out=slope)
    # The weights 4/6, 1/6, 1/6 make one logarithm of (1 + e)^4 (1 + a) (1 + b), the sixth of it. With half steps of 40
    # at most it stays below 16 * 2 exp(80) = 2e36, within float32.
    centre *= centre
    centre *= centre
    centre *= outer
    log_cosh = np.log(centre, out=centre)
    log_cosh *= 1.0 / 6.0
    log_cosh += size
    return curvature * mean - slope, curvature, log_cosh


def known_probability(mean: FloatArray, lower_asymptote: FloatArray) -> FloatArray:
    """Probability that a correct answer was known rather than guessed.

    ``r = sigmoid(E[eta] - log g)`` maximises the bound with a latent "knows it" for every correct answer, whose
    value is then ``log(exp(E[eta]) + g)``.
    """
    with np.errstate(divide="ignore"):
        probability: FloatArray = expit(mean - np.log(lower_asymptote))
    return probability


def guessing_terms(mean: FloatArray, centred: FloatArray, lower_asymptote: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace ``y - 1/2`` and ``(y - 1/2) E[eta]`` by what they are when right answers can be guesses.

    Parameters
    ----------
    mean, centred : (n_block, n_models)
        Expected logit; fraction of right answers minus one half (anything where not observed).
    lower_asymptote : (n_block, 1)
    """
    right = centred + centred.dtype.type(0.5)
    with np.errstate(divide="ignore"):
        log_lower = np.log(lower_asymptote)
    value = right * np.logaddexp(mean, log_lower) + (1.0 - right) * np.log1p(-lower_asymptote) - 0.5 * mean
    known = right * known_probability(mean, lower_asymptote) - centred.dtype.type(0.5)
    return known, value
