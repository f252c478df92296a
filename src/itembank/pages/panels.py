"""Parts of Vega-Lite specs that several pages share. Names of strangers are data here, never part of an expression."""

from collections.abc import Sequence
from typing import Any

from itembank.pages.charts import Spec
from itembank.pages.theme import CATEGORIES

PANEL_WIDTH = 240
"""Least pixels of a panel beside others; a narrow page puts fewer of them side by side."""
MOST_COLOURS = len(CATEGORIES) - 1
"""Of things that a picture tells apart by colour; the last colour is that of text."""


def across(field: str, title: str = "", *, form: str = "", **more: Any) -> Spec:
    """Return a channel of numbers; `form` is how its axis writes them, as d3 does: '%', '.2f'."""
    axis: Spec = {"title": title or None}
    if form:
        axis["format"] = form
    return {"field": field, "type": "quantitative", "axis": {**axis, **more.pop("axis", {})}, **more}


def in_order(field: str, place: str, title: str = "", **axis: Any) -> Spec:
    """Return a channel of names that stand in the order of the column `place`."""
    look = {"title": title or None, "labelLimit": 190, **axis}
    return {"field": field, "type": "nominal", "sort": {"field": place, "op": "min"}, "axis": look}


def ruled(channel: str, value: float, **mark: Any) -> Spec:
    """Return a line of reference across the picture."""
    look = {"type": "rule", "strokeDash": [4, 3], "color": "@muted", **mark}
    return {"data": {"values": [{}]}, "mark": look, "encoding": {channel: {"datum": value}}}


def marked(kind: str, encoding: Spec, *steps: Spec, **look: Any) -> Spec:
    """Return a layer of marks of one kind, of the rows that `steps` (filters) leave."""
    made: Spec = {"mark": {"type": kind, **look}, "encoding": encoding}
    return {"transform": list(steps), **made} if steps else made


def panels(
    field: str, place: str, *parts: Spec, height: int = 190, most: int = 3, labels: int = 56, **more: Any
) -> Spec:
    """Return a small picture for each name in `field`, in the order of `place`, at most `most` in a row.

    `labels` are the pixels that the labels of the vertical axis take.
    """
    header = {"title": None, "labelLimit": 230, "labelAnchor": "start"}
    facet = {"field": field, "type": "nominal", "sort": {"field": place, "op": "min"}, "header": header}
    one = {"widthOf": most, "least": PANEL_WIDTH, "labels": labels, "height": height, "layer": list(parts)}
    return {"facet": facet, "columns": most, "spacing": 24, "spec": one, **more}


def colours(names: Sequence[str]) -> Spec:
    """Return the scale that gives each name its colour; at most `MOST_COLOURS` names."""
    return {"domain": list(names), "range": [f"@c{k}" for k in range(len(names))]}


def ends(channel: Spec, low: str = "low", high: str = "high", *, along: str = "y") -> Spec:
    """Return the channels of what reaches from one number to another: of a bar of error, of a band."""
    return {along: {**channel, "field": low}, f"{along}2": {"field": high}}


def beside(*parts: Spec, **more: Any) -> Spec:
    """Return pictures side by side, each with a width of its own."""
    return {"hconcat": list(parts), "spacing": 24, **more}


def panel(width: int, height: int, *parts: Spec, title: str = "", data: str = "", **more: Any) -> Spec:
    """Return one of several pictures, of data of its own where these are named."""
    made: Spec = {"width": width, "height": height, "layer": list(parts), **more}
    made |= {"data": {"name": data}} if data else {}
    return {**made, "title": title} if title else made
