"""Cells of tables as text; `assets/page.js` writes the same for the rows that are not shown at first."""

import math
from collections.abc import Callable
from typing import Any

from itembank.errors import visible
from itembank.pages.blocks import Column

ABSENT = "–"


WRITTEN: dict[str, Callable[[Any, int], str]] = {
    "number": lambda value, digits: _minus(f"{value:.{digits}f}"),
    "percent": lambda value, digits: f"{_minus(f'{100.0 * value:.{digits}f}')} %",
    "points": lambda value, digits: _minus(f"{100.0 * value:+.{digits}f}"),
    "count": lambda value, _: f"{value:,.0f}",
    "flag": lambda value, _: "yes" if value else "no",
}


def cell(value: Any, column: Column) -> str:
    """Return how one value is written."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    write = WRITTEN.get(column.kind)
    return visible(str(value)) if write is None else write(value, column.digits)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def is_number(column: Column) -> bool:
    """Return whether the column's cells stand at the right."""
    return column.kind in {"number", "percent", "points", "count"}
