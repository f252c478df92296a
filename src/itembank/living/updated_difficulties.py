"""Difficulties that follow new answers, while slopes and the scale stay."""

from typing import NamedTuple

import numpy as np

from itembank.irt import families
from itembank.irt.bernoulli import logit
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.living.ability_nodes import ability_nodes
from itembank.numerics.arrays import FloatArray

MOST_STEPS = 50
TOLERANCE = 1e-8
"""Of the last step of an intercept, in logits."""
LONGEST_STEP = 2.0
"""In logits: Newton's parabola is good near its vertex only."""
N_QUADRATURE = 3


class UpdatedIntercepts(NamedTuple):
    """Intercepts and the information that the answers added, each (n_items,)."""

    intercept: FloatArray
    information: FloatArray


def update_intercepts(
    items: ItemParameters,
    item_covariance: FloatArray,
    responses: FloatArray,
    prior: AbilityPrior,
    *,
    n_trials: FloatArray | None = None,
) -> UpdatedIntercepts:
    """Find the mode of each item's intercept given new answers, with its present value and error as the prior.

    ``argmax_c sum_l E[log P(y_l | a theta_l + c)] - (c - c_0)^2 / (2 v)``, with the slopes a as they are, the
    expectation over the posterior of each model's ability at the present parameters, and v the variance of the
    intercept given the slopes. Where items were chosen by the models' own answers this does little harm, whereas new
    slopes would come out too steep for the items that looked steep and were therefore asked.

    Parameters
    ----------
    items : ItemParameters
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
    responses : (n_models, n_items)
        Of models that the present parameters do not rest on; NaN where missing.
    prior : AbilityPrior
    n_trials : (n_models, n_items), optional
    """
    nodes = ability_nodes(items, responses, prior, n_trials=n_trials, n_quadrature=N_QUADRATURE)
    answered = ~np.isnan(responses)
    values = np.where(answered, responses, 0.0)
    offsets = [logit(items, nodes.theta[:, q]) - items.intercept for q in range(nodes.theta.shape[1])]
    variance = _given_slopes(item_covariance)
    intercept, information = items.intercept.copy(), np.zeros(items.n_items)
    for _ in range(MOST_STEPS):
        gradient, information = np.zeros(items.n_items), np.zeros(items.n_items)
        for q, offset in enumerate(offsets):
            x, weight = offset + intercept, answered * nodes.weights[:, q, None]
            gradient += (weight * families.likelihood_terms(items, x, values, n_trials).slope).sum(axis=0)
            information += (weight * families.information_weights(items, x, n_trials)).sum(axis=0)
        step = (gradient - (intercept - items.intercept) / variance) / (information + 1.0 / variance)
        intercept += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        if np.abs(step).max() < TOLERANCE:
            break
    return UpdatedIntercepts(intercept, information)


def updated_covariance(covariance: FloatArray, information: FloatArray) -> FloatArray:
    """Add information (n_items,) about the intercepts to covariances (n_items, n_dims + 1, n_dims + 1)."""
    column = covariance[:, :, -1]
    share = information / (1.0 + information * covariance[:, -1, -1])  # Sherman and Morrison
    result: FloatArray = covariance - share[:, None, None] * column[:, :, None] * column[:, None, :]
    return result


def _given_slopes(covariance: FloatArray) -> FloatArray:
    """Variance of each intercept given the slopes, (n_items,)."""
    slopes, both = covariance[:, :-1, :-1], covariance[:, :-1, -1]
    size = np.maximum(np.einsum("ijj->i", covariance), 1e-12)
    ridge = 1e-9 * size[:, None, None] * np.eye(slopes.shape[1])
    explained = np.einsum("ia,ia->i", both, np.linalg.solve(slopes + ridge, both[..., None])[..., 0])
    result: FloatArray = np.maximum(covariance[:, -1, -1] - explained, 1e-9 * size)
    return result
