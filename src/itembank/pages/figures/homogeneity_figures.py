"""The homogeneity figure: four panels a scenario, the data of IRSL Figure 20."""

from typing import TYPE_CHECKING, Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    FAINT,
    INK,
    MAIN,
    MUTED,
    OTHER,
    WIDTH,
    color_scale,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.studies.papers.homogeneity_results import Homogeneity, ScenarioHomogeneity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 8
"""Scenarios that one figure has room for."""
N_BINS = 30
REACH = 3.0
"""How far histograms reach from the median, in distances of the 16th from the 84th percentile."""
COLOR_QUANTILES = (0.02, 0.98)
"""Of all responses, between which colours change: two extreme items leave the others their colours."""


def figure_homogeneity(found: Homogeneity, *, scenarios: tuple[str, ...] = ()) -> "Figure":
    """Draw, for each scenario, the responses, difficulties, discriminations and test information per item.

    A row of panels a scenario. Models of the first panel are ordered by their mean response, items by difficulty.
    Histograms leave out what is far away, and say how many items that are. The shaded range of the last panel holds
    the middle nine tenths of the models.

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
    figure = new_figure(WIDTH, 1.42 * len(drawn) + 1.5)
    axes = panels(figure, 4 * len(drawn), 4, share_y=False)
    values = np.concatenate([one.pattern.ravel() for one in drawn])
    low, high = (float(end) for end in np.nanquantile(values, COLOR_QUANTILES))
    image: Any = None
    for row, one in enumerate(drawn):
        is_first, is_last = row == 0, row == len(drawn) - 1
        pattern, difficulty, discrimination, information = axes[4 * row : 4 * row + 4]
        image = _draw_pattern(pattern, one, (low, high))
        _draw_histogram(difficulty, one.difficulty, one.difficulty_spread.value)
        _draw_histogram(discrimination, one.discrimination, one.discrimination_spread.value)
        _draw_information(information, one)
        if is_first:
            for panel, name in zip(axes[:4], ("responses", "difficulty", "discrimination", "information"), strict=True):
                put_title(panel, f"{name}\n{panel.get_title(loc='left')}".rstrip())
        names = ("items, easy to hard", "difficulty", "discrimination", "ability") if is_last else ("",) * 4
        for panel, name in zip((pattern, difficulty, discrimination, information), names, strict=True):
            put_labels(panel, name, panel.get_ylabel())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    ends = extend[bool(np.nanmin(values) < low), bool(np.nanmax(values) > high)]
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=50, shrink=0.5, pad=0.02, extend=ends)
    bar.set_label("mean response (%)", fontsize=theme.LABEL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=theme.TICK_SIZE, color=INK, labelcolor=INK)
    put_message(figure, _message(found))
    put_foot(
        figure,
        "Spread: half the distance from the 16th to the 84th percentile; ◂ ▸ items beyond the panel. Information: of "
        f"one item on the mean; reliability: of {drawn[0].budget} items; grey: the middle nine tenths of the models.",
    )
    return figure


def _message(found: Homogeneity) -> str:
    """Say how many scenarios are fit, and which are not."""
    unfit = [one.scenario for one in found.scenarios if not one.is_fit]
    n_fit = len(found.scenarios) - len(unfit)
    text = f"{n_fit} of {len(found.scenarios)} scenarios have items that differ enough and tell enough for a law"
    return f"{text}; not {theme.shortened(', '.join(unfit), 60)}" if unfit else text


def _chosen(found: Homogeneity, scenarios: tuple[str, ...]) -> list[ScenarioHomogeneity]:
    by_name = {one.scenario: one for one in found.scenarios}
    absent = [name for name in scenarios if name not in by_name]
    if absent or len(scenarios) > MOST_ROWS:
        raise ParameterError(
            f"a homogeneity figure takes at most {MOST_ROWS} of the scenarios {', '.join(by_name)}, got "
            f"{', '.join(scenarios)}."
        )
    if scenarios:
        return [by_name[name] for name in scenarios]
    return sorted(found.scenarios, key=lambda one: one.is_fit)[:MOST_ROWS]


def _draw_pattern(axes: "Axes", one: ScenarioHomogeneity, limits: tuple[float, float]) -> Any:
    """Responses as a heatmap, strong models on top, easy items on the left."""
    axes.grid(visible=False)
    low, high = limits if limits[1] > limits[0] else (0.0, 1.0)
    image = axes.imshow(
        100.0 * one.pattern, aspect="auto", origin="lower", cmap=color_scale(theme.SEQUENTIAL), vmin=100.0 * low,
        vmax=100.0 * high, interpolation="nearest",
    )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    name = theme.shortened(one.scenario if one.is_fit else f"{one.scenario} (!)", 18)
    put_labels(axes, "", name)
    axes.yaxis.label.set_fontweight("bold")
    put_title(axes, f"{theme.count(one.n_models)} × {theme.count(one.n_items)}")
    return image


def _draw_histogram(axes: "Axes", values: FloatArray, spread: float) -> None:
    """Draw counts of items within a few spreads of the median; how many lie beyond stands at the ends."""
    known = values[np.isfinite(values)]
    lower, middle, upper = np.quantile(known, (0.16, 0.5, 0.84))
    reach = REACH * max(float(upper - lower), 1e-6)
    low, high = max(float(known.min()), middle - reach), min(float(known.max()), middle + reach)
    room = max(high - low, 1e-6)
    edges = np.linspace(low - 0.01 * room, high + 0.01 * room, N_BINS + 1)
    axes.hist(known, bins=edges.tolist(), color=MAIN)
    axes.set_xlim(edges[0], edges[-1])
    for beyond, x, side, mark in (
        (int((known < edges[0]).sum()), 0.02, "left", "◂ {}"),
        (int((known > edges[-1]).sum()), 0.98, "right", "{} ▸"),
    ):
        if beyond:
            axes.text(
                x, 0.94, mark.format(beyond), transform=axes.transAxes, ha=side, va="top", color=MUTED,
                fontsize=theme.TICK_SIZE,
            )  # fmt: skip
    put_title(axes, f"spread {spread:.2f}")


def _draw_information(axes: "Axes", one: ScenarioHomogeneity) -> None:
    axes.axvspan(*one.range, color=FAINT, linewidth=0.0)
    axes.plot(one.grid, one.information / (one.n_items - one.n_degenerate), color=OTHER, linewidth=1.6)
    axes.set_ylim(bottom=0.0)
    put_title(axes, f"reliability {one.reliability:.2f}")
