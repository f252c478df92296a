"""Seconds of a fit over the number of cells, beside other tools and the floor of this machine."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.rivals.fits import Row
from benchmarks.rivals.floors import Floors
from benchmarks.rivals.growth import floor_of
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import SOLID, marks, number, picture, shade

FIVE, ONE = "itembank, 5 abilities", "itembank, 1 ability"
APART = 1.15
"""Factor between the cells at which points of two tools are drawn, so that none hides another."""


def draw(growth: list[Row], fits: list[Row], path: Path) -> None:
    """Write the figure of the rows of both parts."""
    chart(growth, fits).save(path)


def chart(growth: list[Row], fits: list[Row]) -> Chart:
    """Draw the rows of both parts."""
    floor = floor_of(growth)
    one, five = (_sizes(growth, n_dims) for n_dims in (1, 5))
    lines = {
        FIVE: (five.cells, five.seconds, "@c6", [1, 0]),
        ONE: (one.cells, one.seconds, "@main", [1, 0]),
        "arithmetic alone": (one.cells, 1e-9 * floor.cell_ns * one.cells_passed, "@ink", [5, 3]),
        "reading alone": (one.cells, 1e-9 * floor.read_ns * one.cells_passed, "@muted", [2, 3]),
    }
    tools = _rivals(fits)
    rows = [
        (name, "line", cell, second)
        for name, (cells, seconds, *_) in lines.items()
        for cell, second in zip(cells.tolist(), seconds.tolist(), strict=True)
    ]
    rows += [(name, "tool", cell, second) for name, points in tools.items() for cell, second in points]
    names = ("name", "what", "cells", "seconds")
    data = Data("speed", dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    tones = {name: tone for name, (*_, tone, _) in lines.items()}
    dashes = {name: dash for name, (*_, dash) in lines.items()} | dict.fromkeys(tools, SOLID)
    tones |= {name: f"@c{1 + k % 5}" for k, name in enumerate(tools)}
    colour, dash = shade("name", tones, orient="right", labelLimit=200), shade("name", dashes, is_told=False)
    x = number("cells", "Cells (models x items)", "~s", log=True)
    y = number("seconds", "CPU seconds of a fit", "~g", log=True)
    ours, others = (f"datum.what === '{what}'" for what in ("line", "tool"))
    measured = {"field": "name", "oneOf": [FIVE, ONE]}
    words = _message(one, floor)
    return Chart(
        words,
        picture(
            marks("line", x, y, where=ours, color=colour, strokeDash=dash),
            marks("point", x, y, where=measured, color=colour),
            marks("point", x, y, where=others, color=colour, size=70, shape="diamond", opacity=1),
            height=380,
        ),
        (data,),
        f"{words}.",
        note="Simulated responses, a tenth missing, one thread. Diamonds: other tools, one ability, set apart "
        "sideways. Broken lines count as many passes as the fit took: "
        f"{floor.cell_ns:.1f} ns a cell for arithmetic in C, {floor.read_ns:.2f} ns to read a byte.",
    )


class Sizes(NamedTuple):
    """What growth was measured at: cells of the matrix, CPU seconds, and cells that all passes went over."""

    cells: np.ndarray
    seconds: np.ndarray
    cells_passed: np.ndarray


def _sizes(growth: list[Row], n_dims: int) -> Sizes:
    rows = [row for row in growth[1:] if row["n_dims"] == n_dims]
    values = [(row["n_models"] * row["n_items"], row["cpu_seconds"], row["cells_passed"]) for row in rows]
    return Sizes(*np.array(values, dtype=float).reshape(-1, 3).T)


def _rivals(fits: list[Row]) -> dict[str, list[tuple[float, float]]]:
    """Return the points of the other tools by their names."""
    rows = [
        row for row in fits if row["n_dims"] == 1 and "cpu_seconds" in row and not row["tool"].startswith("itembank")
    ]
    names = list(dict.fromkeys(row["tool"] for row in rows))
    return {
        name: [
            (row["n_models"] * row["n_items"] * APART ** (number - (len(names) - 1) / 2), row["cpu_seconds"])
            for row in rows
            if row["tool"] == name
        ]
        for number, name in enumerate(names)
    }


def _message(one: Sizes, floor: Floors) -> str:
    times = 1e9 * one.seconds[-1] / one.cells_passed[-1] / floor.cell_ns
    return (
        f"{one.cells[-1] / 1e6:.0f} million cells take {one.seconds[-1]:.0f} CPU seconds, {times:.0f} times what their "
        "arithmetic takes alone"
    )
