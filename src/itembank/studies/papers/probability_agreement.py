"""How well predicted probabilities agree with responses: correlation, and observed means by predicted value."""

from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

EDGES = np.linspace(0.0, 1.0, 11)
"""Of the bins of predicted values."""
CHANCE = float(np.sqrt(2.0 / np.pi))
"""Mean absolute value of a standard normal variable."""


class Bins(NamedTuple):
    """Responses by predicted value, bins without any left out; each (n_bins,).

    `standard_error` is that of observed less predicted, over models as clusters; NaN where one model has them all.
    """

    n_cells: IntArray
    predicted: FloatArray
    observed: FloatArray
    standard_error: FloatArray

    @property
    def calibration_error(self) -> float:
        """Mean distance of observed from predicted means over cells (ECE)."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.n_cells))

    @property
    def by_chance(self) -> float:
        """`calibration_error` that the standard errors alone would lead to, if every prediction were right."""
        return float(np.average(CHANCE * np.nan_to_num(self.standard_error), weights=self.n_cells))


def binned(predicted: FloatArray, observed: FloatArray, model: IntArray) -> Bins:
    """Average predictions and responses by predicted value.

    The standard error of a mean difference r, of models m with n_m cells and sums s_m of differences, is that of a
    ratio: ``sqrt(M / (M - 1) sum_m (s_m - n_m r)^2) / n`` (Cochran 1977, eq. 2.39).

    Parameters
    ----------
    predicted, observed : (n_cells,)
        In [0, 1].
    model : (n_cells,)
        Number of the model of each cell, from 0.
    """
    n_bins, n_models = EDGES.size - 1, int(model.max()) + 1
    place = np.clip(np.searchsorted(EDGES, predicted, side="right") - 1, 0, n_bins - 1) * n_models + model
    shape = (n_bins, n_models)
    n = np.bincount(place, minlength=n_bins * n_models).reshape(shape).astype(np.float64)
    sums = [np.bincount(place, part, minlength=n_bins * n_models).reshape(shape) for part in (predicted, observed)]
    kept = n.sum(axis=1) > 0.0
    n, expected, seen = n[kept], sums[0][kept], sums[1][kept]
    total = n.sum(axis=1)
    differences = seen - expected
    mean = differences.sum(axis=1) / total
    spread = np.sum((differences - n * mean[:, None]) ** 2, axis=1)
    present = np.sum(n > 0.0, axis=1)
    factor = np.divide(present, present - 1.0, out=np.full(present.shape, np.nan), where=present > 1)
    return Bins(
        total.astype(np.int64), expected.sum(axis=1) / total, seen.sum(axis=1) / total, np.sqrt(factor * spread) / total
    )


class Association(NamedTuple):
    """Pearson's correlation of responses with predictions, and the slope of responses on predictions.

    `standard_error` is that of the correlation, by leaving out one model at a time.
    """

    correlation: float
    standard_error: float
    slope: float


def association(predicted: FloatArray, observed: FloatArray, model: IntArray) -> Association:
    """Correlate responses with predictions over cells; arguments as of `binned`.

    The standard error is the jackknife's over the M models, ``sqrt((M - 1) / M sum_m (r_(m) - mean)^2)`` with r_(m) the
    correlation without model m (Efron and Tibshirani 1993, eq. 11.5): a model's cells share its ability and err
    together.
    """
    x, y = predicted - predicted.mean(), observed - observed.mean()
    terms = (np.ones(x.shape), x, y, x * x, y * y, x * y)
    of_models = np.stack([np.bincount(model, term) for term in terms])  # (6, n_models)
    of_models = of_models[:, of_models[0] > 0.0]
    total = of_models.sum(axis=1)
    left_out = _correlation(total[:, None] - of_models)
    n_models = left_out.size
    spread = np.sum((left_out - left_out.mean()) ** 2)
    error = float(np.sqrt((n_models - 1) / n_models * spread)) if n_models > 2 else float("nan")
    variance, covariance = total[3] - total[1] ** 2 / total[0], total[5] - total[1] * total[2] / total[0]
    slope = float(covariance / variance) if variance > 0.0 else float("nan")
    return Association(float(_correlation(total[:, None])[0]), error, slope)


def _correlation(sums: FloatArray) -> FloatArray:
    """Pearson's r from sums of 1, x, y, x^2, y^2, xy, (6, n): (n,); NaN where either does not vary."""
    n, x, y, xx, yy, xy = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((xx - x * x / n) * (yy - y * y / n))
        varies: BoolArray = spread > 1e-12 * np.sqrt(xx * yy)
        result: FloatArray = np.where(varies, (xy - x * y / n) / spread, np.nan)
    return result
