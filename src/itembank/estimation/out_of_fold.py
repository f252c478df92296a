"""`OutOfFold`: estimates of calibration models by a method that had not seen them."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import interval_scores

UNUSUAL = 0.9
"""Quantile of the misfit of calibration models from which errors may grow faster."""
LEAST_OWN = 0.25
"""Part of the squared errors that is the estimates' own at the least: what is taken out is itself uncertain."""


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """Estimates of each calibration model by a method that has not seen it."""

    # (n_models, n_targets): Full scores of the calibration models; NaN where unknown. Targets are `ScoreTargets.names`.
    truth: FloatArray
    # (n_models, n_targets): Estimates from fits, and for 'stacked' weights, that the model took no part in; NaN where
    # there is none.
    value: FloatArray
    standard_error: FloatArray  # (n_models, n_targets): By the item model alone, not calibrated
    # (n_models, n_targets): Expected size of each error up to a factor, which the widths of intervals follow.
    scale: FloatArray
    # (n_models, n_targets): Sampling variance of the truths (`KnownScores`); None where these are exact.
    truth_variance: FloatArray | None = None

    @property
    def error(self) -> FloatArray:
        """Estimate less truth, what is not known of the truth taken out, (n_models, n_targets)."""
        error: FloatArray = self.value - self.truth
        if self.truth_variance is None:
            return error
        return without_sampling_error(error, self.truth_variance, self.scale)

    @property
    def interval_scores(self) -> FloatArray:
        """Winkler's scores of the overall score's 95 % intervals, if they rested on these errors, (n_models,)."""
        return interval_scores(self.error[:, -1], self.scale[:, -1])


def without_sampling_error(error: FloatArray, variance: FloatArray, scale: FloatArray) -> FloatArray:
    """Shrink errors against truths that are known up to a sampling variance to the size of the errors themselves.

    The truth's own error is independent of the estimate's, so ``E[(T - Z_obs)^2] = k^2 s^2 + v``. With k from all
    models, each error is multiplied by ``sqrt(k^2 s^2 / (k^2 s^2 + v))``, which gives it the right variance, and for
    normal errors the right distribution. Where all of v is zero the errors stay as they are.

    Parameters
    ----------
    error, variance, scale : (n_models, n_targets)
        NaN where unknown.
    """
    is_known = ~(np.isnan(error) | np.isnan(variance) | np.isnan(scale))
    if not np.any(variance[is_known] > 0.0):
        return error
    squares, known_variance, expected = (np.where(is_known, part, 0.0) for part in (error**2, variance, scale**2))
    # sums, not means of ratios: a model that answered everything has no scale
    observed = squares.sum(axis=0)
    own = np.maximum(observed - known_variance.sum(axis=0), LEAST_OWN * observed)
    total = expected.sum(axis=0)
    own_variance = expected * np.divide(own, total, out=np.zeros(own.shape), where=total > 0.0)
    both = own_variance + known_variance
    factor = np.sqrt(np.divide(own_variance, both, out=np.ones(both.shape), where=known_variance > 0.0))
    result: FloatArray = error * factor
    return result


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
