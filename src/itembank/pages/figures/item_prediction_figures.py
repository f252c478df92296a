"""The figure of predicted against observed responses to single items (IRSL Figs 4, 9, 16, 24)."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    OTHER,
    SOFT,
    WIDTH,
    color_scale,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.studies.papers.item_predictions_results import ItemPredictions, ScenarioPredictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 16
N_CELLS = 30
"""Squares along each axis of a density."""
BARS = 22.0
"""Percent of a panel's height that the tallest bar of a histogram takes."""


def figure_item_predictions(found: ItemPredictions, *, scenarios: tuple[str, ...] = ()) -> "Figure":
    """Draw responses of models left out against what the item model gives them, a panel a scenario.

    Points are mean responses by predicted value, with two standard errors. Behind them lies the density of all
    responses; of right and wrong answers, which have none, the histogram of the predictions.

    Parameters
    ----------
    found : ItemPredictions
    scenarios : tuple of str
        Which ones, at most sixteen; the first of all by default.

    Raises
    ------
    ParameterError
        For a scenario that is not there, or too many.
    MissingDependencyError
        Without matplotlib.
    """
    drawn = _chosen(found, scenarios)
    n_columns = min(4, len(drawn)) if len(drawn) not in {5, 6, 9} else 3
    n_rows = -(-len(drawn) // n_columns)
    side = WIDTH / max(n_columns, 2)
    figure = new_figure(WIDTH if n_columns > 1 else 0.62 * WIDTH, (side + 0.15) * n_rows + 1.1)
    for place, (axes, one) in enumerate(zip(panels(figure, len(drawn), n_columns), drawn, strict=True)):
        is_graded = _is_graded(one.observed)
        _draw_density(axes, one) if is_graded else _draw_histogram(axes, one.predicted)
        _draw_means(axes, one)
        put_title(axes, f"{theme.shortened(one.scenario, 20)}\nr = {one.association.correlation:.2f}")
        is_last_row = place + n_columns >= len(drawn)
        put_labels(axes, "predicted (%)" if is_last_row else "", "observed (%)" if place % n_columns == 0 else "")
    put_message(figure, _message(drawn))
    has_density = any(_is_graded(one.observed) for one in drawn)
    background = "how many responses lie there" if has_density else "how many responses have this prediction"
    put_foot(
        figure,
        "Responses of models that the items were calibrated without, predicted from their answers to other items. "
        f"Points: mean response by prediction, with 2 standard errors over models. Blue: {background}. Line: equal.",
    )
    return figure


def _chosen(found: ItemPredictions, scenarios: tuple[str, ...]) -> list[ScenarioPredictions]:
    by_name = {one.scenario: one for one in found.scenarios}
    absent = [name for name in scenarios if name not in by_name]
    if absent or len(scenarios) > MOST_PANELS:
        raise ParameterError(
            f"a figure of predictions takes at most {MOST_PANELS} of the scenarios {shown(list(by_name))}, got "
            f"{shown(list(scenarios))}."
        )
    return [by_name[name] for name in scenarios] or list(found.scenarios)[:MOST_PANELS]


def _is_graded(observed: FloatArray) -> bool:
    """Whether responses are more than right and wrong."""
    return bool(np.any((observed > 0.0) & (observed < 1.0)))


def _draw_density(axes: "Axes", one: ScenarioPredictions) -> None:
    from matplotlib.colors import LogNorm  # noqa: PLC0415

    edges = np.linspace(0.0, 1.0, N_CELLS + 1)
    counts, _, _ = np.histogram2d(one.predicted, one.observed, bins=(edges, edges))
    axes.grid(visible=False)
    axes.pcolormesh(
        100.0 * edges, 100.0 * edges, np.where(counts > 0.0, counts, np.nan).T, cmap=color_scale(theme.SEQUENTIAL[1:]),
        norm=LogNorm(1.0, max(2.0, float(counts.max()))),
    )  # fmt: skip


def _draw_histogram(axes: "Axes", predicted: FloatArray) -> None:
    counts, edges = np.histogram(predicted, bins=np.linspace(0.0, 1.0, N_CELLS + 1))
    heights = BARS * counts / counts.max()
    axes.bar(100.0 * edges[:-1], heights, width=100.0 / N_CELLS, align="edge", color=theme.SEQUENTIAL[1].light)


def _draw_means(axes: "Axes", one: ScenarioPredictions) -> None:
    axes.plot([0.0, 100.0], [0.0, 100.0], color=SOFT if not _is_graded(one.observed) else INK, linewidth=0.9)
    bins = one.bins
    axes.errorbar(
        100.0 * bins.predicted, 100.0 * bins.observed, yerr=200.0 * np.nan_to_num(bins.standard_error), fmt="o",
        color=OTHER, markersize=3.5, elinewidth=1.0,
    )  # fmt: skip
    axes.set_xlim(0.0, 100.0)
    axes.set_ylim(-2.0, 102.0)
    axes.set_xticks([0, 50, 100])
    axes.set_yticks([0, 50, 100])


def _message(drawn: list[ScenarioPredictions]) -> str:
    """Say how far predictions are right, on average and by the correlations."""
    correlations = sorted(one.association.correlation for one in drawn)
    error = theme.points(float(np.average(
        [one.bins.calibration_error for one in drawn], weights=[one.predicted.size for one in drawn]
    )))  # fmt: skip
    low, high = correlations[0], correlations[-1]
    text = f"{low:.2f}" if len(drawn) == 1 else f"{low:.2f} to {high:.2f}"
    return f"Predicted responses correlate {text} with those of unseen models; mean responses are {error} off"
