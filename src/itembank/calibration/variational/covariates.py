"""The prior of an item's intercept follows what is known of the item beforehand.

``c_i ~ N(mu + x_i . w, 1 / u)`` with features x of mean zero, and ``w_k ~ N(0, 1 / tau_g)`` for the features k of
column g: the LLTM with errors (Janssen, Schepers and Peres 2004), its weights pooled within each column. The precisions
tau are those that let the bound rise the most (empirical Bayes), see `pooled_regression`.
"""

from dataclasses import replace

import numpy as np

from itembank.calibration.pooled_regression import FeatureValues, best_precisions, posterior_weights
from itembank.calibration.variational.state import (
    HYPER_MEAN_VARIANCE,
    HYPER_RATE,
    HYPER_SHAPE,
    CovariatePrior,
    ItemPrior,
    Posterior,
    bounded_rate,
)
from itembank.numerics.arrays import FloatArray

ROUNDS = 4
"""Alternations of the weights with all precisions and the mean; the next sweep goes on from there."""


def start_covariates(features: FeatureValues) -> CovariatePrior:
    """Begin with weights of zero."""
    size = features.column.shape[0]
    centred = features.values - features.values.mean(axis=0)
    precision = np.ones(int(features.column.max()) + 1)
    return CovariatePrior(centred, features.column, np.zeros(size), np.eye(size), precision)


def update_covariates(posterior: Posterior, covariates: CovariatePrior, is_free: FloatArray) -> ItemPrior:
    """Find the posterior of the weights, and in turn of their precisions, the mean and the items' precision.

    `is_free` (n_dims + 1,) is zero where mu is known to be zero.
    """
    n_items, features = posterior.n_items, covariates.features
    gram = features.T @ features
    products = features.T @ posterior.item_mean[:, -1]
    variances = np.einsum("ijj->ij", posterior.item_covariance).sum(axis=0)
    shape = np.full(posterior.n_dims + 1, HYPER_SHAPE + 0.5 * n_items)
    rate, mean, mean_variance = (getattr(posterior.item_prior, name) for name in ("rate", "mean", "mean_variance"))
    tau = covariates.precision
    for _ in range(ROUNDS):
        # Each line is the closed-form update of one factor given the others, so that the bound never falls.
        below = shape / rate
        weights, weight_covariance = posterior_weights(gram, products, float(below[-1]), tau[covariates.column])
        away = posterior.item_mean - mean
        away[:, -1] -= features @ weights
        spread = np.sum(away**2, axis=0) + variances + n_items * mean_variance
        spread[-1] += np.sum(weight_covariance * gram)
        rate = bounded_rate(HYPER_RATE + 0.5 * spread, shape)
        mean_variance = is_free / (1.0 / HYPER_MEAN_VARIANCE + n_items * shape / rate)
        mean = mean_variance * (shape / rate) * posterior.item_mean.sum(axis=0)  # features have mean zero
        tau = best_precisions(weights, weight_covariance, covariates.column)
    updated = replace(covariates, weights=weights, weight_covariance=weight_covariance, precision=tau)
    return ItemPrior(mean, mean_variance, shape, rate, covariates=updated)


def covariate_divergence(covariates: CovariatePrior) -> float:
    """``KL(q(w) || N(0, 1 / tau))``."""
    tau = covariates.precision[covariates.column]
    squares = covariates.weights**2 + np.diag(covariates.weight_covariance)
    log_determinant = np.linalg.slogdet(covariates.weight_covariance)[1]
    return float(0.5 * (np.sum(tau * squares - 1.0 - np.log(tau)) - log_determinant))
