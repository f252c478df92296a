"""Figures of pre-training laws: scores and abilities against training compute, decisions, single items."""

import textwrap
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import rounded
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    LINE_STYLES,
    MAIN,
    MUTED,
    PALETTE,
    SOFT,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.pages.figures.labels import LineLabel, darkened, label_lines
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.law_results import PretrainingLaw, ScenarioLaws

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_POINTS = 80
MOST_COLUMNS = 4
MOST_LABELLED = 2
"""Panels up to which every recipe has its colour and name; in more of them only the two that differ most."""
LAW_STYLES: Mapping[str, tuple[str, str, Any]] = {
    "irsl": ("item response", PALETTE[0], LINE_STYLES[0]),
    "two-step": ("two-step", PALETTE[1], LINE_STYLES[1]),
    "sigmoid": ("sigmoid", PALETTE[2], LINE_STYLES[2]),
    "trend": ("local trend", PALETTE[3], LINE_STYLES[0]),
    "last-score": ("last score", MUTED, LINE_STYLES[1]),
    "last-line": ("line through three", MUTED, LINE_STYLES[2]),
}
FLOPS_LABEL = "training FLOP"


def figure_score_forecasts(law: PretrainingLaw, name: str | None = None, *, scenarios: Sequence[str] = ()) -> "Figure":
    """Draw every recipe's scores against training compute with one law's curve up to the target, a panel a scenario.

    Points are finished models, all of which the law was fitted to; the bar at the target is the forecast's interval.
    Hollow diamonds are what the law forecast of the largest sizes while these were held out, where that was checked.
    What a recipe's largest size scores beyond the item response law is carried on to the target, so that this curve
    looks ahead: below that size it is dotted, or left out. In more than two panels only the recipes of
    the highest and the lowest forecast have a colour and a name.

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
    figure, all_axes, n_columns = _grid(len(chosen), 1.5)
    halves = []
    for place, (axes, one) in enumerate(zip(all_axes, chosen, strict=True)):
        end = law.forecast(one.scenario, name)
        halves.append(0.5 * (end.high - end.low)[:, 0])
        colors = _recipe_looks(law, end.score[:, 0], n_panels=len(chosen))
        for number in sorted(colors, key=lambda number: colors[number] != SOFT):  # those with a name on top
            _draw_forecast(axes, law, one, name, (number, colors[number]))
        _finish(axes, one.scenario, place, (n_columns, len(chosen)), y="score (%)")
        axes.set_ylim(-2.0, 102.0 if len(chosen) <= MOST_LABELLED else 125.0)
        axes.set_yticks([0.0, 50.0, 100.0])
        _name_recipes(axes, law, 100.0 * end.score[:, 0], colors, n_panels=len(chosen))
    half = theme.points(float(np.nanmedian(np.concatenate(halves))))
    put_message(
        figure,
        f"{theme.level_words(law.level)} intervals of the scores that the {LAW_STYLES[name][0]} law forecasts at "
        f"{theme.compute(law.target_flops)} reach {half} to either side (median)",
    )
    put_foot(figure, _forecast_note(law, name, len(chosen)))
    return figure


def _draw_forecast(axes: "Axes", law: PretrainingLaw, one: ScenarioLaws, name: str, recipe: tuple[int, Any]) -> None:
    """Draw one recipe, given by its number and colour: its models, the law, the forecast and those of the check."""
    number, color = recipe
    is_own = (law.recipe_index == number) & law.is_final
    layer = 2.0 if color == SOFT else 3.0
    sizes = np.exp(law.log_flops[is_own])
    axes.plot(sizes, 100.0 * one.scores.observed[is_own], "o", color=color, markersize=2.8, zorder=layer)
    flops = _span(law)
    curve = 100.0 * law.forecast(one.scenario, name, flops=flops).score[number]
    is_ahead = flops >= (sizes.max() if name == "irsl" else 0.0)
    axes.plot(flops[is_ahead], curve[is_ahead], color=color, linewidth=1.3, zorder=layer)
    if color != SOFT:
        axes.plot(flops[~is_ahead], curve[~is_ahead], color=color, linewidth=1.0, linestyle=":", zorder=layer)
        _draw_check(axes, law, one.scenario, name, recipe)
    shift = 1.12 ** (number - 0.5 * (len(law.recipes) - 1))
    end = law.forecast(one.scenario, name)
    _interval(axes, law.target_flops * shift, [float(values[number, 0]) for values in end[:3]], color, is_filled=True)


def _draw_check(axes: "Axes", law: PretrainingLaw, scenario: str, name: str, recipe: tuple[int, Any]) -> None:
    """Draw what the law forecast of a recipe's largest sizes from those just below."""
    if law.held_out is None or law.held_out.table.is_empty():
        return
    number, color = recipe
    own = law.held_out.table.filter(scenario=scenario, law=name, recipe=law.recipes[number])
    for row in own.sort("largest_flops").unique("flops", keep="last", maintain_order=True).to_dicts():
        _interval(axes, row["flops"], [row["score"], row["low"], row["high"]], color, is_filled=False)


def _interval(axes: "Axes", x: float, values: Sequence[float], color: Any, *, is_filled: bool) -> None:
    """Draw a forecast, given by its value and its ends, as a diamond with a bar."""
    score, low, high = (100.0 * value for value in values)
    axes.errorbar(
        [x], [score], yerr=np.maximum([[score - low], [high - score]], 0.0), fmt="D", color=color,
        markersize=2.0 if color == SOFT else 3.0, markerfacecolor=color if is_filled else "white",
        elinewidth=1.0 if is_filled and color != SOFT else 0.6,
        zorder=2.0 if color == SOFT else 3.0,
    )  # fmt: skip


def _forecast_note(law: PretrainingLaw, name: str, n_panels: int) -> str:
    """Say what points, diamonds and lines are."""
    level = theme.level_words(law.level)
    texts = [f"Points: finished models, all fitted. Diamonds: forecasts with {level} intervals."]
    if law.held_out is not None and not law.held_out.table.is_empty():
        texts.append("Hollow: what the law said of the largest sizes while they were held out.")
    if name == "irsl":
        texts.append(
            "A line looks ahead: it carries on what the recipe's largest model scores beyond the law, and so (dotted) "
            "passes by smaller ones."
        )
    return " ".join([*texts, *_named_note(n_panels)])


def _named_note(n_panels: int) -> list[str]:
    many = "Named: the recipes that end highest and lowest; the others are grey."
    return [many] if n_panels > MOST_LABELLED else []


def _recipe_looks(law: PretrainingLaw, ends: FloatArray, *, n_panels: int) -> dict[int, Any]:
    """Colour of each recipe that has an end; grey for those that get no name."""
    known = np.flatnonzero(np.isfinite(ends))
    order = known[np.argsort(-rounded(ends[known]), kind="stable")].tolist()
    named = order if n_panels <= MOST_LABELLED else {*order[:1], *order[-1:]}
    colors = recipe_colors(len(law.recipes))
    return {number: colors[number] if number in named else SOFT for number in known.tolist()}


def _name_recipes(
    axes: "Axes", law: PretrainingLaw, ends: FloatArray, colors: Mapping[int, Any], *, n_panels: int
) -> None:
    """Write the names of recipes beside a panel; in a small one the highest and the lowest."""
    labels = [LineLabel(law.recipes[n], float(ends[n]), color) for n, color in colors.items() if color != SOFT]
    if n_panels <= MOST_LABELLED:
        label_lines(axes, labels)
        return
    places = ((0.97, "top"), (0.03, "bottom")) if len(labels) > 1 else ((0.97, "top"),)
    for one, (y, side) in zip(sorted(labels, key=lambda one: -one.y), places, strict=True):
        arrow = "↑" if side == "top" else "↓"
        name = arrow + theme.shortened(one.text, 16)
        axes.text(
            0.04, y, name, color=darkened(one.color), fontsize=theme.TICK_SIZE, ha="left", va=side,
            transform=axes.transAxes, parse_math=False, zorder=4.0,
        )  # fmt: skip


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
    figure, all_axes, n_columns = _grid(len(chosen), 1.6)
    handles: dict[str, Any] = {}
    is_own = law.recipe_index == number
    for place, (axes, one) in enumerate(zip(all_axes, chosen, strict=True)):
        flops = _span(law)
        for name in one.fitted:
            label, color, line = LAW_STYLES[name]
            curve = law.forecast(one.scenario, name, flops=flops)
            low, high = 100.0 * curve.low[number], 100.0 * curve.high[number]
            axes.fill_between(flops, low, high, color=color, alpha=0.15, linewidth=0.0)
            (handles[label],) = axes.plot(
                flops, 100.0 * curve.score[number], color=color, linestyle=line, linewidth=1.5
            )
        x, y = np.exp(law.log_flops), 100.0 * one.scores.observed
        is_middle, is_end = is_own & ~law.is_final, is_own & law.is_final
        axes.plot(x[is_middle], y[is_middle], "o", color=MUTED, markersize=2.2, markerfacecolor="none", linewidth=0.0)
        axes.plot(x[is_end], y[is_end], "o", color=INK, markersize=3.6, linewidth=0.0)
        axes.axvline(law.target_flops, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_ylim(-2.0, 102.0)
        _finish(axes, one.scenario, place, (n_columns, len(chosen)), y="score (%)")
    texts = []
    for name in law.names:
        known = [law.forecast(one.scenario, name).score[number, 0] for one in chosen if name in one.fitted]
        texts.append(f"{LAW_STYLES[name][0]} {theme.percent(float(np.nanmean(known)), 0)}")
    put_message(figure, f"{recipe} at {theme.compute(law.target_flops)}, on average over scenarios: {', '.join(texts)}")
    put_foot(
        figure,
        f"Points: finished models (filled) and checkpoints on the way (open). Bands: {theme.level_words(law.level)} "
        "intervals. Dotted upright: the target.",
        list(handles.values()),
        list(handles),
    )
    return figure


def figure_abilities(law: PretrainingLaw, *, scenarios: Sequence[str] = ()) -> "Figure":
    """Draw measured abilities of finished models with each recipe's line in log FLOP, a panel a scenario.

    In more than two panels only the recipes that end highest and lowest have a colour and a name.

    Raises
    ------
    ParameterError
        For an unknown scenario, or when there is no item response law.
    MissingDependencyError
        Without matplotlib.
    """
    chosen = _scenarios(law, scenarios, {"irsl"})
    figure, all_axes, n_columns = _grid(len(chosen), 1.5)
    gains = []
    for place, (axes, one) in enumerate(zip(all_axes, chosen, strict=True)):
        flops = _span(law)
        means = one.ability_laws.predict(np.log(flops))[0]
        gains.append((means[:, -1] - means[:, 0]) / np.log10(flops[-1] / flops[0]))
        errors = np.sqrt(one.abilities.variance)
        colors = _recipe_looks(law, means[:, -1], n_panels=len(chosen))
        for number, color in sorted(colors.items(), key=lambda item: item[1] != SOFT):
            is_own = (law.recipe_index == number) & law.is_final
            axes.errorbar(
                np.exp(law.log_flops[is_own]), one.abilities.theta[is_own], yerr=errors[is_own], fmt="o", color=color,
                markersize=2.8, elinewidth=0.7, zorder=2.0 if color == SOFT else 3.0,
            )  # fmt: skip
            axes.plot(flops, means[number], color=color, linewidth=1.3, zorder=2.0 if color == SOFT else 3.0)
        _finish(axes, one.scenario, place, (n_columns, len(chosen)), y="ability")
        if len(chosen) > MOST_LABELLED:
            axes.margins(y=0.25)  # room for names
        _name_recipes(axes, law, means[:, -1], colors, n_panels=len(chosen))
    gain = float(np.nanmedian(np.concatenate(gains)))
    put_message(figure, f"Ten times the training compute raise the ability by {gain:.1f} (median of all lines)")
    note = "Points: finished models, with bars of one standard error to each side. Lines: the law of each recipe."
    put_foot(figure, " ".join([note, *_named_note(len(chosen))]))
    return figure


def figure_decisions(decisions: pl.DataFrame) -> "Figure":
    """Draw how often each law orders two recipes rightly against the share of the target's compute, a panel a law.

    The thick line is the mean over scenarios, its band two standard errors over them; thin lines are the scenarios,
    and the dashed line is the mean of all laws.

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
    laws: list[str] = decisions["law"].unique(maintain_order=True).to_list()
    means = mean_decisions(decisions)
    figure, all_axes, n_columns = _grid(len(laws), 1.6)
    of_all = means.group_by("place", maintain_order=True).agg(pl.col("share").mean(), pl.col("mean").mean())
    for place, (axes, name) in enumerate(zip(all_axes, laws, strict=True)):
        for part in decisions.filter(law=name).partition_by("scenario"):
            line = part.sort("share_of_target")
            axes.plot(100.0 * line["share_of_target"], 100.0 * line["decision_accuracy"], color=SOFT, linewidth=0.6)
        axes.axhline(50.0, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.plot(100.0 * of_all["share"], 100.0 * of_all["mean"], color=INK, linewidth=1.0, linestyle="--")
        own = means.filter(law=name)
        share, mean, doubt = (100.0 * own[column].to_numpy() for column in ("share", "mean", "standard_error"))
        axes.fill_between(
            share, mean - 2.0 * np.nan_to_num(doubt), mean + 2.0 * np.nan_to_num(doubt), color=MAIN, alpha=0.25,
            linewidth=0.0, zorder=3,
        )  # fmt: skip
        axes.plot(share, mean, "o-", color=MAIN, linewidth=2.0, markersize=3.5, zorder=4)
        axes.set_ylim(-2.0, 102.0)
        label = LAW_STYLES[name][0] if name in LAW_STYLES else name
        _finish(axes, label, place, (n_columns, len(laws)), y="right order (%)", x="share of compute (%)")
        axes.set_xticks(share, [f"{one:.1g}" if one < 10.0 else f"{one:.0f}" for one in share.tolist()])
        axes.minorticks_off()
    put_message(figure, _decision_message(means))
    n_scenarios = decisions["scenario"].n_unique()
    put_foot(
        figure,
        f"Pairs that laws fitted up to a share of the target's compute order as the target does. Blue: mean of "
        f"{theme.count(n_scenarios)} scenarios (thin lines), with a band of 2 standard errors over them to each side. "
        "Dashed: mean of all laws. Dotted: a coin toss.",
    )
    return figure


def mean_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Mean decision accuracy over scenarios by law and share of the target's compute, which rises with `place`.

    Returns
    -------
    table
        Columns `law`, `place`, `share`, `mean`, `standard_error` (over scenarios; NaN for a single one).
    """
    accuracy = pl.col("decision_accuracy")
    known = decisions.filter(accuracy.is_not_nan() & accuracy.is_not_null())
    place = pl.col("share_of_target").rank("dense").over("scenario", "law")
    return (
        known.with_columns(place=place)
        .group_by("law", "place", maintain_order=True)
        .agg(
            share=pl.col("share_of_target").log().mean().exp(),
            mean=accuracy.mean(),
            standard_error=(accuracy.std() / pl.len().sqrt()).fill_null(float("nan")),
        )
        .sort("place", maintain_order=True)
    )


def _decision_message(means: pl.DataFrame) -> str:
    """Say what all laws come to with the least and with the most compute."""
    texts = []
    for place in dict.fromkeys((means["place"].min(), means["place"].max())):
        part = means.filter(place=place)
        low, high = (float(value) for value in (part["mean"].to_numpy().min(), part["mean"].to_numpy().max()))
        right = theme.percent(low, 0) if part.height == 1 else theme.interval_words(low, high, 0)
        texts.append(f"{right} with {100.0 * float(part['share'].to_numpy().mean()):.2g} % of the target's compute")
    return "Pairs of recipes ordered rightly: " + ", ".join(texts)


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
    figure, all_axes, n_columns = _grid(len(item_ids), 1.7)
    rows = responses.model_indices(law.model_ids)
    columns = responses.item_indices(item_ids)
    scenarios = responses.items["scenario"].to_list()
    gaps = []
    for place, (axes, column) in enumerate(zip(all_axes, columns.tolist(), strict=True)):
        one = law.of_scenario(scenarios[column])
        item = one.abilities.parameters.take(np.flatnonzero(one.abilities.items == column))
        theta = one.abilities.theta
        answers = responses.responses[rows, column]
        axes.plot(theta, 100.0 * answers, "o", color=SOFT, markersize=2.4)
        at = np.linspace(np.nanmin(theta), np.nanmax(theta), N_POINTS)
        axes.plot(at, 100.0 * probability(item, at[:, None])[:, 0], color=MAIN, linewidth=2.0)
        gaps.append(np.abs(answers - probability(item, np.nan_to_num(theta)[:, None])[:, 0]))
        axes.set_ylim(-3.0, 103.0)
        put_title(axes, theme.shortened(item_ids[place], 22))
        is_last_row = place + n_columns >= len(item_ids)
        put_labels(axes, "ability" if is_last_row else "", "response (%)" if place % n_columns == 0 else "")
    gap = theme.points(float(np.nanmean(np.concatenate(gaps))))
    put_message(figure, f"Responses to these items are {gap} from their curves, on average")
    put_foot(figure, "Points: responses of models by their ability. Line: what the item model expects.")
    return figure


def recipe_colors(n_recipes: int) -> list[Any]:
    """Colours of recipes: those of every figure while they last, then steps along a map."""
    if n_recipes <= len(PALETTE):
        return list(PALETTE[:n_recipes])
    from matplotlib import colormaps  # noqa: PLC0415

    return [colormaps["cividis"](share) for share in np.linspace(0.0, 0.9, n_recipes)]


def _grid(n_panels: int, height: float) -> "tuple[Figure, list[Axes], int]":
    """Figure of so many panels of this height in inches, and how many stand in a row."""
    if n_panels < 1:
        raise ParameterError("a figure needs at least one panel, got none.")
    n_columns = min(MOST_COLUMNS, n_panels) if n_panels != 6 else 3
    n_rows = -(-n_panels // n_columns)
    figure = new_figure(WIDTH, max(height, 2.4 if n_columns < 3 else 0.0) * n_rows + 1.5)
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
    axes.minorticks_off()
    axes.locator_params(axis="x", numticks=4 if n_columns > 2 else 8)
    put_title(axes, textwrap.fill(theme.shortened(title, 44), 20 if n_columns > 2 else 44))
    put_labels(axes, x if place + n_columns >= n_panels else "", y if place % n_columns == 0 else "")
