"""`ItemAudit`: what may be wrong with each item, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from itembank.auditing.differential_results import DifferentialItems
from itembank.auditing.item_audit_names import REASONS, SAME_FOR_ALL
from itembank.checks import check_one_of
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class LabelCheck:
    """How well the evidence finds items that are known to be bad, by models that had not seen their group."""

    n_bad: int
    area: float  # Probability that a bad item is ranked before a good one, by its probability of a defect
    first: dict[int, float]  # Share of bad items among so many first that are flagged
    # tuple of (said, real, n_items): Mean probability and share of bad items, by ranges of the probability.
    calibration: tuple[tuple[float, float, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        bins = [{"said": said, "real": real, "n_items": count} for said, real, count in self.calibration]
        return {"n_bad": self.n_bad, "area": self.area, "first": self.first, "calibration": bins}


@dataclass(frozen=True, slots=True, repr=False)
class ItemAudit(Tabular):
    """Items with what may be wrong with each, those most probably defective first.

    Attributes
    ----------
    n_models : int
    order : str
        What items stand in order of.
    table : table of one row an item
        All items, flagged or not: `item_id`, `scenario`, `subscenario`; `reason` (the gravest; null where nothing is
        wrong) and `reasons` (all, with commas); `probability` of a defect; `suspicion`, `key_ratio`, `noise_ratio`,
        `slope`, `slope_error` and `top_logit` (`item_evidence.ItemEvidence`); `n_models`, `mean`, `item_rest`,
        `n_best`, `n_best_right` and `worth` (`item_statistics.ItemStatistics`); `duplicate_of`, `duplicate_ratio`;
        `differs_for`, `differs_by`; with answer letters `rival`, `n_rival`, `n_key`; `evidence`, a sentence; `text`,
        where the item table has one.
    cautions : tuple of str
        Why faults may be hidden, or sound items look faulty.
    labels : LabelCheck or None
        Where known bad items were given.
    differential : DifferentialItems or None
        Where groups of models were compared.
    """

    n_models: int
    order: str
    table: pl.DataFrame
    cautions: tuple[str, ...]
    labels: LabelCheck | None
    differential: DifferentialItems | None

    @property
    def counts(self) -> dict[str, int]:
        """Number of items with each reason; an item may have several."""
        reasons = self.table["reasons"].str.split(", ").explode(empty_as_null=True)
        return {name: int((reasons == name).sum()) for name in REASONS}

    @property
    def flagged(self) -> pl.DataFrame:
        """Rows of items that are flagged: with a reason other than that nobody, or everybody, solves them."""
        return flagged_of(self.table)

    @property
    def said(self) -> str:
        """How many items are flagged, in words."""
        flagged = self.flagged
        n_several = int(flagged["reasons"].str.contains(",", literal=True).sum())
        several = f", {n_several:,} of them for several reasons" if n_several else ""
        return f"{flagged.height:,} of {self.table.height:,} items{several}"

    def having(self, reasons: Sequence[str]) -> pl.DataFrame:
        """Items that have any of these reasons.

        Raises
        ------
        ParameterError
            For a word that is no reason.
        """
        for reason in reasons:
            check_one_of("a reason", reason, REASONS)
        parts = pl.col("reasons").str.split(", ")
        return self.table.filter(parts.list.set_intersection(list(reasons)).list.len() > 0)

    def rows(self) -> list[dict[str, Any]]:
        """One record a flagged item."""
        return self.flagged.to_dicts()

    def to_polars(self) -> pl.DataFrame:
        """Return the flagged items as a polars table; `table` has all."""
        return self.flagged

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        counts = self.counts
        return {
            "n_models": self.n_models,
            "n_items": self.table.height,
            "n_flagged": self.flagged.height,
            "flagged": {name: count for name, count in counts.items() if name not in SAME_FOR_ALL},
            **{f"n_{name}": counts[name] for name in SAME_FOR_ALL},
            "order": self.order,
            "cautions": list(self.cautions),
            "known": None if self.labels is None else self.labels.to_dict(),
            "differential": None if self.differential is None else self.differential.to_dict(),
        }


def flagged_of(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of an audit's table that are flagged."""
    return table.filter(pl.col("reason").is_not_null(), ~pl.col("reason").is_in(SAME_FOR_ALL))
