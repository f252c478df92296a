"""Abilities from the likelihood alone: maximum likelihood and weighted likelihood, starts and scale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.irt.abilities import Abilities, join
from itembank.irt.answers import (
    Answers,
    gather_blocks,
    log_likelihood_at,
    logits,
    only_answered,
    quadratic_forms,
    sum_loadings,
    sum_products,
    thinned,
)
from itembank.irt.beta import log_odds
from itembank.irt.family_names import KINDS
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.newton import Evaluation, Maximum, maximise


class Frame(NamedTuple):
    """Coordinates phi in which ability is measured in units of its smallest standard error."""

    # (n_models, n_dims): Where the logits of the answered items are smallest, in the sense of least squares.
    centre: FloatArray
    scale: FloatArray  # (n_models, n_dims, n_dims): ``theta = centre + scale phi``
    is_identified: BoolArray  # (n_models,): Whether the answered items measure every dimension

    def take(self, rows: IntArray) -> "Frame":
        """Return the frames of the models at `rows`."""
        return Frame(self.centre[rows], self.scale[rows], self.is_identified[rows])


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Log-likelihood of ability: of right and wrong answers ``sum_i y_i log p_i + (1 - y_i) log(1 - p_i)``."""

    answers: Answers

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        x = logits(self.answers, theta)
        terms = self.answers.model.likelihood_terms(x, self.answers.responses, self.answers.n_trials)
        value, slope, curvature = (only_answered(self.answers, term) for term in terms)
        return Evaluation(value.sum(axis=1), sum_loadings(self.answers, slope), sum_products(self.answers, curvature))

    def take(self, rows: IntArray) -> "Likelihood":
        """Return the objective of the models at `rows`."""
        return Likelihood(self.answers.take(rows))


@dataclass(frozen=True, slots=True)
class Posterior:
    """Log-likelihood less ``(theta - mean)' precision (theta - mean) / 2``."""

    answers: Answers
    mean: FloatArray
    precision: FloatArray

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        likelihood = Likelihood(self.answers).evaluate(theta)
        distance = theta - self.mean
        weighted_distance = distance @ self.precision
        return Evaluation(
            likelihood.objective - 0.5 * np.einsum("md,md->m", distance, weighted_distance),
            likelihood.gradient - weighted_distance,
            likelihood.precision + self.precision,
        )

    def take(self, rows: IntArray) -> "Posterior":
        """Return the objective of the models at `rows`."""
        return Posterior(self.answers.take(rows), self.mean, self.precision)


@dataclass(frozen=True, slots=True)
class Jeffreys:
    """Log-likelihood plus ``log det I(theta) / 2`` (Warm 1989 in the form of Firth 1993).

    With ``C = I^-1``, weights w of the items and their derivatives w', w'' in the logit,

        d/dtheta_k         =  sum_i w'_i a_ik (a_i' C a_i) / 2
        d2/dtheta_k dtheta_l = sum_i w''_i a_ik a_il (a_i' C a_i) / 2 - tr(C I_k C I_l) / 2

    where ``I_k = sum_i w'_i a_ik a_i a_i'``.
    """

    answers: Answers

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its theta (n_models, n_dims)."""
        likelihood = Likelihood(self.answers).evaluate(theta)
        slopes = self.answers.model.information_slopes(logits(self.answers, theta), self.answers.n_trials)
        weights, first, second = (only_answered(self.answers, term) for term in slopes)
        information = sum_products(self.answers, weights)
        sign, log_determinant = np.linalg.slogdet(information)
        is_regular = (sign > 0.0) & np.isfinite(log_determinant)
        # Far out all weights underflow and I is singular. The objective of minus infinity refuses the step there, but
        # its derivatives must be computable.
        information = np.where(is_regular[:, None, None], information, np.eye(self.answers.n_dims))
        covariance = np.linalg.inv(information)
        # Lengths a_i' C a_i enter the gradient and the first part of the Hessian; `precision` is minus the Hessian.
        lengths = quadratic_forms(self.answers, covariance)  # (n_models, n_answers)
        columns = np.moveaxis(self.answers.loadings, -1, 0)  # (n_dims, n_answers) or (n_dims, n_models, n_answers)
        n_models, n_dims = covariance.shape[:2]
        # tr(A B) is the sum over all entries of A times those of B', so that all pairs are one matrix product.
        scaled = np.matmul(
            covariance[:, None], np.stack([sum_products(self.answers, first * column) for column in columns], axis=1)
        )  # C I_k
        flat = scaled.reshape(n_models, n_dims, -1)
        transposed = scaled.transpose(0, 1, 3, 2).reshape(n_models, n_dims, -1)
        result: FloatArray = np.matmul(flat, transposed.transpose(0, 2, 1))
        return Evaluation(
            np.where(is_regular, likelihood.objective + 0.5 * log_determinant, -np.inf),
            likelihood.gradient + 0.5 * sum_loadings(self.answers, first * lengths),
            likelihood.precision - 0.5 * sum_products(self.answers, second * lengths) + 0.5 * result,
        )

    def take(self, rows: IntArray) -> "Jeffreys":
        """Return the objective of the models at `rows`."""
        return Jeffreys(self.answers.take(rows))


@dataclass(frozen=True, slots=True)
class Rescaled:
    """Another objective in coordinates phi with ``theta = centre + scale phi``."""

    inner: Likelihood | Jeffreys
    centre: FloatArray  # (n_models, n_dims)
    scale: FloatArray  # (n_models, n_dims, n_dims)

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every model at its phi (n_models, n_dims)."""
        value, gradient, precision = self.inner.evaluate(self.to_theta(theta))
        # The chain rule: gradient S' g and precision S' P S.
        transposed = self.scale.transpose(0, 2, 1)
        return Evaluation(
            value, np.matmul(transposed, gradient[..., None])[..., 0], transposed @ precision @ self.scale
        )

    def take(self, rows: IntArray) -> "Rescaled":
        """Return the objective of the models at `rows`."""
        return Rescaled(self.inner.take(rows), self.centre[rows], self.scale[rows])

    def to_theta(self, phi: FloatArray) -> FloatArray:
        """Return theta of phi (n_models, n_dims)."""
        result: FloatArray = self.centre + np.matmul(self.scale, phi[..., None])[..., 0]
        return result


def ml_abilities(parameters: ItemParameters, responses: FloatArray, *, n_trials: FloatArray | None = None) -> Abilities:
    """Find the ability under which the responses are most likely.

    Responses and trials are as for `map_abilities`. Where the likelihood rises for ever along some direction (all
    right, all wrong, or in more dimensions responses that a plane separates), `at_bound` is set, the dimensions that
    grow are infinite, the others are at their limit, and the covariance is NaN. A model whose responses do not measure
    every dimension is NaN and at the bound too. With asymptotes, and with probabilities or over-dispersed counts, the
    likelihood can have several maxima: in one dimension the highest is found, in more the one uphill of a start near
    the responses (with asymptotes: of the items' centre).
    """
    runs = gather_blocks(parameters, responses, n_trials)
    return join([_where_identified(answers, "ml", _ml_identified) for answers in runs])


def wle_abilities(
    parameters: ItemParameters, responses: FloatArray, *, n_trials: FloatArray | None = None
) -> Abilities:
    """Find the weighted likelihood estimate of ability: finite for every pattern, bias of second order.

    ``argmax log L(theta) + log det I(theta) / 2``: Warm's (1989) estimator for 1PL and 2PL in one
    dimension; with asymptotes it is the Jeffreys-penalised form, which then differs from Warm's. The covariance is the
    inverse of minus the Hessian of the penalised objective. A model whose responses do not measure every dimension is
    NaN and at the bound.
    """
    runs = gather_blocks(parameters, responses, n_trials)
    return join([_where_identified(answers, "wle", _wle_identified) for answers in runs])


def _ml_identified(answers: Answers, frame: Frame) -> Abilities:
    problem = Rescaled(Likelihood(answers), frame.centre, frame.scale)
    # Where the likelihood flattens out, rounding keeps the decrement from falling much below this.
    ml_tolerance = 1e-7
    maximum = maximise(problem, _start(answers, frame, with_ends=True), is_concave=False, tolerance=ml_tolerance)
    values, vectors = np.linalg.eigh(maximum.precision)
    # Information, as a fraction of the most the items can give, below which the likelihood has no maximum to speak of.
    flat = 1e-9
    # An all-right model's likelihood has no maximum, it only flattens out. Where that stopped is chance, so no size of
    # theta can tell, but its curvature can.
    # In this frame the largest information that the items can give is one in every direction.
    is_flat = np.abs(values) < flat  # (n_models, n_dims)
    at_bound = is_flat.any(axis=1)
    growth = frame.scale @ (vectors * is_flat[:, None, :]) @ vectors.transpose(0, 2, 1) @ maximum.theta[..., None]
    sizes = np.abs(growth[..., 0])
    largest = sizes.max(axis=1, keepdims=True, initial=0.0)
    # Relative to the largest: dimensions outside the growth hold only rounding of it.
    grows = (sizes > 1e-6 * largest) & (largest > 0.0)
    theta = np.where(grows, np.copysign(np.inf, growth[..., 0]), problem.to_theta(maximum.theta))
    return Abilities(theta, _covariance(maximum, frame, at_bound), at_bound, maximum.converged, "ml")


def _wle_identified(answers: Answers, frame: Frame) -> Abilities:
    problem = Rescaled(Jeffreys(answers), frame.centre, frame.scale)
    maximum = maximise(problem, _start(answers, frame, with_ends=False), is_concave=False)
    never = np.zeros(answers.n_models, dtype=bool)
    theta = problem.to_theta(maximum.theta)
    return Abilities(theta, _covariance(maximum, frame, never), never, maximum.converged, "wle")


def _start(answers: Answers, frame: Frame, *, with_ends: bool) -> FloatArray:
    """Start from each model's centre; where there may be several maxima, from the best of a line of points."""
    if not answers.n_models or answers.model.is_concave or (answers.n_dims > 1 and answers.model.is_logistic):
        return np.zeros((answers.n_models, answers.n_dims))
    if answers.n_dims > 1:
        theta = fitted_points(answers)
        return np.linalg.solve(frame.scale, (theta - frame.centre)[..., None])[..., 0]
    points = item_points(answers)
    theta = best_points(answers, points if with_ends else points[:-2])
    return (theta - frame.centre) / frame.scale[:, 0]


def _covariance(maximum: Maximum, frame: Frame, at_bound: BoolArray) -> FloatArray:
    """Inverse of the precision on the scale of theta; NaN at the bound."""
    at = at_bound[:, None, None]
    inverse = np.linalg.inv(np.where(at, np.eye(maximum.theta.shape[1]), maximum.precision))
    return np.where(at, np.nan, frame.scale @ inverse @ frame.scale.transpose(0, 2, 1))


def _where_identified(answers: Answers, method: str, solve: Callable[[Answers, Frame], Abilities]) -> Abilities:
    """Score the models whose answers measure every dimension; the others are NaN and at the bound."""
    frame = natural_frame(answers)
    rows = np.flatnonzero(frame.is_identified)
    if len(rows) == answers.n_models:
        return solve(answers, frame)
    n_models, n_dims = answers.n_models, answers.n_dims
    theta, covariance = np.full((n_models, n_dims), np.nan), np.full((n_models, n_dims, n_dims), np.nan)
    at_bound, converged = np.ones(n_models, dtype=bool), np.zeros(n_models, dtype=bool)
    if len(rows):
        some = solve(answers.take(rows), frame.take(rows))
        theta[rows], covariance[rows] = some.theta, some.covariance
        at_bound[rows], converged[rows] = some.at_bound, some.converged
    return Abilities(theta, covariance, at_bound, converged, method)


MOST_GRID_DIMS = 2
"""Dimensions in which points on a grid are tried: 21 points each are 441 in two and 9,261 in three."""

MOST_ANSWERS = 256
"""Answers of a model that a start is found from, for families whose likelihood is slow; Newton's method sees all."""

LINE_POINTS = 81
"""Over ten standard deviations of the prior: an eighth of one apart. The best need only lie on the slope of the highest
of several maxima."""


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
    else:
        line = np.linspace(-5.0, 5.0, LINE_POINTS if prior.n_dims == 1 else 21)  # half a deviation apart in two
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
    is_count = KINDS[answers.model.family].takes == "counts"
    # An added half answer of either kind keeps the log-odds of a count finite.
    target = log_odds((n * answers.responses + 0.5) / (n + 1.0) if is_count else answers.responses)
    weights = only_answered(answers, answers.model.information_weights(target, answers.n_trials))
    gram = sum_products(answers, weights) + precision
    weighted_sum = sum_loadings(answers, weights * (target - answers.intercept)) + np.dot(precision, mean)
    return np.linalg.solve(gram, weighted_sum[..., None])[..., 0]
