"""Charts of pre-training laws: curves against compute, sizes held out, decisions, abilities."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Chart, Data
from itembank.pages.charts import Spec, layers, tips
from itembank.pages.common import plural
from itembank.pages.panels import across, colours, ends, marked, panels, ruled
from itembank.pages.theme import compute, interval_words, level_words, percent, points
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.decision_study import mean_decisions
from itembank.scaling.pretraining.law_results import HeldOutForecasts, PretrainingLaw, ScenarioLaws

LAW_WORDS: Mapping[str, str] = {
    "irsl": "item response law",
    "two-step": "two-step law",
    "sigmoid": "direct sigmoid",
    "trend": "law of local trends",
    "last-score": "largest smaller model's score",
    "last-line": "line through the last three sizes",
}
MOST_PANELS = 24
N_POINTS = 16
FLOPS = "Training compute (FLOP)"
Row = tuple[str, int, str, str, float, float, float, float, str]
"""Scenario and its place, recipe, line or model, compute, value, low, high, model."""


def drawn_law(one: ScenarioLaws, name: str) -> str:
    """Return the law that is shown of a scenario: the one asked for, else the first that was fitted."""
    return name if name in one.fitted else next(iter(one.fitted), "")


def forecast_chart(
    law: PretrainingLaw,
    name: str = "",
    *,
    recipe: str = "",
    scenarios: Sequence[str] = (),
    forecasts: Sequence[Mapping[str, Any]] | None = None,
) -> Chart:
    """Draw scores against compute up to the target, a panel a scenario, with one recipe chosen from a menu.

    Parameters
    ----------
    law : PretrainingLaw
    name : str
        Short name of the law; the law's `best` where it is empty.
    recipe : str
        The one in colour; that which is best in most scenarios where it is empty.
    scenarios : sequence of str
        All that have a law where it is empty.
    forecasts : records, optional
        The law's `rows`, where these were made before.

    Raises
    ------
    ParameterError
        For an unknown recipe or scenario.
    """
    name = name or law.best
    forecasts = law.rows() if forecasts is None else forecasts
    chosen_scenarios = _scenarios(law, scenarios)
    drawn = chosen_scenarios[:MOST_PANELS]
    names = [drawn_law(one, name) for one in drawn]
    flops = _span(law)
    rows: list[Row] = []
    for place, (one, of_law) in enumerate(zip(drawn, names, strict=True)):
        found = law.forecast(one.scenario, of_law, flops=flops)
        rows += _lines(law, (one.scenario, place), flops, (found.score, found.low, found.high))
        rows += _models(law, (one.scenario, place), one.scores.observed, np.full(one.scores.observed.shape, np.nan))
    data = _columns("curves", rows)
    shown = dict(zip((one.scenario for one in drawn), names, strict=True))
    ends = [row for row in forecasts if shown.get(row["scenario"]) == row["law"]]
    chosen = _recipe(law, recipe or _most_often_best(ends))
    words = "; ".join(
        f"{row['scenario']} {percent(row['score'])} ({interval_words(row['low'], row['high'])})"
        for row in ends
        if row["recipe"] == chosen and np.isfinite(row["score"])
    )
    cut = (
        f" The first {len(drawn)} of {len(law.scenarios)} scenarios are drawn."
        if len(drawn) < len(scenarios or law.scenarios)
        else ""
    )
    level = level_words(law.level)
    others = " Lines of the other recipes are grey." if len(law.recipes) > 1 else ""
    return Chart(
        f"Scores by training compute, and what the law forecasts up to {compute(law.target_flops)}",
        _recipe_panels(law, chosen, ("Score", ".0%"), [0.0, 1.0], len(drawn)),
        (data,),
        f"Forecasts of {chosen} at {compute(law.target_flops)} with {level} intervals: {words}.",
        note=f"Filled points are finished models, the line is the law, the band its {level} interval; the dashed line "
        f"is the target, and everything to the right of the last point is forecast.{others}{cut}",
    )


def _scenarios(law: PretrainingLaw, names: Sequence[str], fitted: str = "") -> list[ScenarioLaws]:
    """Return the scenarios named; else all that the law `fitted`, or any, is fitted to."""
    if names:
        return [law.of_scenario(name) for name in names]
    chosen = [one for one in law.scenarios if (fitted in one.fitted if fitted else one.fitted)]
    if not chosen:
        raise ParameterError(f"a figure needs a scenario with a law{f' {fitted}' * bool(fitted)}, got none.")
    return chosen


def _recipe(law: PretrainingLaw, name: str) -> str:
    if name and name not in law.recipes:
        raise ParameterError(f"recipe must be one of {shown(law.recipes)}, got {name!r}.")
    return name or law.recipes[0]


def ability_chart(law: PretrainingLaw, *, recipe: str = "", scenarios: Sequence[str] = ()) -> Chart:
    """Draw measured abilities and their lines, a panel a scenario, with one recipe chosen from a menu.

    Raises
    ------
    ParameterError
        For an unknown recipe or scenario, or when there is no item response law.
    """
    drawn = _scenarios(law, scenarios, "irsl")[:MOST_PANELS]
    flops = _span(law)
    rows: list[Row] = []
    slopes = []
    for place, one in enumerate(drawn):
        mean, variance = one.ability_laws.predict(np.log(flops))
        error = np.sqrt(variance)
        rows += _lines(law, (one.scenario, place), flops, (mean, mean - error, mean + error))
        rows += _models(law, (one.scenario, place), one.abilities.theta, np.sqrt(one.abilities.variance))
        slopes.append(f"{one.scenario} {float(np.nanmean(one.ability_laws.slope)):.2f}")
    return Chart(
        "Abilities rise with the logarithm of compute",
        _recipe_panels(law, _recipe(law, recipe), ("Ability", ".2f"), None, len(drawn)),
        (_columns("abilities", rows),),
        "Mean slope over recipes, in standard deviations of ability for each factor of 2.7 in compute: "
        f"{'; '.join(slopes)}.",
        note="Points are measured abilities of finished models, bars and bands a standard error up and down.",
    )


def _most_often_best(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the recipe with the highest forecast in most scenarios; '' for none."""
    best: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if np.isfinite(row["score"]) and row["score"] > best.get(row["scenario"], {"score": -1.0})["score"]:
            best[row["scenario"]] = row
    wins = [row["recipe"] for row in best.values()]
    return max(dict.fromkeys(wins), key=wins.count, default="")


def _span(law: PretrainingLaw) -> FloatArray:
    low = float(law.log_flops[law.is_final].min())
    result: FloatArray = np.exp(np.linspace(low, max(float(law.log_flops.max()), np.log(law.target_flops)), N_POINTS))
    return result


def _lines(
    law: PretrainingLaw, panel: tuple[str, int], flops: FloatArray, curves: tuple[FloatArray, FloatArray, FloatArray]
) -> list[Row]:
    """Return the law's line of every recipe with its band: `curves` are value, low and high, (n_recipes, n_points)."""
    value, low, high = curves
    return [
        (
            *panel,
            recipe,
            "line",
            float(flops[k]),
            float(value[row, k]),
            float(low[row, k]),
            float(high[row, k]),
            "",
        )
        for row, recipe in enumerate(law.recipes)
        for k in np.flatnonzero(np.isfinite(value[row])).tolist()
    ]


def _models(law: PretrainingLaw, panel: tuple[str, int], values: FloatArray, errors: FloatArray) -> list[Row]:
    """Return the finished models' values with their errors, each (n_models,)."""
    return [
        (
            *panel,
            law.recipes[int(law.recipe_index[k])],
            "model",
            float(np.exp(law.log_flops[k])),
            float(values[k]),
            float(values[k] - errors[k]),
            float(values[k] + errors[k]),
            law.model_ids[k],
        )
        for k in np.flatnonzero(law.is_final & np.isfinite(values)).tolist()
    ]


def _columns(name: str, rows: Sequence[Row]) -> Data:
    names = ("scenario", "place", "recipe", "what", "flops", "value", "low", "high", "model_id")
    return Data(name, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _recipe_panels(
    law: PretrainingLaw, chosen: str, axis: tuple[str, str], domain: list[float] | None, n_panels: int
) -> Spec:
    """Return a panel a scenario: the chosen recipe in colour with its band and points, the others in grey."""
    title, form = axis
    is_ability = domain is None
    scale: Spec = {"zero": False} if is_ability else {"domain": domain}
    x = across("flops", FLOPS, form=".0e", scale={"type": "log"}, axis={"tickCount": 3})
    y = across("value", title, form=form, scale=scale)
    own = {"filter": "datum.recipe === recipe"}
    lines, points = ({"filter": f"datum.what === '{what}'"} for what in ("line", "model"))
    shown = tips(
        recipe="Recipe",
        flops=("FLOP", ".2e"),
        value=(title, form),
        low=("From", form),
        high=("To", form),
    )
    of_model = tips(model_id="Model", flops=("FLOP", ".2e"), value=(title, form))
    ends = {"x": x, "y": across("low", title, form=form, scale=scale), "y2": {"field": "high"}}
    grey = {"type": "line", "strokeWidth": 1, "color": "@soft", "opacity": 0.6}
    parts: list[Spec] = [
        {"transform": [lines], "mark": grey, "encoding": {"x": x, "y": y, "detail": {"field": "recipe"}}},
        {"transform": [lines, own], "mark": {"type": "area", "opacity": 0.18, "color": "@main"}, "encoding": ends},
        {
            "transform": [lines, own],
            "mark": {"type": "line", "color": "@main"},
            "encoding": {"x": x, "y": y, "tooltip": shown},
        },
        ruled("x", law.target_flops),
    ]
    if is_ability:
        parts.append({"transform": [points, own], "mark": {"type": "rule", "color": "@ink"}, "encoding": ends})
    dot = {"type": "point", "size": 38, "opacity": 1, "color": "@ink"}
    parts.append({"transform": [points, own], "mark": dot, "encoding": {"x": x, "y": y, "tooltip": of_model}})
    choice: Spec = {"name": "recipe", "value": chosen}
    if len(law.recipes) > 1:
        choice["bind"] = {"input": "select", "options": list(law.recipes), "name": "Recipe"}
    if n_panels == 1:
        return layers(*parts, height=320, params=[choice])
    return panels("scenario", "place", *parts, height=170, params=[choice])


def held_out_chart(held_out: HeldOutForecasts, name: str) -> Chart:
    """Draw forecasts of sizes that were held out against what these models scored."""
    table = held_out.table.filter(law=name)
    held = ["held by its interval" if one else "outside of it" for one in table["is_covered"]]
    data = Data(
        "held-out-shown",
        {
            **{one: table[one] for one in ("scenario", "recipe", "actual", "score", "low", "high", "beyond")},
            "held": held,
        },
    )
    x = across("actual", "Score of the model", form=".0%", scale={"zero": False})
    shade = {
        "field": "held",
        "type": "nominal",
        "scale": {"domain": ["held by its interval", "outside of it"], "range": ["@main", "@other"]},
        "legend": {"title": None, "orient": "top", "columns": 2},
    }
    shown = tips(
        recipe="Recipe",
        scenario="Scenario",
        actual=("Actual", ".1%"),
        score=("Forecast", ".1%"),
        low=("From", ".1%"),
        high=("To", ".1%"),
        beyond=("Times the largest fitted", ".1f"),
    )
    actual = table["actual"].to_numpy()
    ends = [float(np.nanmin(actual)), float(np.nanmax(actual))]
    same = {
        "data": {"values": [{"actual": end, "score": end} for end in ends]},
        "mark": {"type": "line", "color": "@muted", "strokeDash": [4, 3], "strokeWidth": 1},
        "encoding": {"x": x, "y": across("score", "Forecast", form=".0%", scale={"zero": False})},
    }
    rule = {
        "mark": {"type": "rule", "opacity": 0.35},
        "encoding": {
            "x": x,
            "y": across("low", "Forecast", form=".0%", scale={"zero": False}),
            "y2": {"field": "high"},
            "color": shade,
        },
    }
    point = {
        "mark": {"type": "point", "size": 36, "opacity": 0.9},
        "encoding": {
            "x": x,
            "y": across("score", "Forecast", form=".0%", scale={"zero": False}),
            "color": shade,
            "tooltip": shown,
        },
    }
    n_held, error = int(table["is_covered"].sum()), float(table["error"].abs().mean() or 0.0)  # type: ignore[arg-type]
    return Chart(
        f"Forecasts by the {LAW_WORDS.get(name, name)} were {100.0 * error:.1f} points off on average",
        layers(same, rule, point, height=340),
        (data,),
        f"{plural(table.height, 'forecast')} of sizes held out; {n_held} of the {level_words(held_out.level)} "
        f"intervals held the score. Mean distance {100.0 * error:.1f} points.",
        note="On the dashed line the forecast is right. Bars are intervals before they were widened by this check.",
    )


def decision_chart(decisions: pl.DataFrame) -> Chart:
    """Draw how often two recipes are put in the right order, by the compute spent, on average over scenarios.

    Parameters
    ----------
    decisions : table
        As `HeldOutForecasts.decisions` gives; an entry `law` that is not the short name of one is drawn all the same.

    Raises
    ------
    ParameterError
        Without a row.
    """
    if decisions.is_empty():
        raise ParameterError("a figure of decisions needs at least one row, got none.")
    means = mean_decisions(decisions).sort("law", "share")
    names = means["law"].unique(maintain_order=True).to_list()
    error = means["standard_error"].fill_nan(0.0)
    shown_data = Data(
        "decisions-shown",
        {
            "law": [LAW_WORDS.get(name, name) for name in means["law"]],
            "share": means["share"],
            "accuracy": means["mean"],
            "low": (means["mean"] - error).clip(0.0, 1.0),
            "high": (means["mean"] + error).clip(0.0, 1.0),
            "n": means["n"],
        },
    )
    x = across("share", "Share of the largest run's compute", form=".0%", scale={"type": "log", "padding": 16})
    y = across("accuracy", "Right decisions", form=".0%", scale={"domain": [0.0, 1.0]})
    shade = {
        "field": "law",
        "type": "nominal",
        "scale": colours([LAW_WORDS.get(name, name) for name in names]),
        "legend": {"title": None, "orient": "top", "columns": 3},
    }
    shown = tips(
        law="Law",
        share=("Share of compute", ".1%"),
        accuracy=("Right decisions", ".1%"),
        n=("Scenarios", "d"),
    )
    parts = [
        ruled("y", 0.5),
        {"mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": shade}},
        {
            "mark": {"type": "rule"},
            "encoding": {
                "x": x,
                "color": shade,
                "y": across("low", "Right decisions", form=".0%"),
                "y2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "point", "size": 60, "opacity": 1},
            "encoding": {"x": x, "color": shade, "y": y, "tooltip": shown},
        },
    ]
    words = "; ".join(
        f"{law} with {share:.0%} of the compute: {mean:.0%}"
        for law, share, mean in means.select("law", "share", "mean").rows()
    )
    first, share = max(means.select("law", "mean").rows(), key=lambda row: row[1], default=("", float("nan")))
    return Chart(
        f"The {LAW_WORDS.get(first, first)} puts two recipes in the right order in up to {percent(share, 0)} of the "
        "cases",
        layers(*parts, height=280),
        (shown_data,),
        f"Right decisions, mean over scenarios: {words}.",
        note="A point is the mean over scenarios, its bar a standard error up and down over them. On the dashed line, "
        "a coin would do as well.",
    )


def laws_chart(law: PretrainingLaw, recipe: str = "", *, scenarios: Sequence[str] = ()) -> Chart:
    """Draw the laws of one recipe beside each other with their intervals, a panel a scenario.

    Raises
    ------
    ParameterError
        For an unknown scenario or recipe.
    """
    recipe, drawn, flops = _recipe(law, recipe), _scenarios(law, scenarios)[:MOST_PANELS], _span(law)
    number = law.recipes.index(recipe)
    rows: list[Row] = []
    for place, one in enumerate(drawn):
        for name in one.fitted:
            curve = law.forecast(one.scenario, name, flops=flops)
            curves = (curve.score, curve.low, curve.high)
            of_recipe = _lines(law, (one.scenario, place), flops, curves)
            rows += [(*row[:2], LAW_WORDS.get(name, name), *row[3:]) for row in of_recipe if row[2] == recipe]
        observed = one.scores.observed
        of_models = _models(law, (one.scenario, place), observed, np.full(observed.shape, np.nan))
        rows += [row for row in of_models if row[2] == recipe]
    names = [LAW_WORDS.get(name, name) for name in law.names]
    legend = {"title": None, "orient": "top", "columns": 3, "labelLimit": 230, "symbolOpacity": 1}
    shade = {"field": "recipe", "type": "nominal", "scale": colours(names), "legend": legend}
    x = across("flops", FLOPS, form=".0e", scale={"type": "log"}, axis={"tickCount": 3})
    y = across("value", "Score", form=".0%", scale={"domain": [0.0, 1.0]})
    lines, models = ({"filter": f"datum.what === '{what}'"} for what in ("line", "model"))
    parts = [
        marked("area", {"x": x, **ends(y), "color": shade}, lines, opacity=0.15),
        marked("line", {"x": x, "y": y, "color": shade}, lines),
        ruled("x", law.target_flops),
        marked("point", {"x": x, "y": y}, models, color="@ink", opacity=1),
    ]
    told = []
    for name in law.names:
        known = [law.forecast(one.scenario, name).score[number, 0] for one in drawn if name in one.fitted]
        told.append(f"{LAW_WORDS.get(name, name)} {percent(float(np.nanmean(known)), 0)}")
    words = f"{recipe} at {compute(law.target_flops)}, on average over scenarios: {', '.join(told)}"
    return Chart(
        words,
        panels("scenario", "place", *parts, height=170),
        (_columns("laws", rows),),
        f"{words}.",
        note=f"Points: finished models. Bands: {level_words(law.level)} intervals. Dashed upright: the target.",
    )


def item_curves_chart(law: PretrainingLaw, responses: ResponseMatrix, item_ids: Sequence[str]) -> Chart:
    """Draw single items: every model's response against its ability, with the item's curve, a panel an item.

    Parameters
    ----------
    law : PretrainingLaw
    responses : ResponseMatrix
        Those the law was made of.
    item_ids : sequence of str

    Raises
    ------
    ParameterError
        Without an item.
    DataError
        For an unknown item or model.
    """
    if not item_ids:
        raise ParameterError("a figure of items needs at least one, got none.")
    rows = responses.model_indices(law.model_ids)
    names = ("item", "place", "what", "ability", "response")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    gaps = []
    for place, column in enumerate(responses.item_indices(item_ids).tolist()):
        one = law.of_scenario(responses.items["scenario"][column])
        item = one.abilities.parameters.take(np.flatnonzero(one.abilities.items == column))
        theta, answers = one.abilities.theta, responses.responses[rows, column]
        grid = np.linspace(np.nanmin(theta), np.nanmax(theta), 3 * N_POINTS)
        curve = probability(item, grid[:, None])[:, 0]
        gaps.append(np.abs(answers - probability(item, np.nan_to_num(theta)[:, None])[:, 0]))
        for what, along, up in (("model", theta, answers), ("curve", grid, curve)):
            n = along.size
            values = ([item_ids[place]] * n, [place] * n, [what] * n, along.tolist(), up.tolist())
            for name, own in zip(names, values, strict=True):
                columns[name] += own
    across_x, up = across("ability", "Ability"), across("response", "Response", form="%", scale={"domain": [0.0, 1.0]})
    parts = [
        marked(kind, {"x": across_x, "y": up}, {"filter": f"datum.what === '{what}'"}, color=colour)
        for kind, what, colour in (("point", "model", "@soft"), ("line", "curve", "@main"))
    ]
    words = (
        f"Responses to these items are {points(float(np.nanmean(np.concatenate(gaps))))} from their curves, on average"
    )
    return Chart(
        words,
        panels("item", "place", *parts, height=170),
        (Data("item-curves", columns),),
        f"{words}.",
        note="Points: responses of models by their ability. Line: what the item model expects.",
    )
