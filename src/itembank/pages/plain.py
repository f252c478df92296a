"""Columns of data, and specifications of charts, as JSON and Vega can hold them."""

import math
from collections.abc import Mapping
from typing import Any

from itembank.errors import visible

Columns = Mapping[str, Any]
"""Of a table: lists, numpy arrays or polars columns of equal length."""
DIGITS = 5
"""Significant digits of numbers in a page."""


def plain_columns(columns: Columns) -> dict[str, list[Any]]:
    """Return a table's columns as lists: five significant digits, None for what is unknown."""
    return {name: _plain(values) for name, values in columns.items()}


def plain_spec(part: Any) -> Any:
    """Return a specification whose names are written as those of `plain_columns`.

    Vega writes names of families and scenarios into expressions, where a line separator ends the line.
    """
    if isinstance(part, Mapping):
        return {name: plain_spec(one) for name, one in part.items()}
    if isinstance(part, list | tuple):
        return [plain_spec(one) for one in part]
    return visible(part) if isinstance(part, str) else part


def _plain(values: Any) -> list[Any]:
    return [_short(one) for one in (values.tolist() if hasattr(values, "tolist") else values)]


def _short(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        rounded = float(f"{value:.{DIGITS}g}")
        return int(rounded) if rounded.is_integer() else rounded
    return visible(value) if isinstance(value, str) else value
