"""Posterior of one model's success rates on all items, given few samples of each; pass@k follows from it.

The success rate of the model on item i varies around the item model's mean ``mu_i = g_i + (u_i - g_i) sigmoid(a_i .
theta + c_i)`` as ``Beta(mu_i phi, (1 - mu_i) phi)``. Given theta and phi, c_i successes of n_i samples leave the rate
``Beta(mu_i phi + c_i, (1 - mu_i) phi + n_i - c_i)``: an item sampled often speaks for itself, one sampled little
follows the item model. The precision phi is the model's own, as some models repeat themselves more than others; its
prior, normal in ``log phi``, comes from the past models. What is not closed form, the posterior of
``(theta, log phi)``, is a weighted set of draws.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from scipy.optimize import minimize
from scipy.special import digamma, gammaincinv, logsumexp, ndtri

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.gamma import log_beta
from itembank.numerics.stable import sigmoid_pair
from itembank_scaling.pass_at_k.kernels import log_beta_failure

SMALLEST_SHAPE = 1e-10
"""Shapes of the Beta are raised to at least this; a rate with so small a shape is zero for all purposes."""


PHI_RANGE = (1e-3, 1e8)
"""Range in which precisions are sought: below it a rate is 0 or 1, above it no number of samples shows it to vary."""


@dataclass(frozen=True, slots=True)
class PrecisionPrior:
    """Normal prior of the logarithm of a model's precision phi."""

    mean: float  # Of ``log phi``
    sd: float


@dataclass(frozen=True, slots=True)
class CellPosterior:
    """Posterior of one model's success rate on every item: a mixture of Betas, independent over items within a draw."""

    # (n_draws, n_items): Shapes of the Beta of each item's rate, given the draw's ability and precision.
    alpha: FloatArray
    beta: FloatArray  # (n_draws, n_items)
    weights: FloatArray  # (n_draws,): They sum to one
    theta: FloatArray  # (n_draws, n_dims)
    log_precision: FloatArray  # (n_draws,)
    mode: FloatArray  # (n_dims + 1,): Most probable ability and ``log phi``


class Counts(NamedTuple):
    """Samples of one model, (n_items,) each: 0 trials where an item was not sampled."""

    n_trials: IntArray
    n_correct: IntArray


Point: TypeAlias = FloatArray
"""(theta, log phi), (n_dims + 1,)."""
Problem: TypeAlias = tuple[ItemParameters, AbilityPrior, PrecisionPrior, Counts]
"""Items, priors and samples behind one posterior."""


def precision_prior(
    parameters: ItemParameters,
    abilities: FloatArray,  # (n_models, n_dims)
    n_trials: IntArray,  # (n_models, n_items): 0 trials where an item was not sampled
    n_correct: IntArray,  # (n_models, n_items)
) -> PrecisionPrior:
    """Find how precisions vary over the past models, given items and abilities.

    The likelihood of each model's ``log phi`` on a grid, and EM for mean and spread of their normal distribution.
    """
    low, high = np.log(PHI_RANGE[0]), np.log(PHI_RANGE[1])
    # points of ``log phi`` at which the likelihood of models is computed, 0.29 apart: from a spline through them come
    # the same precisions, to four digits, as from computing it at twenty times as many
    phi_steps = 89
    # points of that spline for each of those, 0.06 apart. Where models answered 20,000 items and their
    # precisions are alike, phi is then within 0.5 % of what eight times as many find; without them it was off by up
    # to 9 %
    finer = 5
    coarse, grid = np.linspace(low, high, phi_steps), np.linspace(low, high, (phi_steps - 1) * finer + 1)
    mean, complement = mean_rates(parameters, abilities)
    computed = [_log_evidence(mean, complement, n_trials, n_correct, step) for step in np.exp(coarse)]
    likelihood = scipy.interpolate.CubicSpline(coarse, computed)(grid)  # (n_steps, n_models)
    weights = np.exp(likelihood - likelihood.max(axis=0))
    # a start within the range for every spread: where the likelihoods of all models together have their middle
    centre, spread = float(np.average(grid, weights=weights.sum(axis=1))), 1.0
    least_spread = 0.1  # least standard deviation of ``log phi`` over models, however alike they look
    n_prior_steps = 200  # most steps of EM; 20 settle mean and spread to four digits in simulations
    for _ in range(n_prior_steps):
        logs = likelihood - 0.5 * ((grid - centre) / spread)[:, None] ** 2
        # E step: posterior of each model's log phi on the grid; M step: mean and spread of all of them together
        posterior = np.exp(logs - logsumexp(logs, axis=0))
        means = grid @ posterior
        before = (centre, spread)
        centre = float(means.mean())
        spread = max(float(np.sqrt(np.mean((grid[:, None] - centre) ** 2 * posterior) * len(grid))), least_spread)
        if abs(centre - before[0]) + abs(spread - before[1]) < 1e-4:
            break
    return PrecisionPrior(centre, spread)


def cell_posterior(
    parameters: ItemParameters,
    prior: AbilityPrior,
    precision: PrecisionPrior,
    counts: Counts,  # The model's samples
    *,
    n_draws: int = 128,  # A power of two
    rng: np.random.Generator,
) -> CellPosterior:
    """Find the posterior of one model's success rates.

    Draws of ``(theta, log phi)`` come from a t-distribution around the mode (scrambled Sobol points) and are weighted
    by the posterior density; where few of them count, the t-distribution is fitted to them and drawn from again.
    """
    problem = (parameters, prior, precision, counts)
    mode, covariance = _mode(problem)
    centre = mode
    # the first round is enough as a rule: in simulations nine draws in ten are effective. After the last the draws
    # stay as they are
    for _ in range(4):
        points, log_proposal = draws_around(centre, covariance, n_draws, rng)
        logs = _log_densities(problem, points) - log_proposal
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()  # not by `logsumexp`: after many millions of trials they would not sum to one
        # effective sample size 1 / sum w^2 of importance sampling
        if 1.0 / np.sum(weights**2) >= 0.3 * n_draws:
            break
        centre = weights @ points
        away = points - centre
        # the covariance of few effective draws may be singular; a twentieth of the old one keeps it positive definite
        covariance = (away * weights[:, None]).T @ away + 0.05 * covariance
    mean, complement = mean_rates(parameters, points[:, :-1])
    phi = np.exp(points[:, -1:])
    alpha, beta = np.maximum(mean * phi, SMALLEST_SHAPE), np.maximum(complement * phi, SMALLEST_SHAPE)
    return CellPosterior(
        alpha + counts.n_correct,
        beta + (counts.n_trials - counts.n_correct),
        weights,
        points[:, :-1],
        points[:, -1],
        mode,
    )


def mean_rates(parameters: ItemParameters, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the item model's mean success rate mu and ``1 - mu``, (n_points, n_items), both with all their digits."""
    rise, fall = sigmoid_pair(theta @ parameters.loadings.T + parameters.intercept)
    lower, upper = parameters.lower_asymptote, parameters.upper_asymptote
    return lower + (upper - lower) * rise, (1.0 - upper) + (upper - lower) * fall


def _log_evidence(
    mean: FloatArray, complement: FloatArray, n_trials: IntArray, n_correct: IntArray, phi: FloatArray | float
) -> FloatArray:
    """Beta-binomial log-likelihood of each row's samples up to a constant, (n_points,); phi one number or a column."""
    alpha, beta = np.maximum(mean * phi, SMALLEST_SHAPE), np.maximum(complement * phi, SMALLEST_SHAPE)
    result: FloatArray = np.sum(
        log_beta(alpha + n_correct, beta + (n_trials - n_correct)) - log_beta(alpha, beta), axis=-1
    )
    return result


def _log_densities(problem: Problem, points: FloatArray) -> FloatArray:
    """Log posterior density of points up to a constant, (n_points,)."""
    parameters, prior, precision, counts = problem
    mean, complement = mean_rates(parameters, points[:, :-1])
    distance = points[:, :-1] - prior.mean
    scaled = np.linalg.solve(prior.covariance, distance.T).T
    away = (points[:, -1] - precision.mean) / precision.sd
    likelihood = _log_evidence(mean, complement, *counts, np.exp(points[:, -1:]))
    result: FloatArray = likelihood - 0.5 * np.sum(distance * scaled, axis=1) - 0.5 * away**2
    return result


def _objective(point: Point, problem: Problem) -> tuple[float, FloatArray]:
    """Minus the log posterior density, and its gradient."""
    parameters, prior, precision, (n_trials, n_correct) = problem
    mean, complement = mean_rates(parameters, point[None, :-1])
    rise, fall = sigmoid_pair(parameters.loadings @ point[:-1] + parameters.intercept)
    phi = np.exp(point[-1])
    alpha, beta = np.maximum(mean[0] * phi, SMALLEST_SHAPE), np.maximum(complement[0] * phi, SMALLEST_SHAPE)
    # of l = log B(alpha + c, beta + n - c) - log B(alpha, beta), with psi the digamma function and alpha + beta = phi:
    # dl/dalpha = by_alpha - by_phi and dl/dbeta = by_beta - by_phi
    by_alpha = digamma(alpha + n_correct) - digamma(alpha)
    by_beta = digamma(beta + n_trials - n_correct) - digamma(beta)
    by_phi = digamma(phi + n_trials) - digamma(phi)
    height = parameters.upper_asymptote - parameters.lower_asymptote
    # d alpha / d eta = -d beta / d eta = phi (u - g) s (1 - s), so that the common psi term cancels
    slope = phi * height * rise * fall * (by_alpha - by_beta)
    prior_gradient = np.linalg.solve(prior.covariance, point[:-1] - prior.mean)
    # d alpha / d log phi = alpha and d beta / d log phi = beta; mean, complement sum to one, so psi(phi) counts once
    of_phi = phi * float(np.sum(mean[0] * by_alpha + complement[0] * by_beta - by_phi))
    of_phi -= (point[-1] - precision.mean) / precision.sd**2
    gradient = np.append(slope @ parameters.loadings - prior_gradient, of_phi)
    return -float(_log_densities(problem, point[None])[0]), -gradient


def _mode(problem: Problem) -> tuple[Point, FloatArray]:
    """Most probable (theta, log phi), and the inverse of the curvature there."""
    _, prior, precision, _ = problem
    start = np.append(prior.mean, precision.mean)
    low, high = np.log(PHI_RANGE[0]), np.log(PHI_RANGE[1])
    bounds = [(None, None)] * prior.n_dims + [(low, high)]
    optimum = minimize(_objective, start, args=(problem,), jac=True, method="L-BFGS-B", bounds=bounds)
    # curvature by central differences of the gradient, in steps of 1e-4 prior standard deviations
    step = 1e-4 * np.append(np.sqrt(np.diagonal(prior.covariance)), precision.sd)
    rows = [
        (_objective(optimum.x + step * unit, problem)[1] - _objective(optimum.x - step * unit, problem)[1])
        for unit in np.eye(start.size)
    ]
    curvature = np.array(rows) / (2.0 * step[:, None])
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    # at a bound of log phi, or off the exact mode, an eigenvalue may be near zero or negative: the proposal would be
    # unbounded. The prior alone has at least the curvature 1 / its largest variance; a tenth of that is the floor.
    least = 0.1 / max(float(np.linalg.eigvalsh(prior.covariance)[-1]), precision.sd**2)
    # the inverse of the curvature, with its eigenvalues raised to the floor
    return optimum.x, (vectors / np.maximum(values, least)) @ vectors.T


def draws_around(
    centre: Point, covariance: FloatArray, n_draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Points (n_draws, n_dims + 1) of a t-distribution and their log density up to a constant."""
    from scipy.stats import qmc  # noqa: PLC0415 - heavy

    size = centre.size
    # kept off 0 and 1, whose normal quantiles are infinite
    uniform = np.clip(qmc.Sobol(size + 1, rng=rng).random(n_draws), 1e-9, 1.0 - 1e-9)
    # of the t-distribution that draws come from: its tails must be heavier than the posterior's, or a few draws far
    # out would have nearly all the weight
    degrees_of_freedom = 6.0
    # chi-squared / degrees by inversion, so that all coordinates of t = normal / sqrt(chi2 / df) are Sobol points
    shrink = 2.0 * gammaincinv(degrees_of_freedom / 2.0, uniform[:, -1]) / degrees_of_freedom
    standard = ndtri(uniform[:, :-1]) / np.sqrt(shrink)[:, None]
    points = centre + standard @ np.linalg.cholesky(covariance).T
    length = np.sum(standard**2, axis=1)
    return points, -0.5 * (degrees_of_freedom + size) * np.log1p(length / degrees_of_freedom)


def expected_failure(posterior: CellPosterior, k: FloatArray | IntArray) -> FloatArray:
    """Posterior probability that k samples of an item all fail, (n_items, n_k): the mean of ``(1 - p)^k``."""
    result = np.empty((posterior.alpha.shape[1], len(k)))
    for place, samples in enumerate(k):
        result[:, place] = posterior.weights @ np.exp(log_beta_failure(posterior.alpha, posterior.beta, samples))
    return result


def draw_pass_at_k(
    posterior: CellPosterior,
    k: FloatArray | IntArray,
    item_weights: FloatArray,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw pass@k from its posterior, (n_draws, n_k); quantiles of the draws are interval ends."""
    chosen = rng.choice(posterior.weights.size, size=n_draws, p=posterior.weights)
    rates = rng.beta(posterior.alpha[chosen], posterior.beta[chosen])
    return pass_at_k_of_rates(rates, k, item_weights)


def pass_at_k_of_rates(rates: FloatArray, k: FloatArray | IntArray, item_weights: FloatArray) -> FloatArray:
    """pass@k of every row of success rates (n_draws, n_items), (n_draws, n_k)."""
    with np.errstate(divide="ignore"):
        log_failure = np.log1p(-rates)
    result = np.empty((len(rates), len(k)))
    for place, samples in enumerate(k):
        result[:, place] = -np.expm1(samples * log_failure) @ item_weights
    return result
