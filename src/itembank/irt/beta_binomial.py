"""The beta-binomial item model for over-dispersed counts, elementwise, with asymptotes.

Of n trials k = n y are right, each with the same probability, which is itself drawn from ``Beta(a, b)``,
``a = p phi`` and ``b = (1 - p) phi``. Apart from the binomial coefficient, which holds nothing of ability,

    log f(k)   = log [Gamma(a + k) / Gamma(a)] + log [Gamma(b + n - k) / Gamma(b)] - log [Gamma(phi + n) / Gamma(phi)]
    (log f)'   = phi p' d,     d = [psi(a + k) - psi(a)] - [psi(b + n - k) - psi(b)]
    -(log f)'' = phi^2 p'^2 U - phi p'' d,     U = [psi1(a) - psi1(a + k)] + [psi1(b) - psi1(b + n - k)]

The differences are taken by `itembank.numerics.gamma`: they keep their digits for n to 4 million, and as phi grows
the terms become those of n Bernoulli trials, ``k log p + (n - k) log(1 - p)``. With n = 1 and y 0 or 1 they are the
Bernoulli terms for every phi; with n = 0 they are zero. All arrays of one call broadcast.
"""

from scipy.special import zeta

from itembank.irt.logistic import Asymptotes, LikelihoodTerms
from itembank.irt.means import Mean, bounded_mean
from itembank.numerics.arrays import FloatArray
from itembank.numerics.gamma import digamma_difference, log_gamma_difference, trigamma_difference


def log_likelihood_terms(
    x: FloatArray,
    responses: FloatArray,
    precision: FloatArray,
    n_trials: FloatArray,
    asymptotes: Asymptotes | None = None,
) -> FloatArray:
    """Log-probability of the right answers, ``n_trials`` times the rate y, less the binomial coefficient."""
    return _log_probability(bounded_mean(x, asymptotes), responses, precision, n_trials)


def likelihood_terms(
    x: FloatArray,
    responses: FloatArray,
    precision: FloatArray,
    n_trials: FloatArray,
    asymptotes: Asymptotes | None = None,
) -> LikelihoodTerms:
    """Log-likelihood, its slope in the logit, and minus its second derivative, which may be negative."""
    mean = bounded_mean(x, asymptotes)
    gradient_in_p = precision * _difference(mean, responses, precision, n_trials)
    spread = _spread(mean, responses, precision, n_trials)
    return LikelihoodTerms(
        _log_probability(mean, responses, precision, n_trials),
        mean.first * gradient_in_p,
        (precision * mean.first) ** 2 * spread - mean.second * gradient_in_p,
    )


def curvature_slopes(
    x: FloatArray,
    responses: FloatArray,
    precision: FloatArray,
    n_trials: FloatArray,
    asymptotes: Asymptotes | None = None,
) -> FloatArray:
    """Differentiate the curvature in the logit: ``3 phi^2 p' p'' U + phi^2 p'^2 U' - phi p''' d``."""
    mean = bounded_mean(x, asymptotes)
    a, b, k, wrong = _shapes(mean, responses, precision, n_trials)
    # U' = phi p' spread_change; psi2(z) = -2 zeta(3, z).
    spread_change = -2.0 * (zeta(3.0, a) - zeta(3.0, a + k) - zeta(3.0, b) + zeta(3.0, b + wrong))
    gradient_in_p = precision * _difference(mean, responses, precision, n_trials)
    squared = precision**2 * mean.first
    result: FloatArray = (
        3.0 * squared * mean.second * _spread(mean, responses, precision, n_trials)
        + squared * mean.first * (precision * mean.first * spread_change)
        - mean.third * gradient_in_p
    )
    return result


def _shapes(
    mean: Mean, responses: FloatArray, precision: FloatArray, n_trials: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return ``a, b, k, n - k``."""
    k = n_trials * responses
    return precision * mean.p, precision * mean.q, k, n_trials - k


def _log_probability(mean: Mean, responses: FloatArray, precision: FloatArray, n_trials: FloatArray) -> FloatArray:
    """Binomial terms, and the terms that the spread of the probability adds to them."""
    a, b, k, wrong = _shapes(mean, responses, precision, n_trials)
    added = log_gamma_difference(a, k) + log_gamma_difference(b, wrong) - log_gamma_difference(precision, n_trials)
    result: FloatArray = k * mean.log_p + wrong * mean.log_q + added
    return result


def _difference(mean: Mean, responses: FloatArray, precision: FloatArray, n_trials: FloatArray) -> FloatArray:
    """``d``, where ``phi d`` is the gradient of the log-likelihood in p."""
    a, b, k, wrong = _shapes(mean, responses, precision, n_trials)
    return digamma_difference(a, k) - digamma_difference(b, wrong)


def _spread(mean: Mean, responses: FloatArray, precision: FloatArray, n_trials: FloatArray) -> FloatArray:
    """``U``, where ``-phi^2 U`` is the second derivative of the log-likelihood in p."""
    a, b, k, wrong = _shapes(mean, responses, precision, n_trials)
    return trigamma_difference(a, k) + trigamma_difference(b, wrong)
