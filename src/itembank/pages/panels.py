"""Parts of Vega-Lite specs that several pages share. Names of strangers are data here, never part of an expression."""

from collections.abc import Sequence
from typing import Any

from itembank.reports.theme import CATEGORIES

Spec = dict[str, Any]
LABEL_PIXELS = 13.0
"""Between the middles of two labels that do not touch."""
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


def tips(*columns: tuple[str, str] | tuple[str, str, str]) -> list[Spec]:
    """Return what the pointer shows: (field, title) or (field, title, format)."""
    return [
        {"field": field, "title": title, **({"format": form[0], "type": "quantitative"} if form else {})}
        for field, title, *form in columns
    ]


def ruled(channel: str, value: float, **mark: Any) -> Spec:
    """Return a line of reference across the picture."""
    look = {"type": "rule", "strokeDash": [4, 3], "color": "@muted", **mark}
    return {"data": {"values": [{}]}, "mark": look, "encoding": {channel: {"datum": value}}}


def layers(*parts: Spec, height: int | Spec, **more: Any) -> Spec:
    """Return one picture of several layers, as wide as its place."""
    return {"width": "container", "height": height, "layer": list(parts), **more}


def panels(field: str, place: str, *parts: Spec, height: int = 190, most: int = 3, labels: int = 56, **more: Any) -> Spec:
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


def spread_labels(values: Sequence[float], *, span: float, height: float) -> list[float]:
    """Return where labels at these values stand so that none covers another, in the same order.

    `span` is what the axis spans and `height` its pixels. Labels too near to each other are pushed apart evenly around
    their mean, group by group, as least squares under a least distance would put them.
    """
    if not values:
        return []
    gap = LABEL_PIXELS * span / height
    order = sorted(range(len(values)), key=lambda k: values[k])
    groups: list[tuple[float, int]] = []  # mean of value less its place in steps of the gap, and how many
    for place, k in enumerate(order):
        groups.append((values[k] - place * gap, 1))
        while len(groups) > 1 and groups[-1][0] < groups[-2][0]:
            (second, n_second), (first, n_first) = groups.pop(), groups.pop()
            groups.append(((first * n_first + second * n_second) / (n_first + n_second), n_first + n_second))
    starts = [start for start, size in groups for _ in range(size)]
    spread = [0.0] * len(values)
    for place, k in enumerate(order):
        spread[k] = starts[place] + place * gap
    return spread
