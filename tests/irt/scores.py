"""Likelihood and information by the kernels that solvers use, and differences: what solutions are held against."""

import numpy as np

from itembank.irt.bernoulli import information_weights, logit, probability, weighted_information
from itembank.irt.families import likelihood_terms
from itembank.irt.parameters import ItemParameters

STEP = 1e-4


def simulate(rng, n_models, n_items, n_dims, lower=0.0):
    """Draw items, and responses of models whose abilities are standard normal."""
    parameters = ItemParameters.create(rng.normal(size=(n_items, n_dims)), rng.normal(size=n_items), lower)
    responses = rng.random((n_models, n_items)) < probability(parameters, rng.normal(size=(n_models, n_dims)))
    return parameters, responses.astype(float)


def differentiate(function, x):
    """Central difference of fourth order: error about STEP^4 and 1e-16 / STEP."""
    near = function(x + STEP) - function(x - STEP)
    far = function(x + 2.0 * STEP) - function(x - 2.0 * STEP)
    return (8.0 * near - far) / (12.0 * STEP)


def log_likelihood(parameters, theta, responses):
    """Log-likelihood of each model's responses, (n_models,)."""
    return np.nansum(_terms(parameters, theta, responses).log_likelihood, axis=1)


def score_function(parameters, theta, responses):
    """Differentiate the log-likelihood of each model in theta, (n_models, n_dims)."""
    return np.nan_to_num(_terms(parameters, theta, responses).slope, nan=0.0) @ parameters.loadings


def observed_information(parameters, theta, responses):
    """Minus the second derivative of the log-likelihood of each model in theta, (n_models, n_dims, n_dims)."""
    weights = np.where(np.isnan(responses), 0.0, _terms(parameters, theta, responses).curvature)
    return weighted_information(parameters.loadings, weights)


def item_information(parameters, theta):
    """Fisher information of each item along its loadings, (n_models, n_items)."""
    return information_weights(parameters, theta) * np.sum(parameters.loadings**2, axis=1)


def fisher_information(parameters, theta):
    """Fisher information matrix of all items together, (n_models, n_dims, n_dims)."""
    return weighted_information(parameters.loadings, information_weights(parameters, theta))


def _terms(parameters, theta, responses):
    return likelihood_terms(parameters, logit(parameters, theta), responses)
