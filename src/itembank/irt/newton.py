"""Maximum a posteriori ability, by batched Newton steps."""

import numpy as np

from itembank.irt.abilities import Abilities, join
from itembank.irt.answers import Answers, blocks, gather
from itembank.irt.likelihood_abilities import Posterior
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.irt.starts import MOST_GRID_DIMS, best_points, fitted_points, prior_points
from itembank.numerics.arrays import FloatArray
from itembank.numerics.newton import inverse, maximise


def map_abilities(
    parameters: ItemParameters,
    responses: FloatArray,
    prior: AbilityPrior,
    *,
    weights: FloatArray | None = None,
    n_trials: FloatArray | None = None,
    start: FloatArray | None = None,
) -> Abilities:
    """Find the mode of the posterior of ability.

    ``argmax sum_i w_i [y_i log p_i + (1 - y_i) log(1 - p_i)] - (theta - mu)' P (theta - mu) / 2`` for right and wrong
    answers, and with the log-likelihood of their family in the brackets for others.

    Parameters
    ----------
    parameters : ItemParameters
    responses : (n_models, n_items)
        In [0, 1], a Bernoulli fraction is a weighted likelihood; NaN where missing.
    prior : AbilityPrior
    weights : (n_models, n_items), optional
        w, how many times each response counts: for a Bernoulli model the number of trials that it is the mean of.
        Once by default.
    n_trials : (n_models, n_items), optional
        Trials behind each response of a family of counts; one by default. Other families take no notice.
    start : (n_models, n_dims), optional
        Where to start. By default the prior mean, or with asymptotes, probabilities or over-dispersed counts,
        where there can be more than one mode, the best of some points spread over the prior (beyond two
        dimensions few points, so that the mode found may be a lower one).

    Returns
    -------
    Abilities
        Covariance is the inverse observed information, prior included. A model without responses has
        the prior's mean and covariance.
    """
    runs = [
        _map_block(
            gather(
                parameters,
                responses[run],
                None if weights is None else weights[run],
                None if n_trials is None else n_trials[run],
            ),
            prior,
            None if start is None else start[run],
        )
        for run in blocks(responses)
    ]
    return join(runs)


def map_of_answers(answers: Answers, prior: AbilityPrior) -> Abilities:
    """Find the posterior mode of one run of models."""
    return _map_block(answers, prior, None)


def _map_block(answers: Answers, prior: AbilityPrior, start: FloatArray | None) -> Abilities:
    posterior = Posterior(answers, prior.mean, np.linalg.inv(prior.covariance))
    if start is None:
        start = _start(posterior, prior)
    maximum = maximise(posterior, start, is_concave=answers.model.is_concave)
    never = np.zeros(answers.n_models, dtype=bool)
    return Abilities(maximum.theta, inverse(maximum.precision), never, maximum.converged, "map")


def _start(posterior: Posterior, prior: AbilityPrior) -> FloatArray:
    if posterior.answers.model.is_concave:
        return np.tile(prior.mean, (posterior.answers.n_models, 1))
    # Many dimensions have too few points to trust; probabilities and counts tell by themselves where to begin.
    if prior.n_dims > MOST_GRID_DIMS and not posterior.answers.model.is_logistic:
        return fitted_points(posterior.answers, prior.mean, posterior.precision)
    points = prior_points(prior)
    distance = points - prior.mean
    log_prior = -0.5 * np.einsum("pd,pd->p", distance @ posterior.precision, distance)
    return best_points(posterior.answers, points, log_prior)
