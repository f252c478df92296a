"""Figures of pre-training laws: scores and abilities against training compute, decisions, single items."""

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from itembank.data.responses import ResponseMatrix
from itembank.errors import ParameterError, shown
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.reports.canvas import FAINT, INK, PALETTE, new_figure, panels, put_labels, put_legend, put_title
from itembank.scaling.pretraining.law_results import PretrainingLaw, ScenarioLaws

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_POINTS = 80
MOST_COLUMNS = 4
LAW_STYLES: Mapping[str, tuple[str, str, Any]] = {
    "irsl": ("item response law", PALETTE[0], "-"),
    "two-step": ("two-step law", PALETTE[1], (0, (4, 2))),
    "sigmoid": ("direct sigmoid", PALETTE[2], ":"),
}
FLOPS_LABEL = "training compute (FLOP)"


def figure_score_forecasts(law: PretrainingLaw, name: str | None = None, *, scenarios: Sequence[str] = ()) -> "Figure":
    """Draw every recipe's scores against training compute with one law's curve up to the target, a panel a scenario.

    Points are finished models; the bar at the target is the forecast's interval.

    Parameters
    ----------
    law : PretrainingLaw
    name : str, optional
        Short name of the law drawn; the law's `best` by default.
    scenarios : sequence of str
        All that have the law by default.

    Raises
    ------
    ParameterError
        For an unknown scenario or law.
    MissingDependencyError
        Without matplotlib.
    """
    name = name or law.best
    chosen = _scenarios(law, scenarios, {name})
    figure, all_axes, n_columns = _grid(len(chosen), 3.1, 2.6)
    colors = recipe_colors(len(law.recipes))
    handles: dict[str, Any] = {}
    for place, (axes, one) in enumerate(zip(all_axes, chosen, strict=True)):
        flops = _span(law)
        curve = law.forecast(one.scenario, name, flops=flops)
        end = law.forecast(one.scenario, name)
        offsets = 1.3 ** (np.arange(len(law.recipes)) - 0.5 * (len(law.recipes) - 1))
        for number, recipe in enumerate(law.recipes):
            is_own = (law.recipe_index == number) & law.is_final
            if not np.isfinite(end.score[number, 0]):
                continue
            color = colors[number]
            axes.plot(np.exp(law.log_flops[is_own]), one.scores.observed[is_own], "o", color=color, markersize=3.2)
            (handles[recipe],) = axes.plot(flops, curve.score[number], color=color, linewidth=1.2)
            ends = [[end.score[number, 0] - end.low[number, 0]], [end.high[number, 0] - end.score[number, 0]]]
            axes.errorbar(
                [law.target_flops * offsets[number]],
                [end.score[number, 0]],
                yerr=np.maximum(ends, 0.0),
                fmt="D",
                color=color,
                markersize=3.0,
                elinewidth=1.0,
            )
        _finish(axes, one.scenario, place, (n_columns, len(chosen)), y="score")
    put_legend(figure, list(handles.values()), list(handles))
    return figure


def figure_laws(law: PretrainingLaw, recipe: str, *, scenarios: Sequence[str] = ()) -> "Figure":
    """Draw the laws of one recipe beside each other with their intervals, a panel a scenario.

    Filled points are finished models, open ones checkpoints on the way.

    Raises
    ------
    ParameterError
        For an unknown scenario or recipe.
    MissingDependencyError
        Without matplotlib.
    """
    if recipe not in law.recipes:
        raise ParameterError(f"recipe must be one of {shown(law.recipes)}, got {recipe!r}.")
    number = law.recipes.index(recipe)
    chosen = _scenarios(law, scenarios, set(law.names))
    figure, all_axes, n_columns = _grid(len(chosen), 3.1, 2.6)
    handles: dict[str, Any] = {}
    is_own = law.recipe_index == number
    for place, (axes, one) in enumerate(zip(all_axes, chosen, strict=True)):
        flops = _span(law)
        for name in one.fitted:
            label, color, line = LAW_STYLES[name]
            curve = law.forecast(one.scenario, name, flops=flops)
            axes.fill_between(flops, curve.low[number], curve.high[number], color=color, alpha=0.12, linewidth=0.0)
            (handles[label],) = axes.plot(flops, curve.score[number], color=color, linestyle=line, linewidth=1.4)
        x, y = np.exp(law.log_flops), one.scores.observed
        is_middle = is_own & ~law.is_final
        axes.plot(x[is_middle], y[is_middle], "o", color=INK, markersize=2.2, markerfacecolor="none", linewidth=0.0)
        axes.plot(x[is_own & law.is_final], y[is_own & law.is_final], "o", color=INK, markersize=3.6, linewidth=0.0)
        axes.axvline(law.target_flops, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_ylim(-0.02, 1.02)
        _finish(axes, one.scenario, place, (n_columns, len(chosen)), y=f"score of {recipe}")
    put_legend(figure, list(handles.values()), list(handles))
    return figure


def figure_abilities(law: PretrainingLaw, *, scenarios: Sequence[str] = ()) -> "Figure":
    """Draw measured abilities of finished models with each recipe's line in log FLOP, a panel a scenario.

    Raises
    ------
    ParameterError
        For an unknown scenario, or when there is no item response law.
    MissingDependencyError
        Without matplotlib.
    """
    chosen = _scenarios(law, scenarios, {"irsl"})
    figure, all_axes, n_columns = _grid(len(chosen), 3.1, 2.6)
    colors = recipe_colors(len(law.recipes))
    handles: dict[str, Any] = {}
    for place, (axes, one) in enumerate(zip(all_axes, chosen, strict=True)):
        flops = _span(law)
        means = one.ability_laws.predict(np.log(flops))[0]
        errors = np.sqrt(one.abilities.variance)
        for number, recipe in enumerate(law.recipes):
            is_own = (law.recipe_index == number) & law.is_final
            if not np.isfinite(means[number, 0]):
                continue
            color = colors[number]
            axes.errorbar(
                np.exp(law.log_flops[is_own]),
                one.abilities.theta[is_own],
                yerr=errors[is_own],
                fmt="o",
                color=color,
                markersize=3.0,
                elinewidth=0.7,
            )
            (handles[recipe],) = axes.plot(flops, means[number], color=color, linewidth=1.2)
        _finish(axes, one.scenario, place, (n_columns, len(chosen)), y="ability")
    put_legend(figure, list(handles.values()), list(handles))
    return figure


def figure_decisions(decisions: pl.DataFrame) -> "Figure":
    """Draw decision accuracy against the share of the target's compute, a panel a scenario, a line a law.

    Parameters
    ----------
    decisions : table
        As `HeldOutForecasts.decisions` gives; an entry `law` that is not the short name of one is drawn all the same.

    Raises
    ------
    ParameterError
        Without a row.
    MissingDependencyError
        Without matplotlib.
    """
    if decisions.is_empty():
        raise ParameterError("a figure of decisions needs at least one row, got none.")
    scenarios, laws = (decisions[name].unique(maintain_order=True).to_list() for name in ("scenario", "law"))
    figure, all_axes, n_columns = _grid(len(scenarios), 2.7, 2.4)
    handles: dict[str, Any] = {}
    for place, (axes, scenario) in enumerate(zip(all_axes, scenarios, strict=True)):
        axes.axhline(0.5, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
        for number, name in enumerate(laws):
            line = decisions.filter(scenario=scenario, law=name).sort("share_of_target", "decision_accuracy")
            if line.is_empty():
                continue
            again = "-" if number < len(PALETTE) else "--"  # more lines than colours
            label, color, style = LAW_STYLES.get(name, (name, PALETTE[number % len(PALETTE)], again))
            points = (line["share_of_target"].to_numpy(), line["decision_accuracy"].to_numpy())
            (handles[label],) = axes.plot(*points, "o", color=color, linestyle=style, markersize=3.5)
        axes.set_ylim(-0.03, 1.03)
        _finish(axes, scenario, place, (n_columns, len(scenarios)), y="decision accuracy", x="share of target FLOP")
    put_legend(figure, list(handles.values()), list(handles))
    return figure


def figure_item_curves(law: PretrainingLaw, responses: ResponseMatrix, item_ids: Sequence[str]) -> "Figure":
    """Draw single items: every model's response against its ability, with the item's curve, a panel an item.

    Parameters
    ----------
    law : PretrainingLaw
    responses : ResponseMatrix
        Those the law was made of.
    item_ids : sequence of str

    Raises
    ------
    DataError
        For an unknown item or model.
    MissingDependencyError
        Without matplotlib.
    """
    figure, all_axes, n_columns = _grid(len(item_ids), 2.6, 2.3)
    rows = responses.model_indices(law.model_ids)
    columns = responses.item_indices(item_ids)
    scenarios = responses.items["scenario"].to_list()
    for place, (axes, column) in enumerate(zip(all_axes, columns.tolist(), strict=True)):
        one = law.of_scenario(scenarios[column])
        item = one.abilities.parameters.take(np.flatnonzero(one.abilities.items == column))
        theta = one.abilities.theta
        axes.plot(theta, responses.responses[rows, column], "o", color=PALETTE[0], markersize=2.2, alpha=0.5)
        at = np.linspace(np.nanmin(theta), np.nanmax(theta), N_POINTS)
        axes.plot(at, probability(item, at[:, None])[:, 0], color=PALETTE[1], linewidth=1.6)
        axes.set_ylim(-0.03, 1.03)
        put_title(axes, item_ids[place])
        is_last_row = place + n_columns >= len(item_ids)
        put_labels(axes, "ability" if is_last_row else "", "response" if place % n_columns == 0 else "")
    return figure


def recipe_colors(n_recipes: int) -> list[Any]:
    """Colours of recipes: those of every figure while they last, then steps along a map."""
    if n_recipes < len(PALETTE):
        return list(PALETTE[:n_recipes])
    from matplotlib import colormaps  # noqa: PLC0415

    return [colormaps["turbo"](share) for share in np.linspace(0.05, 0.95, n_recipes)]


def _grid(n_panels: int, width: float, height: float) -> "tuple[Figure, list[Axes], int]":
    """Figure of so many panels of this size in inches, and how many stand in a row."""
    if n_panels < 1:
        raise ParameterError("a figure needs at least one panel, got none.")
    n_columns = min(MOST_COLUMNS, n_panels)
    figure = new_figure(width * n_columns + 0.3, height * -(-n_panels // n_columns) + 0.5)
    return figure, panels(figure, n_panels, n_columns, share_y=False), n_columns


def _scenarios(law: PretrainingLaw, scenarios: Sequence[str], laws: Set[str]) -> list[ScenarioLaws]:
    """Scenarios asked for; else all that one of these laws is fitted to."""
    if scenarios:
        return [law.of_scenario(name) for name in scenarios]
    chosen = [one for one in law.scenarios if laws & set(one.fitted)]
    if not chosen:
        raise ParameterError(f"a figure needs a scenario with a law of {shown(sorted(laws))}, got none.")
    return chosen


def _span(law: PretrainingLaw) -> FloatArray:
    """Space computes from the smallest finished model to the target, (n_points,)."""
    low = law.log_flops[law.is_final].min()
    high = max(float(np.log(law.target_flops)), float(law.log_flops.max()))
    return np.exp(np.linspace(low, high, N_POINTS))


def _finish(axes: "Axes", title: str, place: int, layout: tuple[int, int], *, y: str, x: str = FLOPS_LABEL) -> None:
    """Give a panel its title, scale and labels; `layout` is the number of columns and of panels."""
    n_columns, n_panels = layout
    axes.set_xscale("log")
    axes.grid(visible=True, which="major", color=FAINT, linewidth=0.6)
    put_title(axes, title)
    put_labels(axes, x if place + n_columns >= n_panels else "", y if place % n_columns == 0 else "")
