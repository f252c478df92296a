"""Precision of estimates from n items, as a curve that falls with n."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from itembank.comparison.error_model import fit_pair_errors
from itembank.comparison.pairs import model_pairs
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import calibrated_half_widths, t_quantile

SMALLEST_SIZE = 10
STEPS = (1, 2, 3, 5)
"""Of the numbers of items that are tried, within each power of ten."""
ALWAYS_TRIED = 500
"""As far every plan goes, so that a curve is the same whatever is asked; trials of thousands take minutes."""
LEAST_STEP = 1.25
"""From the last of them to the largest number that can be chosen: a nearer one would say nothing of its own."""


@dataclass(frozen=True, slots=True)
class PrecisionCurve:
    """Some measure of precision at every number of items."""

    smallest_size: int
    values: FloatArray  # (n_sizes,): At `smallest_size` and every larger number up to all items; never rising

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
    """Draw a falling curve through values measured at some numbers of items.

    Where more items did worse than fewer, by chance, the values are pooled: isotonic regression (Barlow et al. 1972).
    A mean over n of N items without replacement errs in proportion to ``sqrt(1/n - 1/N)``; the logarithm of the value
    over that is linear in log n from one size to the next, and level before the first and beyond the last.

    Parameters
    ----------
    sizes : (n_sizes,)
        Rising.
    values : (n_sizes,)
    n_total : int
        N.
    is_exact : bool
        Whether all N items give the score. Else the curve is flat beyond the largest size, and N counts as endless.

    Returns
    -------
    PrecisionCurve
        Between two sizes measured it depends on no others, unless values had to be pooled.
    """
    every = np.arange(int(sizes[0]), n_total + 1)
    falling = isotonic_regression(values, increasing=False).x
    known = (falling > 0.0) & ((sizes < n_total) | (not is_exact))
    none_left = 1.0 / n_total if is_exact else 0.0
    if not known.any():
        return PrecisionCurve(int(sizes[0]), np.zeros(every.shape))
    excess = np.log(falling[known]) - 0.5 * np.log(1.0 / sizes[known] - none_left)
    shrinking = np.sqrt(1.0 / (every if is_exact else np.minimum(every, sizes[-1])) - none_left)
    drawn = np.exp(np.interp(np.log(every), np.log(sizes[known]), excess)) * shrinking
    # between two sizes of one value the finite-population factor is above its chord
    return PrecisionCurve(int(sizes[0]), np.minimum.accumulate(drawn))


def grid_sizes(largest: int) -> IntArray:
    """Return the numbers of items that are tried, whatever is asked: 10, 20, 30, 50, 100, 200, ... and the largest."""
    n_powers = len(str(largest))
    sizes = SMALLEST_SIZE * np.outer(10 ** np.arange(n_powers), STEPS).ravel()
    return np.append(sizes[sizes * LEAST_STEP <= largest], largest)


def expected_half_width(errors: FloatArray, scale: FloatArray | None = None, *, level: float) -> float:
    """Half-width of the interval that `estimate` gives a typical model, from errors of calibration models.

    Parameters
    ----------
    errors : (n_models,)
    scale : (n_models,), optional
        Expected size of each error, as in `calibrated_half_widths`, whose median over models this is; by default, one
        for all.
    level : float
    """
    size = np.ones(errors.shape) if scale is None else scale
    return float(np.median(calibrated_half_widths(errors[:, None], size[:, None], size[:, None], level=level)))


def detectable_difference(errors: FloatArray, *, level: float, power: float) -> float:
    """Find the true difference that shows as significant with this power between two models like the calibration ones.

    ``(q + c F^-1(power)) s`` of `fit_pair_errors`, with s the root mean squared difference of errors (n_models,).
    """
    first, second = model_pairs(errors.shape[0])
    model = fit_pair_errors(errors, np.zeros(first.shape[0]), first, second, level=level)
    reach = model.quantile + model.scale * t_quantile(power, model.degrees)
    return float(reach * np.sqrt(model.constant))
