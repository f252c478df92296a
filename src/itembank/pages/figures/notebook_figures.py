"""Figures that notebooks show, and the files of figures. Apart from the rest, since this loads matplotlib."""

import warnings
from functools import partial
from io import BytesIO

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from itembank.errors import visible

CSS_PIXELS = 96
"""In an inch: what a notebook shows is as wide as its figure in print, and drawn finer."""
N_COLORS = 256
"""Of a PNG file: charts need no more, and are a third as large."""


class NotebookFigure(Figure):
    """A figure that is a picture where it is the last value of a cell, without pyplot and without a magic command."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture, and how large to show it."""
        width, height = self.get_size_inches()
        return drawn(self, "png"), {"width": round(CSS_PIXELS * width), "height": round(CSS_PIXELS * height)}


def drawn(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a PNG, SVG or PDF file."""
    _show_control_characters(figure)
    content = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name in a script the font lacks is no trouble
        figure.savefig(content, format=kind)
    return _with_palette(content) if kind == "png" else content.getvalue()


def _with_palette(png: BytesIO) -> bytes:
    """Return a PNG file with a palette, which is smaller."""
    from PIL import Image  # noqa: PLC0415

    content = BytesIO()
    with Image.open(png) as image:
        image.convert("RGB").quantize(N_COLORS, dither=Image.Dither.NONE).save(content, format="png", optimize=True)
    return content.getvalue()


def _show_control_characters(figure: Figure) -> None:
    """Put escapes in the place of control characters of names, which no SVG may hold; our own line breaks stay."""
    for one in figure.findobj(Text):
        one.set_text(_visible_lines(one.get_text()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            names = axis.get_major_formatter()
            if isinstance(names, FuncFormatter):  # it writes the ticks anew whenever the figure is drawn
                axis.set_major_formatter(FuncFormatter(partial(_visible_tick, names)))


def _visible_tick(names: FuncFormatter, place: float, position: int | None = None) -> str:
    """Name of a tick, with escapes."""
    return _visible_lines(names(place, position))


def _visible_lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))
