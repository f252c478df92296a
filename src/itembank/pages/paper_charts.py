"""Charts of what papers on item banks show: dimensions, items of scenarios, predicted responses, weights, tasks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from itembank.errors import ParameterError, remedy, shown
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import rounded
from itembank.pages.blocks import Chart, Data
from itembank.pages.charts import Spec
from itembank.pages.heat import correlation_data, heat
from itembank.pages.panels import across, beside, colours, ends, in_order, marked, panel, panels, ruled
from itembank.pages.theme import count, percent, points, shortened
from itembank.studies.papers.dimensions import Dimensionality
from itembank.studies.papers.item_predictions import ItemPredictions, ScenarioPredictions
from itembank.studies.papers.scenario_homogeneity import Homogeneity, ScenarioHomogeneity
from itembank.studies.papers.selection_weights import SelectionWeights
from itembank.studies.papers.task_overview import TaskOverview

N_SCREE = 20
ZOOM = 8
"""Eigenvalues against shuffled ones, from the second on: next to the first the others cannot be told apart."""
MOST_ROWS = 8
"""Scenarios whose items one picture has room for."""
N_BINS = 30
REACH = 3.0
"""How far histograms reach from the median, in distances of the 16th from the 84th percentile."""
COLOUR_QUANTILES = (0.02, 0.98)
"""Of all responses, between which colours change: two extreme items leave the others their colours."""
MOST_PANELS = 16
N_CELLS = 30
"""Squares along each axis of a density."""
TALLEST = 0.22
"""Share of a panel's height that the tallest bar of a histogram takes."""
MOST_PARTS = 60
"""Scenarios and subscenarios of which weights are drawn: tinyBenchmarks' Figure 10 has 57."""
MOST_BARS = 80
"""Tasks that are drawn by cost; of more, the cheapest and the dearest."""
TOP: Spec = {"title": None, "orient": "top", "labelLimit": 260}


def dimensionality_chart(found: Dimensionality) -> Chart:
    """Draw shares of variance, eigenvalues from the second on against shuffled ones, and errors held out.

    WILD Figures 5 and 8. Without models left out there is no third panel.
    """
    n_values = found.shares[:N_SCREE].size
    eigenvalues = Data(
        "eigenvalues",
        {
            "component": np.arange(1, n_values + 1),
            "share": found.shares[:N_SCREE],
            "eigenvalue": found.eigenvalues[:N_SCREE],
            "threshold": found.thresholds[:N_SCREE],
        },
    )
    has_errors = len(found.candidates) > 1
    width = 170 if has_errors else 280
    x = across("component", "Component", axis={"tickMinStep": 1})
    zoom = {"filter": f"datum.component > 1 && datum.component <= {ZOOM}"}
    whole = [marked(kind, {"x": x, "y": across("share", "Share of variance", form="%")}) for kind in ("line", "point")]
    value, chance = (across(name, "Eigenvalue") for name in ("eigenvalue", "threshold"))
    second = [
        marked("line", {"x": x, "y": value}, zoom),
        marked("point", {"x": x, "y": value}, zoom),
        marked("line", {"x": x, "y": chance}, zoom, color="@muted", strokeDash=[5, 3]),
    ]
    parts = [panel(width, 220, *whole, title="Scree"), panel(width, 220, *second, title="Against shuffled")]
    data = [eigenvalues]
    note = "Dashed: 95th percentile of the eigenvalues of shuffled responses."
    if has_errors:
        parts.append(panel(width, 220, *_errors_by_dims(found), title="Held-out error", data="dims"))
        data.append(_dims(found))
        note += " Bars: one standard error over models up and down."
    words = f"{found.n_dims_parallel} dimensions tell more than chance"
    if found.n_dims is not None:
        words += f"; held-out answers are predicted with {found.n_dims}"
    first = f"The first component explains {percent(float(found.shares[0]), 0)} of the variance."
    return Chart(words, beside(*parts), tuple(data), f"{words}. {first}", note=note)


def _dims(found: Dimensionality) -> Data:
    """Errors against those of the smallest number of dimensions."""
    change, doubt = found.relative_errors, found.relative_standard_errors  # (n_sizes, n_candidates)
    return Data(
        "dims",
        {
            "asked": [f"{count(size)} items" for size in found.n_shown for _ in found.candidates],
            "dims": list(found.candidates) * len(found.n_shown),
            "change": change.ravel(),
            "low": (change - doubt).ravel(),
            "high": (change + doubt).ravel(),
        },
    )


def _errors_by_dims(found: Dimensionality) -> list[Spec]:
    x: Spec = {"field": "dims", "type": "ordinal", "axis": {"title": "Dimensions", "labelAngle": 0}}
    y = across("change", f"Change against {found.candidates[0]}", form="+.0%")
    names = [f"{count(size)} items" for size in found.n_shown]
    legend = {**TOP, "orient": "bottom", "columns": 2}
    shade = {"field": "asked", "type": "nominal", "scale": colours(names), "legend": legend}
    return [
        marked("rule", {"x": x, **ends(y), "color": shade}),
        marked("line", {"x": x, "y": y, "color": shade}),
        marked("point", {"x": x, "y": y, "color": shade}),
        ruled("y", 0.0, strokeDash=[1, 0]),
    ]


def homogeneity_chart(found: Homogeneity, *, scenarios: Sequence[str] = ()) -> Chart:
    """Draw responses, difficulties, discriminations and information of the items of scenarios, a row each.

    The data of IRSL Figure 20. Models of the first panel are ordered by their mean response, items by difficulty.
    Histograms leave out what is far away, and say how many items that are.

    Parameters
    ----------
    found : Homogeneity
    scenarios : sequence of str
        Which ones, at most eight; by default those with warnings first, then the others in their order.

    Raises
    ------
    ParameterError
        For a scenario that was not diagnosed, or more than eight.
    """
    known = [one.scenario for one in found.scenarios]
    absent = [name for name in scenarios if name not in known]
    if absent or len(scenarios) > MOST_ROWS:
        raise ParameterError(
            f"a homogeneity figure takes at most {MOST_ROWS} of the scenarios {', '.join(known)}, got "
            f"{', '.join(scenarios)}."
        )
    by_need = sorted(found.scenarios, key=lambda one: one.is_fit)[:MOST_ROWS]
    drawn = [found.scenarios[known.index(name)] for name in scenarios] or by_need
    values = np.concatenate([one.pattern.ravel() for one in drawn])
    low, high = (float(end) for end in np.nanquantile(values, COLOUR_QUANTILES))
    rows = [_homogeneity_row(k, one, [low, high], is_last=k == len(drawn) - 1) for k, one in enumerate(drawn)]
    unfit = [one.scenario for one in found.scenarios if not one.is_fit]
    words = (
        f"{len(known) - len(unfit)} of {len(known)} scenarios have items that differ enough and tell enough for a law"
        + (f"; not {shortened(', '.join(unfit), 60)}" if unfit else "")
    )
    told = "; ".join(f"{one.scenario}: reliability {one.reliability:.2f}" for one in drawn)
    return Chart(
        words,
        {"vconcat": [spec for spec, _ in rows], "spacing": 10, "resolve": {"scale": {"color": "independent"}}},
        tuple(data for _, of_row in rows for data in of_row),
        f"{words}. {told}.",
        note="Spread: half the distance from the 16th to the 84th percentile; ‹ ›: items beyond the panel. "
        f"Information: of one item on the mean; reliability: of {drawn[0].budget} items; grey: the middle nine tenths "
        "of the models.",
    )


def _homogeneity_row(
    number: int, one: ScenarioHomogeneity, domain: list[float], *, is_last: bool
) -> tuple[Spec, list[Data]]:
    """Return the four panels of a scenario, and what they draw."""
    rows, columns = np.indices(one.pattern.shape)
    places = {"row": rows.ravel(), "column": columns.ravel()}
    pattern = {f"{name}{end}": place + k for name, place in places.items() for k, end in enumerate(("", "_end"))}
    data = [Data(f"pattern-{number}", {**pattern, "value": one.pattern.ravel()})]
    scale = {"domain": domain, "clamp": True, "range": "ramp"}
    legend = {"title": "Mean response", "format": ".0%", "orient": "bottom", "gradientLength": 160}
    shade = {"field": "value", "type": "quantitative", "scale": scale, "legend": legend if is_last else None}
    name = shortened(one.scenario if one.is_fit else f"{one.scenario} (!)", 20)
    bare = {"labels": False, "grid": False, "domain": False}
    exact = {"nice": False}
    x = across("column", "Items, easy to hard" * is_last, axis=bare, scale=exact)
    y = across("row", name, axis={**bare, "titleFontWeight": 700}, scale=exact)
    cells = marked("rect", {**ends(x, "column", "column_end", along="x"), **ends(y, "row", "row_end"), "color": shade})
    parts = [panel(130, 90, cells, title=f"{count(one.n_models)} × {count(one.n_items)}", data=f"pattern-{number}")]
    for what, values, spread in (
        ("Difficulty", one.difficulty, one.difficulty_spread.value),
        ("Discrimination", one.discrimination, one.discrimination_spread.value),
    ):
        bins, beyond = _bins(values)
        data.append(Data(f"{what.lower()}-{number}", bins))
        x = across("low", what * is_last, bin={"binned": True}, scale=exact, axis={"tickCount": 4})
        bars = marked("bar", {**ends(x, along="x"), "y": across("n", axis={"tickCount": 3})}, binSpacing=0)
        parts.append(panel(125, 90, bars, title=f"Spread {spread:.2f}{beyond}", data=data[-1].name))
    information = one.information / (one.n_items - one.n_degenerate)
    data.append(Data(f"information-{number}", {"ability": one.grid, "information": information}))
    x = across("ability", "Ability" * is_last, scale=exact, axis={"tickCount": 5})
    line = marked("line", {"x": x, "y": across("information", axis={"tickCount": 3})}, color="@other")
    middle: Spec = {
        "data": {"values": [{"low": one.range[0], "high": one.range[1]}]},
        **marked("rect", ends(x, along="x"), color="@faint"),
    }
    parts.append(panel(125, 90, middle, line, title=f"Reliability {one.reliability:.2f}", data=data[-1].name))
    return beside(*parts, spacing=14), data


def _bins(values: FloatArray) -> tuple[dict[str, Any], str]:
    """Count items within a few spreads of the median; say how many lie beyond."""
    known = values[np.isfinite(values)]
    lower, middle, upper = np.quantile(known, (0.16, 0.5, 0.84))
    reach = REACH * max(float(upper - lower), 1e-6)
    low, high = max(float(known.min()), middle - reach), min(float(known.max()), middle + reach)
    room = max(high - low, 1e-6)
    counts, edges = np.histogram(known, np.linspace(low - 0.01 * room, high + 0.01 * room, N_BINS + 1))
    below, above = int((known < edges[0]).sum()), int((known > edges[-1]).sum())
    beyond = f"{f' ‹ {below}' if below else ''}{f' › {above}' if above else ''}"
    return {"low": edges[:-1], "high": edges[1:], "n": counts}, beyond


def item_predictions_chart(found: ItemPredictions, *, scenarios: Sequence[str] = ()) -> Chart:
    """Draw responses of models left out against what the item model gives them, a panel a scenario.

    IRSL Figures 4, 9, 16 and 24. Points are mean responses by predicted value, with two standard errors. Behind them
    lies the density of all responses; of right and wrong answers, which have none, the histogram of the predictions.

    Parameters
    ----------
    found : ItemPredictions
    scenarios : sequence of str
        Which ones, at most sixteen; the first of all by default.

    Raises
    ------
    ParameterError
        For a scenario that is not there, or too many.
    """
    known = [one.scenario for one in found.scenarios]
    if any(name not in known for name in scenarios) or len(scenarios) > MOST_PANELS:
        raise ParameterError(
            f"a figure of predictions takes at most {MOST_PANELS} of the scenarios {shown(known)}, got "
            f"{shown(list(scenarios))}."
        )
    drawn = [found.scenarios[known.index(name)] for name in scenarios] or list(found.scenarios)[:MOST_PANELS]
    titles = [f"{shortened(one.scenario, 24)}, r = {one.association.correlation:.2f}" for one in drawn]
    cells, bins = ([part(one) for one in drawn] for part in (_cells, _means))
    tables = [
        Data(
            name,
            {
                "panel": [titles[k] for k, one in enumerate(parts) for _ in one["x"]],
                "place": [k for k, one in enumerate(parts) for _ in one["x"]],
                **{column: np.concatenate([one[column] for one in parts]) for column in parts[0]},
            },
        )
        for name, parts in (("predictions", cells), ("bins", bins))
    ]
    scale = {"domain": [0.0, 1.0]}
    x, y = across("x", "Predicted", form="%", scale=scale), across("y", "Observed", form="%", scale=scale)
    shade = {"field": "n", "type": "quantitative", "scale": {"type": "log", "range": "ramp"}, "legend": None}
    of_bins: Spec = {"field": "is_bin", "equal": 1}
    both = _stacked(*tables)
    parts = [
        marked("rect", {**ends(x, "x", "x_end", along="x"), **ends(y, "y", "y_end"), "color": shade},
               {"filter": {"not": of_bins}}),
        marked("line", {"x": x, "y": across("x", "Observed", form="%", scale=scale)}, {"filter": of_bins},
               color="@muted", strokeWidth=1),
        marked("rule", {"x": x, **ends(y, "low", "high")}, {"filter": of_bins}, color="@other"),
        marked("point", {"x": x, "y": y}, {"filter": of_bins}, color="@other", opacity=1),
    ]  # fmt: skip
    correlations = sorted(one.association.correlation for one in drawn)
    sizes = [one.predicted.size for one in drawn]
    error = points(float(np.average([one.bins.calibration_error for one in drawn], weights=sizes)))
    text = f"{correlations[0]:.2f}" + (f" to {correlations[-1]:.2f}" if len(drawn) > 1 else "")
    words = f"Predicted responses correlate {text} with those of unseen models; mean responses are {error} off"
    background = "how many responses lie there" if any(map(_is_graded, drawn)) else "how many have this prediction"
    return Chart(
        words,
        panels("panel", "place", *parts, height=190, most=min(3, len(drawn))),
        (both,),
        f"{words}. {'; '.join(titles)}.",
        note="Responses of models that the items were calibrated without, predicted from their answers to other items. "
        f"Points: mean response by prediction, with 2 standard errors over models. Blue: {background}. Line: equal.",
    )


def _stacked(first: Data, second: Data) -> Data:
    """Return the rows of two tables in one, which panels share; what only one has is unknown in the other."""
    names = dict.fromkeys((*first.columns, *second.columns))
    unknown = [[None] * len(one) for one in (first, second)]
    joined = {
        name: [*_listed(first.columns.get(name, unknown[0])), *_listed(second.columns.get(name, unknown[1]))]
        for name in names
    }
    return Data("predictions", {**joined, "is_bin": [0] * len(first) + [1] * len(second)})


def _listed(values: Any) -> list[Any]:
    return list(np.asarray(values).tolist())


def _is_graded(one: ScenarioPredictions) -> bool:
    """Whether responses are more than right and wrong."""
    return bool(np.any((one.observed > 0.0) & (one.observed < 1.0)))


def _cells(one: ScenarioPredictions) -> dict[str, FloatArray]:
    """Count responses in the squares of a panel; right and wrong ones by prediction alone."""
    edges = np.linspace(0.0, 1.0, N_CELLS + 1)
    if not _is_graded(one):
        counts = np.histogram(one.predicted, edges)[0]
        (held,) = np.nonzero(counts)
        heights = TALLEST * counts[held] / counts.max()
        return {"x": edges[held], "x_end": edges[held + 1], "y": 0.0 * heights, "y_end": heights, "n": counts[held]}
    counts = np.histogram2d(one.predicted, one.observed, bins=(edges, edges))[0]
    i, j = np.nonzero(counts)
    return {"x": edges[i], "x_end": edges[i + 1], "y": edges[j], "y_end": edges[j + 1], "n": counts[i, j]}


def _means(one: ScenarioPredictions) -> dict[str, FloatArray]:
    doubt = 2.0 * np.nan_to_num(one.bins.standard_error)
    low, high = (np.clip(one.bins.observed + side * doubt, 0.0, 1.0) for side in (-1.0, 1.0))
    return {"x": one.bins.predicted, "y": one.bins.observed, "low": low, "high": high}


def selection_weights_chart(found: SelectionWeights) -> Chart:
    """Draw the weights of chosen items, the largest first, and below them the weight of each subscenario.

    tinyBenchmarks Figures 9 and 10. The grey bar of a subscenario is the weight that all its items have in the overall
    score. Of more than 60, those are drawn that a selection weighs most unlike that.
    """
    names = [one.name for one in found.selections]
    if len(names) > len(colours(names)["range"][:7]):
        raise ParameterError(f"a figure of weights takes at most 7 selections, got {len(names)}.")
    items = Data(
        "weights",
        {
            "selection": [one.name for one in found.selections for _ in one.weights],
            "rank": np.concatenate([np.arange(1, one.n_items + 1) for one in found.selections]),
            "weight": np.concatenate([one.weights for one in found.selections]),
        },
    )
    means = Data(
        "alike",
        {"selection": names, "alike": [float(one.weights.sum()) / one.n_items for one in found.selections]},
    )
    finest = list(found.finest)
    off = np.max([np.abs(one.part_weights - found.score_weights)[finest] for one in found.selections], axis=0)
    drawn = sorted(finest[k] for k in np.argsort(-rounded(off), kind="stable")[:MOST_PARTS])
    part_names = [shortened(_part_name(found, place), 40) for place in drawn]
    parts = Data(
        "parts",
        {
            "selection": [one.name for one in found.selections for _ in drawn],
            "part": part_names * len(names),
            "place": list(range(len(drawn))) * len(names),
            "weight": np.concatenate([one.part_weights[drawn] for one in found.selections]),
            "in_score": np.tile(found.score_weights[drawn], len(names)),
        },
    )
    legend = {**TOP, "columns": 3, "symbolType": "circle"}
    shade = {"field": "selection", "type": "nominal", "scale": colours(names), "legend": legend}
    weight = "Weight in the overall score"
    x, y = (
        across("rank", "Item, the largest weight first", axis={"tickMinStep": 1}),
        across("weight", weight, form="~%"),
    )
    alike: Spec = {
        "data": {"name": "alike"},
        **marked("rule", {"y": across("alike", weight, form="~%")}, strokeDash=[2, 2], color="@soft"),
    }
    curves = [alike, *(marked(kind, {"x": x, "y": y, "color": shade}) for kind in ("line", "point"))]
    row = in_order("part", "place", labelLimit=230)
    first = {"filter": {"field": "selection", "equal": names[0]}}
    rows = [
        marked("bar", {"x": across("in_score", weight, form="~%"), "y": row}, first, color="@soft", opacity=0.55),
        marked("point", {"x": across("weight", weight, form="~%"), "y": row, "color": shade}, opacity=1, size=45),
    ]
    told, *others = found.selections
    words = (
        f"Weights make {told.name}'s {told.n_items} items worth {told.effective_items:.0f} of equal weight"
        + "".join(f", {one.name}'s {one.n_items} worth {one.effective_items:.0f}" for one in others)
    )
    left = len(finest) - len(drawn)
    return Chart(
        words,
        {
            "vconcat": [
                panel(600, 180, *curves, title="Weight of each chosen item", data="weights"),
                panel(420, 17 * len(drawn), *rows, title="Weight of their scenario or subscenario", data="parts"),
            ],
            "spacing": 30,
        },
        (items, means, parts),
        f"{words}.",
        note="Dotted: every item alike. Grey bar: weight of all items of the part in the overall score."
        + (f" The {left} others are weighed more alike." if left else ""),
    )


def _part_name(found: SelectionWeights, place: int) -> str:
    """Name of a part: with its scenario where the bank has several."""
    scenario, subscenario = found.scenarios[place], found.subscenarios[place]
    is_only_one = len({*found.scenarios[1:]}) == 1
    return subscenario if subscenario and is_only_one else f"{scenario}, {subscenario}" if subscenario else scenario


def task_costs_chart(found: TaskOverview) -> Chart:
    """Draw what a response to each task costs, and the mean score on it: dearest tasks on top (WILD Figure 1).

    Raises
    ------
    ParameterError
        Where no cost is known.
    """
    known = np.flatnonzero(found.cost > 0.0)
    if not known.size:
        named = remedy("task_overview(..., cost='tokens')", "--cost NAME")
        raise ParameterError(
            f"a cost must be known of a task, and none is: name one that the responses record ({named})."
        )
    known = known[np.argsort(-found.cost[known], kind="stable")]
    high, low = found.tasks[known[0]], found.tasks[known[-1]]
    if known.size > MOST_BARS:  # the ends tell most
        known = np.append(known[: MOST_BARS // 2], known[-MOST_BARS // 2 :])
    score, spread = found.score[known], found.spread[known]
    data = Data(
        "tasks",
        {
            "task": [found.tasks[task] for task in known.tolist()],
            "place": np.arange(known.size),
            "cost": found.cost[known],
            "score": score,
            "low": np.clip(score - spread, 0.0, 1.0),
            "high": np.clip(score + spread, 0.0, 1.0),
        },
    )
    row, bare = in_order("task", "place", labelLimit=170, grid=False), in_order("task", "place", labels=False)
    x = across("score", "Score", form="%", scale={"domain": [0.0, 1.0]})
    bars = marked("bar", {"y": row, "x": across("cost", f"Cost of a response ({found.unit})")})
    scores = [
        marked("rule", {"y": bare, **ends(x, along="x")}, color="@soft", strokeWidth=1.5),
        marked("point", {"y": bare, "x": x}, opacity=1),
    ]
    height = 17 * known.size
    words = f"A response to {shortened(high)} costs {found.cost_ratio:.1f} times one to {shortened(low)}"
    return Chart(
        words,
        beside(panel(240, height, bars), panel(240, height, *scores)),
        (data,),
        f"{words}.",
        note="Means over models. Bars of scores: one standard deviation between models to each side.",
    )


def task_correlations_chart(found: TaskOverview) -> Chart:
    """Draw the correlations of the scores on tasks, those that are alike side by side (WILD Figures 16 and 17)."""
    order = found.order
    value, lower, upper = (one[np.ix_(order, order)] for one in (found.correlation, found.lower, found.upper))
    names = [found.tasks[place] for place in order.tolist()]
    pairs = [pair for pair in found.pairs() if np.isfinite(pair["correlation"])]
    words = "No two tasks have models in common"
    if pairs:
        median, most, least = float(np.median([pair["correlation"] for pair in pairs])), pairs[0], pairs[-1]
        words = (
            f"Half of the pairs of tasks correlate above {median:.2f}: {_pair(most)} most ({most['correlation']:.2f}), "
            f"{_pair(least)} least ({least['correlation']:.2f})"
        )
    return Chart(
        words,
        heat(len(names)),
        (correlation_data("tasks", names, value, lower, upper),),
        f"{words}.",
        note="Scores as they are, not abilities: short tasks correlate less by noise. Neighbours are alike. Pale: not "
        "clearly above 0.",
    )


def _pair(pair: dict[str, object]) -> str:
    return f"{shortened(str(pair['task']))} and {shortened(str(pair['other_task']))}"
