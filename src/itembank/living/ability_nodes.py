"""Posteriors of the linking models' abilities as a few weighted points each."""

from typing import NamedTuple

import numpy as np

from itembank.irt.answers import gather
from itembank.irt.likelihood_abilities import Posterior
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray

MOST_GAUSS_DIMS = 2
"""Beyond two dimensions products of Gauss-Hermite nodes are too many: 2 n_dims points of equal weight stand for them,
which have the mean and the covariance of the normal approximation of the posterior."""


class AbilityNodes(NamedTuple):
    """Posteriors of n_models abilities."""

    theta: FloatArray  # (n_models, n_quadrature, n_dims)
    weights: FloatArray  # (n_models, n_quadrature): Summing to one for each model
    # (n_models,): Log marginal likelihood; NaN where the points only stand for a normal posterior.
    log_likelihood: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Posterior means, (n_models, n_dims)."""
        result: FloatArray = np.einsum("mq,mqd->md", self.weights, self.theta)
        return result

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariances, (n_models, n_dims, n_dims)."""
        away = self.theta - self.mean[:, None, :]
        result: FloatArray = np.einsum("mq,mqd,mqe->mde", self.weights, away, away)
        return result


def ability_nodes(
    items: ItemParameters,
    responses: FloatArray,
    prior: AbilityPrior,
    *,
    n_trials: FloatArray | None = None,
    n_quadrature: int = 5,
) -> AbilityNodes:
    """Find points around each model's posterior mode with the weights of its posterior.

    Adaptive Gauss-Hermite quadrature (Naylor and Smith 1982) in one and two dimensions, with `n_quadrature` points in
    each; 2 n_dims points of equal weight, ``mode +- sqrt(n_dims)`` times the columns of a root of the posterior
    covariance, in more.

    Parameters
    ----------
    items : ItemParameters
    responses : (n_models, n_items)
        NaN where missing.
    prior : AbilityPrior
    n_trials : (n_models, n_items), optional
    n_quadrature : int
    """
    mode = map_abilities(items, responses, prior, n_trials=n_trials)
    roots = np.linalg.cholesky(mode.covariance)
    if prior.n_dims > MOST_GAUSS_DIMS:
        offsets = np.sqrt(prior.n_dims) * np.concatenate([roots, -roots], axis=2).transpose(0, 2, 1)
        weights = np.full(offsets.shape[:2], 1.0 / offsets.shape[1])
        return AbilityNodes(mode.theta[:, None, :] + offsets, weights, np.full(len(roots), np.nan))
    line, line_weights = np.polynomial.hermite_e.hermegauss(n_quadrature)
    units = np.stack(np.meshgrid(*[line] * prior.n_dims, indexing="ij"), axis=-1).reshape(-1, prior.n_dims)
    logs = np.stack(np.meshgrid(*[np.log(line_weights)] * prior.n_dims, indexing="ij"), axis=-1)
    theta = mode.theta[:, None, :] + np.einsum("mde,qe->mqd", roots, units)
    objective = Posterior(gather(items, responses, None, n_trials), prior.mean, np.linalg.inv(prior.covariance))
    values = np.stack([objective.evaluate(theta[:, q]).objective for q in range(len(units))], axis=1)
    # nodes integrate against exp(-u^2 / 2), by which the posterior is divided
    values += logs.reshape(-1, prior.n_dims).sum(axis=1) + 0.5 * np.sum(units**2, axis=1)
    highest = values.max(axis=1, keepdims=True)
    weights = np.exp(values - highest)
    total = weights.sum(axis=1, keepdims=True)
    _, log_det_roots = np.linalg.slogdet(roots)
    _, log_det_prior = np.linalg.slogdet(prior.covariance)
    constant = -0.5 * log_det_prior - 0.5 * prior.n_dims * np.log(2.0 * np.pi)
    return AbilityNodes(theta, weights / total, (highest + np.log(total))[:, 0] + log_det_roots + constant)
