"""How good estimates are: pure functions of true and estimated scores."""

import numpy as np
import polars as pl

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import average_ranks

TIE_DIGITS = 12
"""Two sums of the same responses may differ by rounding, which must not break a tie."""


def clustered_mean(values: FloatArray, cluster: IntArray) -> tuple[float, float]:
    """Mean of values (n_values,) and its standard error when they depend on each other within clusters.

    The ratio of sum to number, see `clustered_ratio`; where clusters are of one size, the error is that of the mean of
    the cluster means.

    Parameters
    ----------
    values : (n_values,)
    cluster : (n_values,)
        Whole numbers from 0.
    """
    return clustered_ratio(values, np.ones(values.shape), cluster)


def clustered_ratio(first: FloatArray, second: FloatArray, cluster: IntArray) -> tuple[float, float]:
    """Ratio of the means of paired values (n_values,), and its standard error when clusters depend within.

    ``r = sum_c A_c / sum_c B_c`` with A_c, B_c the sums of a cluster;
    ``SE^2 = C / (C - 1) sum_c (A_c - r B_c)^2 / (sum_c B_c)^2``, the error of a ratio estimate from C clusters of a
    large population (Cochran 1977, chapter 6). NaN with a single cluster, or where `second` sums to nothing.

    Parameters
    ----------
    first, second : (n_values,)
    cluster : (n_values,)
        Whole numbers from 0.
    """
    total = float(np.sum(second))
    if total <= 0.0:
        return float("nan"), float("nan")
    ratio = float(np.sum(first)) / total
    _, index = np.unique(cluster, return_inverse=True)
    residual = np.bincount(index, weights=first - ratio * second)
    n_clusters = residual.size
    if n_clusters < 2:
        return ratio, float("nan")
    return ratio, float(np.sqrt(n_clusters / (n_clusters - 1) * np.sum(residual**2))) / total


def ratio_of_sums(first: str, second: str, name: str) -> tuple[pl.Expr, pl.Expr]:
    """`clustered_ratio` of two columns to aggregate groups by, `name` and `name`_se, where every row is a cluster."""
    total, n = pl.col(second).sum().cast(pl.Float64), pl.len().cast(pl.Float64)
    ratio = pl.when(total > 0.0).then(pl.col(first).sum() / total).otherwise(float("nan"))
    squares = ((pl.col(first) - ratio * pl.col(second)) ** 2).sum()
    error = pl.when(n > 1.0).then((n / (n - 1.0) * squares).sqrt() / total).otherwise(float("nan"))
    return ratio.alias(name), error.alias(f"{name}_se")


def spearman(truth: FloatArray, estimates: FloatArray) -> FloatArray:
    """Spearman's rank correlation of each row of estimates with the truth, (n_rows,); ties take the mean rank.

    Parameters
    ----------
    truth, estimates : (n_rows, n_models)

    Returns
    -------
    (n_rows,)
        NaN where all models are tied on one side.
    """
    first = _centred_ranks(truth)
    second = _centred_ranks(estimates)
    spread = np.sqrt(np.sum(first**2, axis=1) * np.sum(second**2, axis=1))
    product = np.sum(first * second, axis=1)
    result: FloatArray = np.divide(product, spread, out=np.full(spread.shape, np.nan), where=spread > 0.0)
    return result


def pair_agreement(truth: FloatArray, estimates: FloatArray) -> tuple[float, float]:
    """Kendall's tau-b of estimates with the truth, and the share of pairs of models put in the right order.

    ``tau_b = sum_pairs s_t s_e / sqrt(n_t n_e)`` with s the sign of a difference and n the pairs without a tie.
    Of the pairs whose true scores differ, one that is tied in the estimates counts as half right.

    Parameters
    ----------
    truth, estimates : (n_models,)

    Returns
    -------
    tau_b, share_right : float
        NaN where all models are tied.
    """
    first, second = np.round(truth, TIE_DIGITS), np.round(estimates, TIE_DIGITS)
    row, column = np.triu_indices(truth.shape[0], k=1)
    s_truth = np.sign(first[row] - first[column])
    s_estimate = np.sign(second[row] - second[column])
    agreement = float(np.sum(s_truth * s_estimate))
    n_truth, n_estimate = int(np.count_nonzero(s_truth)), int(np.count_nonzero(s_estimate))
    tau = agreement / float(np.sqrt(float(n_truth) * n_estimate)) if n_truth and n_estimate else float("nan")
    right = 0.5 + 0.5 * agreement / n_truth if n_truth else float("nan")
    return tau, right


def is_covered(truth: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether intervals (n_values,) hold the truth; their ends may differ from it by rounding."""
    tolerance = 10.0**-TIE_DIGITS
    result: BoolArray = (low - tolerance <= truth) & (truth <= high + tolerance)
    return result


def _centred_ranks(values: FloatArray) -> FloatArray:
    """Ranks within each row, about their mean, (n_rows, n_models)."""
    ranks = np.array([average_ranks(row) for row in np.round(values, TIE_DIGITS)]).reshape(values.shape)
    result: FloatArray = ranks - ranks.mean(axis=1, keepdims=True)
    return result
