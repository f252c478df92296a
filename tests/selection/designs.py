import numpy as np

from itembank.irt.bernoulli import probability
from itembank.irt.families import ResponseModel
from itembank.irt.parameters import ItemParameters
from itembank.numerics.symmetric import packed_products
from itembank.selection.item_worth import DesignItems

KINDS = {"none": (0.0, 1.0), "lower": (0.25, 1.0), "both": (0.1, 0.95)}


def make_parameters(n_dims=3, n_items=24, seed=0, kind="none"):
    rng = np.random.default_rng(seed)
    return ItemParameters.create(rng.normal(0.5, 1.0, (n_items, n_dims)), rng.normal(0.0, 1.5, n_items), *KINDS[kind])


def make_items(parameters, *, n_scenarios=3, cost=None, is_degenerate=None):
    """Items of scenarios in turn, laid out without a bank."""
    n_items = parameters.n_items
    return DesignItems(
        np.asfortranarray(parameters.loadings),
        parameters.intercept,
        ResponseModel.of(parameters),
        packed_products(parameters.loadings),
        np.arange(n_items) % n_scenarios,
        n_scenarios,
        np.ones(n_items, dtype=bool),
        np.zeros(n_items, dtype=bool) if is_degenerate is None else is_degenerate,
        np.full(n_items, np.nan) if cost is None else cost,
        np.arange(n_items),
        np.arange(n_scenarios),
    )


def make_posterior(n_dims=3, seed=0):
    """Ability and posterior covariance."""
    rng = np.random.default_rng([seed, 1])
    root = rng.normal(size=(n_dims, n_dims))
    return rng.normal(size=n_dims), root @ root.T / n_dims + 0.1 * np.eye(n_dims)


def expected_information(parameters, theta, *, step=1e-4):
    """Fisher information in the logit of each item: the expected negative second difference of the log-likelihood.

    Differentiates ``y log p + (1 - y) log(1 - p)`` numerically for both responses and averages them.
    """
    eta, ends = (
        parameters.loadings @ theta + parameters.intercept,
        (parameters.lower_asymptote, parameters.upper_asymptote),
    )
    logits = ItemParameters.create(np.ones((eta.size, 1)), np.zeros(eta.size), *ends)
    p = np.stack([np.diag(probability(logits, (eta + shift)[:, None])) for shift in (-step, 0.0, step)])
    curvature = [-(terms[0] - 2.0 * terms[1] + terms[2]) / step**2 for terms in (np.log(p), np.log1p(-p))]
    return p[1] * curvature[0] + (1.0 - p[1]) * curvature[1]


def covariance_after(covariance, loading, weight):
    """Posterior covariance after an item, by inversion."""
    return np.linalg.inv(np.linalg.inv(covariance) + weight * np.outer(loading, loading))
