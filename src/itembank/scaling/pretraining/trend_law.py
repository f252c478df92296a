"""Local trends of scores in log FLOP, of all scenarios and recipes together: spreads learned, the rest weighed.

Floor, liveliness and noise of each scenario are weighed by their likelihood, over a grid of all three.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, softmax

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.trend_kernel import (
    LEVEL_VARIANCE,
    SMALLEST_SCORE,
    TrendPoints,
    covariance_parts,
    prior_variances,
    score_of,
)
from itembank.scaling.pretraining.trend_likelihood import (
    LIVELINESS,
    NOISINESS,
    PRIOR_MEAN,
    TrendComponents,
    TrendScores,
    TrendSpreads,
    log_posterior,
)

FLOOR_SHARES = np.array([0.0, 0.6, 0.85, 0.97])
"""Floors that are weighed for each scenario, as shares of the lowest mean score of a size."""
MOST_SCENARIOS = 24
"""Scenarios that spreads are learned from, evenly chosen: their number tells spreads well enough, and work grows."""
MOST_MODELS = 150
"""Models of a scenario that spreads are learned from, of evenly chosen recipes: work grows with the cube."""
LEAST_WEIGHT = 0.01
"""Components (a floor, a liveliness and a noise) of less weight are left out of forecasts."""
BEFORE = 0.5
"""Log FLOP by which the origin of slopes and wanderings lies below the smallest model."""

N_NODES, WIDTH = 41, 4.0
"""Nodes of the normal distributions that scores are averaged over, and how far they reach."""
N_HALVINGS = 25


@dataclass(frozen=True, slots=True)
class TrendPosterior:
    """Trends of one scenario, a mixture of n_parts components: a floor, a liveliness and a noise each."""

    points: TrendPoints  # Of the one scenario
    weights: FloatArray  # (n_parts,)
    floors: FloatArray  # (n_parts,)
    liveliness: FloatArray  # (n_parts,)
    noisiness: FloatArray  # (n_parts,)
    inverse: FloatArray  # (n_parts, n_points, n_points): Of the covariance of z
    lean: FloatArray  # (n_parts, n_points): The inverse times z less its mean
    spreads: TrendSpreads

    def predict(self, at: TrendPoints) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of z at points of the scenario, each (n_parts, n_points)."""
        scale = np.exp(2.0 * self.spreads.log_spreads)
        cross = np.tensordot(scale, covariance_parts(at, self.points)[:, 0], axes=1)
        own = scale @ prior_variances(at)[:, 0]
        lively = self.liveliness[:, None] ** 2
        cross = LEVEL_VARIANCE * self.points.is_known[0] + lively[..., None] * cross
        mean = self.spreads.mean_slope * at.x[0] + np.einsum("mpn,mn->mp", cross, self.lean)
        known = np.einsum("mpn,mpn->mp", np.matmul(cross, self.inverse), cross)
        return mean, np.maximum(LEVEL_VARIANCE + lively * own - known, 0.0)

    def mean_scores(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Mean score, (n_points,), of normal z with means and variances (n_parts, n_points)."""
        p, normal = self._spread_scores(mean, variance)
        result: FloatArray = self.weights @ (p @ normal)
        return result

    def interval(self, mean: FloatArray, variance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Find the ends of the interval of a score with the noise of a new model, each (n_points,), by halving."""
        p, normal = self._spread_scores(mean, variance)
        variance = self.noisiness[:, None, None] ** 2 * self.spreads.noise_variance * p * (1.0 - p)
        noise = np.sqrt(variance + SMALLEST_SCORE**2)

        def below(score: FloatArray) -> FloatArray:
            """Probability of a score below this one."""
            result: FloatArray = self.weights @ (ndtr((score[:, None] - p) / noise) @ normal)
            return result

        ends = [_where(below, 0.5 + 0.5 * sign * level, p.shape[1]) for sign in (-1.0, 1.0)]
        return np.clip(ends[0], 0.0, 1.0), np.clip(ends[1], 0.0, 1.0)

    def _spread_scores(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores at nodes of every normal z, (n_parts, n_points, n_nodes), and the weights of the nodes."""
        nodes = np.linspace(-WIDTH, WIDTH, N_NODES)
        normal = np.exp(-0.5 * nodes**2)
        z = mean[..., None] + np.sqrt(variance)[..., None] * nodes
        return score_of(z, self.floors[:, None, None]), normal / normal.sum()


def fit_trends(points: TrendPoints, scores: FloatArray, lowest: FloatArray) -> tuple[TrendPosterior, ...]:
    """Fit the trends of all scenarios.

    Spreads, noise, mean slope and how far scenarios differ in liveliness and noise are where their posterior density is
    highest; floor, liveliness and noise of each scenario are weighed by their likelihood.

    Parameters
    ----------
    points : TrendPoints
    scores : (n_scenarios, n_points)
    lowest : (n_scenarios,)
        Lowest mean score of a size over recipes.

    Returns
    -------
    tuple of n_scenarios TrendPosterior
    """
    found = TrendScores.of(points, scores, lowest, FLOOR_SHARES)
    n_scenarios = len(scores)
    chosen = np.unique(np.linspace(0, n_scenarios - 1, min(MOST_SCENARIOS, n_scenarios)).astype(np.int64))
    learnt_from = fewer_models(points.take(chosen), scores[chosen], MOST_MODELS)
    part = TrendScores.of(*learnt_from, lowest[chosen], FLOOR_SHARES)
    parts = covariance_parts(part.points, part.points)

    def falling(values: FloatArray) -> tuple[float, FloatArray]:
        value, slope = log_posterior(values, part, parts)
        return -value, -slope

    best = minimize(falling, PRIOR_MEAN, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    spreads = TrendSpreads.of(best.x)
    every = covariance_parts(points, points)
    return tuple(_posterior(number, found, every[:, number], spreads) for number in range(n_scenarios))


def fewer_models(points: TrendPoints, scores: FloatArray, most: int) -> tuple[TrendPoints, FloatArray]:
    """Keep whole recipes, evenly chosen, of about `most` models; all where there are no more.

    Of recipes that have more still, models are kept evenly, too. Scores are (n_scenarios, n_points).
    """
    width = scores.shape[1]
    if width <= most:
        return points, scores
    n_recipes = int(points.recipe.max()) + 1
    recipes = np.unique(np.linspace(0, n_recipes - 1, max(n_recipes * most // width, 1)).astype(np.int64))
    is_kept = points.is_known & np.isin(points.recipe, recipes)
    n_kept = int(is_kept.sum(axis=1).max())
    places = np.argsort(~is_kept, axis=1, kind="stable")[:, :n_kept]
    places = places[:, np.unique(np.linspace(0, n_kept - 1, min(n_kept, most)).astype(np.int64))]
    known = np.take_along_axis(is_kept, places, axis=1)
    x = np.where(known, np.take_along_axis(points.x, places, axis=1), 0.0)
    recipe = np.take_along_axis(points.recipe, places, axis=1)
    return TrendPoints(x, recipe, known), np.take_along_axis(scores, places, axis=1)


def _posterior(number: int, scores: TrendScores, parts: FloatArray, spreads: TrendSpreads) -> TrendPosterior:
    """Trends of one scenario, of the components that count."""
    one = np.array([number])
    own = TrendScores(
        scores.points.take(one),
        scores.z[:, one],
        scores.noise[:, one],
        scores.least_noise[:, one],
        scores.log_volume[:, one],
        scores.floors[:, one],
    )
    components = TrendComponents.of(own, spreads, parts[:, None])
    weights = softmax(components.likelihoods()[:, 0])
    kept = np.flatnonzero(weights >= LEAST_WEIGHT * weights.max())
    only = np.zeros(1, dtype=np.int64)
    inverses, leans = zip(*(components.solved(part, only) for part in kept.tolist()), strict=True)
    return TrendPosterior(
        points=own.points,
        weights=weights[kept] / weights[kept].sum(),
        floors=own.floors[components.floor[kept], 0],
        liveliness=LIVELINESS[components.lively[kept]],
        noisiness=NOISINESS[components.noisy[kept]],
        inverse=np.concatenate(inverses),
        lean=np.concatenate(leans),
        spreads=spreads,
    )


def _where(rising: Callable[[FloatArray], FloatArray], probability: float, n_points: int) -> FloatArray:
    """Scores at which a rising function of them reaches a probability, (n_points,), from below 0 to above 1."""
    low, high = np.full(n_points, -1.0), np.full(n_points, 2.0)
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        is_below = rising(middle) < probability
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    result: FloatArray = 0.5 * (low + high)
    return result
