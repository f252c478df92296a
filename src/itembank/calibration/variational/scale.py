"""Fixing the scale: moving mean, spread and axes of the abilities into the item parameters.

``theta' = A (theta - m)`` and ``a' = A^-T a``, ``c' = c + a . m`` leave the distribution of every logit as it was,
so only the divergence from the prior changes, and the step is taken only if that does not rise. Alternating
updates of abilities and items would take hundreds of sweeps to cover the same ground.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from itembank.calibration.variational.axes import best_centre, general_axes, principal_axes
from itembank.calibration.variational.bound import divergence
from itembank.calibration.variational.state import Posterior
from itembank.calibration.variational.updates import update_item_prior
from itembank.numerics.arrays import FloatArray


def rescale(posterior: Posterior) -> Posterior:
    """Move the abilities to the centre and axes that suit the priors best, unless the bound would fall."""
    before = update_item_prior(posterior)
    moved = (update_item_prior(candidate) for candidate in _candidates(before))
    # the likelihood is the same for all of them, so the smallest divergence has the highest bound
    return min((before, *moved), key=divergence)


def transform(posterior: Posterior, matrix: FloatArray, centre: FloatArray) -> Posterior:
    """Replace theta by ``matrix @ (theta - centre)``, and the items so that no logit changes."""
    n_dims = posterior.n_dims
    # (a, c) -> (A^-T a, c + a . m): the transpose inverse keeps a . theta, and the last row moves the centre.
    onto = np.zeros((n_dims + 1, n_dims + 1))
    onto[:n_dims, :n_dims] = np.linalg.inv(matrix).T
    onto[n_dims, :n_dims] = centre
    onto[n_dims, n_dims] = 1.0
    return replace(
        posterior,
        item_mean=posterior.item_mean @ onto.T,
        items_spread=posterior.items_spread.onto(onto),
        ability_mean=(posterior.ability_mean - centre) @ matrix.T,
        abilities_spread=posterior.abilities_spread.onto(matrix),
    )


def in_general_axes(posterior: Posterior) -> Posterior:
    """Rotate to the axes in which specific loadings have mean zero and are uncorrelated, abilities centred."""
    n_dims = posterior.n_dims
    mean = posterior.item_mean.mean(axis=0)
    items = _covariance(posterior.item_mean, posterior.item_covariance, mean)
    centre = posterior.ability_mean.mean(axis=0)
    spread = _covariance(posterior.ability_mean, posterior.ability_covariance, centre)
    return transform(posterior, general_axes(spread, items[:n_dims, :n_dims], mean[:n_dims]), centre)


def _candidates(posterior: Posterior) -> Iterator[Posterior]:
    """Give the same posterior in other axes."""
    n_dims = posterior.n_dims
    mean = posterior.item_mean.mean(axis=0)
    items = _covariance(posterior.item_mean, posterior.item_covariance, _centres(posterior, mean))
    average = posterior.ability_mean.mean(axis=0)
    spread = _covariance(posterior.ability_mean, posterior.ability_covariance, average)
    centre = best_centre(items, spread, average, n_items=posterior.n_items, n_models=len(posterior.ability_mean))
    moment = spread + np.outer(centre - average, centre - average)
    loadings = items[:n_dims, :n_dims]
    if posterior.is_nested:
        yield transform(posterior, general_axes(moment, loadings, mean[:n_dims]), centre)
        yield transform(posterior, np.diag(1.0 / np.sqrt(np.diag(moment))), centre)
    else:
        yield transform(posterior, principal_axes(moment, loadings), centre)


def _centres(posterior: Posterior, mean: FloatArray) -> FloatArray:
    """Give what items differ about: centres of their own, or the mean of all."""
    return mean if posterior.item_prior.tasks is None else posterior.item_prior.centre


def _covariance(means: FloatArray, covariances: FloatArray, centre: FloatArray) -> FloatArray:
    """Covariance over the rows about a centre, the uncertainty of each included."""
    away = means - centre
    result: FloatArray = away.T @ away / len(away) + covariances.mean(axis=0)
    return result
