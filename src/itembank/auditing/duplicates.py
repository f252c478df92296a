"""Items that models answer as if they were one question: kernels on arrays, the verb `find_duplicates` and its result.

The log-likelihood ratio of a pair is ``sum over models of (log(1 - e) if both answers agree, else log(e)) -
(log P_j + log P_k) / 2``: one question asked twice and answered differently with probability e, against two questions
that have nothing in common but the abilities they measure. ``P_j`` is the probability of the answer that the model gave
to item j. All pairs are products of matrices, made in blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.auditing.differential_items import responses_of
from itembank.auditing.item_evidence import Panel, item_evidence, panel_of
from itembank.bank.arguments import GivenResponses
from itembank.bank.banks import Bank
from itembank.checks import check_not_negative
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular

SLIP = 0.05
"""e: how often a model answers a question differently when asked again."""
NEAREST = 0.02
"""Probabilities lie so far from 0 and 1 at least: two answers that nearly all models give alike prove nothing."""
ROWS, COLUMNS = 1024, 4096
"""Pairs whose ratios are in memory at once: 17 MB."""


def with_residual_factors(
    probability: FloatArray,  # (n_models, n_items): What ability explains
    # (n_models, n_items): Responses, or which of them are right; and where there is one
    values: FloatArray | BoolArray,
    observed: BoolArray,  # (n_models, n_items)
) -> FloatArray:
    """Add to probabilities what leading factors of the residuals explain, (n_models, n_items).

    Where models are siblings, or a benchmark measures more than one ability, many pairs of items agree more than one
    ability explains; that is no reason to call them duplicates.
    """
    n_factors = min(4, values.shape[0] // 50)  # it takes so many models to tell one residual factor from chance
    if n_factors == 0:
        return _clipped(probability)
    residual = np.empty(values.shape)
    for rows in row_blocks(*values.shape):
        p, is_known = _clipped(probability[rows]), observed[rows]
        deviation = (values[rows] - p) / np.sqrt(p * (1.0 - p))
        residual[rows] = np.where(is_known, deviation, 0.0)
    _, vectors = np.linalg.eigh(residual @ residual.T)
    leading = vectors[:, -n_factors:]
    factors = leading.T @ residual
    del residual  # as large as the result
    result: FloatArray = leading @ factors
    for rows in row_blocks(*values.shape):
        p = _clipped(probability[rows])
        result[rows] = _clipped(p + np.sqrt(p * (1.0 - p)) * result[rows])
    return result


def duplicate_pairs(
    # (n_models, n_items): Responses in [0, 1], or which of them are right; where there is one; and how probable a right
    # answer was
    values: FloatArray | BoolArray,
    observed: BoolArray,  # (n_models, n_items)
    probability: FloatArray,  # (n_models, n_items)
    least: float,
) -> pl.DataFrame:
    """Find all pairs whose log-likelihood ratio is at least so much, the most alike first.

    Returns `first` and `second`, indices of items, of which the first is the smaller; `log_ratio`: the same question,
    against two; `n_models` that answered both, and `n_agree` that answered both alike.
    """
    sign, half = np.empty(values.shape, dtype=np.float32), np.empty(values.shape, dtype=np.float32)
    for rows in row_blocks(*values.shape):
        p, is_known = probability[rows], observed[rows]
        sign[rows] = np.where(is_known, 2.0 * values[rows] - 1.0, 0.0)
        half[rows] = np.where(is_known, 0.5 * np.where(sign[rows] > 0.0, np.log(p), np.log1p(-p)), 0.0)
    known = None if observed.all() else observed.astype(np.float32)
    found = zip(*_blocks(sign, half, known, least), strict=True)
    first, second, ratio = (np.concatenate(one) for one in found)
    order = np.lexsort((second, first, -ratio.round(3)))
    first, second, ratio = first[order], second[order], ratio[order]
    shared = observed[:, first] & observed[:, second]
    agree = shared & ((sign[:, first] > 0.0) == (sign[:, second] > 0.0))
    counts = {"n_models": shared.sum(axis=0), "n_agree": agree.sum(axis=0)}
    return pl.DataFrame({"first": first, "second": second, "log_ratio": ratio, **counts})


def _clipped(probability: FloatArray) -> FloatArray:
    return np.clip(probability, NEAREST, 1.0 - NEAREST)


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


@dataclass(frozen=True, slots=True, repr=False)
class Duplicates(Tabular):
    """Pairs of items that look like one question.

    Attributes
    ----------
    n_pairs : int
        Pairs that were looked at.
    table : table of pairs, the most alike first
        `item_id`, `duplicate_of` (the one that is first in the item table), `log_ratio`, the `threshold` from which
        a pair is flagged, `n_models` that answered both, `n_agree`, and `verdict`: duplicate, or review.
    """

    n_pairs: int
    table: pl.DataFrame

    def to_dict(self) -> dict[str, Any]:
        """Return how many pairs there are, and of each verdict."""
        counts = {name: self.table.filter(verdict=name).height for name in ("duplicate", "review")}
        return {"n_pairs": self.n_pairs, **{f"n_{name}": count for name, count in counts.items()}}


@one_blas_thread()
def find_duplicates(source: Bank | GivenResponses, *, review: float = 3.0) -> Duplicates:
    """Find pairs of items that models answer as if they were one question.

    For every pair the likelihood of one question asked twice, answered differently one time in twenty, is set against
    that of two questions which share nothing but the abilities they measure. Pairs of easy items cannot be found: all
    models answer both alike anyway.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path or paths
        Of a bank, its calibration responses. Responses between 0 and 1 are taken as right from one half on.
    review : float
        Pairs whose log-likelihood ratio falls at most this much short of a flag are listed, too, to be looked at.

    Raises
    ------
    DataError
        With fewer than five models.
    ParameterError
        When review is negative.

    Examples
    --------
    >>> find_duplicates("responses.parquet").to_polars()  # doctest: +SKIP
    """
    check_not_negative("review", review)
    responses = responses_of(source, "Finding duplicates needs")
    panel = panel_of(responses)
    return duplicates_of(responses, panel, item_evidence(panel), review=review)


def duplicates_of(
    responses: ResponseMatrix, panel: Panel, evidence: pl.DataFrame, *, review: float = 0.0
) -> Duplicates:
    """Do the work of `find_duplicates` on responses whose abilities and curves are known."""
    is_right = panel.values >= 0.5
    by_ability: FloatArray = panel.theta[:, panel.group]  # and all else in place: it is as large as the answers
    by_ability *= evidence["slope"].to_numpy()
    by_ability += evidence["intercept"].to_numpy()
    probability = with_residual_factors(np.asarray(expit(by_ability, out=by_ability)), is_right, panel.observed)
    # a group counts as so many items at least: among the pairs of many small groups, too, some stand out by chance
    least_pool = 200
    least = _log_pairs(np.array([least_pool]))[0] - review
    pairs = duplicate_pairs(is_right, panel.observed, probability, float(least))
    # the pairs among which each would stand out by chance: those of its group, or all
    first, second = (panel.group[pairs[name].to_numpy()] for name in ("first", "second"))
    n_items = np.where(first == second, np.bincount(panel.group)[first], panel.group.size)
    ids, is_flagged = responses.items["item_id"], pl.col("log_ratio") > pl.col("threshold")
    table = pairs.with_columns(threshold=_log_pairs(np.maximum(n_items, least_pool))).select(
        ids[pairs["second"]].alias("item_id"),
        ids[pairs["first"]].alias("duplicate_of"),
        *("log_ratio", "threshold", "n_models", "n_agree"),
        pl.when(is_flagged).then(pl.lit("duplicate")).otherwise(pl.lit("review")).alias("verdict"),
    )
    n_pairs = responses.n_items * (responses.n_items - 1) // 2
    return Duplicates(n_pairs, table.filter(pl.col("log_ratio") >= pl.col("threshold") - review))


def _log_pairs(n_items: IntArray) -> FloatArray:
    return np.log(n_items * (n_items - 1.0) / 2.0)
