"""Prediction of a value on one set of items from a value on another: a line with its predictive distribution."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import t_reach

MINIMUM_MODELS = 4
"""A line and its residual spread need two degrees of freedom at least."""

NO_BOUNDS = (-np.inf, np.inf)

MODELS_FOR_VARIANCE = 20
"""With at least this many models the variance around a line may change along it."""
N_ROUNDS = 5
"""Alternations settle a simulated line to seven digits; three do to five."""
PRIOR_MODELS = 10.0
"""Models that the belief in an even variance counts for. With 25 models of even variance the slopes of its logarithm
scatter by 0.38 with it and by 0.54 without."""
MOST_RATIO = 100.0
"""Largest ratio of the variances at both ends of a line."""


@dataclass(frozen=True, slots=True)
class Link:
    """The line ``target = intercept + slope * source`` over n_models calibration models.

    Attributes
    ----------
    slope, intercept : float
    residual_sd : float
        Standard deviation around the line at the centre, with the degrees of freedom that the line leaves.
    log_variance_slope : float
        Change of the log variance around the line with the source: near the floor of a benchmark logits vary more.
    lowest, highest : float
        Range of the sources; the variance is not carried beyond it.
    centre, spread : float
        Mean of the sources, and the sum of their squared distances from it.
    source_noise : float
        Mean squared standard error of the sources: it is part of the residual spread.
    n_models : int
    degrees_of_freedom : int
    """

    slope: float
    intercept: float
    residual_sd: float
    log_variance_slope: float
    lowest: float
    highest: float
    centre: float
    spread: float
    source_noise: float
    n_models: int
    degrees_of_freedom: int


class Predictive(NamedTuple):
    """Student's t distribution of each model's target, each (n_models,), with its degrees of freedom."""

    centre: FloatArray
    scale: FloatArray
    degrees_of_freedom: int


def fit_line(
    source: FloatArray, target: FloatArray, source_errors: FloatArray, *, bounds: tuple[float, float] = NO_BOUNDS
) -> Link:
    """Least-squares line of targets on sources, each (n_models,), over the models that have both.

    With 20 models or more the variance around it may change with the source, ``log s^2 = a + b x`` (Harvey 1976), and
    the line is fitted with weights ``1 / s^2``; fewer say too little of b, which is 0.

    A target at one of the bounds is known to lie there or beyond, where a benchmark's floor or ceiling hides it: it
    counts only where the line says that it should not.
    """
    known = np.isfinite(source) & np.isfinite(target)
    x, y, errors = source[known], target[known], source_errors[known]
    low, high = y <= bounds[0], y >= bounds[1]
    counts = ~(low | high)
    if counts.sum() < MINIMUM_MODELS:
        counts = np.ones_like(low)
    log_variance_slope = 0.0
    # which censored targets count and how the variance changes both depend on the line: alternate a few times
    for _ in range(N_ROUNDS):
        weights = counts * np.exp(-log_variance_slope * (x - x.mean()))
        slope, intercept = _weighted_line(x, y, weights)
        fitted = intercept + slope * x
        counts = ~((low & (fitted <= bounds[0])) | (high & (fitted >= bounds[1])))
        if counts.sum() < MINIMUM_MODELS:
            counts = np.ones_like(low)
        if counts.sum() >= MODELS_FOR_VARIANCE:
            log_variance_slope = _log_variance_slope(x[counts], (y - fitted)[counts])
    weights = counts * np.exp(-log_variance_slope * (x - x.mean()))
    slope, intercept = _weighted_line(x, y, weights)
    return _link(x, y, errors, weights, (slope, intercept, log_variance_slope))


def _link(
    x: FloatArray, y: FloatArray, errors: FloatArray, weights: FloatArray, line: tuple[float, float, float]
) -> Link:
    slope, intercept, log_variance_slope = line
    n_counted = int((weights > 0.0).sum())
    free = n_counted - 2
    centre = float((weights * x).sum() / weights.sum())
    at_centre = float(np.exp(log_variance_slope * (centre - x.mean())))
    residual = y - intercept - slope * x
    return Link(
        slope=slope,
        intercept=intercept,
        residual_sd=float(np.sqrt(at_centre * (weights * residual**2).sum() / free)),
        log_variance_slope=log_variance_slope,
        lowest=float(x[weights > 0.0].min()),
        highest=float(x[weights > 0.0].max()),
        centre=centre,
        spread=float((weights * (x - centre) ** 2).sum() * at_centre),
        source_noise=float((errors**2).mean()),
        n_models=n_counted,
        degrees_of_freedom=free,
    )


def _weighted_line(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Slope and intercept of a weighted least-squares line; slope 0 where the sources do not differ."""
    total = weights.sum()
    centre, height = (weights * x).sum() / total, (weights * y).sum() / total
    spread = (weights * (x - centre) ** 2).sum()
    slope = float((weights * (x - centre) * (y - height)).sum() / spread) if spread > 0.0 else 0.0
    return slope, float(height - slope * centre)


def _log_variance_slope(x: FloatArray, residual: FloatArray) -> float:
    """Slope of log squared residuals on x, shrunk to 0 as by `PRIOR_MODELS` models, and within `MOST_RATIO` overall."""
    spread = ((x - x.mean()) ** 2).sum()
    if spread == 0.0 or not residual.any():
        return 0.0
    # the log of a residual that is zero by chance is minus infinity and would decide the slope alone
    # E log chi^2 is the same constant at every x, so it does not bias the slope (Harvey 1976)
    squares = np.log(np.maximum(residual**2, 1e-4 * (residual**2).mean()))
    slope = ((x - x.mean()) * (squares - squares.mean())).sum() / (spread * (1.0 + PRIOR_MODELS / x.size))
    most = np.log(MOST_RATIO) / (x.max() - x.min())
    return float(np.clip(slope, -most, most))


def same_scale(source: FloatArray, target: FloatArray, source_errors: FloatArray) -> Link:
    """Take the target to be the source itself, as far off as calibration models' targets are from their sources."""
    known = np.isfinite(source) & np.isfinite(target)
    x, y, errors = source[known], target[known], source_errors[known]
    residual = float(np.sqrt(((y - x) ** 2).mean()))
    return Link(
        slope=1.0,
        intercept=0.0,
        residual_sd=residual,
        log_variance_slope=0.0,
        lowest=float(x.min()),
        highest=float(x.max()),
        centre=float(x.mean()),
        spread=np.inf,
        source_noise=float((errors**2).mean()),
        n_models=x.size,
        degrees_of_freedom=x.size,
    )


def predict(link: Link, source: FloatArray, source_errors: FloatArray) -> Predictive:
    """Distribution of the targets of new models from their sources (n_models,).

    ``scale^2 = s(x)^2 + s^2 (1/n + (x - mean)^2 / S) + slope^2 (SE^2 - mean SE^2 of calibration)+``: a source known
    worse than those of the calibration models, from fewer items, adds what it is worse by. On a common scale, where
    nothing was fitted, the terms of the line fall away.
    """
    line_error = 0.0 if np.isinf(link.spread) else 1.0 / link.n_models
    reach = (source - link.centre) ** 2 / link.spread if link.spread > 0.0 else 0.0
    worse = np.maximum(source_errors**2 - link.source_noise, 0.0)
    within = np.clip(source, link.lowest, link.highest)
    change = np.exp(link.log_variance_slope * (within - link.centre))
    scale = np.sqrt(link.residual_sd**2 * (change + line_error + reach) + link.slope**2 * worse)
    return Predictive(link.intercept + link.slope * source, scale, link.degrees_of_freedom)


def quantiles(predictive: Predictive, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Median and the ends of the central interval of each model's target, each (n_models,)."""
    reach = t_reach(level, predictive.degrees_of_freedom) * predictive.scale
    return predictive.centre, predictive.centre - reach, predictive.centre + reach
