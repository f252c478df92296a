"""The verb `find_duplicates`, and its result: items that models answer as if they were one question."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.data.arguments import GivenResponses
from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.diagnostics.differential_items import responses_of
from itembank.diagnostics.duplicate_pairs import duplicate_pairs, with_residual_factors
from itembank.diagnostics.item_evidence import ItemEvidence, item_evidence
from itembank.diagnostics.panel import Panel, panel_of
from itembank.numerics.arrays import FloatArray
from itembank.numerics.threads import one_blas_thread
from itembank.tabular import Tabular

REVIEW = 3.0
"""Pairs whose log-likelihood ratio falls this much short of a flag are listed for review."""


@dataclass(frozen=True, slots=True, repr=False)
class Duplicates(Tabular):
    """Pairs of items that look like one question.

    Attributes
    ----------
    threshold : float
        Log-likelihood ratio from which a pair is flagged: the logarithm of the number of pairs.
    table : table of pairs, the most alike first
        `item_id`, `duplicate_of` (the one that stands first in the item table), `log_ratio`, `n_models` that answered
        both, `n_agree`, and `verdict`: duplicate, or review.
    """

    threshold: float
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
        return {"threshold": self.threshold, **{f"n_{name}": count for name, count in counts.items()}}


@one_blas_thread()
def find_duplicates(source: Bank | GivenResponses) -> Duplicates:
    """Find pairs of items that models answer as if they were one question.

    For every pair the likelihood of one question asked twice, answered otherwise one time in twenty, is set against
    that of two questions which share nothing but the abilities they measure. Pairs of easy items cannot be found: all
    models answer both alike anyway.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path or paths
        Of a bank, its calibration responses. Responses between 0 and 1 are taken as right from one half on.

    Returns
    -------
    Duplicates

    Raises
    ------
    DataError
        With fewer than five models.

    Examples
    --------
    >>> find_duplicates("responses.parquet").to_polars()  # doctest: +SKIP
    """
    responses = responses_of(source, "Finding duplicates")
    panel = panel_of(responses)
    return duplicates_of(responses, panel, item_evidence(panel))


def duplicates_of(responses: ResponseMatrix, panel: Panel, evidence: ItemEvidence) -> Duplicates:
    """Do the work of `find_duplicates` on responses whose abilities and curves are known."""
    n_pairs = max(responses.n_items * (responses.n_items - 1) / 2.0, 1.0)
    threshold = float(np.log(n_pairs))
    values = np.where(panel.observed, (panel.values >= 0.5).astype(np.float64), np.nan)
    probability = with_residual_factors(_probability(panel, evidence), values, panel.observed)
    pairs = duplicate_pairs(values, panel.observed, probability, threshold - REVIEW)
    ids = responses.items["item_id"]
    table = pl.DataFrame(
        {
            "item_id": ids[pairs.second],
            "duplicate_of": ids[pairs.first],
            "log_ratio": pairs.log_ratio,
            "n_models": pairs.n_shared,
            "n_agree": pairs.n_agree,
            "verdict": np.where(pairs.log_ratio > threshold, "duplicate", "review"),
        }
    )
    return Duplicates(threshold, table)


def _probability(panel: Panel, evidence: ItemEvidence) -> FloatArray:
    """Probability of a right answer by ability alone, (n_models, n_items)."""
    return np.asarray(expit(panel.theta[:, panel.group] * evidence.slope + evidence.intercept))
