"""How every figure looks, and how it becomes a file. Matplotlib is loaded only when a figure is drawn."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itembank.errors import ParameterError, missing_package, shown
from itembank.files.atomic import check_destination, replacing_file
from itembank.pages import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

PALETTE = tuple(tone.light for tone in theme.CATEGORIES)
MAIN, OTHER = theme.ONE_MAIN.light, theme.OTHER.light
INK, MUTED, SOFT, FAINT = (tone.light for tone in theme.GREY)
LINE_STYLES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D")
FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 150
WIDTH = 7.2
"""Inches of a figure with more than one panel: the documents show it 700 pixels wide, where type can be read."""
LETTER, BOLD_LETTER = 0.0073, 0.0089
"""Inches that a letter takes, on the average, for each point of its size."""
MOST_LETTERS, MOST_OF_TITLE = 240, 60
"""Letters of a message, and of a line of a title or legend: names come from strangers, and may be long."""


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of this size in inches, which no window and no pyplot state knows of; notebooks show it.

    Raises
    ------
    MissingDependencyError
        When matplotlib is not installed.
    """
    try:
        from itembank.pages.figures.notebook_figures import NotebookFigure  # noqa: PLC0415
    except ImportError as error:
        raise missing_package("figures need matplotlib", "matplotlib", error) from error
    return NotebookFigure(
        figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained", facecolor=theme.BACKGROUND.light
    )


def panels(figure: "Figure", n_panels: int, n_columns: int, *, share_y: bool = True) -> list["Axes"]:
    """Divide a figure into plain panels, row by row, with what every panel has in common."""
    n_rows = -(-n_panels // n_columns)
    axes: list[Axes] = []
    for k in range(n_panels):
        first = axes[0] if axes else None
        shared = {"sharex": first, "sharey": first} if share_y and first is not None else {}
        axes.append(figure.add_subplot(n_rows, n_columns, k + 1, **shared))
    for one in axes:
        dress(one)
    return axes


def dress(axes: "Axes") -> None:
    """Give a panel its plain look: two quiet axes, and lines to read values by."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)
    axes.tick_params(labelsize=theme.TICK_SIZE, color=SOFT, labelcolor=INK)
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def put_message(figure: "Figure", text: str) -> None:
    """Set the sentence that a figure says over all of it, in as many lines as it takes."""
    lines = _wrapped(figure, theme.shortened(text, MOST_LETTERS), theme.MESSAGE_SIZE * BOLD_LETTER)
    figure.suptitle(
        lines, x=0.01, ha="left", fontsize=theme.MESSAGE_SIZE, fontweight="bold", color=INK, parse_math=False
    )


def put_foot(figure: "Figure", note: str, handles: Sequence[Any] = (), names: Sequence[str] = ()) -> None:
    """Set what marks, bars and bands mean below all panels; above it a legend, for lines without room for labels.

    Room for both is taken from the panels.
    """
    height, width = figure.get_figheight(), figure.get_figwidth()
    lines = _wrapped(figure, note, theme.NOTE_SIZE * LETTER)
    note_height = (1.35 * theme.NOTE_SIZE * len(lines.splitlines()) + 4.0) / 72.0
    figure.text(
        0.01, 3.0 / 72.0 / height, lines, va="bottom", fontsize=theme.NOTE_SIZE, color=MUTED, linespacing=1.25,
        parse_math=False, in_layout=False,
    )  # fmt: skip
    legend_height = 0.0
    if names:
        names = [theme.shortened(name, MOST_OF_TITLE) for name in names]
        n_columns = max(1, int(width / (0.5 + LETTER * theme.LABEL_SIZE * max(len(name) for name in names))))
        n_rows = -(-len(names) // n_columns)
        legend_height = (1.6 * theme.LABEL_SIZE * n_rows + 4.0) / 72.0
        legend = figure.legend(
            handles,
            names,
            loc="lower left",
            bbox_to_anchor=(0.006, note_height / height),
            ncols=-(-len(names) // n_rows),
            fontsize=theme.LABEL_SIZE,
            frameon=False,
            labelcolor=INK,
            borderaxespad=0.0,
            borderpad=0.2,
        )
        legend.set_in_layout(False)
        for text in legend.get_texts():
            text.set_parse_math(False)
    share = (note_height + legend_height + 0.04) / height
    figure.get_layout_engine().set(rect=(0.0, share, 1.0, 1.0 - share))  # type: ignore[union-attr, call-arg]


def _wrapped(figure: "Figure", text: str, letter: float) -> str:
    """Break a text into lines that fit the figure, where a letter takes so many inches."""
    width = int(0.98 * figure.get_figwidth() / letter)
    return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, width, break_on_hyphens=False))


def put_title(axes: "Axes", text: str) -> None:
    """Set a panel's title; names come from strangers, so `$` is a dollar and not mathematics."""
    lines = [theme.shortened(line, MOST_OF_TITLE) for line in text.split("\n")]
    axes.set_title("\n".join(lines), fontsize=theme.PANEL_SIZE, color=INK, loc="left", parse_math=False)


def put_labels(axes: "Axes", x: str, y: str) -> None:
    """Set the labels of both axes."""
    axes.set_xlabel(x, fontsize=theme.LABEL_SIZE, color=INK, parse_math=False)
    axes.set_ylabel(y, fontsize=theme.LABEL_SIZE, color=INK, parse_math=False)


def color_scale(tones: Sequence[theme.Tone]) -> "Colormap":
    """Make a scale of colours between the stops of the theme; unknown values stay white."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    scale = LinearSegmentedColormap.from_list("itembank", [tone.light for tone in tones])
    return scale.with_extremes(bad=theme.BACKGROUND.light)


def put_counts(axes: "Axes", places: Sequence[float], *, along: str = "x") -> None:
    """Put ticks with plain numbers, such as 1,000, on one axis."""
    axis = axes.xaxis if along == "x" else axes.yaxis
    axis.set_ticks(list(places), [f"{place:,g}" if place < 1e6 else f"{place:.0e}" for place in places])
    axis.set_ticks([], minor=True)


def check_figure_destination(path: str | Path) -> str:
    """Return the format that a figure's file name stands for.

    Raises
    ------
    ParameterError
        For another ending than those of `FORMATS`, or a place where no file can be made.
    """
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ParameterError(f"a figure's file name must end in one of {shown(FORMATS)}, got {Path(path).name!r}.")
    check_destination(Path(path))
    return kind


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """Write a figure as PNG, SVG or PDF by the file's name, whole or not at all, and return where.

    Raises
    ------
    ParameterError
        For another ending.
    """
    from itembank.pages.figures.notebook_figures import drawn  # noqa: PLC0415

    path = Path(path)
    kind = check_figure_destination(path)
    with replacing_file(path) as temporary:
        temporary.write_bytes(drawn(figure, kind))
    return path
