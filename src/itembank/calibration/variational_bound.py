"""The bound on the log evidence: what the responses give, minus how far each factor is from its prior."""

import numpy as np
from scipy.special import digamma, gammaln

from itembank.calibration.variational_state import (
    HYPER_MEAN_VARIANCE,
    HYPER_RATE,
    HYPER_SHAPE,
    ItemPriorPosterior,
    Posterior,
)
from itembank.numerics.arrays import FloatArray


def divergence(posterior: Posterior) -> float:
    """Kullback-Leibler divergence of the whole posterior from the prior; the bound is likelihood minus this."""
    return ability_divergence(posterior) + item_divergence(posterior) + item_prior_divergence(posterior)


def ability_divergence(posterior: Posterior) -> float:
    """``sum_l KL(q(theta_l) || N(0, I))``."""
    mean, covariance = posterior.ability_mean, posterior.ability_covariance
    squares = np.sum(mean**2) + np.sum(np.einsum("ljj->lj", covariance))
    return float(0.5 * (squares - mean.size - np.sum(np.linalg.slogdet(covariance)[1])))


def item_divergence(posterior: Posterior) -> float:
    """``sum_i E KL(q(beta_i) || N(mu, 1 / u))``, with the expectation over mu and u."""
    prior = posterior.item_prior
    mean, covariance = posterior.item_mean, posterior.item_covariance
    n_items = mean.shape[0]
    spread = (mean - prior.mean) ** 2 + np.einsum("ijj->ij", covariance) + prior.mean_variance
    penalty = np.sum(prior.precision * spread, axis=0)  # (n_dims + 1,)
    log_precision = digamma(prior.shape) - np.log(prior.rate)
    terms = penalty - n_items * log_precision - n_items
    log_determinant = np.sum(np.linalg.slogdet(covariance)[1])
    if posterior.has_common_slope:
        slope, variance = mean[0, 0], covariance[0, 0, 0]
        log_determinant -= (n_items - 1) * np.log(variance)  # the slope's entropy counts once
        terms[0] = (slope**2 + variance) / HYPER_MEAN_VARIANCE + np.log(HYPER_MEAN_VARIANCE) - 1.0
    return float(0.5 * (np.sum(terms) - log_determinant))


def item_prior_divergence(posterior: Posterior) -> float:
    """``KL(q(mu) || N(0, 10)) + KL(q(u) || Gamma(1, 1))``, over the loadings and the intercept."""
    terms = _normal_divergence(posterior.item_prior) + _gamma_divergence(posterior.item_prior)
    return float(np.sum(terms[1:] if posterior.has_common_slope else terms))


def _normal_divergence(prior: ItemPriorPosterior) -> FloatArray:
    ratio = prior.mean_variance / HYPER_MEAN_VARIANCE
    result: FloatArray = 0.5 * (ratio + prior.mean**2 / HYPER_MEAN_VARIANCE - 1.0 - np.log(ratio))
    return result


def _gamma_divergence(prior: ItemPriorPosterior) -> FloatArray:
    shape, rate = prior.shape, prior.rate
    result: FloatArray = (
        (shape - HYPER_SHAPE) * digamma(shape)
        - gammaln(shape)
        + gammaln(HYPER_SHAPE)
        + HYPER_SHAPE * (np.log(rate) - np.log(HYPER_RATE))
        + shape * (HYPER_RATE - rate) / rate
    )
    return result
