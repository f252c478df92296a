"""Errors over models, and how sure they are: models are drawn again, and count as often as they were tested."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import beta

DRAWS = 1000
ROUNDING = 1e-12
"""An interval that misses by less holds."""


@dataclass(frozen=True, slots=True)
class Resampled:
    """A number, and what it is with other models like these, (n_draws,)."""

    value: float
    draws: np.ndarray

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.std(self.draws, ddof=1))

    def __truediv__(self, other: "Resampled") -> "Resampled":
        """Return the ratio; both must come from the same draws of models."""
        return Resampled(self.value / other.value, self.draws / other.draws)

    def __str__(self) -> str:
        """Say both, as tables do."""
        return f"{self.value:.2f} ± {self.error:.2f}"


def mean_error(estimates: pl.DataFrame, seed: int = 0) -> Resampled:
    """Return the mean absolute error in points of one method in one cell.

    Draws depend on the seed and the number of models alone, so that errors of two methods on the same models go
    together.

    Parameters
    ----------
    estimates : table
        `model_id`, `truth` and `estimate`.
    seed : int
    """
    error = (pl.col("estimate") - pl.col("truth")).abs()
    by_model = estimates.group_by("model_id").agg(error.sum(), pl.len()).sort("model_id").drop("model_id").to_numpy()
    rows = np.random.default_rng(seed).integers(by_model.shape[0], size=(DRAWS, by_model.shape[0]))
    sums = by_model[rows].sum(axis=1)
    total = by_model.sum(axis=0)
    return Resampled(100.0 * float(total[0] / total[1]), 100.0 * sums[:, 0] / sums[:, 1])


def geometric_mean(ratios: list[Resampled]) -> Resampled:
    """Return the geometric mean of ratios; those on the same models must come from the same draws (of one seed)."""
    logs = np.log([one.draws for one in ratios]).mean(axis=0)
    return Resampled(float(np.exp(np.mean(np.log([one.value for one in ratios])))), np.exp(logs))


@dataclass(frozen=True, slots=True)
class IntervalQuality:
    """How intervals of one method held.

    Attributes
    ----------
    n_estimates, n_models : int
    error : float
        Mean absolute error, in points.
    coverage, low, high : float
        Share of the intervals that held, and its Clopper-Pearson 95 % interval as if each model, which may have been
        tested several times, were one trial.
    half_width, winkler : float
        Mean half-width and mean interval score, in points.
    """

    n_estimates: int
    n_models: int
    error: float
    coverage: float
    low: float
    high: float
    half_width: float
    winkler: float

    @classmethod
    def of(cls, estimates: pl.DataFrame, *, level: float = 0.95) -> "IntervalQuality":
        """Measure it on a table with `model_id`, `truth`, `estimate`, `low` and `high`."""
        truth, value, low, high = (estimates[name].to_numpy() for name in ("truth", "estimate", "low", "high"))
        missed = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
        coverage, n_models = float(np.mean(missed <= ROUNDING)), estimates["model_id"].n_unique()
        return cls(
            truth.size,
            n_models,
            100.0 * float(np.abs(value - truth).mean()),
            coverage,
            *clopper_pearson(coverage * n_models, n_models),
            50.0 * float(np.mean(high - low)),
            100.0 * float(np.mean(high - low + 2.0 / (1.0 - level) * missed)),
        )


def clopper_pearson(n_held: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share of which `n_held` of n trials are known; parts of trials count, too."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if n_held <= ROUNDING else float(beta.ppf(tail, n_held, n - n_held + 1))
    high = 1.0 if n_held >= n - ROUNDING else float(beta.ppf(1.0 - tail, n_held + 1, n - n_held))
    return low, high
