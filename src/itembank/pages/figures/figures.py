"""Estimates against the truth, and what they save. `save_figure` writes what these functions return."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    MAIN,
    MUTED,
    OTHER,
    SOFT,
    WIDTH,
    dress,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAR = 0.3
"""How far beyond the points, in shares of their range, intervals are drawn; what goes on ends in an arrow."""


@dataclass(frozen=True, slots=True)
class PredictionPanel:
    """Estimated and true scores of some models, by one method.

    Attributes
    ----------
    title : str
    true : (n_models,)
        Full-benchmark score, in [0, 1].
    estimate, low, high : (n_models,)
        Estimate and its interval; NaN ends draw no interval.
    is_flagged : (n_models,) or None
        Models that answered unlike past ones: drawn hollow.
    """

    title: str
    true: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    is_flagged: BoolArray | None = None

    @property
    def error(self) -> float:
        """Mean absolute error, on the scale of the scores."""
        return float(np.nanmean(np.abs(self.estimate - self.true)))

    @property
    def standard_error(self) -> float:
        """Standard error over models of the mean absolute error."""
        errors = np.abs(self.estimate - self.true)
        known = errors[np.isfinite(errors)]
        return float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")


def figure_predicted_against_true(
    prediction_panels: Sequence[PredictionPanel], *, target: str = "overall", level: float = 0.95
) -> "Figure":
    """Draw estimated against true scores, one panel a method, with intervals and the line of equality.

    The last panel has the main colour: it is what the others are compared with.

    Parameters
    ----------
    prediction_panels : sequence of PredictionPanel
    target : str
        Name of the score, for the labels.
    level : float
        Of the intervals.

    Raises
    ------
    ParameterError
        Without a panel.
    MissingDependencyError
        Without matplotlib.
    """
    _check_some(prediction_panels, "panel")
    n_columns = 2 if len(prediction_panels) == 4 else min(len(prediction_panels), 3)  # no panel alone in a row
    n_rows = -(-len(prediction_panels) // n_columns)
    width = WIDTH if n_columns > 1 else 0.62 * WIDTH
    side = (width - 0.45) / n_columns - 0.3  # of a panel, which is square
    figure = new_figure(width, (side + 0.8) * n_rows + 1.15)
    limits = common_range(prediction_panels)
    drawn = panels(figure, len(prediction_panels), n_columns)
    for k, (axes, panel) in enumerate(zip(drawn, prediction_panels, strict=True)):
        draw_predictions(axes, panel, MAIN if k == len(drawn) - 1 else OTHER, limits)
        put_title(axes, panel.title if len(drawn) == 1 else f"{panel.title}\nmean error {theme.points(panel.error)}")
        is_left, is_lowest = k % n_columns == 0, k + n_columns >= len(prediction_panels)
        put_labels(
            axes,
            f"true {target} score (%)" if is_lowest else "",
            f"estimated {target} score (%)" if is_left else "",
        )
    put_message(figure, _message(prediction_panels))
    put_foot(figure, marks_note(prediction_panels, level))
    return figure


def _message(prediction_panels: Sequence[PredictionPanel]) -> str:
    """Say how far estimates are off, by the best and by the worst of several methods."""
    best = min(prediction_panels, key=lambda panel: panel.error)
    worst = max(prediction_panels, key=lambda panel: panel.error)
    text = f"Estimates are off by {theme.points(best.error)} on average"
    if len(prediction_panels) == 1:
        return text
    return f"{text} ({best.title}), {theme.points(worst.error)} at worst ({worst.title})"


def figure_gain(
    prediction_panels: Sequence[PredictionPanel],
    *,
    n_items: int,
    n_total: int,
    all_repeats: Sequence[PredictionPanel] | None = None,
    target: str = "overall",
    level: float = 0.95,
) -> "Figure":
    """Draw what a full run costs and what a part of it tells: items, errors, and estimates against true scores.

    Parameters
    ----------
    prediction_panels : sequence of PredictionPanel
        Two or more. Estimates of the first and the last stand against the truth; the errors of all stand beside each
        other. The last is ours, the first what it is compared with.
    n_items, n_total : int
        Items answered, and items of the whole benchmark.
    all_repeats : sequence of PredictionPanel, optional
        The same methods with their estimates of all repeats, where the panels show one: the mean errors are of these.
    target : str
    level : float
        Of the intervals.

    Raises
    ------
    ParameterError
        With fewer than two panels.
    MissingDependencyError
        Without matplotlib.
    """
    if len(prediction_panels) < 2:
        raise ParameterError(f"a figure of a gain compares two methods or more, got {len(prediction_panels)}.")
    shown = (prediction_panels[0], prediction_panels[-1])
    measured = prediction_panels if all_repeats is None else all_repeats
    figure = new_figure(WIDTH, 3.9)
    grid = figure.add_gridspec(2, 3, width_ratios=[1.0, 1.25, 1.25], height_ratios=[2.6, len(prediction_panels) + 0.6])
    _draw_items(figure.add_subplot(grid[0, 0]), n_items, n_total)
    _draw_errors(figure.add_subplot(grid[1, 0]), measured)
    limits = common_range(shown)
    for column, (panel, color) in enumerate(zip(shown, (OTHER, MAIN), strict=True), start=1):
        axes = figure.add_subplot(grid[:, column])
        dress(axes)
        draw_predictions(axes, panel, color, limits)
        put_title(axes, panel.title)
        put_labels(axes, f"true {target} score (%)", f"estimated {target} score (%)" if column == 1 else "")
    first, ours = measured[0], measured[-1]
    put_message(
        figure,
        f"{theme.count(n_items)} of {theme.count(n_total)} items give the full score to {theme.points(ours.error)} on "
        f"average, where {first.title} errs by {theme.points(first.error)}",
    )
    repeats = "" if all_repeats is None else "of all repeats, of which one is drawn, "
    put_foot(figure, f"{marks_note(shown, level)} Mean errors: {repeats}± 2 standard errors over models.")
    return figure


def draw_predictions(axes: "Axes", panel: PredictionPanel, color: str, limits: tuple[float, float]) -> None:
    """Draw one panel's points with their intervals; models that answered unlike past ones are hollow."""
    low, high = limits
    axes.plot(limits, limits, color=MUTED, linewidth=0.9, zorder=1)
    ends = np.vstack([panel.estimate - panel.low, panel.high - panel.estimate])
    error = 100.0 * np.maximum(np.nan_to_num(ends), 0.0)
    hollow = np.zeros(panel.true.shape, dtype=bool) if panel.is_flagged is None else panel.is_flagged
    for rows, fill, edge in ((~hollow, (color, 0.8), 0.0), (hollow, "white", 1.1)):
        if rows.any():
            axes.errorbar(
                100.0 * panel.true[rows],
                100.0 * panel.estimate[rows],
                yerr=error[:, rows],
                fmt="o",
                color=(color, 0.8),
                ecolor=(color, 0.4),
                markersize=3.2,
                markerfacecolor=fill,
                markeredgecolor=color,
                markeredgewidth=edge,
                elinewidth=0.9,
                zorder=2 + edge,
            )
    for values, edge_value, marker in ((panel.low, low, "v"), (panel.high, high, "^")):
        beyond = (100.0 * values < low) if marker == "v" else (100.0 * values > high)
        for true in panel.true[beyond].tolist():
            axes.plot(100.0 * true, edge_value, marker, color=color, markersize=3.5, clip_on=False)
    axes.set(xlim=limits, ylim=limits, aspect="equal")


def common_range(prediction_panels: Sequence[PredictionPanel]) -> tuple[float, float]:
    """Lowest and highest value of all panels in percent, with a margin: all points, and intervals that are not far."""
    points = _percent(prediction_panels, ("true", "estimate"))
    bottom, top = float(np.nanmin(points)), float(np.nanmax(points))
    far = FAR * (top - bottom)
    ends = np.clip(_percent(prediction_panels, ("low", "high")), bottom - far, top + far)
    low, high = float(np.nanmin([bottom, *ends])), float(np.nanmax([top, *ends]))
    margin = 0.04 * (high - low) + 0.5
    return low - margin, high + margin


def marks_note(prediction_panels: Sequence[PredictionPanel], level: float) -> str:
    """Say what points, bars, arrows and hollow points are, where there are such."""
    texts = ["Points: models new to the bank; on the line the estimate is right."]
    low, high = common_range(prediction_panels)
    ends = _percent(prediction_panels, ("low", "high"))
    if np.isfinite(ends).any():
        texts.append(f"Bars: {theme.level_words(level)} intervals.")
    if (ends < low).any() or (ends > high).any():
        texts.append("Arrows: the interval goes on.")
    if any(panel.is_flagged is not None and panel.is_flagged.any() for panel in prediction_panels):
        texts.append(f"Hollow: {theme.ATYPICAL_WORDS}.")
    return " ".join(texts)


def _draw_items(axes: "Axes", n_items: int, n_total: int) -> None:
    """Two bars: all items, and those that a new model answers."""
    _bars(
        axes,
        ["full run", "chosen"],
        [n_total, n_items],
        (SOFT, MAIN),
        numbers=[theme.count(n_total), theme.count(n_items)],
    )
    put_title(axes, "items to run")


def _draw_errors(axes: "Axes", prediction_panels: Sequence[PredictionPanel]) -> None:
    """One bar a method: its mean absolute error, with two standard errors to each side."""
    errors = [100.0 * panel.error for panel in prediction_panels]
    doubt = np.nan_to_num([200.0 * panel.standard_error for panel in prediction_panels]).tolist()
    names = [panel.title.replace(" ", "\n", 1) for panel in prediction_panels]
    colors = (OTHER, *[SOFT] * (len(errors) - 2), MAIN)
    _bars(axes, names, errors, colors, numbers=[f"{one:.1f}" for one in errors], doubt=doubt)
    put_title(axes, "mean error (points)")


def _bars(
    axes: "Axes",
    names: Sequence[str],
    values: Sequence[float],
    colors: Sequence[str],
    *,
    numbers: Sequence[str],
    doubt: Sequence[float] = (),
) -> None:
    """Horizontal bars, the first on top, named at their left and with their numbers at the right."""
    dress(axes)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    places = np.arange(len(values))[::-1]
    doubt = doubt or [0.0] * len(values)
    axes.barh(places, values, color=list(colors), height=0.62)
    axes.errorbar(values, places, xerr=doubt, fmt="none", ecolor=INK, elinewidth=1.1)
    for place, value, half, number in zip(places.tolist(), values, doubt, numbers, strict=True):
        axes.annotate(
            number, (value + half, place), xytext=(3, 0), textcoords="offset points", va="center",
            fontsize=theme.LABEL_SIZE, color=INK,
        )  # fmt: skip
    axes.set_xlim(0.0, 1.45 * max(value + half for value, half in zip(values, doubt, strict=True)))
    axes.set_xticks([])
    axes.set_yticks(places, list(names), fontsize=theme.TICK_SIZE, parse_math=False)
    axes.tick_params(axis="y", length=0)


def _percent(prediction_panels: Sequence[PredictionPanel], names: Sequence[str]) -> FloatArray:
    """Values of all panels under these names, one after the other, in percent."""
    result: FloatArray = 100.0 * np.concatenate([getattr(panel, name) for panel in prediction_panels for name in names])
    return result


def _check_some(things: Sequence[object], word: str) -> None:
    if not things:
        raise ParameterError(f"a figure needs at least one {word}, got none.")
