"""The verb `find_duplicates`, and its result: items that models answer as if they were one question."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.auditing.differential_items import responses_of
from itembank.auditing.duplicate_pairs import duplicate_pairs, with_residual_factors
from itembank.auditing.item_evidence import ItemEvidence, item_evidence
from itembank.auditing.panel import Panel, panel_of
from itembank.bank.arguments import GivenResponses
from itembank.bank.banks import Bank
from itembank.checks import check_not_negative
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular

LEAST_POOL = 200
"""Items that a group counts as at least: among the pairs of many small groups, too, some stand out by chance."""


@dataclass(frozen=True, slots=True, repr=False)
class Duplicates(Tabular):
    """Pairs of items that look like one question.

    Attributes
    ----------
    n_pairs : int
        Pairs that were looked at.
    table : table of pairs, the most alike first
        `item_id`, `duplicate_of` (the one that stands first in the item table), `log_ratio`, the `threshold` from which
        a pair is flagged, `n_models` that answered both, `n_agree`, and `verdict`: duplicate, or review.
    """

    n_pairs: int
    table: pl.DataFrame

    def rows(self) -> list[dict[str, Any]]:
        """One record a pair."""
        return self.table.to_dicts()

    def to_polars(self) -> pl.DataFrame:
        """Return the records as a polars table."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        counts = {name: self.table.filter(verdict=name).height for name in ("duplicate", "review")}
        return {"n_pairs": self.n_pairs, **{f"n_{name}": count for name, count in counts.items()}}


@one_blas_thread()
def find_duplicates(source: Bank | GivenResponses, *, review: float = 3.0) -> Duplicates:
    """Find pairs of items that models answer as if they were one question.

    For every pair the likelihood of one question asked twice, answered otherwise one time in twenty, is set against
    that of two questions which share nothing but the abilities they measure. Pairs of easy items cannot be found: all
    models answer both alike anyway.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path or paths
        Of a bank, its calibration responses. Responses between 0 and 1 are taken as right from one half on.
    review : float
        Pairs whose log-likelihood ratio falls at most this much short of a flag are listed, too, to be looked at.

    Returns
    -------
    Duplicates

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
    responses: ResponseMatrix, panel: Panel, evidence: ItemEvidence, *, review: float = 0.0
) -> Duplicates:
    """Do the work of `find_duplicates` on responses whose abilities and curves are known."""
    is_right = panel.values >= 0.5
    probability = with_residual_factors(_probability(panel, evidence), is_right, panel.observed)
    least = _log_pairs(np.array([LEAST_POOL]))[0] - review
    pairs = duplicate_pairs(is_right, panel.observed, probability, float(least))
    threshold = _thresholds(panel.group, pairs.first, pairs.second)
    ids = responses.items["item_id"]
    table = pl.DataFrame(
        {
            "item_id": ids[pairs.second],
            "duplicate_of": ids[pairs.first],
            "log_ratio": pairs.log_ratio,
            "threshold": threshold,
            "n_models": pairs.n_shared,
            "n_agree": pairs.n_agree,
            "verdict": np.where(pairs.log_ratio > threshold, "duplicate", "review"),
        }
    )
    n_pairs = responses.n_items * (responses.n_items - 1) // 2
    return Duplicates(n_pairs, table.filter(pl.col("log_ratio") >= pl.col("threshold") - review))


def _thresholds(group: IntArray, first: IntArray, second: IntArray) -> FloatArray:
    """Logarithm of the number of pairs among which each pair would stand out by chance: its group's, or all."""
    n_items = np.where(group[first] == group[second], np.bincount(group)[group[first]], group.size)
    return _log_pairs(np.maximum(n_items, LEAST_POOL))


def _log_pairs(n_items: IntArray) -> FloatArray:
    return np.log(n_items * (n_items - 1.0) / 2.0)


def _probability(panel: Panel, evidence: ItemEvidence) -> FloatArray:
    """Probability of a right answer by ability alone, (n_models, n_items)."""
    result: FloatArray = panel.theta[:, panel.group]  # and all else in place: it is as large as the answers
    result *= evidence.slope
    result += evidence.intercept
    return np.asarray(expit(result, out=result))
