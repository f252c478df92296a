"""Where a maximisation over ability begins."""

from typing import NamedTuple

import numpy as np

from itembank.irt.answers import Answers, log_likelihood_at, only_answered, sum_loadings, sum_products, thinned
from itembank.irt.beta import log_odds
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

MOST_GRID_DIMS = 2
"""Dimensions in which points on a grid are tried: 21 points each are 441 in two and 9,261 in three."""

MOST_ANSWERS = 256
"""Answers of a model that a start is found from, for families whose likelihood is slow; Newton's method sees all."""

LINE_POINTS = 81
"""Over ten standard deviations of the prior: an eighth of one apart. The best need only lie on the slope of the highest
of several maxima."""


class Frame(NamedTuple):
    """Coordinates phi in which ability is measured in units of its smallest standard error."""

    # (n_models, n_dims): Where the logits of the answered items are smallest, in the sense of least squares.
    centre: FloatArray
    scale: FloatArray  # (n_models, n_dims, n_dims): ``theta = centre + scale phi``
    is_identified: BoolArray  # (n_models,): Whether the answered items measure every dimension

    def take(self, rows: IntArray) -> "Frame":
        """Return the frames of the models at `rows`."""
        return Frame(self.centre[rows], self.scale[rows], self.is_identified[rows])


def natural_frame(answers: Answers) -> Frame:
    """Centre and scale each model's ability by the items it answered alone.

    With ``G = sum_i a_i a_i' / 4``, the largest information the items can give, ``scale scale' = G^-1``. Probabilities
    and counts can give more than 1/4 each (`ResponseModel.relative_information`).
    What is computed in this frame does not depend on the origin and unit of the ability scale.
    """
    ones = only_answered(answers, np.ones_like(answers.responses))
    if not answers.model.is_logistic:
        ones = ones * answers.model.relative_information(answers.n_trials)
    values, vectors = np.linalg.eigh(0.25 * sum_products(answers, ones))
    largest = values[:, -1]
    # Fraction of a model's largest information below which a direction counts as not measured at all.
    rank_tolerance = 1e-10
    is_identified = (values[:, 0] > rank_tolerance * largest) & (largest > 0.0)
    scale = vectors / np.sqrt(np.where(is_identified[:, None], values, 1.0))[:, None, :]
    # Least squares of the logits: sum a_i (a_i . theta + c_i) = 0, so theta = -G^-1 sum a_i c_i / 4.
    weighted_sum = 0.25 * sum_loadings(answers, ones * answers.intercept)
    centre = -np.matmul(scale, np.matmul(scale.transpose(0, 2, 1), weighted_sum[..., None]))[..., 0]
    return Frame(centre, scale, is_identified)


def prior_points(prior: AbilityPrior) -> FloatArray:
    """Points over the prior, (n_points, n_dims): a grid in one or two dimensions, a star of axes in more."""
    values, vectors = np.linalg.eigh(prior.covariance)
    axes = (vectors * np.sqrt(values)).T  # (n_dims, n_dims), one axis a row
    if prior.n_dims > MOST_GRID_DIMS:
        # 6 points an axis and the mean: their number must not grow with the power of the dimensions.
        steps = np.arange(-3.0, 4.0)[:, None, None] * np.eye(prior.n_dims)
        return np.asarray(prior.mean + steps.reshape(-1, prior.n_dims) @ axes)
    line = np.linspace(-5.0, 5.0, LINE_POINTS if prior.n_dims == 1 else 21)  # half a standard deviation apart in two
    steps = np.stack(np.meshgrid(*[line] * prior.n_dims, indexing="ij"), axis=-1)
    result: FloatArray = prior.mean + steps.reshape(-1, prior.n_dims) @ axes
    return result


def item_points(answers: Answers) -> FloatArray:
    """Points over the items' difficulties in one dimension, (n_points, 1), and two far outside them."""
    slope, intercept = answers.loadings[..., 0].ravel(), answers.intercept.ravel()
    # The difficulty -c / a of an item with almost no slope can lie anywhere.
    matters = np.abs(slope) >= 0.05 * np.abs(slope).max()
    slope, difficulty = np.abs(slope[matters]), -intercept[matters] / slope[matters]
    # Five logits beyond the last item its probability is within 0.7 % of the end.
    margin = 5.0 / np.median(slope)
    inside = np.linspace(difficulty.min() - margin, difficulty.max() + margin, LINE_POINTS)
    # A logit at which the sigmoid is one to within rounding (from 37 on).
    far_logit = 40.0
    ends = [np.min(difficulty - far_logit / slope), np.max(difficulty + far_logit / slope)]
    return np.concatenate([inside, ends])[:, None]


def best_points(answers: Answers, points: FloatArray, log_prior: FloatArray | float = 0.0) -> FloatArray:
    """Point (n_models, n_dims) of largest likelihood, times prior (n_points,), for each model.

    Of probabilities and counts, whose likelihood takes long, some hundred answers of each model must do.
    """
    if not answers.model.is_logistic:
        answers = thinned(answers, MOST_ANSWERS)
    best = np.argmax(log_likelihood_at(answers, points) + log_prior, axis=1)
    result: FloatArray = points[best]
    return result


def fitted_points(
    answers: Answers,
    mean: FloatArray | float = 0.0,  # (n_dims,)
    precision: FloatArray | float = 0.0,  # (n_dims, n_dims): Of the prior; zero without one
) -> FloatArray:
    """Point (n_models, n_dims) that brings the logits nearest to the log-odds of the responses, by least squares.

    Each answer weighs as the information it would have at those log-odds; a normal prior counts as in a posterior.
    For probabilities and counts, whose log-odds are finite.
    """
    n = 1.0 if answers.n_trials is None else answers.n_trials
    is_count = answers.model.takes_counts
    # An added half answer of either kind keeps the log-odds of a count finite.
    target = log_odds((n * answers.responses + 0.5) / (n + 1.0) if is_count else answers.responses)
    weights = only_answered(answers, answers.model.information_weights(target, answers.n_trials))
    gram = sum_products(answers, weights) + precision
    weighted_sum = sum_loadings(answers, weights * (target - answers.intercept)) + np.dot(precision, mean)
    return np.linalg.solve(gram, weighted_sum[..., None])[..., 0]
