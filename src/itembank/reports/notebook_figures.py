"""Figures that notebooks show. A file of its own, since a class of matplotlib's loads matplotlib."""

from matplotlib.figure import Figure

from itembank.reports.canvas import drawn

CSS_PIXELS = 96
"""In an inch: what a notebook shows is as wide as its figure in print, and drawn finer."""


class NotebookFigure(Figure):
    """A figure that is a picture where it is the last value of a cell, without pyplot and without a magic command."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture, and how large to show it."""
        width, height = self.get_size_inches()
        return drawn(self, "png"), {"width": round(CSS_PIXELS * width), "height": round(CSS_PIXELS * height)}
