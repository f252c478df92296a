"""The Bernoulli item model for binary responses (and fractional ones, as a weighted likelihood).

With ``x = loadings . theta + intercept``, ``p = lower + (upper - lower) * sigmoid(x)``.
Responses are (n_models, n_items) with NaN where missing.
"""

import numpy as np
from scipy.special import expit

from itembank.irt import logistic
from itembank.irt.logistic import Asymptotes, asymptotes_of
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.numerics.symmetric import packed_products, unpack


def logit(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Logit of every model on every item, (n_models, n_items), for theta (n_models, n_dims)."""
    result: FloatArray = theta @ parameters.loadings.T + parameters.intercept
    return result


def probability(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Probability of a correct response, (n_models, n_items), for theta (n_models, n_dims)."""
    sigmoid: FloatArray = expit(logit(parameters, theta))
    if _asymptotes(parameters) is None:
        return sigmoid
    return parameters.lower_asymptote + (parameters.upper_asymptote - parameters.lower_asymptote) * sigmoid


def log_likelihood(parameters: ItemParameters, theta: FloatArray, responses: FloatArray) -> FloatArray:
    """Log-likelihood of each model's responses, (n_models,)."""
    terms = logistic.log_likelihood_terms(logit(parameters, theta), responses, _asymptotes(parameters))
    result: FloatArray = np.nansum(terms, axis=1)
    return result


def curvature_weights(parameters: ItemParameters, theta: FloatArray, responses: FloatArray) -> FloatArray:
    """Weights h, (n_models, n_items), of the observed information ``sum_i h_i a_i a_i'``; 0 where missing.

    Minus the second derivative of each log-likelihood term in its logit. Equal to `information_weights`
    without asymptotes; with them it depends on the response and may be negative.
    """
    terms = logistic.curvature_terms(logit(parameters, theta), responses, _asymptotes(parameters))
    return np.where(np.isnan(responses), 0.0, terms)


def information_weights(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Weights w, (n_models, n_items): the Fisher information matrix of an item is ``w_i a_i a_i'``."""
    return logistic.information_weights(logit(parameters, theta), _asymptotes(parameters))


def item_information(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Fisher information of each item, (n_models, n_items), along its loadings: ``w_i |a_i|^2``.

    In one dimension this is the usual item information; in more it is the largest over all directions.
    """
    weights = information_weights(parameters, theta)
    result: FloatArray = weights * np.sum(parameters.loadings**2, axis=1)
    return result


def test_information(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Fisher information matrix of all items together, (n_models, n_dims, n_dims)."""
    return weighted_information(parameters.loadings, information_weights(parameters, theta))


def weighted_information(loadings: FloatArray, weights: FloatArray) -> FloatArray:
    """``sum_i w_i a_i a_i'`` for weights (n_models, n_items): (n_models, n_dims, n_dims), as one product."""
    return unpack(weights @ packed_products(loadings), loadings.shape[1])


def _asymptotes(parameters: ItemParameters) -> Asymptotes | None:
    return asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
