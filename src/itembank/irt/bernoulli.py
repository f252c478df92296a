"""The Bernoulli item model: logits, probabilities and information of models and items.

With ``x = loadings . theta + intercept``, ``p = lower + (upper - lower) * sigmoid(x)``. Likelihoods are in
`itembank.irt.families`.
"""

from scipy.special import expit

from itembank.irt import graded, logistic
from itembank.irt.logistic import Asymptotes, asymptotes_of
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.numerics.symmetric import packed_products, unpack


def logit(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Logit of every model on every item, (n_models, n_items), for theta (n_models, n_dims)."""
    result: FloatArray = theta @ parameters.loadings.T + parameters.intercept
    return result


def probability(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Probability of a correct response, (n_models, n_items), for theta (n_models, n_dims); of levels their mean."""
    if parameters.steps is not None:
        return graded.mean_terms(logit(parameters, theta), parameters.steps).mean
    sigmoid: FloatArray = expit(logit(parameters, theta))
    if _asymptotes(parameters) is None:
        return sigmoid
    return parameters.lower_asymptote + (parameters.upper_asymptote - parameters.lower_asymptote) * sigmoid


def information_weights(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Weights w, (n_models, n_items): the Fisher information matrix of an item is ``w_i a_i a_i'``."""
    return logistic.information_weights(logit(parameters, theta), _asymptotes(parameters))


def weighted_information(loadings: FloatArray, weights: FloatArray) -> FloatArray:
    """``sum_i w_i a_i a_i'`` for weights (n_models, n_items): (n_models, n_dims, n_dims), as one product."""
    return unpack(weights @ packed_products(loadings), loadings.shape[1])


def _asymptotes(parameters: ItemParameters) -> Asymptotes | None:
    return asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
