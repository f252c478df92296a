"""Charts as pictures that stand still, in notebooks and in files: the specifications and the library of pages."""

import base64
import json
import struct
import textwrap
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from itembank.errors import ParameterError, shown
from itembank.files.atomic import check_destination, replacing_file
from itembank.pages.looks import COLOURS, chart_config
from itembank.pages.plain import Columns, plain_columns, plain_spec
from itembank.pages.runtime import drawing_library
from itembank.pages.theme import shortened

FORMATS = ("png", "svg", "pdf")
WIDTH = 700
"""Pixels of a picture."""
SHARPNESS = 1.5
"""Pixels of a PNG file for each of these."""
TITLE_LETTERS, NOTE_LETTERS = 74, 110
"""Letters of a line of the title and of the note below it."""
MOST_LETTERS = 240
"""Of a title: names in it come from strangers."""
MARGIN = 8

Tables = Mapping[str, Columns]
"""Columns of the data of a chart by their name, the chart's own first."""


def svg_address(spec: Mapping[str, Any], tables: Tables) -> str:
    """Return a chart as SVG in a data address, which runs nothing.

    Raises
    ------
    MissingDependencyError
        When vl-convert is not installed.
    """
    svg = _drawn(_whole(spec, tables), "svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def check_picture_destination(path: str | Path) -> str:
    """Return the format that a picture's file name stands for.

    Raises
    ------
    ParameterError
        For another ending than those of `FORMATS`, or a place where no file can be made.
    """
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ParameterError(f"a figure's file name must end in one of {shown(FORMATS)}, got {Path(path).name!r}.")
    check_destination(Path(path))
    return kind


def save_picture(spec: Mapping[str, Any], tables: Tables, path: str | Path, *, title: str, note: str) -> Path:
    """Write a chart with its title and note as PNG, SVG or PDF by the file's name, whole or not at all.

    Raises
    ------
    ParameterError
        For another ending.
    MissingDependencyError
        When vl-convert is not installed.
    """
    path = Path(path)
    kind = check_picture_destination(path)
    head = {
        "text": _lines(shortened(title, MOST_LETTERS), TITLE_LETTERS),
        "subtitle": _lines(" ".join((*_chosen(spec), note)), NOTE_LETTERS),
        "anchor": "start",
        "frame": "bounds",
        "fontSize": 15,
        "subtitleFontSize": 12,
        "subtitleColor": "@muted",
        "subtitlePadding": 6,
        "offset": 14,
    }
    drawn = _drawn(_whole({**spec, "title": head, "padding": MARGIN}, tables), kind)
    with replacing_file(path) as temporary:
        temporary.write_bytes(drawn)
    return path


def _drawn(spec: dict[str, Any], kind: str) -> bytes:
    library, text = drawing_library(), json.dumps(spec)
    settings: dict[str, Any] = {"config": chart_config(False), "allowed_base_urls": []}
    if kind == "png":
        settings["scale"] = SHARPNESS
    drawn: str | bytes = getattr(library, f"vegalite_to_{kind}")(text, **settings)
    if isinstance(drawn, str):
        return drawn.encode()
    return _deflated(drawn) if kind == "png" else drawn


def _deflated(png: bytes) -> bytes:
    """Return a PNG file with its points packed as well as can be, a third of what the library writes."""
    parts, points, place = [], b"", 8
    while place < len(png):
        (size,) = struct.unpack_from(">I", png, place)
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        place += 12 + size
        if kind == b"IDAT":
            points += content
        else:
            parts.append((kind, content))
    parts.insert(-1, (b"IDAT", zlib.compress(zlib.decompress(points), 9)))
    return png[:8] + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def _chosen(spec: Mapping[str, Any]) -> list[str]:
    """Say what the menus of a chart stand at, which a picture has not: 'Model: gpt-2.'."""
    menus = [one for one in spec.get("params", ()) if isinstance(one.get("value"), str)]
    return [f"{one['name'].capitalize()}: {one['value']}." for one in menus]


def _lines(text: str, n_letters: int) -> list[str]:
    return textwrap.wrap(text, n_letters, break_on_hyphens=False)


def _whole(spec: Mapping[str, Any], tables: Tables) -> dict[str, Any]:
    """Return the specification with its data, a width and the colours on white."""
    whole: dict[str, Any] = {"data": {"name": next(iter(tables))}, "background": "white", **spec}
    records = {}
    for name, given in tables.items():
        columns = plain_columns(given)
        records[name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {**sized(coloured(plain_spec(whole))), "datasets": records}


def sized(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with its width, as `assets/page.js` gives one to fit the page."""
    panel = spec.get("spec", {})
    if "widthOf" in panel:
        most, least, labels, aside = (
            panel.pop(*one) for one in (("widthOf",), ("least", 240), ("labels", 56), ("aside", 30))
        )
        n_columns = max(1, min(most, WIDTH // least))
        spec |= {"columns": n_columns} if spec.get("columns") else {}
        panel["width"] = (WIDTH - labels) // n_columns - aside
    for part in (spec, *spec.get("vconcat", ())):
        if "widthOf" in part:
            part["width"] = WIDTH / part["widthOf"] - part.get("aside", 60)
    if spec.get("width") == "container":
        spec = {"autosize": {"type": "fit-x", "contains": "padding"}, **spec, "width": WIDTH}
    return spec


def coloured(part: Any) -> Any:
    """Put colours in the place of their names, as `assets/page.js` does."""
    if isinstance(part, dict):
        return {name: coloured(one) for name, one in part.items()}
    if isinstance(part, list | tuple):
        return [coloured(one) for one in part]
    if isinstance(part, str) and part.startswith("@") and part[1:] in COLOURS:
        return COLOURS[part[1:]].light
    return part
