"""The Beta item model for responses that are probabilities, elementwise, with asymptotes (IRSL).

A response y with mean p and precision phi is ``Beta(a, b)``, ``a = p phi`` and ``b = (1 - p) phi``:

    log f(y) = log Gamma(phi) - log Gamma(a) - log Gamma(b) + (a - 1) log y + (b - 1) log(1 - y)

With ``L = log(y / (1 - y))``, ``m = psi(a) - psi(b)`` (the mean of L) and primes for derivatives in the logit x,

    (log f)'  =  phi p' (L - m)
    -(log f)'' = I - phi p'' (L - m),     I = phi^2 p'^2 [psi1(a) + psi1(b)],   E -(log f)'' = I.

A response within EPSILON of 0 or 1 enters by the probability of that, ``P_0`` or ``P_1`` (`itembank.irt.beta_ends`),
and the information is

    I - P_0 (p' / p)^2 - P_1 (p' / (1 - p))^2:

that of the density where nothing is clipped, and that of a Bernoulli response where everything is.

Gamma functions enter through what is left of them once their growth is taken out (`itembank.numerics.gamma`), so
that nothing cancels for x up to 40 and phi from 0.01 to 10 million. All arrays of one call broadcast.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import polygamma

from itembank.irt.beta_ends import EPSILON, EndRatio, clipped, end_of, high_end, log_odds, low_end
from itembank.irt.logistic import Asymptotes, LikelihoodTerms
from itembank.irt.means import Mean, bounded_mean
from itembank.numerics.arrays import FloatArray
from itembank.numerics.gamma import HALF_LOG_TWO_PI, digamma_rest, log_gamma_rest, trigamma, trigamma_rest


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
    return value if end is None else value - end.value


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
    return LikelihoodTerms(value - end.value, slope - end.first, curvature + end.second)


def curvature_slopes(
    x: FloatArray, responses: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None
) -> FloatArray:
    """Differentiate the curvature in the logit: ``I' - phi p''' (L - m) + phi^2 p' p'' [psi1(a) + psi1(b)]``."""
    mean = bounded_mean(x, asymptotes)
    spread, spread_slope, _ = _spreads(mean, precision)
    gradient_in_p = precision * _residual(mean, responses, precision)
    scaled_slope = precision**2 * mean.first
    result: FloatArray = (
        3.0 * scaled_slope * mean.second * spread
        + scaled_slope * mean.first * spread_slope
        - mean.third * gradient_in_p
    )
    end = end_of(mean, responses, precision)
    return result if end is None else result + end.third


def information_weights(x: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None) -> FloatArray:
    """Fisher information in the logit."""
    mean = bounded_mean(x, asymptotes)
    a, b = precision * mean.p, precision * mean.q
    # psi1(a) = psi1(a + 1) + 1 / a^2 leaves nothing to cancel
    result: FloatArray = (precision * mean.first) ** 2 * (trigamma(a + 1.0) + trigamma(b + 1.0))
    for end, log_probability in _ends(mean, precision):
        # The terms 1 / a^2 and 1 / b^2 left out above are (p' / p)^2 and (p' / q)^2, less the part that clipping takes:
        # (1 - P) (p' / p)^2. Rounding may put log P above 0, which would make the weight negative.
        result = result - end.first**2 * np.expm1(np.minimum(log_probability, 0.0))
    return result


def information_slopes(
    x: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`information_weights` with their first and second derivatives in the logit."""
    mean = bounded_mean(x, asymptotes)
    spread, spread_slope, spread_second = _spreads(mean, precision)
    squared = precision**2
    slope = squared * mean.first * (2.0 * mean.second * spread + mean.first * spread_slope)
    second_derivative = squared * (
        2.0 * (mean.second**2 + mean.first * mean.third) * spread
        + 4.0 * mean.first * mean.second * spread_slope
        + mean.first**2 * spread_second
    )
    for y, (end, log_probability) in zip((EPSILON, 1.0 - EPSILON), _ends(mean, precision), strict=True):
        # Differentiate P r'^2 with r the log of the ratio: (log P)' is log_slope, and -(log P)'' log_curvature.
        probability, (_, first, second, third) = np.exp(log_probability), end
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


def divergence(
    x: FloatArray, other: FloatArray, precision: FloatArray, asymptotes: Asymptotes | None = None
) -> FloatArray:
    """Kullback-Leibler divergence of the distribution at logits `other` from that at x, both of precision phi.

    Of the density it is ``A(x) - A(other) + phi (p - p_other) m``, without differences of large numbers: with s for A
    less phi times the entropy of p, ``s(x) - s(other) + phi KL(p_other || p) + phi (p - p_other) [S(a) - S(b)]``.
    Clipping takes away ``P_0 (e^d - 1 - d)``, ``d = log(p_other / p)``, and the same at the other end.
    """
    here, there = bounded_mean(x, asymptotes), bounded_mean(other, asymptotes)
    binary = there.p * (there.log_p - here.log_p) + there.q * (there.log_q - here.log_q)
    remainders = digamma_rest(precision * here.p) - digamma_rest(precision * here.q)
    spreads = _spread(here, precision) - _spread(there, precision)
    result: FloatArray = spreads + precision * (binary + (here.p - there.p) * remainders)
    ratios = (there.log_p - here.log_p, there.log_q - here.log_q)
    # d = log(p_other / p) at the low end and log(q_other / q) at the high one.
    for ratio, (_, log_probability) in zip(ratios, _ends(here, precision), strict=True):
        result = result - np.exp(log_probability) * (np.expm1(ratio) - ratio)
    return result


def _ends(mean: Mean, precision: FloatArray) -> Iterator[tuple[EndRatio, FloatArray]]:
    """Give the low and the high end, each with the log of its probability."""
    for end, y in ((low_end(mean, precision), EPSILON), (high_end(mean, precision), 1.0 - EPSILON)):
        yield end, _log_density(mean, np.array(y), precision) - end.value


def _spread(mean: Mean, precision: FloatArray) -> FloatArray:
    """Return ``A`` less phi times the entropy of p, which grows with log phi only."""
    remainders = log_gamma_rest(precision) - log_gamma_rest(precision * mean.p) - log_gamma_rest(precision * mean.q)
    # Stirling's growth terms z log z of the three gamma functions sum to phi times the entropy; (log z) / 2 stays.
    result: FloatArray = 0.5 * (np.log(precision) + mean.log_p + mean.log_q) - HALF_LOG_TWO_PI + remainders
    return result


def _log_density(mean: Mean, y: FloatArray, precision: FloatArray) -> FloatArray:
    """Log-density as ``-phi KL(p || y)`` and terms that do not grow with phi; y must be clipped."""
    return _spread(mean, precision) - precision * _divergence(mean, y) - np.log(y) - np.log1p(-y)


def _divergence(mean: Mean, y: FloatArray) -> FloatArray:
    """``KL(p || y) = p log(p / y) + q log(q / (1 - y))``."""
    result: FloatArray = mean.p * (mean.log_p - np.log(y)) + mean.q * (mean.log_q - np.log1p(-y))
    return result


def _residual(mean: Mean, responses: FloatArray, precision: FloatArray) -> FloatArray:
    """Residual ``L - m``: the log-odds of each response less their expectation."""
    expected = mean.log_p - mean.log_q + digamma_rest(precision * mean.p) - digamma_rest(precision * mean.q)
    return log_odds(responses) - expected


def _information(mean: Mean, precision: FloatArray) -> FloatArray:
    """``I``, as ``phi p'^2 / (p q)`` and a part that stays of the order of one."""
    # psi1(z) = 1 / z + T(z), and 1 / a + 1 / b = 1 / (phi p q).
    remainders = trigamma_rest(precision * mean.p) + trigamma_rest(precision * mean.q)
    slope = precision * mean.first
    result: FloatArray = slope * (mean.first / (mean.p * mean.q)) + slope * slope * remainders
    return result


def _spreads(mean: Mean, precision: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``V = psi1(a) + psi1(b)``, the variance of L, with its first two derivatives in x."""
    a, b = precision * mean.p, precision * mean.q
    shape_slope, shape_second = precision * mean.first, precision * mean.second
    # a' = phi p' and b' = -phi p', so that each further derivative of psi changes the sign of the b term.
    psi2_difference = polygamma(2, a) - polygamma(2, b)
    psi3_sum = polygamma(3, a) + polygamma(3, b)
    return (
        trigamma(a) + trigamma(b),
        shape_slope * psi2_difference,
        shape_second * psi2_difference + shape_slope**2 * psi3_sum,
    )
