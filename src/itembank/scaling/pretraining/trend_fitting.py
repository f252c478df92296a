"""The trend law: every recipe's score carried on along its own local trend, learned from all scenarios together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.scaling.pretraining.fitting import LawData, LawFit, root_mean_square
from itembank.scaling.pretraining.forecasts import Forecast
from itembank.scaling.pretraining.law_notes import lacking_notes
from itembank.scaling.pretraining.law_spec import TrendLaw
from itembank.scaling.pretraining.trend_kernel import TrendPoints
from itembank.scaling.pretraining.trend_law import BEFORE, TrendPosterior, fit_trends


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
    lowest = np.array([_mean_of_sizes(y).min() for _, y in finals])
    origin = min(float(np.nanmin(x)) for x, _ in finals) - BEFORE
    points, scores = _gathered(finals, origin)
    posteriors = fit_trends(points, scores, lowest)
    return tuple(
        LawFit(_fitted(data, posterior, origin), lacking_notes(data.runs))
        for data, posterior in zip(every, posteriors, strict=True)
    )


def _mean_of_sizes(y: FloatArray) -> FloatArray:
    """Mean over recipes of every size that has a model, (n_sizes,)."""
    known = np.isfinite(y)
    counts = known.sum(axis=0)
    result: FloatArray = np.where(known, y, 0.0).sum(axis=0)[counts > 0] / counts[counts > 0]
    return result


def _gathered(finals: Sequence[tuple[FloatArray, FloatArray]], origin: float) -> tuple[TrendPoints, FloatArray]:
    """Put the models of all scenarios into arrays of one width, and their scores."""
    places = [np.nonzero(np.isfinite(x) & np.isfinite(y)) for x, y in finals]
    shape = (len(finals), max(rows.size for rows, _ in places))
    x, scores, recipe = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    is_known = np.zeros(shape, dtype=bool)
    for number, ((log_flops, y), where) in enumerate(zip(finals, places, strict=True)):
        here = number, slice(where[0].size)
        x[here], scores[here], recipe[here] = log_flops[where] - origin, y[where], where[0]
        is_known[here] = True
    return TrendPoints(x, recipe, is_known), scores


def _fitted(data: LawData, posterior: TrendPosterior, origin: float) -> FittedTrend:
    """Return the law of one scenario with its residuals."""
    runs = data.runs
    law = FittedTrend(posterior, origin, runs.is_enough, np.empty(0))
    return replace(
        law, residual=root_mean_square(runs.of_finals(data.scores - law.own_scores(runs.recipe_index, runs.log_flops)))
    )
