"""The objective that IRSL's public code maximises in its simulation, written anew and maximised by scipy.

Joint maximum likelihood with a Beta of fixed precision 400, or a Bernoulli. With discriminations there is a ridge on
their logarithm, which must lie in [-1.5, 1.5]. Difficulties are centred; the ridge is all that sets the scale.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, expit, gammaln, logit

from itembank.numerics.arrays import FloatArray

PRECISION = 400.0
RIDGE = {"beta": 0.5, "bernoulli": 0.1}
LARGEST_LOG_SLOPE = 1.5
LEAST_SHAPE = 1e-12
LEAST_RATE = 0.01


class Reference(NamedTuple):
    """Difficulties (n_items,) with mean zero, and discriminations (n_items,)."""

    difficulty: FloatArray
    discrimination: FloatArray


class _Terms(NamedTuple):
    """Log-likelihood, and its slope in each logit (n_models, n_items)."""

    log_likelihood: float
    slope: FloatArray


def fit_reference(responses: FloatArray, *, family: str, has_slopes: bool) -> Reference:
    """Maximise the published objective.

    Parameters
    ----------
    responses : (n_models, n_items)
        Probabilities inside (0, 1), or 0 and 1.
    family : {'beta', 'bernoulli'}
    has_slopes : bool
        2PL.
    """
    n_models, n_items = responses.shape
    terms_at = _beta_terms if family == "beta" else _bernoulli_terms
    ridge = RIDGE[family] if has_slopes else 0.0

    def objective(values: FloatArray) -> tuple[float, FloatArray]:
        ability, difficulty, log_slope = np.split(values, [n_models, n_models + n_items])
        slope = np.exp(np.clip(log_slope, -LARGEST_LOG_SLOPE, LARGEST_LOG_SLOPE)) if has_slopes else np.ones(n_items)
        x = slope * (ability[:, None] - difficulty)
        terms = terms_at(x, responses)
        along = terms.slope * slope
        parts = [along.sum(axis=1), -along.sum(axis=0)]
        if has_slopes:
            inside = np.abs(log_slope) < LARGEST_LOG_SLOPE
            parts.append((terms.slope * x).sum(axis=0) * inside - 2.0 * ridge * log_slope)
        value = terms.log_likelihood - ridge * float(log_slope @ log_slope)
        return -value, -np.concatenate(parts)

    start = _start(responses, family=family, has_slopes=has_slopes)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "maxfun": 3000}).x
    _, difficulty, log_slope = np.split(found, [n_models, n_models + n_items])
    slopes = np.exp(np.clip(log_slope, -LARGEST_LOG_SLOPE, LARGEST_LOG_SLOPE)) if has_slopes else np.ones(n_items)
    return Reference(difficulty - difficulty.mean(), slopes)


def _start(responses: FloatArray, *, family: str, has_slopes: bool) -> FloatArray:
    """Zeros for the 1PL, logits of the means (or means of the logits) for the 2PL."""
    n_models, n_items = responses.shape
    if not has_slopes:
        return np.zeros(n_models + n_items)
    if family == "beta":
        logits = logit(responses)
        ability, difficulty = logits.mean(axis=1), -logits.mean(axis=0)
    else:
        ability, difficulty = (
            sign * logit(np.clip(responses.mean(axis=axis), LEAST_RATE, 1.0 - LEAST_RATE))
            for sign, axis in ((1.0, 1), (-1.0, 0))
        )
    return np.concatenate([ability - ability.mean(), difficulty - difficulty.mean(), np.zeros(n_items)])


def _beta_terms(x: FloatArray, responses: FloatArray) -> _Terms:
    share, rest = expit(x), expit(-x)
    above, below = np.maximum(PRECISION * share, LEAST_SHAPE), np.maximum(PRECISION * rest, LEAST_SHAPE)
    observed = logit(responses)
    value = PRECISION * np.vdot(share, observed) - gammaln(above).sum() - gammaln(below).sum()
    return _Terms(float(value), PRECISION * share * rest * (observed - digamma(above) + digamma(below)))


def _bernoulli_terms(x: FloatArray, responses: FloatArray) -> _Terms:
    value = np.vdot(responses, x) - np.logaddexp(0.0, x).sum()
    return _Terms(float(value), responses - expit(x))
