"""Fixing the scale: moving mean, spread and axes of the abilities into the item parameters.

``theta' = A (theta - m)`` and ``a' = A^-T a``, ``c' = c + a . m`` leave the distribution of every logit as it was,
so only the divergence from the prior changes, and the step is taken only if that does not rise. Alternating
updates of abilities and items would take hundreds of sweeps to cover the same ground.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from itembank.calibration.variational.bound import divergence
from itembank.calibration.variational.state import Posterior
from itembank.calibration.variational.updates import update_item_prior
from itembank.numerics.arrays import FloatArray


def rescale(posterior: Posterior) -> Posterior:
    """Whiten the abilities and turn them to the axes of the loadings, unless the bound would fall."""
    before = update_item_prior(posterior)
    whitened = _turned(_whitened(before))
    after = update_item_prior(whitened)
    return after if divergence(after) <= divergence(before) else before


def transform(posterior: Posterior, matrix: FloatArray, centre: FloatArray) -> Posterior:
    """Replace theta by ``matrix @ (theta - centre)``, and the items so that no logit changes."""
    n_dims = posterior.n_dims
    onto = np.zeros((n_dims + 1, n_dims + 1))
    onto[:n_dims, :n_dims] = np.linalg.inv(matrix).T
    onto[n_dims, :n_dims] = centre
    onto[n_dims, n_dims] = 1.0
    return replace(
        posterior,
        item_mean=posterior.item_mean @ onto.T,
        item_covariance=onto @ posterior.item_covariance @ onto.T,
        ability_mean=(posterior.ability_mean - centre) @ matrix.T,
        ability_covariance=matrix @ posterior.ability_covariance @ matrix.T,
    )


def _whitened(posterior: Posterior) -> Posterior:
    """Mean 0 and unit second moment of ability over the models, their uncertainty included."""
    mean, covariance = posterior.ability_mean, posterior.ability_covariance
    centre = mean.mean(axis=0)
    spread = covariance.mean(axis=0) + (mean - centre).T @ (mean - centre) / mean.shape[0]
    values, vectors = np.linalg.eigh(spread)
    return transform(posterior, (vectors / np.sqrt(values)) @ vectors.T, centre)


def _turned(posterior: Posterior) -> Posterior:
    """Rotate to the eigenvectors of the loadings' covariance."""
    n_dims = posterior.n_dims
    loadings = posterior.item_mean[:, :n_dims]
    moment = loadings.T @ loadings + posterior.item_covariance[:, :n_dims, :n_dims].sum(axis=0)
    moment -= np.outer(loadings.sum(axis=0), loadings.mean(axis=0))
    _, vectors = np.linalg.eigh(moment)
    return transform(posterior, _nearest_order(vectors).T, np.zeros(n_dims))


def _nearest_order(axes: FloatArray) -> FloatArray:
    """Order and sign the new axes (columns) so that each stays close to the old axis of its place."""
    _, order = linear_sum_assignment(-np.abs(axes))
    ordered: FloatArray = axes[:, order]
    return ordered * np.where(np.diag(ordered) < 0.0, -1.0, 1.0)
