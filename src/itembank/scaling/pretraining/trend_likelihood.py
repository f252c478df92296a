"""Likelihood of local trends: what all scenarios share, and the floor, liveliness and noise of each, weighed."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.pretraining.trend_kernel import (
    LEVEL_VARIANCE,
    N_SPREADS,
    SMALLEST_SCORE,
    TrendPoints,
    above_floor,
)

LIVELINESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Values of m that are weighed for each scenario."""
NOISINESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Noise over that of all scenarios that is weighed for each: scenarios have few items or many, of one kind or of
several. With one noise for all, the scatter of the noisiest is taken for growth."""
NEGLIGIBLE = 1e-10
"""Weight of a component in a scenario below which its derivatives are not worked out."""

SPREADS = np.log([0.1, 0.05, 0.2, 0.1, 0.05])
NOISE = float(np.log(0.13))
SPREAD_SD = 1.5
"""Log-normal priors of the spreads and of the noise, wide: a factor of 20 to either side within two of them."""
MEAN_SLOPE, MEAN_SLOPE_SD = 0.1, 0.3
LOG_LIVELINESS_SD, LOG_NOISINESS_SD = 0.0, float(np.log(0.5))
"""Centres of the log-normal priors of how far liveliness and noise of scenarios differ. A scenario of four times as
many items as another has half its noise."""
DIFFERENCE_SD = 0.5
"""Width of both."""
PRIOR_MEAN = np.array([*SPREADS, NOISE, MEAN_SLOPE, LOG_LIVELINESS_SD, LOG_NOISINESS_SD])
PRIOR_SD = np.array([*[SPREAD_SD] * (N_SPREADS + 1), MEAN_SLOPE_SD, DIFFERENCE_SD, DIFFERENCE_SD])
"""Normal priors of `TrendSpreads`, each (N_SPREADS + 4,)."""

JITTER = 1e-10
"""Noise in the place of what rounding took, as a share of the largest variance."""


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
        inverse = inverted(self.covariance(number, scenarios))
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


def log_posterior(values: FloatArray, scores: TrendScores, parts: FloatArray) -> tuple[float, FloatArray]:
    """Log posterior density of `TrendSpreads` (as one array) up to a constant, and its derivatives.

    Of each component, ``-1/2 (r' K^-1 r + log det K)``, whose derivative in a parameter of K is
    ``1/2 (a' dK a - tr(K^-1 dK))`` with ``a = K^-1 r`` (Rasmussen and Williams 2006, eq. 5.9); components of a
    scenario are summed by their weights.

    Parameters
    ----------
    values : (N_SPREADS + 4,)
    scores : TrendScores
    parts : (N_SPREADS, n_scenarios, n_points, n_points)
        `covariance_parts` of the points.
    """
    spreads = TrendSpreads.of(values)
    components = TrendComponents.of(scores, spreads, parts)
    likelihoods = components.likelihoods()
    weights = softmax(likelihoods, axis=0)
    slope = np.zeros_like(values)
    gathered, on_diagonal = np.zeros_like(components.inner), 0.0
    for number, weight in enumerate(weights):
        # most components have no weight in most scenarios, and inverses are most of the work
        here = np.flatnonzero(weight > NEGLIGIBLE)
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


def inverted(covariance: FloatArray) -> FloatArray:
    """Inverse of covariances (n_scenarios, n_points, n_points)."""
    inverse_factor = np.linalg.inv(cholesky(covariance))
    result: FloatArray = np.matmul(inverse_factor.transpose(0, 2, 1), inverse_factor)
    return result


def cholesky(covariance: FloatArray) -> FloatArray:
    """Factor covariances (n_scenarios, n_points, n_points); with a little more noise where rounding leaves none."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        largest = np.einsum("snn->sn", covariance).max(axis=1)
        return np.linalg.cholesky(covariance + JITTER * largest[:, None, None] * np.eye(covariance.shape[1]))


def _log_normal(grid: FloatArray, log_sd: float) -> FloatArray:
    """Log weights of a grid of factors under a log-normal distribution around one, (n_grid,)."""
    value = -0.5 * (np.log(grid) / np.exp(log_sd)) ** 2
    result: FloatArray = value - logsumexp(value)
    return result
