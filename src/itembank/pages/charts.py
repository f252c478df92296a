"""Parts of Vega-Lite specifications that charts of several pages share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray

Spec = dict[str, Any]


def number_axis(field: str, title: str, **more: Any) -> Spec:
    """Return the encoding of a number."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def score_axis(field: str, title: str, **more: Any) -> Spec:
    """Return the encoding of a score between 0 and 1, in percent; the axis need not begin at zero."""
    return number_axis(field, title, axis={"format": ".0%", "tickCount": 6}, scale={"zero": False}, **more)


def row_axis(field: str, rows: list[str]) -> Spec:
    """Return the encoding of one row a name, in this order."""
    return {"field": field, "type": "nominal", "sort": rows, "title": None, "axis": {"labelLimit": 130}}


def row_height(n_rows: int, step: int = 20) -> int:
    """Return the height of so many rows."""
    return step * max(n_rows, 1)


def tips(**fields: str | tuple[str, str]) -> list[Spec]:
    """Return what is shown where the pointer rests: titles, or (title, number format), by field."""
    return [
        {"field": name, "title": given} if isinstance(given, str) else _number_tip(name, *given)
        for name, given in fields.items()
    ]


def layer(mark: Mapping[str, Any], data: str = "", **encoding: Any) -> Spec:
    """Return one layer of a chart, of data of its own where these are named."""
    made: Spec = {"mark": dict(mark), "encoding": encoding}
    return {"data": {"name": data}, **made} if data else made


def layers(*parts: Spec | Sequence[Spec], **more: Any) -> Spec:
    """Return a chart as wide as its place, of these layers."""
    flat = [one for part in parts for one in ([part] if isinstance(part, dict) else part)]
    return {"width": "container", "layer": flat, **more}


def brushed(spec: Spec) -> Spec:
    """Let a rectangle be drawn in a layer or chart, which filters the table next to it."""
    return {**spec, "params": [{"name": "brush", "select": "interval"}]}


def quartiles_along(x: FloatArray, y: FloatArray, *, most: int = 8, least: int = 5) -> dict[str, FloatArray]:
    """Return the middle half of y in ranges of x that hold about as many points each.

    Returns
    -------
    mapping
        `place` (median of x), `low`, `middle`, `high` (quartiles of y), each (n_ranges,); empty where there are too few
        points for two ranges of `least`.
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    n_ranges = min(most, x.size // least)
    ends = np.unique(np.quantile(x, np.linspace(0.0, 1.0, n_ranges + 1))) if n_ranges > 1 else np.zeros(0)
    number = np.searchsorted(ends[1:-1], x, side="right") if ends.size else np.zeros(x.size)
    parts = [number == k for k in range(max(ends.size - 1, 0)) if np.sum(number == k) >= least]
    if len(parts) < 2:
        parts = []
    quartiles = np.array([np.quantile(y[part], [0.25, 0.5, 0.75]) for part in parts]).reshape(-1, 3)
    place = np.array([np.median(x[part]) for part in parts])
    return {"place": place, "low": quartiles[:, 0], "middle": quartiles[:, 1], "high": quartiles[:, 2]}


def _number_tip(name: str, title: str, number_format: str) -> Spec:
    return {"field": name, "title": title, "type": "quantitative", "format": number_format}
