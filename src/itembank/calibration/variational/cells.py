"""Expected log-likelihood of one response under a normal logit, and the quadratic that stands in for it.

A binary response y of logit eta has ``log p = (y - 1/2) eta - log(2 cosh(eta / 2))``. Both rules take mean m and
variance v of eta and give the expected ``log(2 cosh(eta / 2))``, with a curvature w and a tilt t such that the
best normal posterior of whatever eta is linear in, given the rest, is that of the pseudo-likelihood
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

SMALLEST_SQUARE = 1e-8
SMALLEST_VARIANCE = 1e-6


class CellTerms(NamedTuple):
    """What a rule says of each cell, (n_block, n_models) each; no tilt is zero tilt."""

    tilt: FloatArray | None
    curvature: FloatArray
    log_cosh: FloatArray


LogisticRule: TypeAlias = Callable[[FloatArray, FloatArray], CellTerms]


class Cells(NamedTuple):
    """What the updates need of each cell, (n_block, n_models) each; zero where missing.

    Attributes
    ----------
    pull
        Slope of the expected log-likelihood in the mean of the logit, plus curvature times that mean.
    curvature
        Minus twice its slope in the variance of the logit.
    value
        The expected log-likelihood itself.
    """

    pull: FloatArray
    curvature: FloatArray
    value: FloatArray


def jaakkola_jordan(mean: FloatArray, variance: FloatArray) -> CellTerms:
    """Bound: ``w = tanh(xi / 2) / (2 xi)`` and ``log(2 cosh(xi / 2))`` with ``xi^2 = m^2 + v``."""
    size = np.sqrt(np.maximum(mean**2 + variance, SMALLEST_SQUARE))
    log_cosh = 0.5 * size + np.log1p(np.exp(-size))
    return CellTerms(None, 0.5 * np.tanh(0.5 * size) / size, log_cosh)


def normal_expectation(mean: FloatArray, variance: FloatArray) -> CellTerms:
    """Three nodes ``m, m +- h`` with ``h = sqrt(3 v)`` and weights 2/3, 1/6, 1/6.

    The curvature is minus twice the derivative by v of that very sum, so that a fixed point of the updates
    is a stationary point of the objective.
    """
    half_step = np.sqrt(0.75 * np.maximum(variance, SMALLEST_VARIANCE))
    centre = 0.5 * mean
    above, below = centre + half_step, centre - half_step
    tanh_above, tanh_below = np.tanh(above), np.tanh(below)
    slope = (4.0 * np.tanh(centre) + tanh_above + tanh_below) / 12.0
    curvature = tanh_above - tanh_below
    curvature /= 8.0 * half_step
    # log(2 cosh x) = |x| + log(1 + exp(-2 |x|)), with one logarithm for the three nodes
    np.abs(centre, out=centre)
    np.abs(above, out=above)
    np.abs(below, out=below)
    log_cosh = 4.0 * centre + above + below
    factor = 1.0 + np.exp(-2.0 * centre)
    factor *= factor
    factor *= factor
    factor *= 1.0 + np.exp(-2.0 * above)
    factor *= 1.0 + np.exp(-2.0 * below)
    log_cosh += np.log(factor)
    log_cosh /= 6.0
    return CellTerms(curvature * mean - slope, curvature, log_cosh)


def known_share(mean: FloatArray, lower_asymptote: FloatArray) -> FloatArray:
    """Probability that a correct answer was known rather than guessed.

    ``r = sigmoid(E[eta] - log g)`` maximises the bound with a latent "knows it" for every correct answer, whose
    value is then ``log(exp(E[eta]) + g)``.
    """
    with np.errstate(divide="ignore"):
        share: FloatArray = expit(mean - np.log(lower_asymptote))
    return share


def guessing_terms(mean: FloatArray, centred: FloatArray, lower_asymptote: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace ``y - 1/2`` and ``(y - 1/2) E[eta]`` by what they are when right answers can be guesses.

    Parameters
    ----------
    mean, centred : (n_block, n_models)
        Expected logit; share of right answers minus one half (anything where not observed).
    lower_asymptote : (n_block, 1)
    """
    right = centred + centred.dtype.type(0.5)
    with np.errstate(divide="ignore"):
        log_lower = np.log(lower_asymptote)
    value = right * np.logaddexp(mean, log_lower) + (1.0 - right) * np.log1p(-lower_asymptote) - 0.5 * mean
    known = right * known_share(mean, lower_asymptote) - centred.dtype.type(0.5)
    return known, value
