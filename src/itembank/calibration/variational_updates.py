"""Closed-form updates of each factor of the posterior, given what the passes found."""

from dataclasses import replace

import numpy as np

from itembank.calibration.variational_passes import ItemStatistics
from itembank.calibration.variational_state import (
    HYPER_MEAN_VARIANCE,
    HYPER_RATE,
    HYPER_SHAPE,
    ItemPriorPosterior,
    Posterior,
    unpack,
)
from itembank.numerics.arrays import FloatArray

HYPER_ROUNDS = 3


def update_items(posterior: Posterior, statistics: ItemStatistics) -> Posterior:
    """Find the normal posterior of every item's (loadings, intercept)."""
    size = posterior.n_dims + 1
    prior = posterior.item_prior
    precision = unpack(statistics.precision, size)
    if posterior.has_common_slope:
        return _update_common_slope(posterior, precision, statistics.linear)
    diagonal = np.arange(size)
    precision[:, diagonal, diagonal] += prior.precision
    covariance = np.linalg.inv(precision)
    linear = statistics.linear + prior.precision * prior.mean
    mean = np.einsum("ijk,ik->ij", covariance, linear)
    return replace(posterior, item_mean=mean, item_covariance=_symmetric(covariance))


def _update_common_slope(posterior: Posterior, precision: FloatArray, linear: FloatArray) -> Posterior:
    """Joint normal posterior of one slope and all intercepts, by elimination of the intercepts.

    The joint precision has the slope's entry, a row of couplings k_i and a diagonal d_i of the intercepts:
    ``1 / var(a) = p - sum k_i^2 / d_i``; ``cov(a, c_i) = -var(a) k_i / d_i``;
    ``var(c_i) = 1 / d_i + var(a) (k_i / d_i)^2``.
    """
    prior = posterior.item_prior
    intercept_precision = precision[:, 1, 1] + prior.precision[1]
    intercept_linear = linear[:, 1] + prior.precision[1] * prior.mean[1]
    ratio = precision[:, 0, 1] / intercept_precision
    slope_precision = precision[:, 0, 0].sum() + 1.0 / HYPER_MEAN_VARIANCE - np.sum(ratio * precision[:, 0, 1])
    variance = 1.0 / slope_precision
    slope = variance * (linear[:, 0].sum() - np.sum(ratio * intercept_linear))
    mean = np.column_stack([np.full(ratio.shape, slope), intercept_linear / intercept_precision - ratio * slope])
    covariance = np.empty(precision.shape)
    covariance[:, 0, 0] = variance
    covariance[:, 0, 1] = covariance[:, 1, 0] = -variance * ratio
    covariance[:, 1, 1] = 1.0 / intercept_precision + variance * ratio**2
    return replace(posterior, item_mean=mean, item_covariance=covariance)


def update_abilities(posterior: Posterior, precision: FloatArray, linear: FloatArray) -> Posterior:
    """Find the normal posterior of every model's ability, under its standard normal prior."""
    n_dims = posterior.n_dims
    covariance = np.linalg.inv(unpack(precision, n_dims) + np.eye(n_dims))
    mean = np.einsum("ljk,lk->lj", covariance, linear)
    return replace(posterior, ability_mean=mean, ability_covariance=_symmetric(covariance))


def update_item_prior(posterior: Posterior) -> Posterior:
    """Posterior of the mean and precision of the items' prior, in a few alternations of the two."""
    n_items = posterior.item_mean.shape[0]
    prior = posterior.item_prior
    variance = np.einsum("ijj->ij", posterior.item_covariance)
    total = posterior.item_mean.sum(axis=0)
    squares = np.sum(posterior.item_mean**2 + variance, axis=0)
    shape = np.full(total.shape, HYPER_SHAPE + 0.5 * n_items)
    rate, mean, mean_variance = prior.rate, prior.mean, prior.mean_variance
    for _ in range(HYPER_ROUNDS):
        spread = squares - 2.0 * mean * total + n_items * (mean**2 + mean_variance)
        rate = HYPER_RATE + 0.5 * spread
        mean_variance = 1.0 / (1.0 / HYPER_MEAN_VARIANCE + n_items * shape / rate)
        mean = mean_variance * (shape / rate) * total
    return replace(posterior, item_prior=ItemPriorPosterior(mean, mean_variance, shape, rate))


def _symmetric(matrices: FloatArray) -> FloatArray:
    """Remove the rounding that makes inverses differ from their transposes."""
    result: FloatArray = 0.5 * (matrices + matrices.swapaxes(1, 2))
    return result
