"""Correlations as a heatmap: what is alike stands side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import INK, WIDTH, color_scale, new_figure, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_WRITTEN = 16
"""Names up to which each cell states its number."""
MOST_NAMED = 60
"""Names up to which all are written; of more, every second, third, ... is."""
DARK = 0.55
"""Correlation from which numbers are written in white."""


def draw_correlations(names: Sequence[str], value: FloatArray, is_clear: BoolArray, label: str) -> "Figure":
    """Draw a table of correlations, without a message.

    Parameters
    ----------
    names : n names
        In the order of rows and columns.
    value : (n, n)
        NaN is left blank, and so is the diagonal.
    is_clear : (n, n)
        Where not, the number stands in brackets.
    label : str
        Of the scale of colours.
    """
    n = len(names)
    size = min(1.6 + 0.62 * n, WIDTH - 1.0)
    figure = new_figure(max(size + 1.0, 5.0), size + 0.4)
    axes = panels(figure, 1, 1)[0]
    axes.grid(visible=False)
    is_off = ~np.eye(n, dtype=bool)
    image = axes.imshow(np.where(is_off, value, np.nan), cmap=color_scale(theme.DIVERGING), vmin=-1.0, vmax=1.0)
    places = range(0, n, -(-n // MOST_NAMED))
    short = [theme.shortened(names[place], 22) for place in places]
    letters = theme.TICK_SIZE if n <= 2 * MOST_WRITTEN else 0.7 * theme.TICK_SIZE
    axes.set_xticks(places, short, rotation=45 if n <= MOST_WRITTEN else 90, fontsize=letters, parse_math=False)
    for tick in axes.get_xticklabels():
        tick.set_horizontalalignment("right" if n <= MOST_WRITTEN else "center")
    axes.set_yticks(places, short, fontsize=letters, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if n <= MOST_WRITTEN:
        digits = theme.TICK_SIZE if n <= 10 else 0.75 * theme.TICK_SIZE
        for i, j in np.argwhere(is_off & np.isfinite(value)).tolist():
            text = f"{value[i, j]:.2f}" if is_clear[i, j] else f"({value[i, j]:.2f})"
            color = "white" if abs(value[i, j]) > DARK else INK
            axes.text(j, i, text, ha="center", va="center", fontsize=digits, color=color)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, aspect=30)
    bar.set_label(label, fontsize=theme.LABEL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=theme.TICK_SIZE, color=INK, labelcolor=INK)
    bar.outline.set_visible(False)
    return figure
