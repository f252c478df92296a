"""Cells of tables as text; `assets/page.js` writes the same for the rows that are not shown at first."""

import math
from typing import Any

from itembank.errors import visible
from itembank.pages.blocks import Column

ABSENT = "–"


def cell(value: Any, column: Column) -> str:
    """Return how one value is written."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    match column.kind:
        case "number":
            return f"{value:.{column.digits}f}".replace("-", "−")
        case "percent":
            return f"{100.0 * value:.{column.digits}f} %"
        case "points":
            return f"{100.0 * value:+.{column.digits}f}".replace("-", "−")
        case "count":
            return f"{value:,.0f}"
        case "flag":
            return "yes" if value else "no"
        case _:
            return visible(str(value))


def is_number(column: Column) -> bool:
    """Return whether the column's cells stand at the right."""
    return column.kind in {"number", "percent", "points", "count"}
