"""Figures. Each function takes numbers and returns a matplotlib figure; `save_figure` writes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray
from itembank.reports.canvas import INK, PALETTE, new_figure, panels, put_labels, put_legend, put_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_STYLES = ("-", (0, (4, 2)), ":", (0, (5, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D")


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
    """

    title: str
    true: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class ErrorCurve:
    """Error of one method at several numbers of items.

    Attributes
    ----------
    panel : str
        Curves of the same panel are drawn together.
    method : str
        Name in the legend; the same in every panel.
    n_items : (n_sizes,)
    error : (n_sizes,)
        Mean absolute error, as a share (0.02 is two points).
    spread : (n_sizes,) or None
        Half the height of the error bar.
    group : str
        Methods of one group share a colour and differ by line style; empty: the method is its own group.
    """

    panel: str
    method: str
    n_items: FloatArray
    error: FloatArray
    spread: FloatArray | None = None
    group: str = ""


def figure_predicted_against_true(prediction_panels: Sequence[PredictionPanel], *, target: str = "overall") -> "Figure":
    """Draw estimated against true scores, one panel a method, with intervals and the line of equality.

    Parameters
    ----------
    prediction_panels : sequence of PredictionPanel
    target : str
        Name of the score, for the labels.

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
    figure = new_figure(3.4 * n_columns, 3.7 * n_rows)
    low, high = _common_range(prediction_panels)
    for k, (axes, panel) in enumerate(
        zip(panels(figure, len(prediction_panels), n_columns), prediction_panels, strict=True)
    ):
        axes.plot([low, high], [low, high], color=INK, linewidth=0.8, zorder=1)
        _draw_predictions(axes, panel, PALETTE[k % len(PALETTE)])
        axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        error = 100.0 * np.nanmean(np.abs(panel.estimate - panel.true))
        put_title(axes, f"{panel.title}\nmean absolute error {error:.1f} points")
        put_labels(axes, f"true {target} score (%)", f"estimated {target} score (%)" if k % n_columns == 0 else "")
    return figure


def figure_error_by_n(
    curves: Sequence[ErrorCurve], *, n_columns: int = 3, y_label: str = "mean absolute error (points)"
) -> "Figure":
    """Draw error against the number of items, one small panel a data set or split, one line a method.

    Raises
    ------
    ParameterError
        Without a curve.
    MissingDependencyError
        Without matplotlib.
    """
    _check_some(curves, "curve")
    titles = list(dict.fromkeys(curve.panel for curve in curves))
    n_columns = min(n_columns, len(titles))
    figure = new_figure(3.1 * n_columns + 0.4, 2.5 * -(-len(titles) // n_columns) + 0.5)
    styles = _line_styles(curves)
    legend = {}
    for k, (axes, title) in enumerate(zip(panels(figure, len(titles), n_columns, share_y=False), titles, strict=True)):
        for curve in (one for one in curves if one.panel == title):
            color, line, marker = styles[curve.method]
            order = np.argsort(curve.n_items)
            legend[curve.method] = axes.errorbar(
                np.asarray(curve.n_items)[order],
                100.0 * np.asarray(curve.error)[order],
                yerr=None if curve.spread is None else 100.0 * np.asarray(curve.spread)[order],
                color=color,
                linestyle=line,
                marker=marker,
                markersize=3.5,
                linewidth=1.4,
                elinewidth=0.7,
                markerfacecolor=color if line == "-" else "white",
            )
        sizes = sorted({int(n) for curve in curves if curve.panel == title for n in curve.n_items})
        axes.set_xticks(sizes, [str(n) for n in sizes])
        axes.set_ylim(bottom=0.0)
        put_title(axes, title)
        put_labels(axes, "items in all" if k + n_columns >= len(titles) else "", y_label if k % n_columns == 0 else "")
    put_legend(figure, list(legend.values()), list(legend))
    return figure


def _draw_predictions(axes: "Axes", panel: PredictionPanel, color: str) -> None:
    """Draw one panel's points with their intervals."""
    ends = np.vstack([panel.estimate - panel.low, panel.high - panel.estimate])
    axes.errorbar(
        100.0 * panel.true,
        100.0 * panel.estimate,
        yerr=100.0 * np.maximum(np.nan_to_num(ends), 0.0),
        fmt="o",
        color=color,
        ecolor=color,
        markersize=3.5,
        markeredgewidth=0.0,
        elinewidth=0.8,
        alpha=0.65,
        zorder=2,
    )


def _common_range(prediction_panels: Sequence[PredictionPanel]) -> tuple[float, float]:
    """Lowest and highest score of all panels in percent, with a margin."""
    parts = [array for panel in prediction_panels for array in (panel.true, panel.estimate, panel.low, panel.high)]
    values = 100.0 * np.concatenate(parts)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.04 * (high - low) + 0.5
    return low - margin, high + margin


def _line_styles(curves: Sequence[ErrorCurve]) -> dict[str, tuple[str, object, str]]:
    """Colour, line and marker of every method: a colour a group, a line style and marker within it."""
    groups: dict[str, list[str]] = {}
    for curve in curves:
        members = groups.setdefault(curve.group or curve.method, [])
        if curve.method not in members:
            members.append(curve.method)
    return {
        method: (PALETTE[g % len(PALETTE)], LINE_STYLES[m % len(LINE_STYLES)], MARKERS[m % len(MARKERS)])
        for g, members in enumerate(groups.values())
        for m, method in enumerate(members)
    }


def _check_some(things: Sequence[object], word: str) -> None:
    if not things:
        raise ParameterError(f"a figure needs at least one {word}, got none.")
