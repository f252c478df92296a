"""The Bernoulli item model for binary responses (and fractional ones, as a weighted likelihood).

With ``x = loadings . theta + intercept``, ``p = lower + (upper - lower) * sigmoid(x)``.
"""

import numpy as np
from scipy.special import expit

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray


def logit(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Logit of every model on every item, (n_models, n_items), for theta (n_models, n_dims)."""
    result: FloatArray = theta @ parameters.loadings.T + parameters.intercept
    return result


def probability(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Probability of a correct response, (n_models, n_items), for theta (n_models, n_dims)."""
    share: FloatArray = expit(logit(parameters, theta))
    if not np.any(parameters.lower_asymptote) and np.all(parameters.upper_asymptote == 1.0):
        return share
    return parameters.lower_asymptote + (parameters.upper_asymptote - parameters.lower_asymptote) * share
