"""`OutOfFold`: estimates of calibration models by a method that had not seen them."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.estimation.intervals import interval_scores
from itembank.numerics.arrays import FloatArray

UNUSUAL = 0.9
"""Quantile of the misfit of calibration models from which errors may grow faster."""


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """Estimates of each calibration model by a method that has not seen it.

    Attributes
    ----------
    truth : (n_models, n_targets)
        Full scores of the calibration models; NaN where unknown. Targets are `ScoreTargets.names`.
    value : (n_models, n_targets)
        Estimates from fits, and for 'stacked' weights, that the model took no part in; NaN where there is none.
    standard_error : (n_models, n_targets)
        By the item model alone, not calibrated.
    scale : (n_models, n_targets)
        Expected size of each error up to a factor, which the widths of intervals follow.
    """

    truth: FloatArray
    value: FloatArray
    standard_error: FloatArray
    scale: FloatArray

    @property
    def error(self) -> FloatArray:
        """Estimate less truth, (n_models, n_targets)."""
        return self.value - self.truth

    @property
    def interval_scores(self) -> FloatArray:
        """Winkler's scores of the overall score's 95 % intervals, if they rested on these errors, (n_models,)."""
        return interval_scores(self.error[:, -1], self.scale[:, -1])


def with_tail(estimates: OutOfFold, misfit: FloatArray) -> tuple[OutOfFold, float]:
    """Let the scale grow faster beyond the 90th percentile of the misfit, where that makes better intervals.

    On leaderboards of right and wrong answers it mostly does; where responses are graded, misfit has long tails that
    errors do not follow, and intervals of unusual models would be three times too wide. So the calibration models left
    out decide: by Winkler's score of the overall score's 95 % intervals.

    Parameters
    ----------
    estimates : OutOfFold
    misfit : (n_models,)

    Returns
    -------
    OutOfFold
        With the scale that serves better.
    float
        The 90th percentile, or infinity.
    """
    known = misfit[~np.isnan(misfit)]
    if known.size == 0:
        return estimates, np.inf
    tail = float(np.quantile(known, UNUSUAL))
    other = replace(estimates, scale=grown(estimates.scale, misfit[:, None], tail))
    lost = estimates.interval_scores - other.interval_scores
    return (other, tail) if np.nansum(lost) > 0.0 else (estimates, np.inf)


def grown(scale: FloatArray, misfit: FloatArray, tail: float) -> FloatArray:
    """Let a scale grow with the root of the misfit where this lies beyond the tail; all (n_models, n_targets)."""
    result: FloatArray = scale * np.sqrt(np.maximum(misfit / tail, 1.0))
    return result
