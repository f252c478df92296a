"""Figures of convergent validity: the clustered heatmap (IRSL Figs 22, 23) and pairs of abilities (Fig. 21)."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.errors import ParameterError
from itembank.reports.canvas import INK, PALETTE, new_figure, panels, put_labels, put_title
from itembank.scaling.transfers.convergent_results import ConvergentValidity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_WRITTEN = 16
"""Scenarios up to which each cell states its number."""
TABLES = ("observed", "disattenuated", "beyond_compute")
DARK = 0.55
"""Correlation from which numbers are written in white."""


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
    chosen = getattr(found, table) if table in TABLES else None
    if chosen is None:
        raise ParameterError(f"table must be one of {', '.join(TABLES)} that was made, got {table!r}.")
    n_scenarios = len(found.scenarios)
    order = found.order
    value, lower = chosen.value[np.ix_(order, order)], chosen.lower[np.ix_(order, order)]
    size = 2.2 + 0.42 * n_scenarios
    figure = new_figure(size + 0.8, size)
    axes = panels(figure, 1, 1)[0]
    axes.grid(visible=False)
    image = axes.imshow(value, cmap="RdBu", vmin=-1.0, vmax=1.0)
    names = [found.scenarios[place] for place in order.tolist()]
    axes.set_xticks(range(n_scenarios), names, rotation=60, ha="right", fontsize=8, parse_math=False)
    axes.set_yticks(range(n_scenarios), names, fontsize=8, parse_math=False)
    if n_scenarios <= MOST_WRITTEN:
        for i, j in np.argwhere(~np.eye(n_scenarios, dtype=bool) & np.isfinite(value)).tolist():
            text = f"{value[i, j]:.2f}" if lower[i, j] > 0.0 else f"({value[i, j]:.2f})"
            color = "white" if abs(value[i, j]) > DARK else INK
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color=color)
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label({"observed": "correlation of abilities", "disattenuated": "correlation without errors of abilities",
                   "beyond_compute": "correlation beyond compute"}[table], fontsize=9, color=INK)  # fmt: skip
    bar.ax.tick_params(labelsize=8, color=INK, labelcolor=INK)
    return figure


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
    figure = new_figure(3.6, 3.6)
    axes = panels(figure, 1, 1)[0]
    axes.errorbar(
        found.theta[:, i], found.theta[:, j], xerr=found.standard_errors[:, i], yerr=found.standard_errors[:, j],
        fmt="o", markersize=3, color=PALETTE[0], ecolor="#BBBBBB", elinewidth=0.6, alpha=0.8,
    )  # fmt: skip
    put_labels(axes, f"ability on {first}", f"ability on {second}")
    put_title(axes, f"r = {found.observed.value[i, j]:.2f}")
    return figure
