"""Pairs of items that models answer as if they were one: kernels on arrays.

The log-likelihood ratio of a pair is ``sum over models of (log(1 - e) if both answers agree, else log(e)) -
(log P_j + log P_k) / 2``: one question asked twice and answered otherwise with probability e, against two questions
that have nothing in common but the abilities they measure. ``P_j`` is the probability of the answer that the model gave
to item j. All pairs are products of matrices, made in blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

SLIP = 0.05
"""e: how often a model answers a question otherwise when asked again."""
NEAREST = 0.02
"""Probabilities lie so far from 0 and 1 at least: two answers that nearly all models give alike prove nothing."""
MODELS_A_FACTOR, MOST_FACTORS = 50, 4
"""Models it takes to tell one residual factor from chance, and how many factors are used at most."""
ROWS, COLUMNS = 1024, 4096
"""Pairs whose ratios are in memory at once: 17 MB."""
CELLS_AT_ONCE = 2**20
"""Cells whose temporaries are in memory at once: 8 MB each."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of items, the most alike first."""

    first: IntArray  # (n_pairs,): Indices of items; the first is the smaller
    second: IntArray  # (n_pairs,)
    log_ratio: FloatArray  # (n_pairs,): Log-likelihood ratio: the same question, against two
    n_shared: IntArray  # (n_pairs,): Models that answered both, and that answered both alike
    n_agree: IntArray  # (n_pairs,)


def with_residual_factors(probability: FloatArray, values: FloatArray | BoolArray, observed: BoolArray) -> FloatArray:
    """Add to probabilities what leading factors of the residuals explain, (n_models, n_items).

    Where models are siblings, or a benchmark measures more than one ability, many pairs of items agree more than one
    ability explains; that is no reason to call them duplicates.

    Parameters
    ----------
    probability : (n_models, n_items)
        What ability explains.
    values, observed : (n_models, n_items)
        Responses, or which of them are right; and where there is one.
    """
    n_factors = min(MOST_FACTORS, values.shape[0] // MODELS_A_FACTOR)
    if n_factors == 0:
        return _clipped(probability)
    residual = np.empty(values.shape)
    for rows in _runs_of_models(values.shape):
        p, is_known = _clipped(probability[rows]), observed[rows]
        deviation = (values[rows] - p) / np.sqrt(p * (1.0 - p))
        residual[rows] = np.where(is_known, deviation, 0.0)
    _, vectors = np.linalg.eigh(residual @ residual.T)
    leading = vectors[:, -n_factors:]
    factors = leading.T @ residual
    del residual  # as large as the result
    result: FloatArray = leading @ factors
    for rows in _runs_of_models(values.shape):
        p = _clipped(probability[rows])
        result[rows] = _clipped(p + np.sqrt(p * (1.0 - p)) * result[rows])
    return result


def duplicate_pairs(
    values: FloatArray | BoolArray, observed: BoolArray, probability: FloatArray, least: float
) -> Pairs:
    """Find all pairs whose log-likelihood ratio is at least so much.

    Parameters
    ----------
    values, observed, probability : (n_models, n_items)
        Responses in [0, 1], or which of them are right; where there is one; and how probable a right answer was.
    least : float
    """
    sign, half = np.empty(values.shape, dtype=np.float32), np.empty(values.shape, dtype=np.float32)
    for rows in _runs_of_models(values.shape):
        p, is_known = probability[rows], observed[rows]
        sign[rows] = np.where(is_known, 2.0 * values[rows] - 1.0, 0.0)
        half[rows] = np.where(is_known, 0.5 * np.where(sign[rows] > 0.0, np.log(p), np.log1p(-p)), 0.0)
    known = None if observed.all() else observed.astype(np.float32)
    found = [part for part in _blocks(sign, half, known, least) if part[0].size]
    if not found:
        empty = np.empty(0, dtype=np.int64)
        return Pairs(empty, empty, np.empty(0), empty, empty)
    first, second, ratio = (np.concatenate(one) for one in zip(*found, strict=True))
    order = np.lexsort((second, first, -ratio.round(3)))
    first, second, ratio = first[order], second[order], ratio[order]
    shared = observed[:, first] & observed[:, second]
    agree = shared & ((sign[:, first] > 0.0) == (sign[:, second] > 0.0))
    return Pairs(first, second, ratio, shared.sum(axis=0), agree.sum(axis=0))


def _clipped(probability: FloatArray) -> FloatArray:
    result: FloatArray = np.clip(probability, NEAREST, 1.0 - NEAREST)
    return result


def _runs_of_models(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut the models, so that no temporary is as large as all answers."""
    step = max(1, CELLS_AT_ONCE // shape[1])
    return (slice(first, first + step) for first in range(0, shape[0], step))


def _blocks(
    sign: FloatArray, half: FloatArray, known: FloatArray | None, least: float
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Give the pairs of each block of the upper triangle whose ratio suffices."""
    n_models, n_items = sign.shape
    # agreement is (shared + product of signs) / 2, and disagreement (shared - product of signs) / 2
    per_sign, per_shared = 0.5 * np.log((1.0 - SLIP) / SLIP), 0.5 * np.log((1.0 - SLIP) * SLIP)
    own = half.sum(axis=0)
    for start in range(0, n_items, ROWS):
        rows = slice(start, min(start + ROWS, n_items))
        for begin in range(start, n_items, COLUMNS):
            columns = slice(begin, min(begin + COLUMNS, n_items))
            ratio = sign[:, rows].T @ sign[:, columns]
            ratio *= np.float32(per_sign)
            if known is None:
                ratio += np.float32(per_shared * n_models) - own[rows, None]
                ratio -= own[columns]
            else:
                ratio += known[:, rows].T @ (np.float32(per_shared) * known[:, columns] - half[:, columns])
                ratio -= half[:, rows].T @ known[:, columns]
            i, j = np.nonzero(ratio >= least)
            is_upper = i + start < j + begin
            i, j = i[is_upper], j[is_upper]
            yield i + start, j + begin, ratio[i, j].astype(np.float64)
