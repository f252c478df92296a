"""Names at the ends of lines, in place of a legend: beside the panel, none over another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE_HEIGHT = 1.25
"""Of text, in sizes of its letters."""
SEEN = 0.015
"""Share of a panel's height that a name must have moved by to need a line that leads to it."""
ROOM_FOR_INK = 0.7
"""Share of its cell of the figure's grid that a panel fills, about."""


@dataclass(frozen=True, slots=True)
class LineLabel:
    """A name for what ends at a height of a panel.

    Attributes
    ----------
    text : str
    y : float
        In data coordinates; NaN for a line that is not there, which gets no name.
    color : str
    """

    text: str
    y: float
    color: str


def label_lines(axes: "Axes", labels: Sequence[LineLabel], *, size: float = theme.LABEL_SIZE) -> None:
    """Write names beside the right edge of a panel, each as near to its line's end as the others let it.

    The limits of the panel must be final. A hairline leads to a name that had to move.
    """
    known = [one for one in labels if np.isfinite(one.y)]
    if not known:
        return
    heights = axes.transAxes.inverted().transform(axes.transData.transform([(1.0, one.y) for one in known]))[:, 1]
    ends = np.clip(heights, 0.0, 1.0)
    places = spread(ends, LINE_HEIGHT * size / (72.0 * ROOM_FOR_INK * _cell_height(axes)))
    for one, end, place in zip(known, ends.tolist(), places.tolist(), strict=True):
        if abs(end - place) > SEEN:
            axes.plot(
                [1.01, 1.035], [end, place], color=one.color, linewidth=0.7, transform=axes.transAxes, clip_on=False
            )
        axes.text(
            1.045, place, theme.shortened(one.text), color=darkened(one.color), fontsize=size, ha="left", va="center",
            transform=axes.transAxes, parse_math=False,
        )  # fmt: skip


def spread(places: FloatArray, gap: float) -> FloatArray:
    """Move places apart until they differ by a gap at least, as little as possible in the least squares.

    That is isotonic regression of the places less 0, 1, 2, ... gaps. All stay between 0 and 1, unless there are too
    many for the gap, which is then smaller.
    """
    gap = min(gap, 1.0 / max(places.size - 1, 1))
    order = np.argsort(places, kind="stable")
    shifts = gap * np.arange(places.size)
    blocks: list[tuple[float, int]] = []
    for value in (places[order] - shifts).tolist():
        mean, size = value, 1
        while blocks and blocks[-1][0] > mean:
            last, n_last = blocks.pop()
            mean, size = (mean * size + last * n_last) / (size + n_last), size + n_last
        blocks.append((mean, size))
    settled = np.clip(np.repeat([mean for mean, _ in blocks], [size for _, size in blocks]), 0.0, 1.0 - shifts[-1])
    result = np.empty_like(places)
    result[order] = settled + shifts
    return result


def darkened(color: str) -> str:
    """Mix a colour with ink, so that text of it can be read."""
    from matplotlib.colors import to_hex, to_rgb  # noqa: PLC0415

    red, green, blue = (0.7 * own + 0.3 * ink for own, ink in zip(to_rgb(color), to_rgb(INK), strict=True))
    return to_hex((red, green, blue))


def _cell_height(axes: "Axes") -> float:
    """Inches of the cell of the figure's grid that a panel stands in."""
    place = axes.get_subplotspec()
    share = 1.0 if place is None else (place.rowspan.stop - place.rowspan.start) / place.get_gridspec().nrows
    return float(share * axes.figure.get_size_inches()[1])  # type: ignore[union-attr]
