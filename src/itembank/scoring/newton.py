"""Maximum a posteriori ability by batched Newton steps."""

import numpy as np

from itembank.irt.logistic import Asymptotes, asymptotes_of, curvature_terms, log_likelihood_terms, score_terms
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.newton import Evaluate, Evaluation, maximise
from itembank.scoring.abilities import Abilities


def map_abilities(
    parameters: ItemParameters, responses: FloatArray, prior: AbilityPrior, *, start: FloatArray | None = None
) -> Abilities:
    """Find the mode of the posterior of ability.

    ``argmax sum_i [y_i log p_i + (1 - y_i) log(1 - p_i)] - (theta - mu)' P (theta - mu) / 2``

    Parameters
    ----------
    parameters : ItemParameters
    responses : (n_models, n_items)
        In [0, 1], a fraction is a weighted likelihood; NaN where missing.
    prior : AbilityPrior
    start : (n_models, n_dims), optional
        Where to start; the prior mean by default.

    Returns
    -------
    Abilities
        A model without responses has the prior's mean and covariance.
    """
    n_models = len(responses)
    begin = np.tile(prior.mean, (n_models, 1)) if start is None else np.asarray(start, dtype=np.float64)
    asymptotes = asymptotes_of(parameters.lower_asymptote, parameters.upper_asymptote)
    evaluate = _posterior(parameters, responses, prior, asymptotes)
    found = maximise(evaluate, begin, is_concave=asymptotes is None)
    covariance = np.linalg.inv(found.precision)
    return Abilities(found.theta, covariance, np.zeros(n_models, dtype=bool), found.converged, "map")


def _posterior(
    parameters: ItemParameters, responses: FloatArray, prior: AbilityPrior, asymptotes: Asymptotes | None
) -> Evaluate:
    observed = ~np.isnan(responses)
    filled = np.where(observed, responses, 0.0)
    prior_precision = np.linalg.inv(prior.covariance)
    n_dims = parameters.n_dims
    products = np.einsum("id,ie->ide", parameters.loadings, parameters.loadings).reshape(-1, n_dims**2)

    def evaluate(theta: FloatArray, rows: IntArray) -> Evaluation:
        x = theta @ parameters.loadings.T + parameters.intercept  # (n, n_items)
        y, seen = filled[rows], observed[rows]
        distance = theta - prior.mean
        pull = distance @ prior_precision
        objective = np.sum(log_likelihood_terms(x, y, asymptotes), axis=1, where=seen)
        gradient = (score_terms(x, y, asymptotes) * seen) @ parameters.loadings - pull
        information = (curvature_terms(x, y, asymptotes) * seen) @ products
        precision = information.reshape(-1, n_dims, n_dims) + prior_precision
        return Evaluation(objective - 0.5 * np.einsum("nd,nd->n", distance, pull), gradient, precision)

    return evaluate
