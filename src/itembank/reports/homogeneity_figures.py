"""The homogeneity figure: four rows a scenario, as IRSL Figure 20."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.diagnostics.homogeneity_results import Homogeneity, ScenarioHomogeneity
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray
from itembank.reports.canvas import FAINT, PALETTE, new_figure, panels, put_labels, put_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COLUMNS = 8
"""Scenarios that one figure has room for."""
N_BINS = 40
OUTER = (0.01, 0.99)
"""Quantiles between which histograms lie: a slope near zero sends a difficulty far away."""


def figure_homogeneity(found: Homogeneity, *, scenarios: tuple[str, ...] = ()) -> "Figure":
    """Draw, for each scenario, the responses, difficulties, discriminations and test information per item.

    Models of the top row are ordered by their mean response, items by difficulty; the shaded range of the bottom row
    holds the middle nine tenths of the models.

    Parameters
    ----------
    found : Homogeneity
    scenarios : tuple of str
        Which ones, at most eight; by default those with warnings first, then the others in their order.

    Raises
    ------
    ParameterError
        For a scenario that was not diagnosed, or more than eight.
    MissingDependencyError
        Without matplotlib.
    """
    drawn = _chosen(found, scenarios)
    n_columns = len(drawn)
    figure = new_figure(max(2.5 * n_columns, 3.4), 8.6)
    axes = panels(figure, 4 * n_columns, n_columns, share_y=False)
    for column, one in enumerate(drawn):
        _draw_pattern(axes[column], one, is_first=column == 0)
        _draw_histogram(axes[n_columns + column], one.difficulty, f"spread {one.difficulty_spread.value:.2f}")
        _draw_histogram(
            axes[2 * n_columns + column], one.discrimination, f"spread {one.discrimination_spread.value:.2f}"
        )
        _draw_information(axes[3 * n_columns + column], one)
        put_labels(axes[n_columns + column], "difficulty", "items" if column == 0 else "")
        put_labels(axes[2 * n_columns + column], "discrimination", "items" if column == 0 else "")
        put_labels(axes[3 * n_columns + column], "ability", "information per item" if column == 0 else "")
    return figure


def _chosen(found: Homogeneity, scenarios: tuple[str, ...]) -> list[ScenarioHomogeneity]:
    by_name = {one.scenario: one for one in found.scenarios}
    absent = [name for name in scenarios if name not in by_name]
    if absent or len(scenarios) > MOST_COLUMNS:
        raise ParameterError(
            f"a homogeneity figure takes at most {MOST_COLUMNS} of the scenarios {', '.join(by_name)}, got "
            f"{', '.join(scenarios)}."
        )
    if scenarios:
        return [by_name[name] for name in scenarios]
    return sorted(found.scenarios, key=lambda one: one.is_fit)[:MOST_COLUMNS]


def _draw_pattern(axes: "Axes", one: ScenarioHomogeneity, *, is_first: bool) -> None:
    """Responses as a heatmap, strong models on top, easy items on the left."""
    axes.grid(visible=False)
    axes.imshow(one.pattern, aspect="auto", origin="lower", cmap="viridis", vmin=0.0, vmax=1.0, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    put_labels(axes, f"{one.n_items:,} items, by difficulty", f"{one.n_models:,} models, by score" if is_first else "")
    put_title(axes, one.scenario if one.is_fit else f"{one.scenario} (!)")


def _draw_histogram(axes: "Axes", values: FloatArray, text: str) -> None:
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, OUTER)
    room = max(high - low, 1e-6)
    edges = np.linspace(low - 0.02 * room, high + 0.02 * room, N_BINS + 1)
    axes.hist(known, bins=edges.tolist(), color=PALETTE[0])
    put_title(axes, text)


def _draw_information(axes: "Axes", one: ScenarioHomogeneity) -> None:
    axes.axvspan(*one.range, color=FAINT, linewidth=0.0)
    axes.plot(one.grid, one.information / (one.n_items - one.n_degenerate), color=PALETTE[1], linewidth=1.6)
    axes.set_ylim(bottom=0.0)
    put_title(axes, f"reliability of {one.budget} items {one.reliability:.2f}")
