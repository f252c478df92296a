"""Rank correlations."""

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import average_ranks


def spearman(
    truth: FloatArray,  # (n_rows, n_models)
    estimates: FloatArray,  # (n_rows, n_models)
) -> FloatArray:
    """Spearman's rank correlation of each row of estimates with the truth, (n_rows,); ties take the mean rank.

    Returns (n_rows,): NaN where all models are tied on one side.
    """
    first = _centred_ranks(truth)
    second = _centred_ranks(estimates)
    spread = np.sqrt(np.sum(first**2, axis=1) * np.sum(second**2, axis=1))
    product = np.sum(first * second, axis=1)
    result: FloatArray = np.divide(product, spread, out=np.full(spread.shape, np.nan), where=spread > 0.0)
    return result


def _centred_ranks(values: FloatArray) -> FloatArray:
    """Ranks within each row, about their mean, (n_rows, n_models)."""
    # Two sums of the same responses may differ by rounding, which must not break a tie.
    tie_digits = 12
    ranks = np.array([average_ranks(row) for row in np.round(values, tie_digits)]).reshape(values.shape)
    result: FloatArray = ranks - ranks.mean(axis=1, keepdims=True)
    return result
