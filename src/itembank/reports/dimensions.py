"""The dimensionality figure: scree, parallel analysis, held-out error (WILD Figures 5 and 8)."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.diagnostics.dimensionality_results import Dimensionality
from itembank.reports.canvas import INK, PALETTE, new_figure, panels, put_labels, put_legend, put_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_SCREE = 20
ZOOM = slice(1, 8)
"""The second to the eighth eigenvalue: next to the first the others cannot be told apart."""
MARKERS = ("o", "s", "^", "D", "v", "P")


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
    figure = new_figure(3.5 * n_panels, 3.5)
    axes = panels(figure, n_panels, n_panels, share_y=False)
    _draw_scree(axes[0], found)
    put_title(axes[0], f"{title}: scree" if title else "scree")
    handles = _draw_parallel(axes[1], found)
    put_title(axes[1], f"parallel analysis: {found.n_dims_parallel} above shuffled responses")
    names = ["eigenvalue", "95th percentile of shuffled responses"]
    if n_panels == 3:
        handles += _draw_errors(axes[2], found)
        names += [f"{size} items shown" for size in found.n_shown]
        put_title(axes[2], f"held-out error: {found.n_dims} chosen")
    put_legend(figure, handles, names, n_columns=3 if n_panels == 2 else 6)
    return figure


def _draw_scree(axes: "Axes", found: Dimensionality) -> None:
    """Shares of variance of the first eigenvalues."""
    shares = 100.0 * found.shares[:N_SCREE]
    places = np.arange(1, shares.size + 1)
    axes.plot(places, shares, color=PALETTE[0], marker="o", markersize=3.5, linewidth=1.4)
    axes.annotate(f"{shares[0]:.0f} %", (1, shares[0]), xytext=(6, -3), textcoords="offset points", fontsize=8)
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([1, *range(5, shares.size + 1, 5)])
    put_labels(axes, "component", "share of variance (%)")


def _draw_parallel(axes: "Axes", found: Dimensionality) -> list[object]:
    """Eigenvalues and thresholds from the second on."""
    values, limits = found.eigenvalues[ZOOM], found.thresholds[ZOOM]
    places = np.arange(2, values.size + 2)
    (line,) = axes.plot(places, values, color=PALETTE[0], marker="o", markersize=4.0, linewidth=1.4)
    (limit,) = axes.plot(
        places, limits, color=INK, linestyle="--", marker="s", markersize=3.5, markerfacecolor="white", linewidth=1.2
    )
    axes.set_xticks(places)
    axes.set_ylim(bottom=0.0)
    put_labels(axes, "component", "eigenvalue")
    return [line, limit]


def _draw_errors(axes: "Axes", found: Dimensionality) -> list[object]:
    """Held-out errors against the number of dimensions, relative to the smallest one."""
    handles: list[object] = []
    places = np.arange(len(found.candidates))
    shift = 0.06 * (np.arange(len(found.n_shown)) - 0.5 * (len(found.n_shown) - 1))
    for j in range(len(found.n_shown)):
        color = PALETTE[(j + 1) % len(PALETTE)]
        drawn = axes.errorbar(
            places + shift[j],
            100.0 * found.relative_errors[j],
            yerr=100.0 * found.relative_standard_errors[j],
            color=color,
            marker=MARKERS[j % len(MARKERS)],
            markersize=4.0,
            linewidth=1.4,
            elinewidth=0.8,
        )
        handles.append(drawn)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set_xticks(places, [str(n) for n in found.candidates])
    reference = found.candidates[0]
    word = "dimension" if reference == 1 else "dimensions"
    put_labels(axes, "dimensions", f"error against {reference} {word} (%)")
    return handles
