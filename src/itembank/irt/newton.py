"""Maximum a posteriori ability, by batched Newton steps.

Maximum a posteriori ability of models that each answered as many items of their own, as if each were alone.

`map_abilities` lays out the answers of all models over the items that any of them answered. What is summed with zeros
between, or as a product of larger matrices, may round otherwise. Here every model keeps its own list, and every sum is
the one that `map_abilities` makes for this model alone: the results are the same bits, in a fraction of the calls.
"""

from dataclasses import dataclass

import numpy as np

from itembank.irt.abilities import Abilities, join
from itembank.irt.answers import Answers, blocks, gather
from itembank.irt.families import ResponseModel
from itembank.irt.likelihood_abilities import MOST_GRID_DIMS, Posterior, best_points, fitted_points, prior_points
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.newton import Evaluation, inverse, maximise
from itembank.numerics.symmetric import triangle, unpack


def map_abilities(
    parameters: ItemParameters,
    responses: FloatArray,  # (n_models, n_items) in [0, 1], NaN where missing
    prior: AbilityPrior,
    *,
    weights: FloatArray | None = None,  # (n_models, n_items): w, how many times each response counts
    n_trials: FloatArray | None = None,  # (n_models, n_items): Behind each response of a family of counts
    start: FloatArray | None = None,  # (n_models, n_dims)
) -> Abilities:
    """Find the mode of the posterior of ability.

    ``argmax sum_i w_i [y_i log p_i + (1 - y_i) log(1 - p_i)] - (theta - mu)' P (theta - mu) / 2`` for right and wrong
    answers, and with the log-likelihood of their family in the brackets for others.

    A Bernoulli fraction is a weighted likelihood; its weight is the number of trials that it is the mean of. Weights
    and trials are one by default. The search starts at the prior mean by default, or with asymptotes, probabilities or
    over-dispersed counts, where there can be more than one mode, at the best of some points spread over the prior
    (beyond two dimensions few points, so that the mode found may be a lower one).

    The covariance is the inverse observed information, prior included. A model without responses has the prior's mean
    and covariance.
    """
    runs = [
        map_of_answers(
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


def map_of_answers(answers: Answers, prior: AbilityPrior, start: FloatArray | None = None) -> Abilities:
    """Find the posterior mode of one run of models."""
    posterior = Posterior(answers, prior.mean, np.linalg.inv(prior.covariance))
    if start is None and answers.model.is_concave:
        start = np.tile(prior.mean, (answers.n_models, 1))
    elif start is None and prior.n_dims > MOST_GRID_DIMS and not answers.model.is_logistic:
        # many dimensions have too few points to trust; probabilities and counts tell by themselves where to begin
        start = fitted_points(answers, prior.mean, posterior.precision)
    elif start is None:
        points = prior_points(prior)
        distance = points - prior.mean
        log_prior = -0.5 * np.einsum("pd,pd->p", distance @ posterior.precision, distance)
        start = best_points(answers, points, log_prior)
    maximum = maximise(posterior, start, is_concave=answers.model.is_concave)
    never = np.zeros(answers.n_models, dtype=bool)
    return Abilities(maximum.theta, inverse(maximum.precision), never, maximum.converged, "map")


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Log posteriors of abilities, one a model, of right and wrong answers without asymptotes."""

    responses: FloatArray  # (n_models, n_answers)
    loadings: FloatArray  # (n_models, n_answers, n_dims)
    intercept: FloatArray  # (n_models, n_answers)
    products: FloatArray  # (n_models, n_answers, n_dims (n_dims + 1) / 2): Packed outer products of the loadings
    model: ResponseModel  # Without arrays over items
    mean: FloatArray  # (n_models, n_dims): Of each model's prior
    precision: FloatArray  # (n_models, n_dims, n_dims): Of each model's prior

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        x = _times(theta, self.loadings.swapaxes(1, 2)) + self.intercept
        value, slope, curvature = self.model.likelihood_terms(x, self.responses)
        distance = theta - self.mean
        weighted_distance = _times(distance, self.precision)
        return Evaluation(
            value.sum(axis=1) - 0.5 * np.einsum("md,md->m", distance, weighted_distance),
            _times(slope, self.loadings) - weighted_distance,
            unpack(_times(curvature, self.products), theta.shape[1]) + self.precision,
        )

    def take(self, rows: IntArray) -> "SideBySide":
        """Return the posteriors of the models at `rows`."""
        return SideBySide(
            self.responses[rows],
            self.loadings[rows],
            self.intercept[rows],
            self.products[rows],
            self.model,
            self.mean[rows],
            self.precision[rows],
        )


def can_stand_side_by_side(model: ResponseModel) -> bool:
    """Whether responses are right or wrong, and their probability a logistic curve from zero to one."""
    return model.is_logistic and model.asymptotes is None


def map_side_by_side(
    loadings: FloatArray,  # (n_models, n_answers, n_dims): Of the items each model answered; none has zeros alone
    intercept: FloatArray,  # (n_models, n_answers)
    responses: FloatArray,  # (n_models, n_answers): None missing; each counts once
    model: ResponseModel,  # See `can_stand_side_by_side`
    prior: AbilityPrior,
) -> Abilities:
    """Find the mode of each model's posterior of ability, as `map_abilities` does for it alone."""
    first, second = triangle(loadings.shape[2])
    n_models = responses.shape[0]
    problem = SideBySide(
        responses,
        loadings,
        intercept,
        loadings[..., first] * loadings[..., second],
        model,
        np.tile(prior.mean, (n_models, 1)),
        np.tile(np.linalg.inv(prior.covariance), (n_models, 1, 1)),
    )
    maximum = maximise(problem, problem.mean, is_concave=True)
    never = np.zeros(n_models, dtype=bool)
    return Abilities(maximum.theta, inverse(maximum.precision), never, maximum.converged, "map")


def _times(vectors: FloatArray, matrices: FloatArray) -> FloatArray:
    """Vector times matrix, row by row: (n, k) and (n, k, m) to (n, m)."""
    result: FloatArray = np.matmul(vectors[:, None, :], matrices)[:, 0, :]
    return result
