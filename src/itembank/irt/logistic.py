"""Derivatives of a Bernoulli log-likelihood in the logit, elementwise, with asymptotes.

With ``p = g + (u - g) sigmoid(x)`` the asymptotes only shift the logit inside logarithms,

    log p     = log(g + u e^x) - log(1 + e^x),           L = log(u / g),
    log (1-p) = log(1 - g + (1 - u) e^x) - log(1 + e^x),  K = log((1 - g) / (1 - u)),

so that every derivative is made of sigmoids at ``x``, ``x + L`` and ``x - K``, with no difference of
nearly equal numbers and no division by a probability that underflows. ``L = K = infinity`` without asymptotes.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_slope, softplus


@dataclass(frozen=True, slots=True)
class Asymptotes:
    """Asymptotes g and u as the shifts L and K they put on the logit, each (n_items,) or (n_models, n_items).

    Attributes
    ----------
    log_lower, log_upper : log g and log u
    log_one_minus_lower, log_one_minus_upper : log(1 - g) and log(1 - u)
    """

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


def asymptotes_of(lower: FloatArray, upper: FloatArray) -> Asymptotes | None:
    """Return the asymptotes, or None when every lower one is 0 and every upper one is 1."""
    if not np.any(lower) and np.all(upper == 1.0):
        return None
    with np.errstate(divide="ignore"):
        return Asymptotes(np.log(lower), np.log(upper), np.log1p(-lower), np.log1p(-upper))


def log_likelihood_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """``y log p + (1 - y) log(1 - p)``; a zero weight on an impossible outcome counts zero."""
    if asymptotes is None:
        result: FloatArray = responses * x - softplus(x)
        return result
    log_p = np.logaddexp(asymptotes.log_lower, asymptotes.log_upper + x)
    log_q = np.logaddexp(asymptotes.log_one_minus_lower, asymptotes.log_one_minus_upper + x)
    return responses * log_p + (1.0 - responses) * log_q - softplus(x)


def score_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """Derivative of the log-likelihood terms in the logit."""
    if asymptotes is None:
        result: FloatArray = responses - expit(x)
        return result
    rising, falling = _log_slopes(x, asymptotes)
    return responses * rising - (1.0 - responses) * falling


def curvature_terms(x: FloatArray, responses: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """Minus the second derivative of the log-likelihood terms in the logit; may be negative with asymptotes."""
    if asymptotes is None:
        return sigmoid_slope(x)
    from_lower = responses * sigmoid_slope(x + asymptotes.lower_shift)
    from_upper = (1.0 - responses) * sigmoid_slope(x - asymptotes.upper_shift)
    return sigmoid_slope(x) - from_lower - from_upper


def information_weights(x: FloatArray, asymptotes: Asymptotes | None) -> FloatArray:
    """Fisher information in the logit, ``(dp/dx)^2 / (p (1 - p))``."""
    if asymptotes is None:
        return sigmoid_slope(x)
    rising, falling = _log_slopes(x, asymptotes)
    return rising * falling


def _log_slopes(x: FloatArray, asymptotes: Asymptotes) -> tuple[FloatArray, FloatArray]:
    """``d log p / dx`` and ``- d log(1 - p) / dx``, both >= 0.

    A difference of sigmoids is ``sigmoid(b) - sigmoid(a) = sigmoid(b) sigmoid(-a) (1 - exp(a - b))``.
    """
    lower_shift, upper_shift = asymptotes.lower_shift, asymptotes.upper_shift
    rising = expit(-x) * expit(x + lower_shift) * -np.expm1(-lower_shift)
    falling = expit(x) * expit(upper_shift - x) * -np.expm1(-upper_shift)
    return rising, falling
