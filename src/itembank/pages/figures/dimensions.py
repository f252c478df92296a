"""The dimensionality figure: scree, parallel analysis, held-out error (WILD Figures 5 and 8)."""

from typing import TYPE_CHECKING

import numpy as np

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
    put_title,
)
from itembank.pages.figures.labels import LineLabel, label_lines
from itembank.studies.papers.dimensionality_results import Dimensionality

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_SCREE = 20
ZOOM = slice(1, 8)
"""The second to the eighth eigenvalue: next to the first the others cannot be told apart."""


def figure_dimensionality(found: Dimensionality, *, title: str = "") -> "Figure":
    """Draw shares of variance, the eigenvalues from the second on against shuffled ones, and held-out errors.

    Parameters
    ----------
    found : Dimensionality
        Without held-out errors there is no third panel.
    title : str
        Name of the data, over the first panel.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    n_panels = 3 if len(found.candidates) > 1 else 2
    figure = new_figure(WIDTH, 3.5)
    axes = panels(figure, n_panels, n_panels, share_y=False)
    _draw_scree(axes[0], found)
    put_title(axes[0], f"{theme.shortened(title, 18)}: scree" if title else "scree")
    _draw_parallel(axes[1], found)
    put_title(axes[1], "against shuffled")
    note = "Dashed: 95th percentile of the eigenvalues of shuffled responses."
    if n_panels == 3:
        _draw_errors(axes[2], found)
        put_title(axes[2], "held-out error")
        note += " Bars: one standard error over models to each side."
    put_message(figure, _message(found))
    put_foot(figure, note)
    return figure


def _message(found: Dimensionality) -> str:
    """Say how many dimensions there are, and how many are of use."""
    more = f"{found.n_dims_parallel} dimensions tell more than chance"
    if found.n_dims is None:
        return more
    return f"{more}; held-out answers are predicted with {found.n_dims}"


def _draw_scree(axes: "Axes", found: Dimensionality) -> None:
    """Shares of variance of the first eigenvalues."""
    shares = 100.0 * found.shares[:N_SCREE]
    places = np.arange(1, shares.size + 1)
    axes.plot(places, shares, color=MAIN, marker="o", markersize=3.0, linewidth=1.4)
    axes.annotate(
        theme.percent(0.01 * shares[0], 0), (1, shares[0]), xytext=(6, -3), textcoords="offset points",
        fontsize=theme.LABEL_SIZE, color=INK,
    )  # fmt: skip
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([1, *range(5, shares.size + 1, 5)])
    put_labels(axes, "component", "share of variance (%)")


def _draw_parallel(axes: "Axes", found: Dimensionality) -> None:
    """Eigenvalues and thresholds from the second on."""
    values, limits = found.eigenvalues[ZOOM], found.thresholds[ZOOM]
    places = np.arange(2, values.size + 2)
    axes.plot(places, values, color=MAIN, marker="o", markersize=3.5, linewidth=1.4)
    axes.plot(places, limits, color=MUTED, linestyle="--", linewidth=1.4)
    axes.set_xticks(places)
    axes.set_ylim(bottom=0.0)
    put_labels(axes, "component", "eigenvalue")


def _draw_errors(axes: "Axes", found: Dimensionality) -> None:
    """Held-out errors against the number of dimensions, relative to the smallest one."""
    places = np.arange(len(found.candidates))
    shift = 0.06 * (np.arange(len(found.n_shown)) - 0.5 * (len(found.n_shown) - 1))
    labels = []
    for j, size in enumerate(found.n_shown):
        color = PALETTE[j % len(PALETTE)]
        values, doubt = 100.0 * found.relative_errors[j], 100.0 * found.relative_standard_errors[j]
        axes.errorbar(
            places + shift[j], values, yerr=doubt, color=color, marker=MARKERS[j % len(MARKERS)], markersize=3.5,
            linewidth=1.4, elinewidth=0.8,
        )  # fmt: skip
        labels.append(LineLabel(f"{theme.count(size)} items", float(values[-1]), color))
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set_xticks(places, [str(n) for n in found.candidates])
    reference = found.candidates[0]
    put_labels(axes, "dimensions", f"change against {reference} (%)")
    label_lines(axes, labels, size=theme.TICK_SIZE)
