"""Derivatives of a Bernoulli log-likelihood in the logit, elementwise, with asymptotes.

With ``p = g + (u - g) sigmoid(x)`` the asymptotes only shift the logit inside logarithms,

    log p       = log(g + u e^x) - log(1 + e^x),            L = log(u / g),
    log (1 - p) = log(1 - g + (1 - u) e^x) - log(1 + e^x),  K = log((1 - g) / (1 - u)),

so that every derivative is made of sigmoids at ``x``, ``x + L`` and ``x - K``, with no difference of
nearly equal numbers and no division by a probability that underflows. ``L = K = infinity`` without asymptotes.

All arrays of one call broadcast to (n_models, n_items).

The mean of a response, ``p = g + (u - g) sigmoid(x)``, with its derivatives in the logit x, elementwise.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.stable import sigmoid, sigmoid_pair, sigmoid_slope, sigmoid_terms, softplus


@dataclass(frozen=True, slots=True)
class Asymptotes:
    """Logs of the asymptotes g and u and of their complements, each (n_items,) or (n_models, n_items)."""

    log_lower: FloatArray
    log_upper: FloatArray
    log_one_minus_lower: FloatArray
    log_one_minus_upper: FloatArray

    @property
    def lower_shift(self) -> FloatArray:
        """``L = log(u / g)``."""
        return self.log_upper - self.log_lower

    @property
    def upper_shift(self) -> FloatArray:
        """``K = log((1 - g) / (1 - u))``."""
        return self.log_one_minus_lower - self.log_one_minus_upper

    def take(self, indices: IntArray | tuple[slice, IntArray]) -> "Asymptotes":
        """Return the rows, or items, at `indices` of every array."""
        return Asymptotes(
            self.log_lower[indices],
            self.log_upper[indices],
            self.log_one_minus_lower[indices],
            self.log_one_minus_upper[indices],
        )


class LikelihoodTerms(NamedTuple):
    """Log-likelihood of each response, its slope in the logit, and minus its second derivative."""

    log_likelihood: FloatArray
    slope: FloatArray
    curvature: FloatArray


def asymptotes_of(lower: FloatArray, upper: FloatArray) -> Asymptotes | None:
    """Return the asymptotes, or None when every lower one is 0 and every upper one is 1."""
    if not np.any(lower) and np.all(upper == 1.0):
        return None
    with np.errstate(divide="ignore"):
        return Asymptotes(np.log(lower), np.log(upper), np.log1p(-lower), np.log1p(-upper))


def log_probabilities(x: FloatArray, asymptotes: Asymptotes | None) -> tuple[FloatArray, FloatArray]:
    """``log p`` and ``log(1 - p)``."""
    if asymptotes is None:
        below = softplus(x)
        return x - below, -below
    # Numerator and denominator are both divided by e^x where x is positive.
    low, high = np.minimum(-x, 0.0), np.minimum(x, 0.0)
    below = np.log1p(np.exp(-np.abs(x)))
    log_p = np.logaddexp(asymptotes.log_lower + low, asymptotes.log_upper + high) - below
    log_q = np.logaddexp(asymptotes.log_one_minus_lower + low, asymptotes.log_one_minus_upper + high) - below
    return log_p, log_q


def log_likelihood_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """Log-likelihood of each response y, ``y log p + (1 - y) log(1 - p)``."""
    if asymptotes is None:
        return responses * x - softplus(x)
    log_p, log_q = log_probabilities(x, asymptotes)
    return responses * log_p + (1.0 - responses) * log_q


def score_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """First derivative of the log-likelihood terms in the logit."""
    if asymptotes is None:
        return responses - sigmoid(x)
    rising, falling = _log_slopes(x, asymptotes)
    return responses * rising - (1.0 - responses) * falling


def curvature_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """Minus the second derivative of the log-likelihood terms; may be negative with asymptotes."""
    if asymptotes is None:
        return sigmoid_slope(x)
    # log p = log(g + u e^x) - log(1 + e^x): its second derivative is s'(x + L) - s'(x). Of log(1 - p) it is
    # s'(x - K) - s'(x).
    from_lower = responses * sigmoid_slope(x + asymptotes.lower_shift)
    from_upper = (1.0 - responses) * sigmoid_slope(x - asymptotes.upper_shift)
    return sigmoid_slope(x) - from_lower - from_upper


def likelihood_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> LikelihoodTerms:
    """Log-likelihood, slope and curvature together, sharing their exponentials."""
    if asymptotes is None:
        below, sigmoid, slope = sigmoid_terms(x)
        return LikelihoodTerms(responses * x - below, responses - sigmoid, slope)
    return LikelihoodTerms(
        log_likelihood_terms(x, responses, asymptotes),
        score_terms(x, responses, asymptotes),
        curvature_terms(x, responses, asymptotes),
    )


def information_weights(x: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """Fisher information in the logit, ``(dp/dx)^2 / (p (1 - p))``."""
    if asymptotes is None:
        return sigmoid_slope(x)
    rising, falling = _log_slopes(x, asymptotes)
    return rising * falling


def information_slopes(x: FloatArray, asymptotes: Asymptotes | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`information_weights` w with their first and second derivatives in the logit.

    ``log w`` is a sum of log-sigmoids, so ``w' = w l`` and ``w'' = w (l^2 + l')`` with ``l = (log w)'``.
    """
    weights = information_weights(x, asymptotes)
    log_curvature = 2.0 * sigmoid_slope(x)
    if asymptotes is None:
        first = sigmoid(-x) - sigmoid(x)
    else:
        # The weight is s(x + L) s(-x) s(x) s(K - x) times a constant; (log s(z))' = s(-z).
        low, high = x + asymptotes.lower_shift, x - asymptotes.upper_shift
        first = sigmoid(-low) - sigmoid(x) + sigmoid(-x) - sigmoid(high)
        log_curvature = log_curvature + sigmoid_slope(low) + sigmoid_slope(high)
    return weights, weights * first, weights * (first**2 - log_curvature)


def _log_slopes(x: FloatArray, asymptotes: Asymptotes) -> tuple[FloatArray, FloatArray]:
    """``d log p / dx`` and ``- d log(1 - p) / dx``, both >= 0.

    With ``s = sigmoid(x)``, ``r = 1 - s`` and ``h = u - g`` they are ``r (h s / (g + h s))`` and
    ``s (h r / (1 - u + h r))``: sums of positive terms only, from one exponential.
    """
    lower, one_minus_upper = np.exp(asymptotes.log_lower), np.exp(asymptotes.log_one_minus_upper)
    height = np.exp(asymptotes.log_upper) - lower
    sigmoid, complement = sigmoid_pair(x)
    # Smallest sigmoid in a ratio: with an asymptote of 0 a sigmoid that underflowed would give 0 / 0 instead of 1.
    smallest_sigmoid = 1e-300
    above, below = height * np.maximum(sigmoid, smallest_sigmoid), height * np.maximum(complement, smallest_sigmoid)
    return complement * (above / (lower + above)), sigmoid * (below / (one_minus_upper + below))


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
    """Evaluate the mean at logits that are bounded by 150 on both sides."""
    # Up to it `1 / (phi p)^3` does not overflow, even for phi = 0.01 (it does from 231 on). Only trial steps that are
    # refused lead further.
    largest_logit = 150.0
    return mean_terms(np.clip(x, -largest_logit, largest_logit), asymptotes)
