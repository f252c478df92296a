"""pass@k of one model from the posterior of its success rates: expected value, by item, and draws."""

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.cell_posterior import CellPosterior
from itembank.scaling.pass_at_k import beta_pass_at_k, plug_in_pass_at_k


def expected_pass_at_k(posterior: CellPosterior, k: IntArray, item_weights: FloatArray) -> FloatArray:
    """Posterior mean of ``sum_i w_i (1 - (1 - p_i)^k)``, (n_k,).

    Parameters
    ----------
    posterior : CellPosterior
    k : (n_k,)
    item_weights : (n_items,)
        They sum to one.
    """
    return np.array([item_weights @ item_pass_at_k(posterior, samples) for samples in k.tolist()])


def item_pass_at_k(posterior: CellPosterior, samples: int) -> FloatArray:
    """Posterior mean of ``1 - (1 - p_i)^k`` of each item for one k, (n_items,)."""
    result: FloatArray = posterior.weights @ beta_pass_at_k(posterior.alpha, posterior.beta, np.array(float(samples)))
    return result


def draw_pass_at_k(
    posterior: CellPosterior, k: IntArray, item_weights: FloatArray, *, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw pass@k from its posterior, (n_draws, n_k); quantiles of the draws are the ends of intervals."""
    rates = draw_rates(posterior, n_draws=n_draws, rng=rng)
    by_k = [plug_in_pass_at_k(rates, np.array(float(samples))) @ item_weights for samples in k.tolist()]
    return np.stack(by_k, axis=1)


def draw_rates(posterior: CellPosterior, *, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the success rates of all items, (n_draws, n_items)."""
    chosen = rng.choice(posterior.weights.size, size=n_draws, p=posterior.weights)
    result: FloatArray = rng.beta(posterior.alpha[chosen], posterior.beta[chosen])
    return result
