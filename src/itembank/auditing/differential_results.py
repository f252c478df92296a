"""`DifferentialItems`: items that behave differently for a group of models, and what that does to scores."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class DifferentialItems(Tabular):
    """What a column of the model table explains of answers beyond ability.

    Attributes
    ----------
    column : str
    level : float
        False flags to be expected among the flagged, at most (Benjamini and Hochberg).
    table : table of one row an item and group, those of the largest effect first
        `item_id`, `scenario`; `group` (for a column of numbers, its name), `n_group` and `n_others` models; `effect` in
        shares of right answers at equal ability (group less others; for numbers per standard deviation), `z`,
        `p_value`, `adjusted_p`; `mh_delta` and `mh_class` of Mantel and Haenszel (A small, B, C large; null for
        numbers); `is_flagged`.
    scores : table of one row a scenario and group
        `score_effect`: difference of scores at equal overall ability; `n_items`, `n_flagged`; `flagged_effect`: how
        much of the score's difference the flagged items make.
    notes : tuple of str
        What must be known to read it.
    """

    column: str
    level: float
    table: pl.DataFrame
    scores: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def flagged(self) -> pl.DataFrame:
        """Rows of flagged items."""
        return self.table.filter("is_flagged")

    def rows(self) -> list[dict[str, Any]]:
        """One record an item and group."""
        return self.table.to_dicts()

    def to_polars(self) -> pl.DataFrame:
        """Return the records as a polars table."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "column": self.column,
            "level": self.level,
            "n_flagged": self.flagged.height,
            "scores": self.scores.to_dicts(),
            "notes": list(self.notes),
        }
