"""The rules of `cells` for arrays of any namespace of the array API standard, one operation after the other.

The rules for NumPy write into arrays that they have, which the standard does not offer; these are the same formulas.
"""

from typing import Any, NamedTuple

import numpy as np

from itembank.calibration.variational.cells import (
    LARGEST_HALF_STEP,
    SMALLEST_SQUARE,
    SMALLEST_VARIANCE,
    CellTerms,
    jaakkola_jordan,
    normal_expectation,
)
from itembank.numerics.arrays import FloatArray
from itembank.numerics.devices import Device, DeviceArray


class Guessing(NamedTuple):
    """Logarithms of each item's chance of guessing right and of guessing wrong, (n_items, 1), on a device."""

    log_right: DeviceArray
    log_wrong: DeviceArray

    @classmethod
    def of(cls, lower_asymptote: FloatArray, dtype: np.dtype[np.floating], device: Device) -> "Guessing | None":
        """Take them of lower asymptotes, (n_items,); None where no item can be guessed."""
        if not lower_asymptote.any():
            return None
        with np.errstate(divide="ignore"):
            logs = np.log(lower_asymptote), np.log1p(-lower_asymptote)
        return cls(*(device.put(one[:, None], dtype) for one in logs))

    def take(self, part: slice) -> "Guessing":
        """Return those of some of the items."""
        return Guessing(self.log_right[part, ...], self.log_wrong[part, ...])


def _jaakkola_jordan(xp: Any, mean: DeviceArray, variance: DeviceArray) -> CellTerms:
    size = xp.sqrt(xp.clip(mean * mean + variance, SMALLEST_SQUARE, None))
    small = xp.exp(-size)
    return CellTerms(None, 0.5 * (1.0 - small) / ((1.0 + small) * size), 0.5 * size + xp.log(1.0 + small))


def _normal_expectation(xp: Any, mean: DeviceArray, variance: DeviceArray) -> CellTerms:
    half_step = xp.clip(xp.sqrt(0.75 * xp.clip(variance, SMALLEST_VARIANCE, None)), None, LARGEST_HALF_STEP)
    size = 0.5 * xp.abs(mean)
    centre, shrink = xp.exp(-2.0 * size), xp.exp(-2.0 * half_step)
    above, below = centre * shrink, centre / shrink
    outer = (1.0 + above) * (1.0 + below)
    curvature = 0.25 * (below - above) / (half_step * outer)
    inner = 1.0 + centre
    slope = (1.0 - centre * centre) / outer + 2.0 * (1.0 - centre) / inner
    slope = xp.sign(mean) * slope * (1.0 / 6.0)
    fourth = inner * inner * inner * inner
    return CellTerms(curvature * mean - slope, curvature, xp.log(fourth * outer) * (1.0 / 6.0) + size)


RULES: dict[Any, Any] = {jaakkola_jordan: _jaakkola_jordan, normal_expectation: _normal_expectation}
"""Functions of the namespace, mean and variance, by the rule for NumPy that they stand for."""


def guessing_terms(
    xp: Any, mean: DeviceArray, centred: DeviceArray, guessing: Guessing
) -> tuple[DeviceArray, DeviceArray]:
    """As those of `cells`."""
    right = centred + 0.5
    value = right * xp.logaddexp(mean, guessing.log_right) + (1.0 - right) * guessing.log_wrong - 0.5 * mean
    log_odds = mean - guessing.log_right
    small = xp.exp(-xp.abs(log_odds))  # at most one, so that nothing overflows
    known = xp.where(log_odds >= 0.0, 1.0 / (1.0 + small), small / (1.0 + small))
    return right * known - 0.5, value
