"""Parts of charts that show scores with their intervals."""

from collections.abc import Sequence
from typing import Any

from itembank.pages.blocks import Data
from itembank.pages.charts import Spec, layer

HOLLOW: Spec = {"condition": {"test": {"field": "is_flagged", "equal": True}, "value": "@paper"}, "value": "@main"}
"""Fill of marks of the field 'is_flagged': hollow for models that answered unlike past ones."""
ROW_HEIGHT = 22
PRECISE = ".1%"
"""How scores are written where the pointer rests."""


def share(field: str, title: str = "", **more: Any) -> Spec:
    """Return the encoding of a score or share between 0 and 1, written in percent."""
    return {"field": field, "type": "quantitative", "title": title, "axis": {"format": "%", "tickCount": 6}, **more}


def row_of(field: str, *, label_limit: int = 150, **more: Any) -> Spec:
    """Return the vertical place of what has a row of its own, in the order of the data."""
    axis = {"labelLimit": label_limit, "grid": False}
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis, **more}


def interval_marks(
    data: Data, place: Spec, told: Sequence[Spec], *, title: str = "Overall score", along: str = "x"
) -> list[Spec]:
    """Return intervals ('low' to 'high') with their estimates ('estimate') as points, hollow where flagged."""
    across = "y" if along == "x" else "x"
    value = share("estimate", title, scale={"zero": False})
    ends = {along: {**value, "field": "low"}, f"{along}2": {"field": "high"}, across: place, "tooltip": list(told)}
    point = {"type": "point", "size": 70, "strokeWidth": 1.8, "stroke": "@main", "filled": True, "opacity": 1}
    return [
        layer({"type": "rule", "color": "@main", "strokeWidth": 2.5}, data.name, **ends),
        layer(point, data.name, **{along: value, across: place, "fill": HOLLOW, "tooltip": list(told)}),
    ]
