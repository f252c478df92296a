"""A budget of items for many models at once: a spanning start, then maximum information (IRSL 4.2)."""

import numpy as np

from itembank.irt.families import information_weights, likelihood_terms
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import first_largest

START_SHARE = 0.2
"""Share of the budget that spans the difficulties before anything is known of a model."""

START_QUANTILES = (0.1, 0.9)
N_NODES = 121
"""A tenth of the prior's standard deviation apart, as the grid of `eap_abilities`."""
WIDTH = 6.0
"""Half-width of the grid of abilities in standard deviations of the prior."""


def choose_within_budget(
    parameters: ItemParameters,
    responses: FloatArray,
    prior: AbilityPrior,
    n_items: int,
    *,
    n_trials: IntArray | None = None,
) -> FloatArray:
    """Let every model answer a budget of items, each chosen by its answers so far; all models take a step together.

    The first fifth are the items nearest in difficulty to quantiles from 10 to 90 %, the middle first; each further
    one is the item with most Fisher information at the model's posterior mean, ``w_i(theta) a_i^2``. The posterior
    lives on a grid of 121 abilities within six standard deviations of the prior, on which every item's information is
    tabulated once: a step is one lookup a model.

    Parameters
    ----------
    parameters : ItemParameters
        One-dimensional.
    responses : (n_models, n_items)
        Recorded answers; NaN where there is none, which is then not asked.
    prior : AbilityPrior
    n_items : int
        Items a model; all it answered when they are fewer.
    n_trials : (n_models, n_items), optional
        Attempts behind each response.

    Returns
    -------
    (n_models, n_items)
        The answers to the items chosen; NaN elsewhere.
    """
    is_open = ~np.isnan(responses)
    nodes = _nodes(prior)
    trials = None if n_trials is None else n_trials.astype(np.float64)
    information = _information(parameters, nodes, trials)  # (n_nodes, n_items)
    log_posterior = np.tile(
        -0.5 * (nodes - float(prior.mean[0])) ** 2 / float(prior.covariance[0, 0]), (len(responses), 1)
    )
    chosen = np.full(responses.shape, np.nan)
    wanted = start_difficulties(parameters, n_items)
    rows = np.arange(len(responses))
    # all models take a step together; each asks its own item
    for step in range(min(n_items, int(is_open.sum(axis=1).max(initial=0)))):
        if step < len(wanted):
            # the quantile of an even number of items lies between two of them, equally far from both
            merit = -np.abs(np.nan_to_num(parameters.difficulty, nan=np.inf) - wanted[step])[None, :]
        else:
            # information at the node nearest to the posterior mean: one table of all nodes serves every model
            merit = information[_nearest_mean(log_posterior)]
        item = first_largest(np.where(is_open, merit, -np.inf))
        asks = is_open[rows, item]
        at = rows[asks], item[asks]
        chosen[at] = responses[at]
        is_open[at] = False
        log_posterior[asks] += _log_likelihoods(
            parameters.take(item[asks]), responses[at], None if trials is None else trials[at], nodes
        )
    return chosen


def start_difficulties(parameters: ItemParameters, n_items: int) -> FloatArray:
    """Difficulties of the spanning start, (n_start,): quantiles 10 to 90 %, the middle first."""
    n_start = max(1, round(START_SHARE * n_items))
    low, high = START_QUANTILES
    fractions = np.linspace(low, high, n_start) if n_start > 1 else np.array([0.5])
    fractions = fractions[np.argsort(np.abs(fractions - 0.5), kind="stable")]
    difficulty = parameters.difficulty
    known = difficulty[np.isfinite(difficulty)]
    return np.quantile(known, fractions) if known.size else np.zeros(n_start)


def _nodes(prior: AbilityPrior) -> FloatArray:
    """Abilities of the grid, (n_nodes,)."""
    half = WIDTH * float(np.sqrt(prior.covariance[0, 0]))
    return np.linspace(prior.mean[0] - half, prior.mean[0] + half, N_NODES)


def _information(parameters: ItemParameters, nodes: FloatArray, n_trials: FloatArray | None) -> FloatArray:
    """Fisher information of every item at every node, (n_nodes, n_items), of as many trials as it has on average."""
    x = nodes[:, None] * parameters.loadings[:, 0] + parameters.intercept
    usual = None if n_trials is None else np.broadcast_to(np.maximum(n_trials.mean(axis=0), 1.0), x.shape)
    weights = information_weights(parameters, x, usual)
    # a table that is only compared: single precision halves 121 numbers an item
    return (weights * parameters.loadings[:, 0] ** 2).astype(np.float32)


def _nearest_mean(log_posterior: FloatArray) -> IntArray:
    """Index of the node nearest to each model's posterior mean, (n_models,)."""
    weights = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    mean = weights @ np.arange(log_posterior.shape[1]) / weights.sum(axis=1)
    nearest: IntArray = np.rint(mean).astype(np.int64)
    return nearest


def _log_likelihoods(
    asked: ItemParameters, responses: FloatArray, n_trials: FloatArray | None, nodes: FloatArray
) -> FloatArray:
    """Log-likelihood at every node of one answer a model, (n_models, n_nodes), to items (n_models,) of its own."""
    x = nodes[:, None] * asked.loadings[:, 0] + asked.intercept  # (n_nodes, n_models)
    result: FloatArray = likelihood_terms(asked, x, responses, n_trials).log_likelihood.T
    return result
