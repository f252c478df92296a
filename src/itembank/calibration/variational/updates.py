"""Closed-form updates of each factor of the posterior, given what the passes found.

A normal factor is updated in its natural parameters (precision, precision times mean); a step below one goes part
of the way from the old ones to the new ones, along which the objective at first always rises.
"""

from dataclasses import replace

import numpy as np

from itembank.calibration.variational.common_slope import update_common_slope
from itembank.calibration.variational.passes import AbilityStatistics, ItemStatistics
from itembank.calibration.variational.positive import with_positive_slopes
from itembank.calibration.variational.state import (
    HYPER_MEAN_VARIANCE,
    HYPER_RATE,
    HYPER_SHAPE,
    Covariances,
    ItemPrior,
    Posterior,
    bounded_rate,
)
from itembank.calibration.variational.tasks import update_tasks
from itembank.numerics.arrays import FloatArray
from itembank.numerics.symmetric import unpack

HYPER_ROUNDS = 3
"""Alternations of mean and precision of the items' prior; the next sweep goes on from there."""


def update_items(posterior: Posterior, statistics: ItemStatistics, step: FloatArray) -> Posterior:
    """Find the normal posterior of every item's (loadings, intercept); `step` is (n_items,) in (0, 1]."""
    prior = posterior.item_prior
    precision = unpack(statistics.precision, posterior.n_dims + 1)
    if posterior.has_common_slope:
        return with_positive_slopes(update_common_slope(posterior, precision, statistics.linear, float(step.min())))
    diagonal = np.arange(posterior.n_dims + 1)
    precision[:, diagonal, diagonal] += prior.precision
    linear = statistics.linear + prior.precision * prior.centre
    mean, spread = _normal(posterior.item_mean, posterior.item_covariance, precision, linear, step)
    return with_positive_slopes(replace(posterior, item_mean=mean, items_spread=spread))


def update_abilities(posterior: Posterior, statistics: AbilityStatistics, step: float) -> Posterior:
    """Find the normal posterior of every model's ability, under its standard normal prior."""
    precision = unpack(statistics.precision, posterior.n_dims) + np.eye(posterior.n_dims)
    steps = np.full(precision.shape[0], step)
    mean, spread = _normal(posterior.ability_mean, posterior.ability_covariance, precision, statistics.linear, steps)
    return replace(posterior, ability_mean=mean, abilities_spread=spread)


def update_item_prior(posterior: Posterior) -> Posterior:
    """Find the posterior of mean and precision of the items' prior, by a few alternations of the two."""
    n_items = posterior.n_items
    prior = posterior.item_prior
    may_differ = np.ones(posterior.n_dims + 1)
    if posterior.is_nested:
        may_differ[1:-1] = 0.0
    if prior.tasks is not None:
        return replace(posterior, item_prior=update_tasks(posterior, prior.tasks, may_differ))
    variance = np.einsum("ijj->ij", posterior.item_covariance)
    total = posterior.item_mean.sum(axis=0)
    squares = np.sum(posterior.item_mean**2 + variance, axis=0)
    shape = np.full(total.shape, HYPER_SHAPE + 0.5 * n_items)
    rate, mean, mean_variance = prior.rate, prior.mean, prior.mean_variance
    for _ in range(HYPER_ROUNDS):
        # sum E[(beta - mu)^2] over items, with the variances of beta and mu.
        spread = squares - 2.0 * mean * total + n_items * (mean**2 + mean_variance)
        rate = bounded_rate(HYPER_RATE + 0.5 * spread, shape)
        mean_variance = may_differ / (1.0 / HYPER_MEAN_VARIANCE + n_items * shape / rate)
        mean = mean_variance * (shape / rate) * total
    return replace(posterior, item_prior=ItemPrior(mean, mean_variance, shape, rate))


def _normal(
    old_mean: FloatArray, old_covariance: FloatArray, precision: FloatArray, linear: FloatArray, step: FloatArray
) -> tuple[FloatArray, Covariances]:
    """Mean and covariance of natural parameters, a step of the way from the old ones, row by row."""
    # only they need an inverse of the old covariance
    short = np.flatnonzero(step < 1.0)
    if short.size:
        # Part of the way in natural parameters, along which the objective at first rises.
        old_precision = np.linalg.inv(old_covariance[short])
        old_linear = np.einsum("ijk,ik->ij", old_precision, old_mean[short])
        weight = step[short, None]
        precision, linear = precision.copy(), linear.copy()
        linear[short] = old_linear + weight * (linear[short] - old_linear)
        precision[short] = old_precision + weight[:, :, None] * (precision[short] - old_precision)
    covariance = np.linalg.inv(precision)
    covariance = 0.5 * (covariance + covariance.swapaxes(1, 2))  # rounding makes an inverse slightly unsymmetric
    log_determinant: FloatArray = -np.linalg.slogdet(precision)[1]
    return np.einsum("ijk,ik->ij", covariance, linear), Covariances(covariance, log_determinant)
