"""Fitted laws of one scenario, and their forecasts for every recipe at any compute."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_reach
from itembank.scaling.pretraining.ability_law import AbilityLaws, growth_of_errors
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, item_variance, mean_probability

FEWEST_DEGREES = 2.0
"""Degrees of freedom taken at least: with one a t-interval is an admission of ignorance, not an interval."""


class Forecast(NamedTuple):
    """Scores of n_recipes recipes at n_points computes, each (n_recipes, n_points)."""

    score: FloatArray  # Within [0, 1]; NaN for a recipe without a law
    low: FloatArray
    high: FloatArray
    spread: FloatArray  # Standard deviation of the forecasts of all starts; zero for a law that has no starts


class FittedLaw(Protocol):
    """A law of one scenario, fitted for every recipe."""

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,)."""
        ...

    @property
    def residual(self) -> FloatArray:
        """Root mean square of the score's residuals over the models fitted, (n_recipes,)."""
        ...


@dataclass(frozen=True, slots=True)
class FittedAbilityLaw:
    """The item response scaling law of one scenario."""

    laws: AbilityLaws
    abilities: ScenarioAbilities  # What it was fitted to, with the items
    carried: FloatArray  # (n_recipes,): Score beyond what the items give at the ability that a recipe keeps
    gap_variance: float  # Of the observed score around both
    residual: FloatArray  # (n_recipes,)

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,).

        The ability's interval goes through the items' curve, which keeps it within the score's range; what uncertain
        items bring, and what models differ from their ability's score, come on top, in quadrature.
        """
        mean, variance = self.laws.predict(log_flops)
        factor = interval_factor(level, self.laws.degrees_of_freedom)
        items = self.abilities.parameters
        half = factor * np.sqrt(variance)
        score, below, above = (_scores(items, at) for at in (mean, mean - half, mean + half))
        uncertain = item_variance(items, self.abilities.item_covariance, mean.ravel()).reshape(mean.shape)
        gap = factor * np.sqrt(self.gap_variance + uncertain)
        # half-widths of independent sources add in squares; each side has its own, as the curve is not symmetric
        # minimum and maximum, as the mean curve falls where most slopes are negative
        to_low = np.sqrt((score - np.minimum(below, above)) ** 2 + gap**2)
        to_high = np.sqrt((np.maximum(below, above) - score) ** 2 + gap**2)
        score = np.clip(score + self.carried[:, None], 0.0, 1.0)
        low, high = np.clip(score - to_low, 0.0, 1.0), np.clip(score + to_high, 0.0, 1.0)
        return Forecast(score, low, high, np.where(np.isnan(score), np.nan, 0.0))


class CurvePredictions(Protocol):
    """Fits of a curve in compute."""

    def predict(self, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores at log FLOP (n_points,): best start (n_curves, n_points), all (n_curves, n_starts, n_points)."""
        ...


@dataclass(frozen=True, slots=True)
class FittedCurveLaw:
    """A law that fits curves to scores: two-step or direct sigmoid."""

    fits: CurvePredictions  # Of the n_curves recipes that have a law
    rows: IntArray  # (n_curves,): Which of the n_recipes recipes they are
    largest: FloatArray  # (n_recipes,): Largest log FLOP fitted
    residual: FloatArray  # (n_recipes,)
    # Of a score at a fitted size, and its growth with the squared distance in log FLOP beyond the largest size.
    residual_variance: float
    drift: float
    degrees_of_freedom: float

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,).

        The interval is that of what forecasts of each size from the smaller ones missed by, which counts parameters,
        starts and wrong shapes together.
        """
        best, every = self.fits.predict(log_flops)
        beyond = np.maximum(log_flops[None, :] - self.largest[:, None], 0.0)
        factor = interval_factor(level, self.degrees_of_freedom)
        half = factor * np.sqrt(self.residual_variance + self.drift * beyond**2)
        score = np.full(half.shape, np.nan)
        score[self.rows] = np.clip(best, 0.0, 1.0)
        spread = np.full(half.shape, np.nan)
        spread[self.rows] = np.clip(every, 0.0, 1.0).std(axis=1)
        return Forecast(score, np.clip(score - half, 0.0, 1.0), np.clip(score + half, 0.0, 1.0), spread)


def interval_factor(level: float, degrees: float) -> float:
    """Student's t of an interval of this level; the normal one for many degrees of freedom."""
    return t_reach(level, max(degrees, FEWEST_DEGREES))


def score_error_growth(errors: FloatArray, distances: FloatArray, residual_variance: float) -> float:
    """Drift of a curve law from the errors of earlier forecasts and their distances, each (n_errors,)."""
    return growth_of_errors(errors**2, np.full(errors.shape, residual_variance), distances)


def _scores(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Mean probability at abilities of any shape; NaN stays NaN."""
    return mean_probability(parameters, theta.ravel()).reshape(theta.shape)
