"""Choices and ranks that rounding does not make.

The last digits of a sum depend on the order in which a processor adds up. Where two candidates are equal but for
these, the better one would be another on another computer, and all that follows from it too. So values count as equal
up to a millionth of the largest, a thousand times what rounding leaves of a fitted parameter and far less than matters,
and the first of equals is taken: callers put candidates in an order that means something, of ids for one.
"""

from collections.abc import Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray

RELATIVE = 2.0**-20
"""Differences up to this fraction of the largest absolute value count as none."""


def first_largest(values: FloatArray) -> IntArray:
    """Index (...,) of the first largest value along the last axis; minus infinity is never equal to a number."""
    least, most = values.min(axis=-1, keepdims=True), values.max(axis=-1, keepdims=True)
    result: IntArray = np.argmax(values >= most - _width(values, least, most), axis=-1)
    return result


def first_smallest(values: FloatArray) -> IntArray:
    """Index of the first of the smallest values along the last axis, (...,); infinity is never equal to a number."""
    least, most = values.min(axis=-1, keepdims=True), values.max(axis=-1, keepdims=True)
    result: IntArray = np.argmax(values <= least + _width(values, least, most), axis=-1)
    return result


def _width(values: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """How far equal values lie apart at most, (..., 1), given the least and the most of them, (..., 1) each."""
    largest = np.maximum(np.abs(least), np.abs(most))
    if not np.isfinite(largest).all():
        # Callers mark what must not be taken by infinity; it says nothing of how wide ties are.
        largest = np.where(np.isfinite(values), np.abs(values), 0.0).max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(RELATIVE * largest)


def id_order(ids: Sequence[str]) -> IntArray:
    """Positions of ids from first to last, (n,): an order that does not depend on how a table was sorted."""
    return np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1 of values (n,); equal values share the mean of their ranks."""
    ordered = np.sort(values)
    return 0.5 * (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right") + 1.0)


def rounded(values: FloatArray) -> FloatArray:
    """Round to a grid of the width of what counts as equal, so that sorting leaves equals in their order.

    Two values that are equal but for rounding hardly ever end up at neighbouring points of the grid. Its width is a
    power of two, so that halves, quarters and the like lie on it and not between.
    """
    is_finite = np.isfinite(values)
    largest = float(np.max(np.abs(values), where=is_finite, initial=0.0))
    if largest == 0.0:
        return values
    width = RELATIVE * 2.0 ** np.ceil(np.log2(largest))
    return np.where(is_finite, np.round(values / width) * width, values)


def clearly_best(errors: Sequence[FloatArray]) -> int:
    """Return the number of the first candidate, unless another is better by more than a standard error.

    Of the mean of paired differences: all candidates have errors, or other losses, on the same models, (n_models,) each
    and NaN where unknown.
    """
    known = [each[~np.isnan(each)] for each in errors]
    best = int(np.argmin([float(one.mean()) if one.size else np.inf for one in known]))
    saving = errors[0] - errors[best]
    saving = saving[~np.isnan(saving)]
    if saving.size < 2:
        return best
    doubt = float(np.std(saving, ddof=1) / np.sqrt(saving.size))
    return best if float(saving.mean()) > doubt else 0


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
