"""Tables of studies of either kind: a row a method, a column a size, and a standard error after each number."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]


def wide(
    table: "pl.DataFrame", keys: Sequence[str], column: Callable[[Row], str], cell: Callable[[Row], str]
) -> list[Row]:
    """One row for all rows with the same keys; each of them gives a cell, and says in which column."""
    rows: dict[tuple[object, ...], Row] = {}
    for row in table.iter_rows(named=True):
        names = {key: row[key] for key in keys}
        rows.setdefault(tuple(names.values()), names)[column(row)] = cell(row)
    return list(rows.values())


def number(row: Row, metric: str, *, scale: float = 1.0, digits: int | None = None) -> str:
    """Write a metric of a row and, where there is one, its standard error; three figures where no digits are given."""
    value, error = row[metric], row.get(f"{metric}_se")
    if value is None or math.isnan(value):
        return "-"
    size = abs(scale * value)
    form = f",.{0 if size >= 100.0 else 1 if size >= 10.0 else 2}f" if digits is None else f".{digits}f"
    text = f"{scale * value:{form}}"
    return text if error is None or math.isnan(error) else f"{text} ± {scale * error:{form}}"
