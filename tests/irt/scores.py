"""The statistical score by the kernel that solvers use: what their solutions are held against."""

import numpy as np

from itembank.irt import logistic
from itembank.irt.bernoulli import logit


def score_function(parameters, theta, responses):
    """Differentiate the log-likelihood of each model in theta, (n_models, n_dims)."""
    asymptotes = logistic.asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
    terms = logistic.score_terms(logit(parameters, theta), responses, asymptotes)
    return np.nan_to_num(terms, nan=0.0) @ parameters.loadings
