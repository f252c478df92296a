"""Figures of convergent validity: the clustered heatmap (IRSL Figs 22, 23) and pairs of abilities (Fig. 21)."""

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import MAIN, WIDTH, new_figure, panels, put_foot, put_labels, put_message
from itembank.pages.figures.heatmaps import draw_correlations
from itembank.scaling.transfers.convergent_results import ConvergentValidity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = {
    "observed": "correlation of abilities",
    "disattenuated": "correlation without errors of abilities",
    "beyond_compute": "correlation beyond compute",
}
"""What each table holds."""


def figure_validity(found: ConvergentValidity, *, table: str = "observed") -> "Figure":
    """Draw correlations of abilities as a heatmap, scenarios that agree side by side.

    A number in brackets is not clearly above 0.

    Parameters
    ----------
    found : ConvergentValidity
    table : {'observed', 'disattenuated', 'beyond_compute'}

    Raises
    ------
    ParameterError
        For another table, or one that was not made.
    MissingDependencyError
        Without matplotlib.
    """
    chosen = getattr(found, table) if table in WORDS else None
    if chosen is None:
        raise ParameterError(f"table must be one of {', '.join(WORDS)} that was made, got {table!r}.")
    order = found.order
    value, lower = chosen.value[np.ix_(order, order)], chosen.lower[np.ix_(order, order)]
    names = [found.scenarios[place] for place in order.tolist()]
    figure = draw_correlations(names, value, lower > 0.0, WORDS[table])
    put_message(figure, _message(names, value))
    put_foot(
        figure,
        f"In brackets: the {theme.level_words(found.level)} interval reaches 0. Scenarios that agree are neighbours.",
    )
    return figure


def _message(names: list[str], value: FloatArray) -> str:
    """Say which two scenarios agree most, and which least."""
    pairs = [
        (value[i, j], names[i], names[j]) for i, j in combinations(range(len(names)), 2) if np.isfinite(value[i, j])
    ]
    if not pairs:
        return "No two scenarios have models in common"
    most, least = max(pairs), min(pairs)
    text = f"{theme.shortened(most[1])} and {theme.shortened(most[2])} order models most alike ({most[0]:.2f})"
    if len(pairs) == 1:
        return text.replace("most alike", "alike")
    return f"{text}, {theme.shortened(least[1])} and {theme.shortened(least[2])} least ({least[0]:.2f})"


def figure_ability_pair(found: ConvergentValidity, first: str, second: str) -> "Figure":
    """Draw the abilities on two scenarios against each other, one dot a model.

    Raises
    ------
    ParameterError
        For a scenario that is not among those found.
    MissingDependencyError
        Without matplotlib.
    """
    absent = [name for name in (first, second) if name not in found.scenarios]
    if absent:
        raise ParameterError(f"scenarios must be among {', '.join(found.scenarios)}, got {', '.join(absent)}.")
    i, j = found.scenarios.index(first), found.scenarios.index(second)
    figure = new_figure(0.62 * WIDTH, 0.62 * WIDTH + 0.3)
    axes = panels(figure, 1, 1)[0]
    axes.errorbar(
        found.theta[:, i], found.theta[:, j], xerr=found.standard_errors[:, i], yerr=found.standard_errors[:, j],
        fmt="o", markersize=3.5, color=MAIN, ecolor=(MAIN, 0.3), elinewidth=0.7,
    )  # fmt: skip
    put_labels(axes, f"ability on {first}", f"ability on {second}")
    low, value, high = (table[i, j] for table in (found.observed.lower, found.observed.value, found.observed.upper))
    put_message(
        figure,
        f"{theme.shortened(first)} and {theme.shortened(second)} correlate {value:.2f} ({low:.2f} to {high:.2f}) over "
        "models",
    )
    put_foot(figure, f"Bars: one standard error to each side. In brackets: {theme.level_words(found.level)} interval.")
    return figure
