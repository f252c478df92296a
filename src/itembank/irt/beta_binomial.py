"""The beta-binomial item model for over-dispersed counts, elementwise, with asymptotes.

Of n trials k = n y are right, each with the same probability, which is itself drawn from ``Beta(a, b)``,
``a = p phi`` and ``b = (1 - p) phi``. Apart from the binomial coefficient, which holds nothing of ability,

    log f(k)   = log [Gamma(a + k) / Gamma(a)] + log [Gamma(b + n - k) / Gamma(b)] - log [Gamma(phi + n) / Gamma(phi)]
    (log f)'   = phi p' d,     d = [psi(a + k) - psi(a)] - [psi(b + n - k) - psi(b)]
    -(log f)'' = phi^2 p'^2 U - phi p'' d,     U = [psi1(a) - psi1(a + k)] + [psi1(b) - psi1(b + n - k)]

The differences are taken by `itembank.numerics.gamma`: they keep their digits for n to 4 million, and as phi grows
the terms become those of n Bernoulli trials, ``k log p + (n - k) log(1 - p)``. With n = 1 and y 0 or 1 they are the
Bernoulli terms for every phi; with n = 0 they are zero. All arrays of one call broadcast.

Fisher information of beta-binomial counts in the logit, ``phi^2 p'^2 E d^2`` over the counts k of n trials.

``d = [psi(a + k) - psi(a)] - [psi(b + n - k) - psi(b)]`` as in `itembank.irt.beta_binomial`. For n = 1 the information
is the Bernoulli one, ``p'^2 / (p q)``, whatever phi; for n without end it grows to that of the Beta model. In between
there is no closed form:

- n up to 256: the sum over all k.
- more: the sum over the first and last `N_EDGE` counts, and between them an integral over
  ``log((k + 1) / (n - k + 1))`` by Gauss-Legendre nodes with Euler and Maclaurin's first correction. Off by 3e-6 at
  most (tests compare it with the full sum).
"""

import numpy as np

from itembank.irt.families import ResponseModel, trials_or_one
from itembank.irt.logistic import Asymptotes, LikelihoodTerms, Mean, bounded_mean
from itembank.irt.logistic import information_slopes as slopes_of_one
from itembank.irt.logistic import information_weights as information_of_one
from itembank.numerics.arrays import FloatArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.gamma import digamma_difference, log_beta, log_gamma_difference, trigamma_difference


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
    a, b, k, wrong = _shapes(mean, responses, precision, n_trials)
    gradient_in_p = precision * (digamma_difference(a, k) - digamma_difference(b, wrong))
    spread = trigamma_difference(a, k) + trigamma_difference(b, wrong)  # -phi^2 of it: the second derivative in p
    return LikelihoodTerms(
        _log_probability(mean, responses, precision, n_trials),
        mean.first * gradient_in_p,
        (precision * mean.first) ** 2 * spread - mean.second * gradient_in_p,
    )


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
    return k * mean.log_p + wrong * mean.log_q + added


N_EDGE = 56
"""Counts summed at each edge: there ``P(k) ~ k^(a - 1)`` changes too fast for an integral to stand for the sum. With
half as many the error is three times as large."""
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(72)
"""Enough for any n: what error is left is that of the edges. 48 do up to n = 20,000; 36 are off by 1e-3 there."""


def information_weights(
    x: FloatArray, precision: FloatArray, n_trials: FloatArray, asymptotes: Asymptotes | None = None
) -> FloatArray:
    """Fisher information of n_trials trials together, in the logit; zero without trials. All arrays broadcast."""
    single = information_of_one(x, asymptotes)
    if np.all(np.asarray(n_trials) == 1.0):
        return np.broadcast_to(single, np.broadcast_shapes(single.shape, np.shape(precision))).copy()
    mean = bounded_mean(x, asymptotes)
    a, b, n = np.broadcast_arrays(precision * mean.p, precision * mean.q, n_trials)
    variance = np.empty(a.shape)  # of d
    for count in np.unique(n):
        cells = n == count
        variance[cells] = _variances(a[cells], b[cells], float(count))
    return np.where(n == 1.0, single, (precision * mean.first) ** 2 * variance)


def information_slopes(
    x: FloatArray, precision: FloatArray, n_trials: FloatArray, asymptotes: Asymptotes | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`information_weights` with their first and second derivatives in the logit, by differences of fourth order."""
    # The five-point formulas: their errors begin with the fifth derivative times step^4 / 30 and the sixth times
    # step^4. Rounding enters the second derivative divided by step^2, so a smaller step is not better.
    step = 1e-2
    far_below, below, here, above, far_above = (
        information_weights(x + steps * step, precision, n_trials, asymptotes) for steps in (-2, -1, 0, 1, 2)
    )
    first = (8.0 * (above - below) - (far_above - far_below)) / (12.0 * step)
    second = (16.0 * (above + below) - (far_above + far_below) - 30.0 * here) / (12.0 * step**2)
    return here, first, second


def _variances(a: FloatArray, b: FloatArray, n: float) -> FloatArray:
    """Variance of d for cells (n_cells,) with the same number of trials."""
    if n <= 1.0:  # the caller has the answer for one trial, and no trial tells anything
        return np.zeros(a.shape)
    # Largest n with a full sum, which calls no gamma function; the integral needs some at 184 points whatever n. Both
    # take as long at n of some 500.
    most_summed = 256
    solve, width = (_summed, int(n) + 1) if n <= most_summed else (_integrated, len(NODES) + 2 * N_EDGE)
    return np.concatenate([solve(a[run], b[run], n) for run in row_blocks(len(a), width)])


def _summed(a: FloatArray, b: FloatArray, n: float) -> FloatArray:
    """Sum over all k, with probabilities and d by their recurrences in k instead of gamma functions."""
    k = np.arange(n)
    up, down = a[:, None] + k, b[:, None] + k  # (n_cells, n)
    ratios = np.log((n - k) / (k + 1.0)) + np.log(up) - np.log(down[:, ::-1])  # of P(k + 1) to P(k)
    log_probability = _from_zero(ratios)
    # Divided by the largest, so that none overflows; the constant cancels in the ratio of the sums.
    probability = np.exp(log_probability - log_probability.max(axis=1, keepdims=True))
    # psi(a + k) - psi(a) is the sum of 1 / (a + j) over j < k, and likewise for b and n - k.
    d = _from_zero(1.0 / up) - _from_zero(1.0 / down)[:, ::-1]
    result: FloatArray = (probability * d**2).sum(axis=1) / probability.sum(axis=1)
    return result


def _from_zero(steps: FloatArray) -> FloatArray:
    """Add up the steps (n_cells, n), beginning with zero, (n_cells, n + 1)."""
    result = np.zeros((steps.shape[0], steps.shape[1] + 1))
    np.cumsum(steps, axis=1, out=result[:, 1:])
    return result


def _integrated(a: FloatArray, b: FloatArray, n: float) -> FloatArray:
    """Sum over both edges and integrate in between."""
    a, b = a[:, None], b[:, None]
    low, high = _range(a, b, n)
    z = low + (high - low) * (0.5 + 0.5 * NODES)  # (n_cells, n_nodes)
    # z = log((k + 1) / (n - k + 1)), so (k + 1) / (n + 2) = sigmoid(z) and dk = (n + 2) s (1 - s) dz.
    fraction = 1.0 / (1.0 + np.exp(-z))
    k = (n + 2.0) * fraction - 1.0
    step = 0.5 * (high - low) * NODE_WEIGHTS * (n + 2.0) * fraction * (1.0 - fraction)
    inside, middle = _mass(a, b, n, k), np.maximum(step, 0.0)
    edge = np.arange(N_EDGE + 1.0)
    first, last = _mass(a, b, n, edge), _mass(a, b, n, n - edge)
    total, squares = (
        (middle * inner).sum(axis=1)
        + low_edge[:, :-1].sum(axis=1)
        + high_edge[:, :-1].sum(axis=1)
        + ((low_edge[:, -1] - low_edge[:, -2]) + (high_edge[:, -1] - high_edge[:, -2])) / 24.0
        for inner, low_edge, high_edge in zip(inside, first, last, strict=True)
    )
    result: FloatArray = squares / total
    return result


def _range(a: FloatArray, b: FloatArray, n: float) -> tuple[FloatArray, FloatArray]:
    """Where between the edges the counts have mass, as ``z = log((k + 1) / (n - k + 1))``.

    Log-probabilities fall by 40 within 9 standard deviations and, towards an edge, 40 variances of z more.
    """
    p = a / (a + b)
    # Of z, by the delta method: 1 / a + 1 / b from the Beta, 1 / (n p) + 1 / (n q) from the binomial distribution.
    left, right = 1.0 / a + 1.0 / (n * p), 1.0 / b + 1.0 / (n * (1.0 - p))
    centre = np.log((n * p + 1.0) / (n * (1.0 - p) + 1.0))
    reach = 9.0 * np.sqrt(left + right)
    # The midpoint rule's integral ends half a count beside its sum, so at k = N_EDGE - 1/2 and at n less that.
    end = np.log((n - N_EDGE + 1.5) / (N_EDGE + 0.5))
    low = np.clip(centre - reach - 40.0 * left, -end, end)
    return low, np.clip(centre + reach + 40.0 * right, low, end)


def _mass(a: FloatArray, b: FloatArray, n: float, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probability of each count k, real ones too, and the same times d^2."""
    terms = log_likelihood_terms(np.log(a / b), k / n, a + b, np.array(n))
    probability = np.exp(terms - log_beta(k + 1.0, n - k + 1.0)) / (n + 1.0)
    d = digamma_difference(a, k) - digamma_difference(b, n - k)
    return probability, probability * d**2


class BetaBinomialModel(ResponseModel):
    """Counts of trials that agree more than chance, with a precision of every item."""

    __slots__ = ()
    is_slow = True

    def relative_information(self, n_trials: FloatArray | None = None) -> FloatArray:
        """Return n trials' at most, and at most that of the rate which they are drawn from."""
        return np.asarray(np.minimum(trials_or_one(n_trials), self.phi + 4.0))

    def log_likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> FloatArray:
        """By the function of this name."""
        return log_likelihood_terms(x, responses, self.phi, trials_or_one(n_trials), self.asymptotes)

    def likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> LikelihoodTerms:
        """By the function of this name."""
        return likelihood_terms(x, responses, self.phi, trials_or_one(n_trials), self.asymptotes)

    def information_weights(self, x: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """By the function of this name; of one trial that of a right or wrong answer."""
        if n_trials is None:
            return information_of_one(x, self.asymptotes)
        return information_weights(x, self.phi, n_trials, self.asymptotes)

    def information_slopes(
        self, x: FloatArray, n_trials: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By the function of this name; of one trial those of a right or wrong answer."""
        if n_trials is None:
            return slopes_of_one(x, self.asymptotes)
        return information_slopes(x, self.phi, n_trials, self.asymptotes)
