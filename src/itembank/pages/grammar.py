"""The grammar of pictures: channels, marks of them, and pictures of marks. Every chart and figure is written in it.

A line with standard errors, a panel a split::

    x, y = number("size", "Items"), number("error", "Mean error (points)")
    panels("split", "place", marks("rule", x, span(y)), marks("line", x, y, color=shade("method", names)))

A channel is a column and how it is drawn; `span` lets it reach from one column to another. Colours are those of
`theme.COLOURS`, as "@main". Names of strangers are data here, never part of an expression.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from itembank.pages.theme import CATEGORIES

Spec = dict[str, Any]
MOST_COLOURS = len(CATEGORIES) - 1
"""Of things that a picture tells apart by colour; the last colour is that of text."""
PRECISE = ".1%"
"""How scores are written where the pointer rests."""
ENDS = {"low": ("From", PRECISE), "high": ("To", PRECISE)}
ESTIMATE = {"estimate": ("Estimate", PRECISE), **ENDS}
"""What `tips` say of a score with its interval."""
SOLID = [1, 0]
"""The dashes of a line without gaps."""
ROW = 22
"""Pixels of a row, whose name may take two lines."""


def number(
    field: str,
    title: str = "",
    form: str = "",
    *,
    log: bool = False,
    zero: bool | None = None,
    domain: Sequence[float] | None = None,
    scale: Spec | None = None,
    **axis: Any,
) -> Spec:
    """Return a channel of numbers; `form` is how its axis writes them, as d3 does: '.2f', or '%' times 100."""
    scale = {
        **({"type": "log"} if log else {}),
        **({} if zero is None else {"zero": zero}),
        **({} if domain is None else {"domain": list(domain)}),
        **(scale or {}),
    }
    axis = {"title": title or None, **({"format": form} if form else {}), **axis}
    return {"field": field, "type": "quantitative", "axis": axis, **({"scale": scale} if scale else {})}


def score(field: str, title: str = "", **more: Any) -> Spec:
    """Return a channel of scores between 0 and 1, in points; its axis need not begin at zero."""
    return number(field, title, "%", **{"tickCount": 6, **({"zero": False} if "domain" not in more else {}), **more})


OF_OBJECTS = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"}
)
"""What every object of JavaScript has: Vega-Lite draws nothing that is sorted by a list of names with one of these."""


def nominal(field: str, order: str | Sequence[str] | None = None, title: str = "", **axis: Any) -> Spec:
    """Return a channel of names, in the order of a column, of a list, or of the data."""
    sort = {"field": order, "op": "min"} if isinstance(order, str) else order
    axis = {"title": title or None, "labelLimit": 240, **axis}
    if axis.get("labels", True):
        # Longer names are in two lines, with a gap only before their ends, as what tells names apart may be there. On a
        # narrow page `assets/page.js` puts fewer letters in a line.
        n_letters = axis["labelLimit"] // 7
        is_long = f"length(datum.label) > {n_letters}"
        first = f"replace(slice(datum.label, 0, {n_letters}), regexp('(?<=[-_ /:.,@])[^-_ /:.,@]+$'), '')"
        rest = f"slice(datum.label, length({first}))"
        ending = f"length({rest}) > {n_letters} ? '…' + slice(datum.label, 2 - {n_letters}) : {rest}"
        two_lines = {
            "labelExpr": f"{is_long} ? [{first}, {ending}] : datum.label",
            "labelBaseline": {"condition": {"test": is_long, "value": "bottom"}, "value": "middle"},
        }
        axis = {**two_lines, **axis}
    if not isinstance(order, str) and not OF_OBJECTS.isdisjoint(order or ()):
        return {"field": field, "type": "nominal", "sort": None, "scale": {"domain": list(order or ())}, "axis": axis}
    return {"field": field, "type": "nominal", "sort": sort, "axis": axis}


def span(channel: Spec, low: str = "low", high: str | Spec = "high") -> Spec:
    """Return the channel of what reaches from one column to another: of a bar of error, of a band."""
    return {**channel, "field": low, "to": {"field": high} if isinstance(high, str) else high}


def of(channel: Spec, field: str) -> Spec:
    """Return the same channel of another column."""
    return {**channel, "field": field}


def shade(field: str, tones: Mapping[str, Any] | Sequence[str], *, is_told: bool = True, **legend: Any) -> Spec:
    """Return the channel of what is told apart by colour (or by dashes): names with their tones, or names alone.

    Of names alone those beyond the colours are grey.
    """
    if not isinstance(tones, Mapping):
        tones = {one: f"@c{k}" if k < len(CATEGORIES) else "@muted" for k, one in enumerate(tones)}
    scale = {"domain": list(tones), "range": list(tones.values())}
    look = {"title": None, "orient": "top", **legend} if is_told else None
    return {"field": field, "type": "nominal", "scale": scale, "legend": look}


def ramp(field: str, title: str = "", *, tones: str = "diverging", legend: Spec | None = None, **scale: Any) -> Spec:
    """Return the channel of a number shown by colour; without a title no legend says what colours stand for."""
    look = {"title": title, "titleLimit": 320, "orient": "bottom", "gradientLength": 200, **(legend or {})}
    scale = {"range": tones, **scale}
    return {"field": field, "type": "quantitative", "scale": scale, "legend": look if title else None}


def when(test: str | Spec, then: object, otherwise: object) -> Spec:
    """Return a channel that has one value where a test holds, and another elsewhere."""
    return {"condition": {"test": test, "value": then}, "value": otherwise}


def equals(field: str, value: object) -> Spec:
    """Return the test that a column has a value; a stranger's name is no part of an expression in it."""
    return {"field": field, "equal": value}


IN_BRUSH: Spec = {"param": "brush"}


def tips(**fields: str | tuple[str, str]) -> list[Spec]:
    """Return what is shown where the pointer rests: titles, or (title, number format), by field."""
    return [
        {"field": field, "title": given}
        if isinstance(given, str)
        else {"field": field, "title": given[0], "type": "quantitative", "format": given[1]}
        for field, given in fields.items()
    ]


def marks(
    kind: str,
    x: Spec | None = None,
    y: Spec | None = None,
    *,
    tip: Sequence[Spec] = (),
    data: str | Sequence[Spec] = "",
    where: str | Spec | Sequence[str | Spec] = (),
    **looks: Any,
) -> Spec:
    """Return a layer of marks of one kind.

    Looks that are channels (`color=shade(...)`) are drawn from columns, others are of the mark (`color="@main"`).
    `data` names other data than the picture's, or is a few rows; `where` leaves the rows for which all tests hold.
    """
    channels = {along: channel for along, channel in (("x", x), ("y", y)) if channel is not None}
    encoding: Spec = {}
    for along, channel in channels.items():
        encoding[along] = {key: value for key, value in channel.items() if key != "to"}
        if "to" in channel:
            encoding[f"{along}2"] = channel["to"]
    encoding |= {key: value for key, value in looks.items() if isinstance(value, Mapping) and key != "point"}
    if tip:
        encoding["tooltip"] = list(tip)
    made: Spec = {"data": {"name": data} if isinstance(data, str) else {"values": list(data)}} if data else {}
    if where:
        made["transform"] = [{"filter": one} for one in ([where] if isinstance(where, str | Mapping) else where)]
    look = {key: value for key, value in looks.items() if key not in encoding}
    return {**made, "mark": {"type": kind, **look}, "encoding": encoding}


def ruled(along: str, value: float, **look: Any) -> Spec:
    """Return a line of reference across the picture."""
    rule = marks("rule", data=[{}], **{"strokeDash": [4, 3], "color": "@muted", **look})
    return {**rule, "encoding": {along: {"datum": value}}}


def equal(x: Spec, y: Spec, low: float, high: float) -> Spec:
    """Return the line on which both axes say the same."""
    ends: list[Spec] = [{x["field"]: end, y["field"]: end} for end in (low, high)]
    return marks("line", x, y, data=ends, color="@muted", strokeDash=[4, 3], strokeWidth=1)


def intervals(at: Spec, value: Spec, tip: Sequence[Spec], *, data: str, is_upright: bool = False) -> list[Spec]:
    """Return scores as points with their intervals ('low' to 'high'), hollow where models are unlike past ones."""
    hollow = when(equals("is_flagged", True), "@paper", "@main")
    bar, point = ((at, one) if is_upright else (one, at) for one in (span(value), value))
    look: Spec = {"size": 70, "strokeWidth": 1.8, "stroke": "@main", "filled": True, "opacity": 1, "fill": hollow}
    return [
        marks("rule", *bar, tip=tip, data=data, color="@main", strokeWidth=2.5),
        marks("point", *point, tip=tip, data=data, **look),
    ]


def brushed(layer: Spec) -> Spec:
    """Let a rectangle be drawn in a layer, which filters the table next to it."""
    return {**layer, "params": [{"name": "brush", "select": "interval"}]}


def menu(field: str, options: Sequence[str], first: str) -> list[Spec]:
    """Return the choice of one name from a menu above the picture, for tests that compare with it."""
    bind = {"input": "select", "options": list(options), "name": field.capitalize()}
    return [{"name": field, "value": first, **({"bind": bind} if len(options) > 1 else {})}]


def picture(*layers: Spec | Iterable[Spec], **more: Any) -> Spec:
    """Return a picture as wide as its place, of these layers."""
    flat = [one for part in layers for one in ([part] if isinstance(part, dict) else part)]
    return {"width": "container", "layer": flat, **more}


def panels(
    field: str,
    place: str,
    *layers: Spec,
    n: int = 0,
    alone: int = 320,
    height: int = 190,
    most: int = 3,
    labels: int = 56,
    params: Sequence[Spec] = (),
    **more: Any,
) -> Spec:
    """Return a small picture for each name in `field`, in the order of `place`, at most `most` in a row.

    `labels` are the pixels that the labels of the vertical axis take. Where `n` says how many names there are, so few
    share the width; one alone has a height of its own.
    """
    chosen = {"params": list(params)} if params else {}
    if n == 1:
        return picture(*layers, height=alone, **chosen)
    most = min(most, n) if n else most
    header = {"title": None, "labelAnchor": "start"}
    facet = {"field": field, "type": "nominal", "sort": {"field": place, "op": "min"}, "header": header}
    # a narrow page puts fewer panels side by side, of 240 pixels at least
    one = {"widthOf": most, "least": 240, "labels": labels, "height": height, "layer": list(layers)}
    return {"facet": facet, "columns": most, "spacing": 24, "spec": one, **chosen, **more}


def panel(width: int, height: int, *layers: Spec, data: str = "", **more: Any) -> Spec:
    """Return one of several pictures, of data of its own where these are named."""
    own = {"data": {"name": data}} if data else {}
    return {"width": width, "height": height, "layer": list(layers), **own, **more}


def beside(*parts: Spec, spacing: int = 24) -> Spec:
    """Return pictures side by side, each with a width of its own."""
    return {"hconcat": list(parts), "spacing": spacing}


def below(*parts: Spec, spacing: int, **more: Any) -> Spec:
    """Return pictures one below the other."""
    return {"vconcat": list(parts), "spacing": spacing, **more}


def cells(
    x: Spec,
    y: Spec,
    color: Spec,
    tip: Sequence[Spec],
    *,
    step: tuple[float, float],
    form: str = "",
    ink: Spec | None = None,
    **look: Any,
) -> Spec:
    """Return a table of coloured squares of `step` pixels.

    With a `form` each states in `ink` the number of its colour.
    """
    layers = [marks("rect", tip=tip, stroke="@paper", color=color, **look)]
    if form:
        text = {"field": color["field"], "type": "quantitative", "format": form}
        layers.append(marks("text", text=text, color=ink, fontSize=10))
    places = {"x": bare(x, labelAngle=-45, orient="top"), "y": bare(y)}
    size = {"width": {"step": step[0]}, "height": {"step": step[1]}}
    return {"autosize": "pad", **size, "encoding": places, "layer": layers}


def bare(channel: Spec, **axis: Any) -> Spec:
    """Return a channel whose axis has neither grid nor line."""
    return {**channel, "axis": {"grid": False, "domain": False, **axis, **channel["axis"]}}
