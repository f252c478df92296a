"""The test information figure: where on the ability scale a bank's items tell models apart."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.numerics.arrays import FloatArray
from itembank.pages.figures.ability_axis import AbilityAxis
from itembank.pages.figures.canvas import (
    INK,
    MAIN,
    MUTED,
    PALETTE,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
)
from itembank.pages.figures.labels import LineLabel, label_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_GRID = 201
MOST_SCENARIO_LINES = 6


def figure_test_information(bank: Bank, *, selection: Selection | None = None) -> "Figure":
    """Draw how much a bank's items tell of a model of each ability, over the calibration models' abilities.

    With more than one dimension, ability varies along the direction in which the overall score rises
    fastest, from the prior mean. One line a scenario (up to six), one for all, and one for a selection if given; below
    the line stands one tick for each calibration model.

    Raises
    ------
    DataError
        When the selection names items that are not in the bank.
    MissingDependencyError
        Without matplotlib.
    """
    bank.check_responses("The figure of information needs")
    axis = AbilityAxis.of(bank)
    positions, grid = axis.positions, axis.grid(N_GRID)
    information = axis.information(bank.calibration, grid)
    lines = _lines(bank, selection, information)
    figure = new_figure(WIDTH, 4.2)
    axes = panels(figure, 1, 1)[0]
    for name, (values, color) in lines.items():
        axes.plot(grid, values, color=color, linewidth=1.8, label=name)
    top = max(float(values.max()) for values, _ in lines.values())
    axes.set_yscale("log")
    axes.set_xlim(grid[0], grid[-1])
    axes.set_ylim(top / 3e3, 2.0 * top)
    axes.plot(positions, np.full(positions.shape, 0.03), "|", color=MUTED, transform=axes.get_xaxis_transform())
    kind = "ability" if bank.calibration.n_dims == 1 else "ability along the direction in which the score rises"
    put_labels(axes, f"{kind} (calibration models' standard deviations)", "test information")
    label_lines(axes, [LineLabel(name, float(values[-1]), color) for name, (values, color) in lines.items()])
    put_message(figure, _message(grid, lines))
    put_foot(
        figure,
        "Ticks at the bottom: calibration models. The standard error of an ability is one over the root of the "
        "information.",
    )
    return figure


def _message(grid: FloatArray, lines: dict[str, tuple[FloatArray, str]]) -> str:
    """Say where all items together tell most, and how well abilities are known there."""
    whole = next(iter(lines.values()))[0]
    best = int(whole.argmax())
    words = [
        f"{name} leave{'s' if name.startswith('selection') else ''} a standard error of {values[best] ** -0.5:.2f}"
        for name, (values, color) in lines.items()
        if color in {INK, MAIN}
    ]
    return f"The items tell most at an ability of {grid[best]:+.1f}: there {', the '.join(words)}"


def _lines(bank: Bank, selection: Selection | None, information: FloatArray) -> dict[str, tuple[FloatArray, str]]:
    """Values and colour of each line by its name, from information (n_grid, n_items)."""
    lines = {f"all {bank.n_items:,} items": (information.sum(axis=1), INK)}
    names = bank.targets.scenarios
    if 1 < len(names) <= MOST_SCENARIO_LINES:
        inside = bank.targets.scenario_index[:, None] == np.arange(len(names))  # (n_items, n_scenarios)
        by_scenario = information @ inside
        lines |= {name: (by_scenario[:, j], PALETTE[1 + j]) for j, name in enumerate(names)}
    if selection is not None:
        chosen = information[:, bank.responses.item_indices(selection.item_ids)].sum(axis=1)
        lines[f"selection of {selection.n_items} ({selection.method})"] = (chosen, MAIN)
    return lines
