"""Random sampling with unequal probabilities: items whose responses the item model cannot predict come more often."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.selection.allocation import expected_counts, random_counts
from itembank.selection.pools import Choice, ScenarioPool

NEARLY_CERTAIN = 1e-9
"""An inclusion probability this close to one is one in exact arithmetic; only rounding keeps it from being one."""


def response_spread(bank: Bank, pool: ScenarioPool) -> FloatArray:
    """Predicted standard deviation of a response to each item of a scenario given ability, (n_pool,).

    ``sqrt(mean_l p_il (1 - p_il))`` over the calibration models: what is left to learn from the response once
    the item model has said what it can. Only its shape over the items of the scenario matters.
    """
    # variances are averaged over models, not their roots: it is a sum of variances that the design is to make small
    p = probability(bank.parameters.take(pool.items), bank.calibration.abilities)
    result: FloatArray = np.sqrt(np.mean(p * (1.0 - p), axis=0))
    return result


def inclusion_probabilities(
    weights: FloatArray, spread_of_responses: FloatArray, n_items: int, *, mixture: float
) -> FloatArray:
    """Return the inclusion probability of each candidate, (n_candidates,), summing to `n_items`.

    ``pi_i = min(1, t u_i)`` with ``u_i = (1 - m) omega_i sigma_i / sum omega sigma + m omega_i / sum omega``. The
    first part minimises the variance of a difference estimator whose residuals have standard deviations sigma
    (Cassel, Sarndal and Wretman 1976); the second bounds ``omega_i / pi_i`` where sigma is too small.

    Parameters
    ----------
    weights : (n_candidates,)
        omega, positive.
    spread_of_responses : (n_candidates,)
        sigma.
    n_items : int
        At most n_candidates.
    mixture : float
        m, in (0, 1].
    """
    # where every response is certain (size 0 everywhere) only the target weights are left to draw by
    size, base = weights * spread_of_responses, weights / weights.sum()
    if size.sum() > 0.0:
        base = (1.0 - mixture) * size / size.sum() + mixture * base
    # each item is a part of capacity one: the t of `expected_counts` is the t of pi_i = min(1, t u_i)
    probabilities = expected_counts(n_items, base, np.ones(base.shape[0], dtype=np.int64))
    return np.where(probabilities > 1.0 - NEARLY_CERTAIN, 1.0, probabilities)


def choose_by_uncertainty(
    pool: ScenarioPool, spread_of_responses: FloatArray, n_items: int, rng: np.random.Generator, *, mixture: float
) -> Choice:
    """Draw a fixed number of candidates with the probabilities of `inclusion_probabilities`.

    Systematic sampling in random order (Goodman and Kish 1950; Hartley and Rao 1962): probabilities are laid end to
    end along a line, items in random order, and the marks ``r, r + 1, ...`` with one random start r fall on the
    chosen ones. Size is fixed and first-order probabilities are exact; joint ones have no simple form, so that
    variances rest on the approximation for designs of high entropy (`design_variance`). With equal probabilities it
    is simple random sampling. Weights are ``omega_i / pi_i``, rescaled to sum to one (Hajek 1971).

    Parameters
    ----------
    pool : ScenarioPool
    spread_of_responses : (n_pool,)
    n_items : int
        At most the number of candidates.
    rng : Generator
    mixture : float
    """
    candidates = np.flatnonzero(pool.is_candidate)
    omega = pool.weights[candidates]
    probabilities = inclusion_probabilities(omega, spread_of_responses[candidates], n_items, mixture=mixture)
    selected = np.flatnonzero(random_counts(probabilities, rng))
    # Hajek's ratio: the sum of omega / pi varies with the sample, and dividing by it takes out what varies with it
    weights = omega[selected] / probabilities[selected]
    return Choice(candidates[selected], weights / weights.sum(), probabilities[selected])
