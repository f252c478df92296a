"""Precision of estimates from n items, as a smooth curve that falls with n."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from itembank.comparison.error_model import fit_pair_errors
from itembank.comparison.pairs import model_pairs
from itembank.estimation.intervals import calibrated_half_widths
from itembank.numerics.arrays import FloatArray, IntArray

GROWTH = 1.5
SMALLEST_SIZE = 10


@dataclass(frozen=True, slots=True)
class PrecisionCurve:
    """Some measure of precision at every number of items.

    Attributes
    ----------
    smallest_size : int
    values : (n_sizes,)
        At `smallest_size` and every larger number up to all items; never rising.
    """

    smallest_size: int
    values: FloatArray

    def with_values(self, values: FloatArray) -> "PrecisionCurve":
        """Return the curve with other values at the same numbers of items."""
        return PrecisionCurve(self.smallest_size, values)

    def at(self, sizes: IntArray) -> FloatArray:
        """Values at these numbers of items."""
        return self.values[np.clip(sizes - self.smallest_size, 0, self.values.shape[0] - 1)]

    def fewest(self, goal: float) -> int:
        """Smallest number of items whose value is at most the goal."""
        return self.smallest_size + int(np.flatnonzero(self.values <= goal)[0])


def precision_curve(sizes: IntArray, values: FloatArray, n_total: int, *, is_exact: bool = True) -> PrecisionCurve:
    """Fit a smooth falling curve to values measured at some numbers of items.

    A mean over n of N items without replacement errs in proportion to ``sqrt(1/n - 1/N)``; the logarithm of the
    value over that is a quadratic in log n (least squares), flat beyond the largest size measured. Where the curve
    would rise it stays level.

    Parameters
    ----------
    sizes : (n_sizes,)
    values : (n_sizes,)
        Zeros, as with all items, are left out.
    n_total : int
        N.
    is_exact : bool
        Whether all N items give the score. Else the curve is flat beyond the largest size, and N counts as endless.
    """
    every = np.arange(int(sizes[0]), n_total + 1)
    known = (values > 0.0) & ((sizes < n_total) | (not is_exact))
    none_left = 1.0 / n_total if is_exact else 0.0
    if not known.any():
        return PrecisionCurve(int(sizes[0]), np.zeros(every.shape))
    x = np.log(sizes[known])
    y = np.log(values[known]) - 0.5 * np.log(1.0 / sizes[known] - none_left)
    # the finite-population factor is divided out, so that y has only the excess over simple random sampling to follow;
    # with at least two sizes for each coefficient beyond the first the curve smooths instead of interpolating
    degree = min(2, (known.sum() - 1) // 2)
    # a domain of at least one log unit: with a single size x[0] == x[-1] could not be scaled
    shape = np.polynomial.Polynomial.fit(x, y, degree, domain=[x[0], max(x[-1], x[0] + 1.0)])
    shrinking = np.sqrt(1.0 / (every if is_exact else np.minimum(every, sizes[-1])) - none_left)
    fitted = np.exp(shape(np.minimum(np.log(every), x[-1]))) * shrinking
    return PrecisionCurve(int(sizes[0]), np.minimum.accumulate(fitted))


def grid_sizes(smallest: int, largest: int) -> IntArray:
    """Return numbers of items from the smallest to the largest, each half as large again as the one before."""
    if largest <= smallest:
        return np.array([largest], dtype=np.int64)
    n_steps = max(1, round(np.log(largest / smallest) / np.log(GROWTH)))
    return np.unique(np.round(np.geomspace(smallest, largest, n_steps + 1)).astype(np.int64))


def expected_half_width(errors: FloatArray, *, level: float) -> float:
    """Half-width of the interval that `estimate` would give a model, from errors (n_models,) of calibration models.

    That of `calibrated_half_widths` with one scale for all models.
    """
    scale = np.ones((errors.shape[0], 1))
    return float(calibrated_half_widths(errors[:, None], scale, scale[:1], level=level)[0, 0])


def detectable_difference(errors: FloatArray, *, level: float, power: float) -> float:
    """Find the true difference that shows as significant with this power between two models like the calibration ones.

    ``(q + c F^-1(power)) s`` of `fit_pair_errors`, with s the root mean squared difference of errors (n_models,).
    """
    first, second = model_pairs(errors.shape[0])
    model = fit_pair_errors(errors, np.zeros(first.shape[0]), first, second, level=level)
    reach = model.quantile + model.scale * float(stdtrit(model.degrees, power))
    return float(reach * np.sqrt(model.constant))
