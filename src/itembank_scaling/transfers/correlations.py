"""Correlations between columns that models share, with intervals: arrays only.

Pairs of columns are in the order of ``numpy.triu_indices(n_columns, 1)``. NaN is missing, pair by pair.
"""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_reach


@dataclass(frozen=True, slots=True)
class WithInterval:
    """Values and the ends of their intervals, all of one shape; NaN where unknown."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray


def pairs(n_columns: int) -> tuple[IntArray, IntArray]:
    """First and second column of every pair, each (n_pairs,)."""
    return np.triu_indices(n_columns, k=1)


def pair_counts(values: FloatArray) -> IntArray:
    """Count the models that have both values of each pair, (n_pairs,), from values (n_models, n_columns)."""
    first, second = pairs(values.shape[1])
    known = ~np.isnan(values)
    result: IntArray = (known[:, first] & known[:, second]).sum(axis=0)
    return result


def weighted_correlations(
    values: FloatArray,  # (n_models, n_columns)
    weights: FloatArray,  # (n_draws, n_models): How many times each model counts
) -> FloatArray:
    """Pearson correlation of every pair for every set of weights, (n_draws, n_pairs); NaN without variance."""
    first, second = pairs(values.shape[1])
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    centred = np.where(known, values - np.where(known, values, 0.0).sum(axis=0) / np.maximum(counts, 1), 0.0)
    # centred at the mean of the whole column, so that E[x^2] - E[x]^2 below loses few digits
    both = (known[:, first] & known[:, second]).astype(np.float64)
    x, y = centred[:, first] * both, centred[:, second] * both  # (n_models, n_pairs)
    n = weights @ both  # (n_draws, n_pairs)
    # a draw of models whose variance is a smaller fraction of the column's variance has no correlation; it is
    # rounding
    smallest_share = 1e-12
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = (weights @ x) / n, (weights @ y) / n
        variance_x = (weights @ x**2) / n - mean_x**2
        variance_y = (weights @ y**2) / n - mean_y**2
        covariance = (weights @ (x * y)) / n - mean_x * mean_y
        floor = smallest_share * np.maximum((centred**2).sum(axis=0) / np.maximum(counts, 1), 1e-300)
        has_spread = (variance_x > floor[first]) & (variance_y > floor[second])
        result: FloatArray = covariance / np.sqrt(np.where(has_spread, variance_x * variance_y, np.nan))
    return np.clip(result, -1.0, 1.0)


def correlations(values: FloatArray) -> FloatArray:
    """Pearson correlation of every pair of columns, (n_pairs,)."""
    result: FloatArray = weighted_correlations(values, np.ones((1, values.shape[0])))[0]
    return result


def residuals(values: FloatArray, covariate: FloatArray) -> FloatArray:
    """Take from each column its least-squares line in a covariate (n_models,); NaN where either is missing."""
    known = ~np.isnan(values) & ~np.isnan(covariate)[:, None]
    n = np.maximum(known.sum(axis=0), 1)
    x = np.where(known, covariate[:, None], 0.0)
    x = np.where(known, x - x.sum(axis=0) / n, 0.0)
    y = np.where(known, values, 0.0)
    mean = y.sum(axis=0) / n
    y = np.where(known, y - mean, 0.0)
    spread = (x**2).sum(axis=0)
    slope = np.divide((x * y).sum(axis=0), spread, out=np.zeros_like(spread), where=spread > 0.0)
    return np.where(known, y - slope * x, np.nan)


def fisher_interval(
    correlation: FloatArray, n_models: IntArray, level: float, *, n_covariates: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Interval of correlations by Fisher's z (1915): ``tanh(atanh r -+ q / sqrt(n - 3))``; NaN for n < 4.

    Each covariate that was taken out costs one model.
    """
    free = n_models - 3 - n_covariates
    with np.errstate(invalid="ignore", divide="ignore"):
        half = normal_reach(level) / np.sqrt(np.where(free > 0, free, np.nan))
        centre = np.arctanh(correlation)
        return np.tanh(centre - half), np.tanh(centre + half)


def resampling_weights(group_index: IntArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw whole groups of models with replacement: how often each model counts, (n_draws, n_models)."""
    n_groups = int(group_index.max()) + 1
    counts = rng.multinomial(n_groups, np.full(n_groups, 1.0 / n_groups), size=n_draws)
    return counts[:, group_index].astype(np.float64)


def quantile_interval(draws: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Central interval of draws (n_draws, n_pairs), leaving NaN draws out; NaN where nothing remains."""
    is_empty = np.isnan(draws).all(axis=0)
    filled = np.where(is_empty, 0.0, draws)
    low, high = np.nanquantile(filled, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return np.where(is_empty, np.nan, low), np.where(is_empty, np.nan, high)


def reliabilities(values: FloatArray, standard_errors: FloatArray) -> FloatArray:
    """Share of the true variance that posterior means show, ``var / (var + mean SE^2)``, (n_columns,).

    Posterior means vary less than what they estimate, by the mean posterior variance (law of total variance).
    """
    known = ~np.isnan(values)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / n
    variance = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / n
    noise = np.where(known, standard_errors**2, 0.0).sum(axis=0) / n
    total = variance + noise
    reliability: FloatArray = np.divide(variance, total, out=np.full_like(total, np.nan), where=total > 0.0)
    return reliability


def attenuation(reliability: FloatArray) -> FloatArray:
    """Factor by which errors of the abilities shrink the correlation of each pair, (n_pairs,) (Spearman 1904).

    NaN where a reliability is below 0.2: dividing by a small reliability would only magnify noise.
    """
    first, second = pairs(reliability.shape[0])
    # the correlation of two scenarios known so poorly would be multiplied by five or more, and its error with it
    least_reliability = 0.2
    enough = np.where(reliability < least_reliability, np.nan, reliability)
    result: FloatArray = np.sqrt(enough[first] * enough[second])
    return result


def square(of_pairs: FloatArray, n_columns: int, *, diagonal: float = 1.0) -> FloatArray:
    """Symmetric matrix (n_columns, n_columns) of what belongs to each pair."""
    first, second = pairs(n_columns)
    result = np.full((n_columns, n_columns), diagonal)
    result[first, second] = of_pairs
    result[second, first] = of_pairs
    return result
