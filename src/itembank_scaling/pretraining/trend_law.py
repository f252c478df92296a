"""The trend law: every recipe's score carried on along its own local trend, learned from all scenarios together.

Above chance the score of recipe r in scenario s follows ``z = log((p - c) / (1 - p))``, with c the floor that guessing
leaves, and z is a Gaussian process in log FLOP x (Rasmussen and Williams 2006, ch. 2)::

    z_sr(x) = t_s + mu x + m_s (a_s x + W_s(x) + t_sr + a_sr x + W_sr(x))

with t the levels, a the slopes, W integrated Wiener processes, whose slope wanders (local linear trends; Wahba 1978),
and m_s how lively the scenario is. Terms of a scenario are common to its recipes, so that a skill that one recipe
shows is expected sooner of the others.

A score differs from its trend by a noise of variance ``n_s^2 s^2 p (1 - p) + d^2``, with s the noise of all scenarios,
n_s how noisy this one is (few items, or many) and d the distance that scores are kept from 0 and 1.


Spreads are learned; floor, liveliness and noise of each scenario are weighed by their likelihood,
over a grid of all three.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, ndtr, softmax

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank_scaling.pretraining.law_fitting import Forecast, LawData, LawFit, lacking_notes, root_mean_square
from itembank_scaling.pretraining.law_specs import TrendLaw

LEVEL_VARIANCE = 100.0
"""Prior variance of a scenario's level: any score is as likely beforehand."""
SMALLEST_SCORE = 0.005
"""Scores are kept this far from 0 and 1, where logits would be infinite."""
N_SPREADS = 5
"""Slopes and wanderings of scenarios, and levels, slopes and wanderings of recipes."""


@dataclass(frozen=True, slots=True)
class TrendPoints:
    """Finished models of n_scenarios scenarios, up to n_points in each."""

    x: FloatArray  # (n_scenarios, n_points): Log FLOP above the origin of all, zero where there is no model
    recipe: IntArray  # (n_scenarios, n_points)
    is_known: BoolArray  # (n_scenarios, n_points)

    def take(self, scenarios: IntArray) -> "TrendPoints":
        """Return the points of these scenarios."""
        return TrendPoints(self.x[scenarios], self.recipe[scenarios], self.is_known[scenarios])


def integrated_wiener(first: FloatArray, second: FloatArray) -> FloatArray:
    """Covariance of an integrated Wiener process that starts at zero: ``m^2 (3 M - m) / 6``, m the smaller."""
    smaller, larger = np.minimum(first, second), np.maximum(first, second)
    return smaller**2 * (3.0 * larger - smaller) / 6.0


def covariance_parts(first: TrendPoints, second: TrendPoints) -> FloatArray:
    """Covariances of unit spread between points, (N_SPREADS, n_scenarios, n_first, n_second); zero where none is."""
    x, other = first.x[:, :, None], second.x[:, None, :]
    both = (first.is_known[:, :, None] & second.is_known[:, None, :]).astype(np.float64)
    same = both * (first.recipe[:, :, None] == second.recipe[:, None, :])
    product, wandering = x * other, integrated_wiener(x, other)
    return np.stack([both * product, both * wandering, same, same * product, same * wandering])


def prior_variances(points: TrendPoints) -> FloatArray:
    """Diagonal of `covariance_parts` of points with themselves, (N_SPREADS, n_scenarios, n_points)."""
    one = points.is_known.astype(np.float64)
    return np.stack([one * points.x**2, one * points.x**3 / 3.0, one, one * points.x**2, one * points.x**3 / 3.0])


def above_floor(scores: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Trend scale of scores and its derivative, for floors that broadcast; the plain logit where the floor is zero.

    ``log(w softplus((p - c) / w)) - log(1 - p)``, w the width of the floor: ``log((p - c) / (1 - p))`` well above c,
    and a straight line below, so that noise below the floor is not taken for infinitely bad.
    """
    # distance in score over which the logit above a floor goes over into a straight line, so that scores below the
    # floor have a place too: about the sampling error of a hundred answers
    floor_width = 0.03
    place = (scores - floor) / floor_width
    above = np.where(floor > 0.0, floor_width * np.logaddexp(0.0, place), scores)
    rise = np.where(floor > 0.0, expit(place), 1.0)
    return np.log(above) - np.log1p(-scores), rise / above + 1.0 / (1.0 - scores)


def score_of(z: FloatArray, floor: FloatArray | float) -> FloatArray:
    """Score on the trend scale: ``c + (1 - c) sigmoid(z)``, of ``z = log((p - c) / (1 - p))``."""
    result: FloatArray = floor + (1.0 - floor) * expit(z)
    return result


LIVELINESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Values of m that are weighed for each scenario."""
NOISINESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Noise over that of all scenarios that is weighed for each: scenarios have few items or many, of one kind or of
several. With one noise for all, the scatter of the noisiest is taken for growth."""

PRIOR_MEAN = np.array([*np.log([0.1, 0.05, 0.2, 0.1, 0.05]), np.log(0.13), 0.1, 0.0, np.log(0.5)])
PRIOR_SD = np.array([*[1.5] * (N_SPREADS + 1), 0.3, 0.5, 0.5])
"""Normal priors of `TrendSpreads`, each (N_SPREADS + 4,). Those of spreads and of the noise are wide: a factor of 20 to
either side within two standard deviations. A scenario of four times as many items as another has half its noise."""


@dataclass(frozen=True, slots=True)
class TrendSpreads:
    """What all scenarios share."""

    log_spreads: FloatArray  # (N_SPREADS,): Of `covariance_parts`
    log_noise: float  # Standard deviation of a score around its trend over ``sqrt(p (1 - p))``
    mean_slope: float
    log_liveliness_sd: float
    log_noisiness_sd: float

    @classmethod
    def of(cls, values: FloatArray) -> "TrendSpreads":
        """Read them from one array, in their order."""
        return cls(values[:N_SPREADS], *(float(value) for value in values[N_SPREADS:]))

    @property
    def noise_variance(self) -> float:
        """Variance of a score, over ``p (1 - p)``."""
        return float(np.exp(2.0 * self.log_noise))

    def log_priors(self) -> tuple[FloatArray, FloatArray]:
        """Log weights beforehand of each liveliness, (n_liveliness,), and of each noise, (n_noisiness,)."""
        return _log_normal(LIVELINESS, self.log_liveliness_sd), _log_normal(NOISINESS, self.log_noisiness_sd)


@dataclass(frozen=True, slots=True)
class TrendScores:
    """Scores on the trend scale above each floor that is weighed."""

    points: TrendPoints
    z: FloatArray  # (n_floors, n_scenarios, n_points)
    noise: FloatArray  # (n_floors, n_scenarios, n_points): Variance of z for a noise of one
    # (n_floors, n_scenarios, n_points): Variance of z for the distance that scores are kept from 0 and 1: none is known
    # better.
    least_noise: FloatArray
    # (n_floors, n_scenarios): Of the change of scale, which makes likelihoods comparable between floors.
    log_volume: FloatArray
    floors: FloatArray  # (n_floors, n_scenarios)

    @classmethod
    def of(cls, points: TrendPoints, scores: FloatArray, lowest: FloatArray, shares: FloatArray) -> "TrendScores":
        """Put scores (n_scenarios, n_points) on the scale above shares of the lowest mean score (n_scenarios,)."""
        p = np.clip(np.where(points.is_known, scores, 0.5), SMALLEST_SCORE, 1.0 - SMALLEST_SCORE)
        floors = shares[:, None] * np.minimum(lowest, 1.0 - SMALLEST_SCORE)
        z, slope = above_floor(p, floors[:, :, None])
        known = points.is_known.astype(np.float64)
        to_z = slope**2 * known
        log_volume = np.sum(np.log(slope) * known, axis=2)
        return cls(points, z * known, to_z * p * (1.0 - p), to_z * SMALLEST_SCORE**2, log_volume, floors)


@dataclass(frozen=True, slots=True)
class TrendComponents:
    """All components that are weighed for each scenario: a floor, a liveliness and a noise each."""

    scores: TrendScores
    spreads: TrendSpreads
    inner: FloatArray  # (n_scenarios, n_points, n_points): Sum of the covariance parts by their spreads
    floor: IntArray  # (n_components,): Places in the floors, in `LIVELINESS` and in `NOISINESS`
    lively: IntArray  # (n_components,)
    noisy: IntArray  # (n_components,)

    @classmethod
    def of(cls, scores: TrendScores, spreads: TrendSpreads, parts: FloatArray) -> "TrendComponents":
        """Combine every floor with every liveliness and noise; `parts` are `covariance_parts` of the points."""
        inner = np.tensordot(np.exp(2.0 * spreads.log_spreads), parts, axes=1)
        places = np.indices((len(scores.floors), LIVELINESS.size, NOISINESS.size)).reshape(3, -1)
        return cls(scores, spreads, inner, *places)

    def likelihoods(self) -> FloatArray:
        """Log weights, likelihood times prior, (n_components, n_scenarios)."""
        every = np.arange(len(self.inner))
        lively, noisy = self.spreads.log_priors()
        prior = lively[self.lively] + noisy[self.noisy] - np.log(len(self.scores.floors))
        result = np.empty((self.floor.size, every.size))
        for number, floor in enumerate(self.floor.tolist()):
            factor = cholesky(self.covariance(number, every))
            half = np.linalg.solve(factor, self.residual(number, every)[..., None])[..., 0]
            volume = np.log(np.einsum("snn->sn", factor)).sum(axis=1)
            fit = -0.5 * np.sum(half**2, axis=1) - volume
            result[number] = fit + self.scores.log_volume[floor] + prior[number]
        return result

    def solved(self, number: int, scenarios: IntArray) -> tuple[FloatArray, FloatArray]:
        """Inverse of K, (n_taken, n_points, n_points), and ``K^-1 r``, (n_taken, n_points)."""
        inverse_factor = np.linalg.inv(cholesky(self.covariance(number, scenarios)))
        inverse = np.matmul(inverse_factor.transpose(0, 2, 1), inverse_factor)
        return inverse, np.einsum("sij,sj->si", inverse, self.residual(number, scenarios))

    def residual(self, number: int, scenarios: IntArray) -> FloatArray:
        """Z less its mean, (n_taken, n_points)."""
        points = self.scores.points
        mean = self.spreads.mean_slope * points.x[scenarios] * points.is_known[scenarios]
        result: FloatArray = self.scores.z[self.floor[number], scenarios] - mean
        return result

    def covariance(self, number: int, scenarios: IntArray) -> FloatArray:
        """Covariance K of z under one component in some scenarios, (n_taken, n_points, n_points)."""
        known = self.scores.points.is_known[scenarios]
        level = LEVEL_VARIANCE * (known[:, :, None] & known[:, None, :])
        least = self.scores.least_noise[self.floor[number], scenarios]
        noise = self.spreads.noise_variance * self.unit_noise(number, scenarios) + least
        # a place without a model has variance one and no covariance: it adds nothing to the likelihood
        diagonal = np.where(known, noise, 1.0)
        lively = LIVELINESS[self.lively[number]] ** 2
        result: FloatArray = level + lively * self.inner[scenarios] + diagonal[:, :, None] * np.eye(known.shape[1])
        return result

    def unit_noise(self, number: int, scenarios: IntArray) -> FloatArray:
        """Variance of z that a noise of one over all scenarios brings, (n_taken, n_points)."""
        result: FloatArray = NOISINESS[self.noisy[number]] ** 2 * self.scores.noise[self.floor[number], scenarios]
        return result


def log_posterior(
    values: FloatArray,  # (N_SPREADS + 4,)
    scores: TrendScores,
    parts: FloatArray,  # (N_SPREADS, n_scenarios, n_points, n_points): `covariance_parts` of the points
) -> tuple[float, FloatArray]:
    """Log posterior density of `TrendSpreads` (as one array) up to a constant, and its derivatives.

    Of each component, ``-1/2 (r' K^-1 r + log det K)``, whose derivative in a parameter of K is
    ``1/2 (a' dK a - tr(K^-1 dK))`` with ``a = K^-1 r`` (Rasmussen and Williams 2006, eq. 5.9); components of a
    scenario are summed by their weights.
    """
    spreads = TrendSpreads.of(values)
    components = TrendComponents.of(scores, spreads, parts)
    likelihoods = components.likelihoods()
    weights = softmax(likelihoods, axis=0)
    slope = np.zeros_like(values)
    gathered, on_diagonal = np.zeros_like(components.inner), 0.0
    negligible = 1e-10  # weight of a component in a scenario below which its derivatives are not worked out
    for number, weight in enumerate(weights):
        # most components have no weight in most scenarios, and inverses are most of the work
        here = np.flatnonzero(weight > negligible)
        share, (inverse, lean) = weight[here], components.solved(number, here)
        lively = LIVELINESS[components.lively[number]]
        gathered[here] += (share * lively**2)[:, None, None] * (lean[:, :, None] * lean[:, None, :] - inverse)
        curved = lean**2 - np.einsum("snn->sn", inverse)
        on_diagonal += float(np.sum(share[:, None] * components.unit_noise(number, here) * curved))
        slope[-3] += float(np.sum(share[:, None] * lean * scores.points.x[here]))
    slope[:N_SPREADS] = np.exp(2.0 * spreads.log_spreads) * np.einsum("ksij,sij->k", parts, gathered)
    slope[-4] = spreads.noise_variance * on_diagonal
    slope[-2:] = _slopes_of_priors(components, weights.sum(axis=1))
    apart = (values - PRIOR_MEAN) / PRIOR_SD
    return float(logsumexp(likelihoods, axis=0).sum() - 0.5 * np.sum(apart**2)), slope - apart / PRIOR_SD


def _slopes_of_priors(components: TrendComponents, weights: FloatArray) -> FloatArray:
    """Find derivatives in how far liveliness and noise differ, (2,), of weights (n_components,) over all scenarios."""
    spreads = components.spreads
    grids = (
        (LIVELINESS, components.lively, spreads.log_liveliness_sd),
        (NOISINESS, components.noisy, spreads.log_noisiness_sd),
    )
    found = []
    for (grid, places, log_sd), prior in zip(grids, spreads.log_priors(), strict=True):
        squares = (np.log(grid) / np.exp(log_sd)) ** 2
        found.append(float(weights @ squares[places] - weights.sum() * (np.exp(prior) @ squares)))
    return np.array(found)


def cholesky(covariance: FloatArray) -> FloatArray:
    """Factor covariances (n_scenarios, n_points, n_points); with a little more noise where rounding leaves none."""
    jitter = 1e-10  # noise in the place of what rounding took, as a share of the largest variance
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        largest = np.einsum("snn->sn", covariance).max(axis=1)
        return np.linalg.cholesky(covariance + jitter * largest[:, None, None] * np.eye(covariance.shape[1]))


def _log_normal(grid: FloatArray, log_sd: float) -> FloatArray:
    """Log weights of a grid of factors under a log-normal distribution around one, (n_grid,)."""
    value = -0.5 * (np.log(grid) / np.exp(log_sd)) ** 2
    result: FloatArray = value - logsumexp(value)
    return result


FLOOR_SHARES = np.array([0.0, 0.6, 0.85, 0.97])
"""Floors that are weighed for each scenario, as shares of the lowest mean score of a size."""


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
        return self.weights @ (p @ normal)

    def interval(self, mean: FloatArray, variance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Find the ends of the interval of a score with the noise of a new model, each (n_points,), by halving."""
        p, normal = self._spread_scores(mean, variance)
        variance = self.noisiness[:, None, None] ** 2 * self.spreads.noise_variance * p * (1.0 - p)
        noise = np.sqrt(variance + SMALLEST_SCORE**2)
        ends = []
        for sign in (-1.0, 1.0):
            low, high = np.full(p.shape[1], -1.0), np.full(p.shape[1], 2.0)
            for _ in range(25):
                middle = 0.5 * (low + high)
                below: FloatArray = self.weights @ (ndtr((middle[:, None] - p) / noise) @ normal)
                is_below = below < 0.5 + 0.5 * sign * level
                low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
            ends.append(np.clip(0.5 * (low + high), 0.0, 1.0))
        return ends[0], ends[1]

    def _spread_scores(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores at nodes of every normal z, (n_parts, n_points, n_nodes), and the weights of the nodes."""
        nodes = np.linspace(-4.0, 4.0, 41)
        normal = np.exp(-0.5 * nodes**2)
        z = mean[..., None] + np.sqrt(variance)[..., None] * nodes
        return score_of(z, self.floors[:, None, None]), normal / normal.sum()


def fit_trends(
    points: TrendPoints,
    scores: FloatArray,  # (n_scenarios, n_points)
    lowest: FloatArray,  # (n_scenarios,): Lowest mean score of a size over recipes
) -> tuple[TrendPosterior, ...]:
    """Fit the trends of all scenarios.

    Spreads, noise, mean slope and how far scenarios differ in liveliness and noise are where their posterior density is
    highest; floor, liveliness and noise of each scenario are weighed by their likelihood.
    """
    found = TrendScores.of(points, scores, lowest, FLOOR_SHARES)
    n_scenarios = len(scores)
    # scenarios that spreads are learned from, evenly chosen: their number tells spreads well enough, and work grows
    most_scenarios = 24
    chosen = np.unique(np.linspace(0, n_scenarios - 1, min(most_scenarios, n_scenarios)).astype(np.int64))
    # models of a scenario that spreads are learned from, of evenly chosen recipes: work grows with the cube
    most_models = 150
    learnt_from = fewer_models(points.take(chosen), scores[chosen], most_models)
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
    names = ("z", "noise", "least_noise", "log_volume", "floors")
    own = TrendScores(scores.points.take(one), *(getattr(scores, name)[:, one] for name in names))
    components = TrendComponents.of(own, spreads, parts[:, None])
    weights = softmax(components.likelihoods()[:, 0])
    least_weight = 0.01  # components (a floor, a liveliness and a noise) of less weight are left out of forecasts
    kept = np.flatnonzero(weights >= least_weight * weights.max())
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


@dataclass(frozen=True, slots=True)
class FittedTrend:
    """The trend law of one scenario."""

    posterior: TrendPosterior
    origin: float  # Log FLOP that trends start from
    is_fitted: BoolArray  # (n_recipes,): Whether the recipe has a law
    residual: FloatArray  # (n_recipes,)

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,): the mean over all trends that the sizes allow."""
        shape = (len(self.is_fitted), len(log_flops))
        recipe, at = (part.ravel() for part in np.indices(shape))
        mean, variance = self._trend(recipe, log_flops[at])
        known = np.where(self.is_fitted, 1.0, np.nan)[:, None]
        low, high = (ends.reshape(shape) * known for ends in self.posterior.interval(mean, variance, level))
        score = self.posterior.mean_scores(mean, variance).reshape(shape) * known
        return Forecast(score, low, high, np.zeros(shape) * known)

    def own_scores(self, recipe: IntArray, log_flops: FloatArray) -> FloatArray:
        """Mean score of models of these recipes at their log FLOP, each (n_models,)."""
        return self.posterior.mean_scores(*self._trend(recipe, log_flops))

    def _trend(self, recipe: IntArray, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        # trends start at the origin: below it they are level
        x = np.maximum(log_flops - self.origin, 0.0)
        return self.posterior.predict(TrendPoints(x[None], recipe[None], np.ones((1, x.size), dtype=bool)))


def fit_trend_law(every: Sequence[LawData], spec: TrendLaw) -> tuple[LawFit, ...]:  # noqa: ARG001
    """Fit the trends of all scenarios to the scores of finished models."""
    finals = [(data.runs.of_finals(data.runs.log_flops), data.runs.of_finals(data.scores)) for data in every]
    # sizes without a single model are no lower than any other
    lowest = np.array([np.nanmin(mean_where_known(y)) for _, y in finals])
    before = 0.5  # log FLOP by which the origin of slopes and wanderings lies below the smallest model
    origin = min(float(np.nanmin(x)) for x, _ in finals) - before
    # the models of all scenarios in arrays of one width
    places = [np.nonzero(np.isfinite(x) & np.isfinite(y)) for x, y in finals]
    shape = (len(finals), max(rows.size for rows, _ in places))
    above, scores, recipe = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    is_known = np.zeros(shape, dtype=bool)
    for number, ((x, y), where) in enumerate(zip(finals, places, strict=True)):
        here = number, slice(where[0].size)
        above[here], scores[here], recipe[here] = x[where] - origin, y[where], where[0]
        is_known[here] = True
    posteriors = fit_trends(TrendPoints(above, recipe, is_known), scores, lowest)
    fits = []
    for data, posterior in zip(every, posteriors, strict=True):
        runs = data.runs
        law = FittedTrend(posterior, origin, runs.is_enough, np.empty(0))
        missed = runs.of_finals(data.scores - law.own_scores(runs.recipe_index, runs.log_flops))
        fits.append((replace(law, residual=root_mean_square(missed)), lacking_notes(runs)))
    return tuple(fits)
