"""What a value known of one set of items says of a value on another: a line with its predictive distribution."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from itembank.numerics.arrays import FloatArray

MINIMUM_MODELS = 4
"""A line and its residual spread need two degrees of freedom at least."""

N_NODES = 199
"""Equally likely points that stand for a predictive distribution."""


@dataclass(frozen=True, slots=True)
class Link:
    """The line ``target = intercept + slope * source`` over n_models calibration models.

    Attributes
    ----------
    slope, intercept : float
    residual_sd : float
        Standard deviation around the line, with the degrees of freedom that the line leaves.
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


def fit_line(source: FloatArray, target: FloatArray, source_errors: FloatArray) -> Link:
    """Least-squares line of targets on sources, each (n_models,), over the models that have both."""
    known = np.isfinite(source) & np.isfinite(target)
    x, y, errors = source[known], target[known], source_errors[known]
    centre = float(x.mean())
    spread = float(((x - centre) ** 2).sum())
    slope = float(((x - centre) * (y - y.mean())).sum() / spread) if spread > 0.0 else 0.0
    intercept = float(y.mean() - slope * centre)
    free = x.size - 2
    residual = float(np.sqrt(((y - intercept - slope * x) ** 2).sum() / free))
    return Link(slope, intercept, residual, centre, spread, float((errors**2).mean()), x.size, free)


def same_scale(source: FloatArray, target: FloatArray, source_errors: FloatArray) -> Link:
    """Take the target to be the source itself, as far off as calibration models' targets are from their sources."""
    known = np.isfinite(source) & np.isfinite(target)
    x, y, errors = source[known], target[known], source_errors[known]
    residual = float(np.sqrt(((y - x) ** 2).mean()))
    return Link(1.0, 0.0, residual, float(x.mean()), np.inf, float((errors**2).mean()), x.size, x.size)


def predict(link: Link, source: FloatArray, source_errors: FloatArray) -> Predictive:
    """Distribution of the targets of new models from their sources (n_models,).

    ``scale^2 = s^2 (1 + 1/n + (x - mean)^2 / S) + slope^2 (SE^2 - mean SE^2 of calibration)+``: a source known worse
    than those of the calibration models, from fewer items, adds what it is worse by. On a common scale, where nothing
    was fitted, the terms of the line fall away.
    """
    line_error = 0.0 if np.isinf(link.spread) else 1.0 / link.n_models
    reach = (source - link.centre) ** 2 / link.spread if link.spread > 0.0 else 0.0
    worse = np.maximum(source_errors**2 - link.source_noise, 0.0)
    scale = np.sqrt(link.residual_sd**2 * (1.0 + line_error + reach) + link.slope**2 * worse)
    return Predictive(link.intercept + link.slope * source, scale, link.degrees_of_freedom)


def predictive_nodes(predictive: Predictive) -> FloatArray:
    """Equally likely values of each model's target, (n_models, n_nodes), rising."""
    chances = (np.arange(N_NODES) + 0.5) / N_NODES
    quantiles = student.ppf(chances, predictive.degrees_of_freedom)
    result: FloatArray = predictive.centre[:, None] + predictive.scale[:, None] * quantiles
    return result
