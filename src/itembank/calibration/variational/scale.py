"""Fixing the scale: moving mean, spread and axes of the abilities into the item parameters.

``theta' = A (theta - m)`` and ``a' = A^-T a``, ``c' = c + a . m`` leave the distribution of every logit as it was,
so only the divergence from the prior changes, and the step is taken only if that does not rise. Alternating
updates of abilities and items would take hundreds of sweeps to cover the same ground.

The shift and the axes of ability that let the bound rise the most, logits unchanged.

Under ``theta' = A (theta - m)``, ``a' = A^-T a``, ``c' = c + a . m`` only these parts of the bound change:
with K = K(m) the abilities' second moment about m, S the moments of the loadings about the mean of their prior and
``s(m)`` the variance of the items' intercepts c',

``- n_items / 2 [log s(m) + sum_d log (A^-T S A^-1)_dd - log det A^-T S A^-1]``
``- n_models / 2 [tr A K A' - log det A K A']``

(the prior's precisions, which follow, taken at their best, and what their own priors say left out).
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from itembank.calibration.variational.state import Posterior
from itembank.calibration.variational.updates import divergence, update_item_prior
from itembank.numerics.arrays import FloatArray, IntArray


def best_centre(
    items: FloatArray,  # (n_dims + 1, n_dims + 1): C, of (loadings, intercept) over items, with their uncertainty
    spread: FloatArray,  # (n_dims, n_dims): T, the covariance of ability over models, with its uncertainty
    centre: FloatArray,  # (n_dims,): Mean of ability
    n_items: int,
    n_models: int,
) -> FloatArray:
    """Find the shift m: near the mean of ability, but intercepts should not differ because loadings do.

    Minimises ``n_items log s(m) + n_models log det K(m)`` by bounding both logarithms by their tangents, round after
    round: ``s(m) = (m, 1)' C (m, 1)`` and ``K(m) = T + (m - mean)(m - mean)'``.
    """
    shift, before = centre, np.full(centre.shape, np.inf)
    extended, slopes, mixed = np.ones(centre.size + 1), items[:-1, :-1], items[:-1, -1]
    # Never reached: four or five rounds meet the tolerance in simulated fits.
    centre_rounds = 100
    # Change of the shift, in units of ability, at which the rounds stop.
    centre_tolerance = 1e-6
    for _ in range(centre_rounds):
        if np.abs(shift - before).max() < centre_tolerance:
            break
        extended[:-1] = shift
        # log s <= s / s0 + constant and log det K <= tr(K0^-1 K) + constant, equal at the last shift: the sum of the
        # bounds is quadratic in m, and its minimum is never above the last value.
        item_weight = n_items / (extended @ items @ extended)
        away = shift - centre
        ability_weight = n_models * np.linalg.inv(spread + away[:, None] * away)
        precision, linear = item_weight * slopes + ability_weight, ability_weight @ centre - item_weight * mixed
        before, shift = shift, np.linalg.solve(precision, linear)
    return shift


def principal_axes(
    moment: FloatArray,  # (n_dims, n_dims): K, of ability
    covariance: FloatArray,  # (n_dims, n_dims): S, of the loadings about their mean
) -> FloatArray:
    """Find A that makes K the identity and S diagonal: the best of all."""
    values, vectors = np.linalg.eigh(moment)
    # K = root root; in whitened axes any rotation keeps K the identity, and the eigenvectors of S there make S diagonal
    root = (vectors * np.sqrt(values)) @ vectors.T
    _, vectors = np.linalg.eigh(root @ covariance @ root)
    axes: FloatArray = np.linalg.solve(root, vectors).T
    order, signs = _places(axes)  # each new axis stays close to the old one of its place
    return signs[:, None] * axes[order]


def general_axes(
    moment: FloatArray,  # As for `principal_axes`
    covariance: FloatArray,
    mean: FloatArray,  # (n_dims,): Of the loadings
) -> FloatArray:
    """Find A for which specific loadings have mean zero and no loading is correlated with another.

    The general loading is ``mean' S^-1 a``, the specific ones are what is left, and of the rotations of these the one
    that makes their abilities uncorrelated. With many more items than models this is the best; abilities then
    have variance one, and the general one can be correlated with the others.

    Returns (n_dims, n_dims), the general ability first.
    """
    factor = np.linalg.cholesky(covariance)
    aligned, _ = np.linalg.qr(np.column_stack([np.linalg.solve(factor, mean), np.eye(mean.shape[0])]))
    onto: FloatArray = aligned.T @ factor.T  # A, with A^-T = aligned' factor^-1
    onto[0] *= np.sign(mean @ np.linalg.solve(factor.T, aligned[:, 0]))
    _, vectors = np.linalg.eigh(onto[1:] @ moment @ onto[1:].T)
    onto[1:] = vectors.T @ onto[1:]
    onto /= np.sqrt(np.einsum("dj,jk,dk->d", onto, moment, onto))[:, None]
    order, signs = _places(onto[1:, 1:])
    onto[1:] = signs[:, None] * onto[1:][order]
    return onto


def _places(axes: FloatArray) -> tuple[IntArray, FloatArray]:
    """Which row comes closest to each old axis, and its sign there."""
    _, order = linear_sum_assignment(-np.abs(axes.T))
    return order, np.where(np.diag(axes[order]) < 0.0, -1.0, 1.0)


def rescale(posterior: Posterior) -> Posterior:
    """Move the abilities to the centre and axes that suit the priors best, unless the bound would fall."""
    before, n_dims = update_item_prior(posterior), posterior.n_dims
    mean, prior = before.item_mean.mean(axis=0), before.item_prior
    items = _covariance(before.item_mean, before.item_covariance, mean if prior.tasks is None else prior.centre)
    average = before.ability_mean.mean(axis=0)
    spread = _covariance(before.ability_mean, before.ability_covariance, average)
    centre = best_centre(items, spread, average, n_items=before.n_items, n_models=len(before.ability_mean))
    moment = spread + np.outer(centre - average, centre - average)
    loadings = items[:n_dims, :n_dims]
    if before.is_nested:
        axes = [general_axes(moment, loadings, mean[:n_dims]), np.diag(1.0 / np.sqrt(np.diag(moment)))]
    else:
        axes = [principal_axes(moment, loadings)]
    moved = (update_item_prior(transform(before, matrix, centre)) for matrix in axes)
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


def _covariance(means: FloatArray, covariances: FloatArray, centre: FloatArray) -> FloatArray:
    """Covariance over the rows about a centre, the uncertainty of each included."""
    away = means - centre
    result: FloatArray = away.T @ away / len(away) + covariances.mean(axis=0)
    return result
