"""pass@k of one model from the posterior of its success rates: expected failures, draws."""

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.sampling.cell_posterior import CellPosterior
from itembank.scaling.sampling.pass_at_k import log_beta_failure


def expected_failure(posterior: CellPosterior, k: FloatArray | IntArray) -> FloatArray:
    """Posterior probability that k samples of an item all fail, (n_items, n_k): the mean of ``(1 - p)^k``."""
    result = np.empty((posterior.alpha.shape[1], len(k)))
    for place, samples in enumerate(k):
        result[:, place] = posterior.weights @ np.exp(log_beta_failure(posterior.alpha, posterior.beta, samples))
    return result


def draw_pass_at_k(
    posterior: CellPosterior,
    k: FloatArray | IntArray,
    item_weights: FloatArray,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw pass@k from its posterior, (n_draws, n_k); quantiles of the draws are interval ends."""
    chosen = chosen_draws(posterior, n_draws, rng)
    rates = rng.beta(posterior.alpha[chosen], posterior.beta[chosen])
    return pass_at_k_of_rates(rates, k, item_weights)


def chosen_draws(posterior: CellPosterior, n_draws: int, rng: np.random.Generator) -> IntArray:
    """Choose among the posterior's draws with frequencies equal to their weights, (n_draws,)."""
    return rng.choice(posterior.weights.size, size=n_draws, p=posterior.weights)


def pass_at_k_of_rates(rates: FloatArray, k: FloatArray | IntArray, item_weights: FloatArray) -> FloatArray:
    """pass@k of every row of success rates (n_draws, n_items), (n_draws, n_k)."""
    with np.errstate(divide="ignore"):
        log_failure = np.log1p(-rates)
    result = np.empty((len(rates), len(k)))
    for place, samples in enumerate(k):
        result[:, place] = -np.expm1(samples * log_failure) @ item_weights
    return result
