"""Closed-form updates of each factor of the posterior, given what the passes found.

A normal factor is updated in its natural parameters (precision, precision times mean); a step below one goes part
of the way from the old ones to the new ones, along which the objective at first always rises.

Items of one task have a common centre of their prior.

``beta_id ~ N(gamma_td, 1 / u_d)`` for the items of task t, ``gamma_td ~ N(mu_d, 1 / tau_d)``, ``tau_d ~ Gamma(1, 1)``.
With few models an item's own responses determine its loadings poorly; the other items of its task then help much.

One slope for all items (1PL): the joint normal posterior of the slope and all intercepts.

The joint precision is an arrow: p for the slope, couplings k_i between slope and intercept i, d_i for intercept i.
Elimination of the intercepts gives ``1 / var(a) = p - sum_i k_i^2 / d_i``,
``cov(a, c_i) = -var(a) k_i / d_i`` and ``var(c_i) = 1 / d_i + var(a) (k_i / d_i)^2``.
"""

from dataclasses import replace

import numpy as np
from scipy.special import digamma, gammaln

from itembank.calibration.variational.passes import Statistics
from itembank.calibration.variational.state import (
    HYPER_MEAN_VARIANCE,
    HYPER_RATE,
    HYPER_SHAPE,
    Covariances,
    ItemPrior,
    Posterior,
    TaskPrior,
    bounded_rate,
)
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.symmetric import inverse_and_log_determinant, unpack


def start_tasks(index: IntArray | None, size: int) -> TaskPrior | None:
    """Give all tasks the same centre, zero; `size` is n_dims + 1. None where items of one task share no centre."""
    if index is None:
        return None
    n_tasks = int(index.max()) + 1
    half = np.full(size, HYPER_SHAPE + 0.5 * n_tasks)
    return TaskPrior(index, np.zeros((n_tasks, size)), np.full((n_tasks, size), 1.0 / n_tasks), half, half)


def update_tasks(posterior: Posterior, tasks: TaskPrior, is_free: FloatArray) -> ItemPrior:
    """Find the posterior of the tasks' centres, and in turn of their mean, their precision and the items' precision.

    `is_free` (n_dims + 1,) is zero where mu is known to be zero.
    """
    n_items, n_tasks = posterior.n_items, tasks.mean.shape[0]
    counts = np.bincount(tasks.index, minlength=n_tasks)[:, None].astype(np.float64)
    total = np.zeros_like(tasks.mean)
    # not `total[index] += ...`, which counts each task once
    np.add.at(total, tasks.index, posterior.item_mean)
    squares = np.sum(posterior.item_mean**2 + np.einsum("ijj->ij", posterior.item_covariance), axis=0)
    shape = np.full(total.shape[1], HYPER_SHAPE + 0.5 * n_items)
    task_shape = np.full(total.shape[1], HYPER_SHAPE + 0.5 * n_tasks)
    rate, task_rate, mean = posterior.item_prior.rate, tasks.rate, posterior.item_prior.mean
    # Alternations of the centres with their mean and precisions; the next sweep goes on from there.
    rounds = 4
    for _ in range(rounds):
        # Each line is the closed-form update of one factor given the others, so that the bound never falls.
        below, above = shape / rate, task_shape / task_rate
        variance = 1.0 / (counts * below + above)
        centre = variance * (below * total + above * mean)
        spread = squares - 2.0 * np.sum(centre * total, axis=0) + np.sum(counts * (centre**2 + variance), axis=0)
        rate = bounded_rate(HYPER_RATE + 0.5 * spread, shape)
        mean_variance = is_free / (1.0 / HYPER_MEAN_VARIANCE + n_tasks * above)
        mean = mean_variance * above * centre.sum(axis=0)
        distance = np.sum((centre - mean) ** 2 + variance + mean_variance, axis=0)
        task_rate = bounded_rate(HYPER_RATE + 0.5 * distance, task_shape)
    updated = replace(tasks, mean=centre, variance=variance, shape=task_shape, rate=task_rate)
    return ItemPrior(mean, mean_variance, shape, rate, updated)


def task_divergence(prior: ItemPrior, tasks: TaskPrior) -> FloatArray:
    """``sum_t E KL(q(gamma_t) || N(mu, 1 / tau))``, expected over mu and tau, (n_dims + 1,)."""
    spread = (tasks.mean - prior.mean) ** 2 + tasks.variance + prior.mean_variance
    terms = tasks.shape / tasks.rate * spread - (digamma(tasks.shape) - np.log(tasks.rate)) - 1.0
    result: FloatArray = 0.5 * np.sum(terms - np.log(tasks.variance), axis=0)
    return result


def update_common_slope(
    posterior: Posterior,
    precision: FloatArray,  # (n_items, 2, 2): Without the prior
    linear: FloatArray,  # (n_items, 2)
    step: float,  # In (0, 1]
) -> Posterior:
    """Find the joint posterior of slope and intercepts."""
    prior = posterior.item_prior
    new = (
        precision[:, 0, 0].sum() + 1.0 / HYPER_MEAN_VARIANCE,
        precision[:, 0, 1],
        precision[:, 1, 1] + prior.precision[1],
        linear[:, 0].sum(),
        linear[:, 1] + prior.precision[1] * prior.centre[..., 1],
    )
    if step < 1.0:
        new = tuple(old + step * (end - old) for old, end in zip(_natural_parameters(posterior), new, strict=True))
    slope_precision, coupling, intercept_precision, slope_linear, intercept_linear = new
    # Eliminate the intercepts from the arrow, solve for the slope, and put it back into them.
    ratio = coupling / intercept_precision
    variance = 1.0 / (slope_precision - np.sum(ratio * coupling))
    slope = variance * (slope_linear - np.sum(ratio * intercept_linear))
    intercept = intercept_linear / intercept_precision - ratio * slope
    covariance = np.empty((ratio.shape[0], 2, 2))
    covariance[:, 0, 0] = variance
    covariance[:, 0, 1] = covariance[:, 1, 0] = -variance * ratio
    covariance[:, 1, 1] = 1.0 / intercept_precision + variance * ratio**2
    mean = np.column_stack([np.full(ratio.shape, slope), intercept])
    return replace(posterior, item_mean=mean, items_spread=Covariances.of(covariance))


def _natural_parameters(posterior: Posterior) -> tuple[FloatArray, ...]:
    """Give p, k (n_items,), d (n_items,), and precision times mean for slope and intercepts, of a joint posterior."""
    covariance, mean = posterior.item_covariance, posterior.item_mean
    variance = covariance[0, 0, 0]
    # The formulas of the module, solved for k and d: k_i / d_i = -cov(a, c_i) / var(a).
    ratio = -covariance[:, 0, 1] / variance
    intercept_precision = 1.0 / (covariance[:, 1, 1] - variance * ratio**2)
    coupling = ratio * intercept_precision
    slope_precision = 1.0 / variance + np.sum(ratio * coupling)
    slope = mean[0, 0]
    return (
        slope_precision,
        coupling,
        intercept_precision,
        slope_precision * slope + np.sum(coupling * mean[:, 1]),
        coupling * slope + intercept_precision * mean[:, 1],
    )


LEAST_SLOPE = 0.01
"""At an ability of two standard deviations it moves a probability by half a point at most."""


def with_positive_slopes(posterior: Posterior) -> Posterior:
    """Move items whose slope is below the least one to the most probable point that has it.

    On the line ``a = least`` that is ``beta + (least - a) S_.a / S_aa`` for a normal posterior of covariance S.
    """
    if not posterior.is_positive:
        return posterior
    short = np.maximum(LEAST_SLOPE - posterior.item_mean[:, 0], 0.0)
    if not short.any():
        return posterior
    covariance = posterior.item_covariance
    direction = covariance[:, :, 0] / covariance[:, :1, 0]
    return replace(posterior, item_mean=posterior.item_mean + short[:, None] * direction)


def note_of_least_slopes(posterior: Posterior) -> str:
    """Say how many slopes are at the least one, for the message of the fit; empty where none does."""
    # Largest factor by which fixing the scale of ability may have raised a least slope afterwards.
    rescaled = 1.1
    count = int(np.sum(posterior.item_mean[:, 0] < rescaled * LEAST_SLOPE)) if posterior.is_positive else 0
    if count == 0:
        return ""
    return (
        f"; {count} of {posterior.n_items} slopes would lie below {LEAST_SLOPE:g} and are kept there: these items say "
        "almost nothing about ability"
    )


def update_items(posterior: Posterior, statistics: Statistics, step: FloatArray) -> Posterior:
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


def update_abilities(posterior: Posterior, statistics: Statistics, step: float) -> Posterior:
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
    # Alternations of mean and precision of the items' prior; the next sweep goes on from there.
    hyper_rounds = 3
    for _ in range(hyper_rounds):
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
        old_precision, _ = inverse_and_log_determinant(old_covariance[short])
        old_linear = np.einsum("ijk,ik->ij", old_precision, old_mean[short])
        weight = step[short, None]
        precision, linear = precision.copy(), linear.copy()
        linear[short] = old_linear + weight * (linear[short] - old_linear)
        precision[short] = old_precision + weight[:, :, None] * (precision[short] - old_precision)
    covariance, log_determinant = inverse_and_log_determinant(precision)
    covariance = 0.5 * (covariance + covariance.swapaxes(1, 2))  # rounding makes an inverse slightly unsymmetric
    return np.einsum("ijk,ik->ij", covariance, linear), Covariances(covariance, -log_determinant)


def divergence(posterior: Posterior) -> float:
    """Kullback-Leibler divergence of the whole posterior from the prior; the bound is likelihood minus this."""
    items = float(np.sum(item_divergence(posterior)))
    return ability_divergence(posterior) + items + item_prior_divergence(posterior)


def ability_divergence(posterior: Posterior) -> float:
    """``sum_l KL(q(theta_l) || N(0, I))``."""
    mean, covariance = posterior.ability_mean, posterior.ability_covariance
    # KL(N(m, C) || N(0, I)) = (m' m + tr C - n_dims - log det C) / 2.
    squares = np.sum(mean**2) + np.sum(np.einsum("ljj->lj", covariance))
    return float(0.5 * (squares - mean.size - np.sum(posterior.abilities_spread.log_determinant)))


def item_divergence(posterior: Posterior) -> FloatArray:
    """``E KL(q(beta_i) || N(mu, 1 / u))`` of each item, expected over mu and u, (n_items,).

    With a common slope, the slope's divergence is divided equally among the items.
    """
    prior = posterior.item_prior
    mean, covariance = posterior.item_mean, posterior.item_covariance
    n_items = posterior.n_items
    spread = (mean - prior.centre) ** 2 + np.einsum("ijj->ij", covariance) + prior.centre_variance
    # E[u (beta - mu)^2] - E[log u] - 1 for each parameter, with E[log u] = psi(shape) - log rate.
    constants, log_determinant = digamma(prior.shape) - np.log(prior.rate) + 1.0, posterior.items_spread.log_determinant
    if posterior.has_common_slope:
        slope, variance = mean[0, 0], covariance[0, 0, 0]
        log_determinant = log_determinant - (1.0 - 1.0 / n_items) * np.log(variance)  # its entropy counts once
        penalty = (slope**2 + variance) / HYPER_MEAN_VARIANCE + np.log(HYPER_MEAN_VARIANCE) - 1.0
        terms = spread[:, 1] * prior.precision[1] - constants[1] + penalty / n_items
    else:
        terms = spread @ prior.precision - constants.sum()
    result: FloatArray = 0.5 * (terms - log_determinant)
    return result


def item_prior_divergence(posterior: Posterior) -> float:
    """``KL(q(mu) || N(0, 10)) + KL(q(u) || Gamma(1, 1))``, over the loadings and the intercept, mu where not known.

    With tasks, also what their centres and the precision of these add.
    """
    prior = posterior.item_prior
    # Of each mu; a ratio of one and a distance of zero make the terms of a known mu vanish.
    is_free = prior.mean_variance > 0.0
    ratio = np.where(is_free, prior.mean_variance / HYPER_MEAN_VARIANCE, 1.0)
    distance = np.where(is_free, prior.mean**2 / HYPER_MEAN_VARIANCE, 0.0)
    terms = 0.5 * (ratio + distance - 1.0 - np.log(ratio)) + _gamma_divergence(prior.shape, prior.rate)
    if prior.tasks is not None:
        terms += task_divergence(prior, prior.tasks) + _gamma_divergence(prior.tasks.shape, prior.tasks.rate)
    return float(np.sum(terms[1:] if posterior.has_common_slope else terms))


def _gamma_divergence(shape: FloatArray, rate: FloatArray) -> FloatArray:
    result: FloatArray = (
        (shape - HYPER_SHAPE) * digamma(shape)
        - gammaln(shape)
        + gammaln(HYPER_SHAPE)
        + HYPER_SHAPE * (np.log(rate) - np.log(HYPER_RATE))
        + shape * (HYPER_RATE - rate) / rate
    )
    return result
