"""Figures of tasks side by side: what they cost and how models do (WILD Figure 1), and which are alike (16, 17)."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.errors import ParameterError, remedy
from itembank.pages import theme
from itembank.pages.figures.canvas import MAIN, SOFT, WIDTH, new_figure, panels, put_foot, put_labels, put_message
from itembank.pages.figures.heatmaps import draw_correlations
from itembank.studies.papers.task_overview_results import TaskOverview

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("costs", "correlations")
MOST_BARS = 80
"""Tasks that are drawn by cost; of more, the cheapest and the dearest."""


def figure_tasks(found: TaskOverview, *, kind: str = "correlations") -> "Figure":
    """Draw what tasks cost beside the scores on them, or the correlations of the scores as a heatmap.

    Parameters
    ----------
    found : TaskOverview
    kind : {'costs', 'correlations'}

    Raises
    ------
    ParameterError
        For another kind, or costs where none is known.
    MissingDependencyError
        Without matplotlib.
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    return _figure_costs(found) if kind == "costs" else _figure_correlations(found)


def _figure_costs(found: TaskOverview) -> "Figure":
    """Draw what a response to each task costs, and the mean score on it: dearest tasks on top."""
    known = np.flatnonzero(found.cost > 0.0)
    if not known.size:
        named = remedy("task_overview(..., cost='tokens')", "--cost NAME")
        raise ParameterError(
            f"a cost must be known of a task, and none is: name one that the responses record ({named})."
        )
    known = known[np.argsort(found.cost[known], kind="stable")]
    low, high = found.tasks[known[0]], found.tasks[known[-1]]
    if known.size > MOST_BARS:  # the ends tell most
        known = np.append(known[: MOST_BARS // 2], known[-MOST_BARS // 2 :])
    place = np.arange(known.size)
    figure = new_figure(WIDTH, 1.7 + 0.17 * known.size)
    left, right = panels(figure, 2, 2, share_y=False)
    left.barh(place, found.cost[known], color=MAIN, height=0.75)
    right.errorbar(
        100.0 * found.score[known], place, xerr=100.0 * found.spread[known], fmt="o", color=MAIN, markersize=4.0,
        ecolor=SOFT, elinewidth=1.2,
    )  # fmt: skip
    names = [theme.shortened(found.tasks[task], 28) for task in known]
    left.set_yticks(place, names, fontsize=theme.TICK_SIZE, parse_math=False)
    right.set_yticks(place, [])
    right.set_xlim(0.0, 100.0)
    for axes in (left, right):
        axes.set_ylim(-0.8, known.size - 0.2)
        axes.grid(visible=False, axis="y")
    put_labels(left, f"cost of a response ({found.unit})", "")
    put_labels(right, "score (%)", "")
    put_message(
        figure,
        f"A response to {theme.shortened(high)} costs {found.cost_ratio:.1f} times one to {theme.shortened(low)}",
    )
    put_foot(figure, "Means over models. Bars of scores: one standard deviation between models to each side.")
    return figure


def _figure_correlations(found: TaskOverview) -> "Figure":
    """Draw the correlations of the scores, tasks that are alike side by side."""
    order = found.order
    value, lower = found.correlation[np.ix_(order, order)], found.lower[np.ix_(order, order)]
    names = [found.tasks[place] for place in order.tolist()]
    figure = draw_correlations(names, value, lower > 0.0, "correlation of scores over models")
    pairs = [pair for pair in found.pairs() if np.isfinite(pair["correlation"])]
    if not pairs:
        put_message(figure, "No two tasks have models in common")
    else:
        median = float(np.median([pair["correlation"] for pair in pairs]))
        most, least = pairs[0], pairs[-1]
        put_message(
            figure,
            f"Half of the pairs of tasks correlate above {median:.2f}: {_pair(most)} most ({most['correlation']:.2f}), "
            f"{_pair(least)} least ({least['correlation']:.2f})",
        )
    put_foot(figure, "Scores as they are, not abilities: short tasks correlate less by noise. Neighbours are alike.")
    return figure


def _pair(pair: dict[str, object]) -> str:
    return f"{theme.shortened(str(pair['task']))} and {theme.shortened(str(pair['other_task']))}"
