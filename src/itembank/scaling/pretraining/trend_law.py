"""Local trends of scores in log FLOP, of all scenarios and recipes together: spreads learned, floors weighed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtr, softmax

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.trend_kernel import (
    LEVEL_VARIANCE,
    N_SPREADS,
    SMALLEST_SCORE,
    TrendPoints,
    above_floor,
    covariance_parts,
    prior_variances,
    score_of,
)

LIVELINESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Values of m that are weighed for each scenario."""
FLOOR_SHARES = np.array([0.0, 0.6, 0.85, 0.97])
"""Floors that are weighed for each scenario, as shares of the lowest mean score of a size."""
NO_FLOORS = FLOOR_SHARES[:1]
MOST_SCENARIOS = 24
"""Scenarios that spreads are learned from, evenly chosen: their number tells spreads well enough, and work grows."""
MOST_MODELS = 150
"""Models of a scenario that spreads are learned from, of evenly chosen recipes: work grows with the cube."""
LEAST_WEIGHT = 0.01
"""Pairs of floor and liveliness of less weight are left out of forecasts."""
BEFORE = 0.5
"""Log FLOP by which the origin of slopes and wanderings lies below the smallest model."""

SPREADS = np.log([0.1, 0.05, 0.2, 0.1, 0.05])
NOISE = float(np.log(0.13))
SPREAD_SD = 1.5
"""Log-normal priors of the spreads and of the noise, wide: a factor of 20 to either side within two of them."""
MEAN_SLOPE, MEAN_SLOPE_SD = 0.1, 0.3
LIVELINESS_SD = 0.5
"""Log-normal prior of how far the liveliness of scenarios differs, around one."""

N_NODES, WIDTH = 41, 4.0
"""Nodes of the normal distributions that scores are averaged over, and how far they reach."""
N_HALVINGS = 25
SMALLEST_SD = 1e-9
JITTER = 1e-10
"""Noise in the place of what rounding took, as a share of the largest variance."""


@dataclass(frozen=True, slots=True)
class TrendSpreads:
    """What all scenarios share.

    Attributes
    ----------
    log_spreads : (N_SPREADS,)
        Of `covariance_parts`.
    log_noise : float
        Standard deviation of a score around its trend over ``sqrt(p (1 - p))``.
    mean_slope : float
    log_liveliness_sd : float
    """

    log_spreads: FloatArray
    log_noise: float
    mean_slope: float
    log_liveliness_sd: float

    @classmethod
    def of(cls, values: FloatArray) -> "TrendSpreads":
        """Read them from one array, in their order."""
        return cls(values[:N_SPREADS], float(values[-3]), float(values[-2]), float(values[-1]))

    @property
    def noise_variance(self) -> float:
        """Variance of a score, over ``p (1 - p)``."""
        return float(np.exp(2.0 * self.log_noise))

    def log_prior(self) -> FloatArray:
        """Log weight of each liveliness beforehand, (n_liveliness,)."""
        value = -0.5 * (np.log(LIVELINESS) / np.exp(self.log_liveliness_sd)) ** 2
        result: FloatArray = value - logsumexp(value)
        return result


@dataclass(frozen=True, slots=True)
class TrendScores:
    """Scores on the trend scale above each floor that is weighed.

    Attributes
    ----------
    points : TrendPoints
    z : (n_floors, n_scenarios, n_points)
    noise : (n_floors, n_scenarios, n_points)
        Variance of z for a noise of one.
    log_volume : (n_floors, n_scenarios)
        Of the change of scale, which makes likelihoods comparable between floors.
    floors : (n_floors, n_scenarios)
    """

    points: TrendPoints
    z: FloatArray
    noise: FloatArray
    log_volume: FloatArray
    floors: FloatArray

    @classmethod
    def of(
        cls, points: TrendPoints, scores: FloatArray, lowest: FloatArray, shares: FloatArray = FLOOR_SHARES
    ) -> "TrendScores":
        """Put scores (n_scenarios, n_points) on the scale above shares of the lowest mean score (n_scenarios,)."""
        p = np.clip(np.where(points.is_known, scores, 0.5), SMALLEST_SCORE, 1.0 - SMALLEST_SCORE)
        floors = shares[:, None] * np.minimum(lowest, 1.0 - SMALLEST_SCORE)
        z, slope = above_floor(p, floors[:, :, None])
        known = points.is_known.astype(np.float64)
        noise = slope**2 * p * (1.0 - p)
        return cls(points, z * known, noise * known, np.sum(np.log(slope) * known, axis=2), floors)


@dataclass(frozen=True, slots=True)
class TrendPosterior:
    """Trends of one scenario, a mixture of n_parts pairs of floor and liveliness.

    Attributes
    ----------
    points : TrendPoints
        Of the one scenario.
    weights, floors, liveliness : (n_parts,)
    inverse : (n_parts, n_points, n_points)
        Of the covariance of z.
    lean : (n_parts, n_points)
        The inverse times z less its mean.
    spreads : TrendSpreads
    """

    points: TrendPoints
    weights: FloatArray
    floors: FloatArray
    liveliness: FloatArray
    inverse: FloatArray
    lean: FloatArray
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
        noise = np.sqrt(self.spreads.noise_variance * p * (1.0 - p)) + SMALLEST_SD

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


def fit_trends(
    points: TrendPoints, scores: FloatArray, lowest: FloatArray, shares: FloatArray = FLOOR_SHARES
) -> tuple[TrendPosterior, ...]:
    """Fit the trends of all scenarios.

    Spreads, noise, mean slope and how far scenarios differ in liveliness are where their posterior density is highest;
    floors and liveliness of each scenario are weighed by their likelihood.

    Parameters
    ----------
    points : TrendPoints
    scores : (n_scenarios, n_points)
    lowest : (n_scenarios,)
        Lowest mean score of a size over recipes.
    shares : (n_floors,)
        Floors that are weighed, as shares of these.

    Returns
    -------
    tuple of n_scenarios TrendPosterior
    """
    found = TrendScores.of(points, scores, lowest, shares)
    n_scenarios = len(scores)
    chosen = np.unique(np.linspace(0, n_scenarios - 1, min(MOST_SCENARIOS, n_scenarios)).astype(np.int64))
    learnt_from = fewer_models(points.take(chosen), scores[chosen], MOST_MODELS)
    part = TrendScores.of(*learnt_from, lowest[chosen], shares)
    parts = covariance_parts(part.points, part.points)

    def falling(values: FloatArray) -> tuple[float, FloatArray]:
        value, slope = log_posterior(values, part, parts)
        return -value, -slope

    start = np.array([*SPREADS, NOISE, MEAN_SLOPE, 0.0])
    best = minimize(falling, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
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


def log_posterior(values: FloatArray, scores: TrendScores, parts: FloatArray) -> tuple[float, FloatArray]:
    """Log posterior density of `TrendSpreads` (as one array) up to a constant, and its derivatives.

    Of each component, ``-1/2 (r' K^-1 r + log det K)``, whose derivative in a parameter of K is
    ``1/2 (a' dK a - tr(K^-1 dK))`` with ``a = K^-1 r`` (Rasmussen and Williams 2006, eq. 5.9); components of a
    scenario are summed by their weights.

    Parameters
    ----------
    values : (N_SPREADS + 3,)
    scores : TrendScores
    parts : (N_SPREADS, n_scenarios, n_points, n_points)
        `covariance_parts` of the points.
    """
    spreads = TrendSpreads.of(values)
    scale = np.exp(2.0 * spreads.log_spreads)
    inner = np.tensordot(scale, parts, axes=1)
    likelihoods, leans, inverses = _components(scores, inner, spreads)
    weights = softmax(likelihoods.reshape(-1, likelihoods.shape[2]), axis=0).reshape(likelihoods.shape)
    total = float(logsumexp(likelihoods, axis=(0, 1)).sum())
    slope = np.zeros_like(values)
    gathered, on_diagonal = np.zeros_like(inner), 0.0
    for floor, lively in np.ndindex(*weights.shape[:2]):
        weight = weights[floor, lively]
        lean, inverse = leans[floor][lively], inverses[floor][lively]
        gathered += (weight * LIVELINESS[lively] ** 2)[:, None, None] * (lean[:, :, None] * lean[:, None, :] - inverse)
        curved = lean**2 - np.einsum("snn->sn", inverse)
        on_diagonal += float(np.sum(weight[:, None] * scores.noise[floor] * curved))
        slope[-2] += float(np.sum(weight[:, None] * lean * scores.points.x))
    slope[:N_SPREADS] = scale * np.einsum("ksij,sij->k", parts, gathered)
    slope[-3] = spreads.noise_variance * on_diagonal
    squares = (np.log(LIVELINESS) / np.exp(spreads.log_liveliness_sd)) ** 2
    expected = np.exp(spreads.log_prior()) @ squares
    slope[-1] = float(np.sum(weights.sum(axis=(0, 2)) * squares) - weights.sum() * expected)
    prior, prior_slope = _log_prior(values)
    return total + prior, slope + prior_slope


def _log_prior(values: FloatArray) -> tuple[float, FloatArray]:
    """Log density of the priors up to a constant, and its derivatives."""
    centre = np.array([*SPREADS, NOISE, MEAN_SLOPE, 0.0])
    sd = np.array([*[SPREAD_SD] * (N_SPREADS + 1), MEAN_SLOPE_SD, LIVELINESS_SD])
    apart = (values - centre) / sd
    return float(-0.5 * np.sum(apart**2)), -apart / sd


def _components(
    scores: TrendScores, inner: FloatArray, spreads: TrendSpreads
) -> tuple[FloatArray, list[list[FloatArray]], list[list[FloatArray]]]:
    """Log weights of components (n_floors, n_liveliness, n_scenarios), ``K^-1 r`` and ``K^-1`` of each."""
    known = scores.points.is_known
    n_floors, _, n_points = scores.z.shape
    level = LEVEL_VARIANCE * (known[:, :, None] & known[:, None, :])
    prior = spreads.log_prior() - np.log(n_floors)
    likelihoods = np.empty((n_floors, len(LIVELINESS), len(inner)))
    leans: list[list[FloatArray]] = [[] for _ in range(n_floors)]
    inverses: list[list[FloatArray]] = [[] for _ in range(n_floors)]
    for floor in range(n_floors):
        residual = scores.z[floor] - spreads.mean_slope * scores.points.x * known
        # a place without a model has variance one and no covariance: it adds nothing to the likelihood
        diagonal = np.where(known, spreads.noise_variance * scores.noise[floor], 1.0)
        for number, lively in enumerate(LIVELINESS):
            covariance = level + lively**2 * inner + diagonal[:, :, None] * np.eye(n_points)
            factor = _cholesky(covariance)
            inverse_factor = np.linalg.inv(factor)
            inverse = np.matmul(inverse_factor.transpose(0, 2, 1), inverse_factor)
            lean = np.einsum("sij,sj->si", inverse, residual)
            volume = np.log(np.einsum("snn->sn", factor)).sum(axis=1)
            fit = -0.5 * np.einsum("sn,sn->s", residual, lean) - volume
            likelihoods[floor, number] = fit + scores.log_volume[floor] + prior[number]
            leans[floor].append(lean)
            inverses[floor].append(inverse)
    return likelihoods, leans, inverses


def _cholesky(covariance: FloatArray) -> FloatArray:
    """Factor covariances (n_scenarios, n_points, n_points); with a little more noise where rounding leaves none."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        largest = np.einsum("snn->sn", covariance).max(axis=1)
        return np.linalg.cholesky(covariance + JITTER * largest[:, None, None] * np.eye(covariance.shape[1]))


def _posterior(number: int, scores: TrendScores, parts: FloatArray, spreads: TrendSpreads) -> TrendPosterior:
    """Trends of one scenario, of the components that count."""
    one = np.array([number])
    own = TrendScores(
        scores.points.take(one),
        scores.z[:, one],
        scores.noise[:, one],
        scores.log_volume[:, one],
        scores.floors[:, one],
    )
    inner = np.tensordot(np.exp(2.0 * spreads.log_spreads), parts, axes=1)[None]
    likelihoods, leans, inverses = _components(own, inner, spreads)
    weights = softmax(likelihoods[:, :, 0].ravel())
    kept = np.flatnonzero(weights >= LEAST_WEIGHT * weights.max())
    floor, lively = np.divmod(kept, len(LIVELINESS))
    pairs = list(zip(floor.tolist(), lively.tolist(), strict=True))
    return TrendPosterior(
        points=own.points,
        weights=weights[kept] / weights[kept].sum(),
        floors=own.floors[floor, 0],
        liveliness=LIVELINESS[lively],
        inverse=np.stack([inverses[first][second][0] for first, second in pairs]),
        lean=np.stack([leans[first][second][0] for first, second in pairs]),
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
