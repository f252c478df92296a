"""The bound on the log evidence: the expected log-likelihood, minus how far each factor is from its prior."""

import numpy as np
from scipy.special import digamma, gammaln

from itembank.calibration.variational.state import (
    HYPER_MEAN_VARIANCE,
    HYPER_RATE,
    HYPER_SHAPE,
    ItemPrior,
    Posterior,
)
from itembank.calibration.variational.tasks import task_divergence
from itembank.numerics.arrays import FloatArray


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
    terms = prior.precision * spread - (digamma(prior.shape) - np.log(prior.rate)) - 1.0
    log_determinant = posterior.items_spread.log_determinant
    if posterior.has_common_slope:
        slope, variance = mean[0, 0], covariance[0, 0, 0]
        log_determinant = log_determinant - (1.0 - 1.0 / n_items) * np.log(variance)  # its entropy counts once
        penalty = (slope**2 + variance) / HYPER_MEAN_VARIANCE + np.log(HYPER_MEAN_VARIANCE) - 1.0
        terms[:, 0] = penalty / n_items
    result: FloatArray = 0.5 * (terms.sum(axis=1) - log_determinant)
    return result


def item_prior_divergence(posterior: Posterior) -> float:
    """``KL(q(mu) || N(0, 10)) + KL(q(u) || Gamma(1, 1))``, over the loadings and the intercept, mu where not known.

    With tasks, also what their centres and the precision of these add.
    """
    prior = posterior.item_prior
    terms = _normal_divergence(prior) + _gamma_divergence(prior.shape, prior.rate)
    if prior.tasks is not None:
        terms += task_divergence(prior, prior.tasks) + _gamma_divergence(prior.tasks.shape, prior.tasks.rate)
    return float(np.sum(terms[1:] if posterior.has_common_slope else terms))


def _normal_divergence(prior: ItemPrior) -> FloatArray:
    """KL of each mu, none where it is known."""
    is_free = prior.mean_variance > 0.0
    # A ratio of one and a distance of zero make the terms of a known mu vanish.
    ratio = np.where(is_free, prior.mean_variance / HYPER_MEAN_VARIANCE, 1.0)
    distance = np.where(is_free, prior.mean**2 / HYPER_MEAN_VARIANCE, 0.0)
    result: FloatArray = 0.5 * (ratio + distance - 1.0 - np.log(ratio))
    return result


def _gamma_divergence(shape: FloatArray, rate: FloatArray) -> FloatArray:
    result: FloatArray = (
        (shape - HYPER_SHAPE) * digamma(shape)
        - gammaln(shape)
        + gammaln(HYPER_SHAPE)
        + HYPER_SHAPE * (np.log(rate) - np.log(HYPER_RATE))
        + shape * (HYPER_RATE - rate) / rate
    )
    return result
