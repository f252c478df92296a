"""Names of scores and of the ways to make them; without numpy, so that a command's help can list them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

Row = TypeVar("Row", bound=Mapping[str, Any])

OVERALL = "overall"
WIN_RATE = "mean_win_rate"
RESERVED_NAMES = (OVERALL, WIN_RATE)
EXTERNAL = "score."
"""Begins the columns of a bank's model table that hold external scores of its models."""
SELECTION_WEIGHT = "selection_weight"
"""Column of the items of a bank of known parameters: the weight of an item to run in its scenario; empty for others."""

Within = Literal["micro", "macro", "custom"]
Across = Literal["scenarios", "items"]


def without_only_scenario(rows: Sequence[Row]) -> list[Row]:
    """Return rows, one a target, without those of an only scenario whose numbers are those of the overall score."""
    by_target: dict[str, list[Row]] = {}
    for row in rows:
        by_target.setdefault(row["target"], []).append(row)
    others = [name for name in by_target if name not in (*RESERVED_NAMES, "custom")]
    if len(others) != 1 or OVERALL not in by_target or not _are_alike(by_target[others[0]], by_target[OVERALL]):
        return list(rows)
    return [row for row in rows if row["target"] != others[0]]


def _are_alike(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows say the same of two targets, but for rounding."""
    if len(rows) != len(others):
        return False
    for row, other in zip(rows, others, strict=True):
        for name in row.keys() - {"target"}:
            a, b = row[name], other[name]
            is_alike = a == b
            if isinstance(a, float) and isinstance(b, float):
                is_alike = math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))
            if not is_alike:
                return False
    return True
