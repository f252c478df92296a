"""Seconds of a fit over the number of cells, beside other tools and the floor of this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.rivals.fits import Row
from benchmarks.rivals.floors import Floors
from benchmarks.rivals.growth import floor_of
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    MAIN,
    MARKERS,
    MUTED,
    PALETTE,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    save_figure,
)
from itembank.pages.figures.labels import LineLabel, darkened, label_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FIVE = "itembank, 5 abilities"
APART = 1.15
"""Factor between the cells at which points of two tools are drawn, so that none hides another."""


def draw(growth: list[Row], fits: list[Row], path: Path) -> None:
    """Write the figure of the rows of both parts."""
    figure = new_figure(WIDTH, 4.6)
    axes = panels(figure, 1, 1)[0]
    axes.set_xscale("log")
    axes.set_yscale("log")
    floor = floor_of(growth)
    one, five = (_sizes(growth, n_dims) for n_dims in (1, 5))
    lines = {
        FIVE: (five.cells, five.seconds, PALETTE[6], "-"),
        "itembank, 1 ability": (one.cells, one.seconds, MAIN, "-"),
        "arithmetic alone": (one.cells, 1e-9 * floor.cell_ns * one.cells_passed, INK, (0, (4, 2))),
        "reading alone": (one.cells, 1e-9 * floor.read_ns * one.cells_passed, MUTED, (0, (1, 1.5))),
    }
    for cells, seconds, color, style in lines.values():
        axes.plot(cells, seconds, color=color, linestyle=style, linewidth=1.8, marker="o" if style == "-" else "")
    handles, names = _rivals(axes, fits)
    put_labels(axes, "cells (models x items)", "CPU seconds of a fit")
    put_message(figure, _message(one, floor))
    put_foot(
        figure,
        "Simulated responses, a tenth missing, one thread. Other tools: one ability, set apart sideways. Broken lines "
        f"count as many passes as the fit took: {floor.cell_ns:.1f} ns a cell for arithmetic in C, "
        f"{floor.read_ns:.2f} ns to read a byte.",
        handles,
        names,
    )
    if five.cells.size:  # its line ends within the panel
        axes.annotate(
            FIVE, (five.cells[-1], five.seconds[-1]), xytext=(0, 9), textcoords="offset points", ha="center",
            fontsize=theme.LABEL_SIZE, color=darkened(PALETTE[6]),
        )  # fmt: skip
    axes.set_ylim(axes.get_ylim())  # limits must be final before lines are labelled
    ends = [LineLabel(name, seconds[-1], color) for name, (_, seconds, color, _) in lines.items() if name != FIVE]
    label_lines(axes, ends)
    save_figure(figure, path)


class Sizes(NamedTuple):
    """What growth was measured at: cells of the matrix, CPU seconds, and cells that all passes went over."""

    cells: np.ndarray
    seconds: np.ndarray
    cells_passed: np.ndarray


def _sizes(growth: list[Row], n_dims: int) -> Sizes:
    rows = [row for row in growth[1:] if row["n_dims"] == n_dims]
    values = [(row["n_models"] * row["n_items"], row["cpu_seconds"], row["cells_passed"]) for row in rows]
    return Sizes(*np.array(values, dtype=float).reshape(-1, 3).T)


def _rivals(axes: "Axes", fits: list[Row]) -> tuple[list[object], list[str]]:
    """Put the points of the other tools; return what a legend takes."""
    rows = [
        row for row in fits if row["n_dims"] == 1 and "cpu_seconds" in row and not row["tool"].startswith("itembank")
    ]
    names = list(dict.fromkeys(row["tool"] for row in rows))
    handles = []
    for number, name in enumerate(names):
        points = [(row["n_models"] * row["n_items"], row["cpu_seconds"]) for row in rows if row["tool"] == name]
        color, marker = PALETTE[1 + number % (len(PALETTE) - 1)], MARKERS[1 + number % (len(MARKERS) - 1)]
        cells, seconds = np.transpose(points)
        aside = APART ** (number - (len(names) - 1) / 2)
        handles += axes.plot(cells * aside, seconds, marker, color=color, markersize=6.5)
    return handles, names


def _message(one: Sizes, floor: Floors) -> str:
    times = 1e9 * one.seconds[-1] / one.cells_passed[-1] / floor.cell_ns
    return (
        f"{one.cells[-1] / 1e6:.0f} million cells take {one.seconds[-1]:.0f} CPU seconds, {times:.0f} times what their "
        "arithmetic takes alone"
    )
