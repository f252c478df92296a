"""The figure of chosen items: how unequal their weights are, and where they lie (tinyBenchmarks Figures 9 and 10)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.ties import rounded
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    MARKERS,
    PALETTE,
    SOFT,
    WIDTH,
    dress,
    new_figure,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.studies.papers.selection_weights_results import SelectionWeights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SELECTIONS = len(MARKERS)
MOST_PARTS = 60
"""Scenarios and subscenarios that one figure has room for: tinyBenchmarks' Figure 10 has 57."""
INCHES_A_PART = 0.19
INCHES_OF_CURVES = 2.2


def figure_selection_weights(found: SelectionWeights) -> "Figure":
    """Draw the weights of chosen items, the largest first, and below them the weight of each subscenario.

    The grey bar of a subscenario is the weight that all its items have in the overall score. Where there are more than
    60, those are shown that a selection weighs most unlike that.

    Parameters
    ----------
    found : SelectionWeights
        Of at most four selections.

    Raises
    ------
    ParameterError
        For more selections.
    MissingDependencyError
        Without matplotlib.
    """
    if len(found.selections) > MOST_SELECTIONS:
        raise ParameterError(
            f"a figure of weights takes at most {MOST_SELECTIONS} selections, got {len(found.selections)}."
        )
    parts = _drawn_parts(found)
    height = INCHES_OF_CURVES + INCHES_A_PART * len(parts)
    figure = new_figure(WIDTH, height + 1.9)
    grid = figure.add_gridspec(2, 1, height_ratios=(INCHES_OF_CURVES, INCHES_A_PART * len(parts)))
    curves, dots = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    handles = _draw_curves(curves, found)
    _draw_parts(dots, found, parts)
    put_message(figure, _message(found))
    n_left = len(found.finest) - len(parts)
    left_out = f" The {n_left} others are weighed more alike." if n_left else ""
    put_foot(
        figure,
        f"Dotted: every item alike. Grey bar: weight of all items of the part in the overall score.{left_out}",
        handles,
        [one.name for one in found.selections],
    )
    return figure


def _drawn_parts(found: SelectionWeights) -> list[int]:
    """Places of the parts to draw, in the order of the bank."""
    parts = list(found.finest)
    off = np.max([np.abs(one.part_weights - found.score_weights)[parts] for one in found.selections], axis=0)
    return sorted(parts[k] for k in np.argsort(-rounded(off), kind="stable")[:MOST_PARTS])


def _draw_curves(axes: "Axes", found: SelectionWeights) -> list[Any]:
    """Weight of each item against its rank; return one line a selection for the legend."""
    dress(axes)
    handles = []
    for one, color, marker in zip(found.selections, PALETTE, MARKERS, strict=False):
        rank = np.arange(1, one.n_items + 1)
        handles += axes.plot(rank, 100.0 * one.weights, color=color, marker=marker, markersize=3.0, linewidth=1.2)
        axes.axhline(100.0 * one.weights.sum() / one.n_items, color=SOFT, linestyle=":", linewidth=1.0, zorder=0.0)
    axes.set_ylim(bottom=0.0)
    put_title(axes, "weight of each chosen item")
    put_labels(axes, "item, the largest weight first", "weight in the overall score (%)")
    return handles


def _draw_parts(axes: "Axes", found: SelectionWeights, parts: list[int]) -> None:
    """One line of marks for each scenario or subscenario, the first at the top."""
    dress(axes)
    rows = np.arange(len(parts))
    axes.barh(rows, 100.0 * found.score_weights[parts], color=SOFT, alpha=0.55, height=0.8)
    for one, color, marker in zip(found.selections, PALETTE, MARKERS, strict=False):
        axes.plot(100.0 * one.part_weights[parts], rows, marker, color=color, markersize=4.0)
    names = [_name(found, place) for place in parts]
    axes.set_yticks(rows, [theme.shortened(name, 40) for name in names], color=INK, parse_math=False)
    axes.set_ylim(len(parts) - 0.4, -0.6)
    axes.set_xlim(left=0.0)
    put_title(axes, "weight of their scenario or subscenario")
    put_labels(axes, "weight in the overall score (%)", "")


def _name(found: SelectionWeights, place: int) -> str:
    """Name of a part: with its scenario where the bank has several."""
    scenario, subscenario = found.scenarios[place], found.subscenarios[place]
    is_only_one = len({*found.scenarios[1:]}) == 1
    return subscenario if subscenario and is_only_one else f"{scenario}, {subscenario}" if subscenario else scenario


def _message(found: SelectionWeights) -> str:
    """Say how many items of equal weight each selection is worth."""
    first, *others = found.selections
    text = f"Weights make {first.name}'s {first.n_items} items worth {first.effective_items:.0f} of equal weight"
    return text + "".join(f", {one.name}'s {one.n_items} worth {one.effective_items:.0f}" for one in others)
