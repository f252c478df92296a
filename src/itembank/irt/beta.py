"""The Beta item model for responses that are probabilities, elementwise, with asymptotes (IRSL).

A response y with mean p and precision phi is ``Beta(a, b)``, ``a = p phi`` and ``b = (1 - p) phi``:

    log f(y) = log Gamma(phi) - log Gamma(a) - log Gamma(b) + (a - 1) log y + (b - 1) log(1 - y)

With ``L = log(y / (1 - y))``, ``m = psi(a) - psi(b)`` (the mean of L) and primes for derivatives in the logit x,

    (log f)'  =  phi p' (L - m)
    -(log f)'' = I - phi p'' (L - m),     I = phi^2 p'^2 [psi1(a) + psi1(b)],   E -(log f)'' = I.

A response within EPSILON of 0 or 1 enters by the probability of that, ``P_0`` or ``P_1`` (`itembank.irt.beta`),
and the information is

    I - P_0 (p' / p)^2 - P_1 (p' / (1 - p))^2:

that of the density where nothing is clipped, and that of a Bernoulli response where everything is.

Gamma functions enter through what is left of them once their growth is taken out (`itembank.numerics.gamma`), so
that nothing cancels for x up to 40 and phi from 0.01 to 10 million. All arrays of one call broadcast.

Probabilities too near to 0 or 1 for a Beta density: known only to lie within EPSILON of that end.

The density f there is zero or infinite, so such a response enters by its probability instead. Near 0 the density is a
power of y, so that with ``a = p phi``, while phi is well below ``1 / EPSILON``,

    P(Y < EPSILON) = f(EPSILON) EPSILON / a,

and near 1 the same with ``b = (1 - p) phi``: the density's formula is divided by ``a / EPSILON`` or ``b / EPSILON``.
"""

# ruff: noqa: ARG002 (a family takes no notice of what it does not need)

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import scipy

from itembank.errors import ParameterError
from itembank.irt.families import ResponseModel
from itembank.irt.logistic import Asymptotes, LikelihoodTerms, Mean, bounded_mean, mean_terms
from itembank.numerics.arrays import FloatArray
from itembank.numerics.gamma import HALF_LOG_TWO_PI, digamma_rest, log_gamma_rest, trigamma, trigamma_rest

EPSILON = 1e-6
"""Responses nearer than this to 0 or 1 are only known to be that near."""

CLIPPED_LOGIT = 13.7
"""Log-odds beyond which a response was clipped: EPSILON has 13.8, and single precision rounds."""


EndRatio: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Log of the ratio of the density at an end to the probability beyond it, and three derivatives of it in the logit."""


def clipped(responses: FloatArray) -> FloatArray:
    """Responses moved into [EPSILON, 1 - EPSILON]; NaN stays NaN."""
    return np.clip(responses, EPSILON, 1.0 - EPSILON)


def log_odds(responses: FloatArray) -> FloatArray:
    """``L = log(y / (1 - y))`` of the clipped responses y."""
    y = clipped(responses)
    return np.log(y) - np.log1p(-y)


def low_end(mean: Mean, precision: FloatArray) -> EndRatio:
    """``log(a / EPSILON)``."""
    return _ratio(mean.log_p, mean.p, (mean.first, mean.second, mean.third), precision)


def high_end(mean: Mean, precision: FloatArray) -> EndRatio:
    """``log(b / EPSILON)``."""
    return _ratio(mean.log_q, mean.q, (-mean.first, -mean.second, -mean.third), precision)


def end_of(mean: Mean, responses: FloatArray, precision: FloatArray) -> EndRatio | None:
    """Return the ratio of the end at which each response was clipped, zero elsewhere; None where none was."""
    odds = log_odds(responses)
    # By the log-odds and not by ``y <= EPSILON``: that misses responses clipped in single precision.
    is_low, is_high = odds < -CLIPPED_LOGIT, odds > CLIPPED_LOGIT
    if not (is_low.any() or is_high.any()):
        return None
    ends = zip(low_end(mean, precision), high_end(mean, precision), strict=True)
    value, first, second, third = (np.where(is_low, low, np.where(is_high, high, 0.0)) for low, high in ends)
    return value, first, second, third


def _ratio(
    log_mean: FloatArray, mean: FloatArray, slopes: tuple[FloatArray, FloatArray, FloatArray], precision: FloatArray
) -> EndRatio:
    """Differentiate the log of a mean that has these three derivatives."""
    # Smallest mean that divides: a mean that underflowed to 0 would give infinite ratios or NaN.
    smallest = 1e-300
    first, second, third = (slope / np.maximum(mean, smallest) for slope in slopes)
    # With r = p' / p: (log p)'' = p'' / p - r^2 and (log p)''' = p''' / p - 3 r p'' / p + 2 r^3.
    log_second, log_third = second - first**2, third - 3.0 * first * second + 2.0 * first**3
    return log_mean + np.log(precision / EPSILON), first, log_second, log_third


def log_normaliser(x: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None) -> FloatArray:
    """Log of the constant that multiplies the density, ``A = log Gamma(phi) - log Gamma(a) - log Gamma(b)``."""
    mean = bounded_mean(x, asymptotes)
    entropy = -(mean.p * mean.log_p + mean.q * mean.log_q)
    return precision * entropy + _spread(mean, precision)


def log_likelihood_terms(
    x: FloatArray, responses: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None
) -> FloatArray:
    """Log-density of each response; of a clipped response the log-probability of its end."""
    mean = bounded_mean(x, asymptotes)
    value, end = _log_density(mean, clipped(responses), precision), end_of(mean, responses, precision)
    return value if end is None else value - end[0]


def likelihood_terms(
    x: FloatArray, responses: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None
) -> LikelihoodTerms:
    """Log-likelihood, its slope in the logit, and minus its second derivative, which may be negative."""
    mean = bounded_mean(x, asymptotes)
    # a = p phi and b = (1 - p) phi give d log f / dp = phi (L - m); the chain rule brings p' and p''.
    gradient_in_p = precision * _residual(mean, responses, precision)
    value = _log_density(mean, clipped(responses), precision)
    slope, curvature = mean.first * gradient_in_p, _information(mean, precision) - mean.second * gradient_in_p
    end = end_of(mean, responses, precision)
    if end is None:
        return LikelihoodTerms(value, slope, curvature)
    at_end, first, second, _ = end
    return LikelihoodTerms(value - at_end, slope - first, curvature + second)


def information_weights(x: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None) -> FloatArray:
    """Fisher information in the logit."""
    mean = bounded_mean(x, asymptotes)
    a, b = precision * mean.p, precision * mean.q
    # psi1(a) = psi1(a + 1) + 1 / a^2 leaves nothing to cancel
    result: FloatArray = (precision * mean.first) ** 2 * (trigamma(a + 1.0) + trigamma(b + 1.0))
    for (_, first, _, _), log_probability in _ends(mean, precision):
        # The terms 1 / a^2 and 1 / b^2 left out above are (p' / p)^2 and (p' / q)^2, less the part that clipping takes:
        # (1 - P) (p' / p)^2. Rounding may put log P above 0, which would make the weight negative.
        result = result - first**2 * np.expm1(np.minimum(log_probability, 0.0))
    return result


def information_slopes(
    x: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`information_weights` with their first and second derivatives in the logit."""
    mean = bounded_mean(x, asymptotes)
    a, b = precision * mean.p, precision * mean.q
    shape_slope, shape_second = precision * mean.first, precision * mean.second
    # V = psi1(a) + psi1(b), the variance of L, with its first two derivatives in x: a' = phi p' and b' = -phi p', so
    # that each further derivative of psi changes the sign of the b term.
    psi2_difference = scipy.special.polygamma(2, a) - scipy.special.polygamma(2, b)
    psi3_sum = scipy.special.polygamma(3, a) + scipy.special.polygamma(3, b)
    spread, spread_slope = trigamma(a) + trigamma(b), shape_slope * psi2_difference
    spread_second = shape_second * psi2_difference + shape_slope**2 * psi3_sum
    squared = precision**2
    slope = squared * mean.first * (2.0 * mean.second * spread + mean.first * spread_slope)
    second_derivative = squared * (
        2.0 * (mean.second**2 + mean.first * mean.third) * spread
        + 4.0 * mean.first * mean.second * spread_slope
        + mean.first**2 * spread_second
    )
    for y, ((_, first, second, third), log_probability) in zip(
        (EPSILON, 1.0 - EPSILON), _ends(mean, precision), strict=True
    ):
        # Differentiate P r'^2 with r the log of the ratio: (log P)' is log_slope, and -(log P)'' log_curvature.
        probability = np.exp(log_probability)
        gradient_in_p = precision * _residual(mean, np.array(y), precision)
        log_slope = mean.first * gradient_in_p - first
        log_curvature = _information(mean, precision) - mean.second * gradient_in_p + second
        slope = slope - probability * first * (log_slope * first + 2.0 * second)
        second_derivative = second_derivative - probability * (
            (log_slope**2 - log_curvature) * first**2
            + 4.0 * log_slope * first * second
            + 2.0 * (second**2 + first * third)
        )
    return information_weights(x, precision, asymptotes), slope, second_derivative


def _ends(mean: Mean, precision: FloatArray) -> Iterator[tuple[EndRatio, FloatArray]]:
    """Give the low and the high end, each with the log of its probability."""
    for end, y in ((low_end(mean, precision), EPSILON), (high_end(mean, precision), 1.0 - EPSILON)):
        yield end, _log_density(mean, np.array(y), precision) - end[0]


def _spread(mean: Mean, precision: FloatArray) -> FloatArray:
    """Return ``A`` less phi times the entropy of p, which grows with log phi only."""
    remainders = log_gamma_rest(precision) - log_gamma_rest(precision * mean.p) - log_gamma_rest(precision * mean.q)
    # Stirling's growth terms z log z of the three gamma functions sum to phi times the entropy; (log z) / 2 stays.
    result: FloatArray = 0.5 * (np.log(precision) + mean.log_p + mean.log_q) - HALF_LOG_TWO_PI + remainders
    return result


def _log_density(mean: Mean, y: FloatArray, precision: FloatArray) -> FloatArray:
    """Log-density as ``-phi KL(p || y)`` and terms that do not grow with phi; y must be clipped."""
    distance = mean.p * (mean.log_p - np.log(y)) + mean.q * (mean.log_q - np.log1p(-y))  # KL(p || y)
    return _spread(mean, precision) - precision * distance - np.log(y) - np.log1p(-y)


def _residual(mean: Mean, responses: FloatArray, precision: FloatArray) -> FloatArray:
    """Residual ``L - m``: the log-odds of each response less their expectation."""
    expected = mean.log_p - mean.log_q + digamma_rest(precision * mean.p) - digamma_rest(precision * mean.q)
    return log_odds(responses) - expected


def _information(mean: Mean, precision: FloatArray) -> FloatArray:
    """``I``, as ``phi p'^2 / (p q)`` and a part that stays of the order of one."""
    # psi1(z) = 1 / z + T(z), and 1 / a + 1 / b = 1 / (phi p q).
    remainders = trigamma_rest(precision * mean.p) + trigamma_rest(precision * mean.q)
    slope = precision * mean.first
    return slope * (mean.first / (mean.p * mean.q)) + slope * slope * remainders


class BetaModel(ResponseModel):
    """Probabilities, with a precision of every item."""

    __slots__ = ()

    def relative_information(self, n_trials: FloatArray | None = None) -> FloatArray:
        """Return ``phi + 4``."""
        # psi1(z) <= 1 / z + 1 / z^2 bounds a Beta response's information by phi p q + p^2 + q^2. Four times that is at
        # most max(phi + 2, 4): phi + 4 lies above it, and by a factor of two at most while nothing is clipped.
        return np.asarray(self.phi + 4.0)

    def log_likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> FloatArray:
        """By the function of this name."""
        return log_likelihood_terms(x, responses, self.phi, self.asymptotes)

    def likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> LikelihoodTerms:
        """By the function of this name."""
        return likelihood_terms(x, responses, self.phi, self.asymptotes)

    def information_weights(self, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """By the function of this name."""
        return information_weights(x, self.phi, self.asymptotes)

    def information_slopes(
        self, x: FloatArray, n_trials: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By the function of this name."""
        return information_slopes(x, self.phi, self.asymptotes)

    def log_likelihood_at(self, x: FloatArray, responses: FloatArray, weights: FloatArray | None) -> FloatArray:
        """``log f = A(x) + phi p L + (phi - 1) log(1 - y) - log y``: two matrix products, and a term without x."""
        y, odds, phi, mean = clipped(responses), log_odds(responses), self.phi, mean_terms(x, self.asymptotes)
        counts = np.ones_like(y) if weights is None else weights
        fixed = (counts * ((phi - 1.0) * np.log1p(-y) - np.log(y))).sum(axis=1, keepdims=True)
        normaliser = log_normaliser(x, phi, self.asymptotes)  # (n_points, n_items)
        result: FloatArray = counts @ normaliser.T + (counts * odds) @ (phi * mean.p).T + fixed
        for is_clipped, end in ((odds < -CLIPPED_LOGIT, low_end), (odds > CLIPPED_LOGIT, high_end)):
            if is_clipped.any():
                result -= (counts * is_clipped) @ end(mean, phi)[0].T
        return result


def clip_probabilities(responses: FloatArray, epsilon: float = EPSILON) -> tuple[FloatArray, str]:
    """Clip probabilities to [epsilon, 1 - epsilon]; return them, and what was clipped in a sentence, empty for nothing.

    NaN stays NaN, and float32 float32. `ParameterError` when `epsilon` is not between 0 and 0.5, or is lost in the
    precision of the array (float32 near 1: below 6e-8).
    """
    one = responses.dtype.type(1.0)
    low, high = responses.dtype.type(epsilon), one - responses.dtype.type(epsilon)
    if not 0.0 < epsilon < 0.5 or high == one:
        raise ParameterError(
            f"epsilon must lie between 0 and 0.5, and 1 - epsilon be below 1 in {responses.dtype}, got {epsilon!r}."
        )
    with np.errstate(invalid="ignore"):
        n_clipped = int(np.count_nonzero(responses < low) + np.count_nonzero(responses > high))
    clipped = np.clip(responses, low, high)
    if not n_clipped:
        return clipped, ""
    n_known = int(responses.size - np.count_nonzero(np.isnan(responses)))
    n_zero, n_one = int(np.count_nonzero(responses == 0.0)), int(np.count_nonzero(responses == 1.0))
    return clipped, (
        f"{n_clipped} of {n_known} probabilities lie outside [{epsilon:g}, 1 - {epsilon:g}] and are clipped to it "
        f"({n_zero} are exactly 0, {n_one} exactly 1)."
    )
