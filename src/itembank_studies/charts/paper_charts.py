"""Charts of what papers on item banks show: dimensions, items of scenarios, predicted responses, weights, tasks."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import polars as pl

from itembank.errors import ParameterError, remedy, shown
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import rounded
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import (
    MOST_COLOURS,
    SOLID,
    Spec,
    bare,
    below,
    beside,
    equals,
    marks,
    nominal,
    number,
    of,
    panel,
    panels,
    ramp,
    ruled,
    shade,
    span,
)
from itembank.pages.theme import count, percent, points, shortened
from itembank.tables import plural
from itembank_scaling.pages.transfer_charts import correlations
from itembank_studies.papers.dimensions import Dimensionality
from itembank_studies.papers.item_predictions import ItemPredictions
from itembank_studies.papers.scenario_homogeneity import Homogeneity
from itembank_studies.papers.selection_weights import SelectionWeights
from itembank_studies.papers.task_overview import TaskOverview

MOST_PARTS = 60
"""Scenarios and subscenarios of which weights are drawn: tinyBenchmarks' Figure 10 has 57."""
MOST_BARS = 80
"""Tasks that are drawn by cost; of more, the cheapest and the dearest."""


def dimensionality_chart(found: Dimensionality) -> Chart:
    """Draw shares of variance, eigenvalues from the second on against shuffled ones, and errors held out.

    WILD Figures 5 and 8. Without models left out there is no third panel.
    """
    columns = {"share": found.shares, "eigenvalue": found.eigenvalues, "threshold": found.thresholds}
    cut = {name: values[:20] for name, values in columns.items()}
    n_values = cut["share"].size
    data = [Data("eigenvalues", {"component": np.arange(1, n_values + 1), **cut})]
    has_errors = len(found.candidates) > 1
    width = 170 if has_errors else 280
    x = number("component", "Component", tickMinStep=1)
    share, value = number("share", "Share of variance (%)", "%"), number("eigenvalue", "Eigenvalue")
    zoom = "datum.component > 1 && datum.component <= 8"  # next to the first the others cannot be told apart
    chance = marks("line", x, of(value, "threshold"), where=zoom, color="@muted", strokeDash=[5, 3])
    second = (marks("line", x, value, where=zoom), marks("point", x, value, where=zoom), chance)
    parts = [
        panel(width, 220, marks("line", x, share), marks("point", x, share), title="Scree"),
        panel(width, 220, *second, title="Against shuffled"),
    ]
    note = "Dashed: 95th percentile of the eigenvalues of shuffled responses."
    if has_errors:
        change, doubt = found.relative_errors, found.relative_standard_errors  # (n_sizes, n_candidates)
        names = [f"{count(size)} items" for size in found.n_shown]
        errors = {"change": change.ravel(), "low": (change - doubt).ravel(), "high": (change + doubt).ravel()}
        asked = [name for name in names for _ in found.candidates]
        data.append(Data("dims", {"asked": asked, "dims": list(found.candidates) * len(names), **errors}))
        dims: Spec = {"field": "dims", "type": "ordinal", "axis": {"title": "Dimensions", "labelAngle": 0}}
        y = number("change", f"Change against {found.candidates[0]} (%)", "+.0%", tickMinStep=0.01)
        color = shade("asked", names, orient="bottom", columns=2, labelLimit=260)
        drawn = (("rule", span(y)), ("line", y), ("point", y))
        lines = [marks(kind, dims, along, color=color) for kind, along in drawn]
        parts.append(panel(width, 220, *lines, ruled("y", 0.0, strokeDash=SOLID), title="Held-out error", data="dims"))
        note += " Bars: ± one standard error over models."
    verb = "tells" if found.n_dims_parallel == 1 else "tell"
    words = f"{plural(found.n_dims_parallel, 'dimension')} {verb} more than chance"
    if found.n_dims is not None:
        words += f"; held-out answers are predicted with {found.n_dims}"
    first = f"The first component explains {percent(float(found.shares[0]), 0)} of the variance."
    return Chart(words, beside(*parts), tuple(data), f"{words}. {first}", note=note)


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
    every = found.scenarios
    known = [one.scenario for one in every]
    absent = [name for name in scenarios if name not in known]
    most_rows = 8  # scenarios whose items one picture has room for
    if absent or len(scenarios) > most_rows:
        raise ParameterError(
            f"a homogeneity figure takes at most {most_rows} of the scenarios {', '.join(known)}, got "
            f"{', '.join(scenarios)}."
        )
    by_need = sorted(every, key=lambda one: not one.warnings)[:most_rows]
    drawn = [every[known.index(name)] for name in scenarios] or by_need
    values = np.concatenate([one.pattern.ravel() for one in drawn])
    # between which colours change: two extreme items leave the others their colours
    low, high = (float(end) for end in np.nanquantile(values, (0.02, 0.98)))
    rows = [_homogeneity_row(k, one, [low, high], is_last=k == len(drawn) - 1) for k, one in enumerate(drawn)]
    unfit = [one.scenario for one in every if one.warnings]
    words = (
        f"{len(known) - len(unfit)} of {len(known)} scenarios have items that differ enough and tell enough for a law"
        + (f"; not {shortened(', '.join(unfit), 60)}" if unfit else "")
    )
    told = "; ".join(f"{one.scenario}: reliability {one.reliability:.2f}" for one in drawn)
    return Chart(
        words,
        below(*(spec for spec, _ in rows), spacing=10, resolve={"scale": {"color": "independent"}}),
        tuple(data for _, of_row in rows for data in of_row),
        f"{words}. {told}.",
        note="Spread: half the distance from the 16th to the 84th percentile; ‹ ›: items beyond the panel. "
        f"Information: of one item on average; reliability: of {found.budget} items; grey: the middle nine tenths "
        "of the models.",
    )


def _homogeneity_row(row: int, one: SimpleNamespace, domain: list[float], *, is_last: bool) -> tuple[Spec, list[Data]]:
    """Return the four panels of a scenario, and what they draw."""
    places = dict(zip(("row", "column"), (place.ravel() for place in np.indices(one.pattern.shape)), strict=True))
    ends = {f"{name}_end": place + 1 for name, place in places.items()}
    data = [Data(f"pattern-{row}", {**places, **ends, "value": one.pattern.ravel()})]
    title = shortened(f"{one.scenario} (!)" if one.warnings else one.scenario, 20)
    exact = {"nice": False}
    legend = {"format": ".0%", "gradientLength": 160}
    color = ramp("value", "Mean response (%)" * is_last, tones="ramp", legend=legend, domain=domain, clamp=True)
    x = bare(number("column", "Items, easy to hard" * is_last, scale=exact, labels=False))
    y = bare(number("row", title, scale=exact, labels=False, titleFontWeight=700))
    cells = marks("rect", span(x, "column", "column_end"), span(y, "row", "row_end"), color=color)
    parts = [panel(130, 90, cells, title=f"{count(one.n_models)} × {count(one.n_items)}", data=f"pattern-{row}")]
    for what, values, spread in (
        ("Difficulty", one.difficulty, one.difficulty_sd),
        ("Discrimination", one.discrimination, one.discrimination_sd),
    ):
        known = values[np.isfinite(values)]  # few spreads around the median; the title counts the others
        lower, median, upper = np.quantile(known, (0.16, 0.5, 0.84))
        reach = 3.0 * max(float(upper - lower), 1e-6)
        low, high = max(float(known.min()), median - reach), min(float(known.max()), median + reach)
        room = max(high - low, 1e-3)  # narrower bins are none to the chart
        counts, edges = np.histogram(known, np.linspace(low - 0.01 * room, high + 0.01 * room, 31))
        below, above = int((known < edges[0]).sum()), int((known > edges[-1]).sum())
        beyond = f"{f' ‹ {below}' if below else ''}{f' › {above}' if above else ''}"
        data.append(Data(f"{what.lower()}-{row}", {"low": edges[:-1], "high": edges[1:], "n": counts}))
        x = {**number("low", what * is_last, scale=exact, tickCount=4), "bin": {"binned": True}}
        bars = marks("bar", span(x), number("n", tickCount=3, tickMinStep=1), binSpacing=0)
        parts.append(panel(125, 90, bars, title=f"Spread {spread:.2f}{beyond}", data=data[-1].name))
    information = one.information / (one.n_items - one.n_degenerate)
    data.append(Data(f"information-{row}", {"ability": one.grid, "information": information}))
    x = number("ability", "Ability" * is_last, scale=exact, tickCount=5)
    middle = marks("rect", span(x), data=[{"low": one.lowest_ability, "high": one.highest_ability}], color="@faint")
    line = marks("line", x, number("information", tickCount=3), color="@other")
    parts.append(panel(125, 90, middle, line, title=f"Reliability {one.reliability:.2f}", data=data[-1].name))
    return beside(*parts, spacing=14), data


def item_predictions_chart(found: ItemPredictions, *, scenarios: Sequence[str] = ()) -> Chart:
    """Draw responses of held-out models against what the item model gives them, a panel a scenario.

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
    known = found.table["scenario"].to_list()
    most_panels = 16
    if any(name not in known for name in scenarios) or len(scenarios) > most_panels:
        raise ParameterError(
            f"a figure of predictions takes at most {most_panels} of the scenarios {shown(known)}, got "
            f"{shown(list(scenarios))}."
        )
    drawn = list(scenarios) or known[:most_panels]
    rows_of = [found.table.row(known.index(name), named=True) for name in drawn]
    titles = [f"{shortened(row['scenario'], 24)}, r = {row['correlation']:.2f}" for row in rows_of]
    # panels share one table: what only cells or only bins have is unknown (None) in the other
    rows = [
        {"panel": titles[k], "place": k, **dict(zip(part, values, strict=True)), "is_bin": is_bin}
        for is_bin in (0, 1)
        for k, one in enumerate(drawn)
        for part in (_means(found.bins.filter(scenario=one)) if is_bin else _cells(found.cells[one]),)
        for values in zip(*(column.tolist() for column in part.values()), strict=True)
    ]
    names = ("panel", "place", "x", "x_end", "y", "y_end", "n", "low", "high", "is_bin")
    data = Data("predictions", {name: [row.get(name) for row in rows] for name in names})
    x, y = (
        number(name, title, "%", domain=[0.0, 1.0])
        for name, title in (("x", "Predicted right (%)"), ("y", "Observed (%)"))
    )
    density: Spec = {"field": "n", "type": "quantitative", "scale": {"type": "log", "range": "ramp"}, "legend": None}
    of_bins = equals("is_bin", 1)
    parts = [
        marks("rect", span(x, "x", "x_end"), span(y, "y", "y_end"), where={"not": of_bins}, color=density),
        marks("line", x, of(y, "x"), where=of_bins, color="@muted", strokeWidth=1),
        marks("rule", x, span(y), where=of_bins, color="@other"),
        marks("point", x, y, where=of_bins, color="@other", opacity=1),
    ]
    correlations = sorted(row["correlation"] for row in rows_of)
    sizes = [row["n_cells"] for row in rows_of]
    error = points(float(np.average([row["calibration_error"] for row in rows_of], weights=sizes)))
    text = f"{correlations[0]:.2f}" + (f" to {correlations[-1]:.2f}" if len(drawn) > 1 else "")
    words = f"Predicted responses correlate {text} with those of unseen models; mean responses are {error} off"
    background = (
        "how many responses lie there"
        if any(_is_graded(found.cells[one]) for one in drawn)
        else "how many have this prediction"
    )
    return Chart(
        words,
        panels("panel", "place", *parts, most=min(3, len(drawn))),
        (data,),
        f"{words}. {'; '.join(titles)}.",
        note="Responses of models that the items were calibrated without, predicted from their answers to other items. "
        f"Points: mean response by prediction, with 2 standard errors over models. Blue: {background}. Line: equal.",
    )


def _is_graded(cells: pl.DataFrame) -> bool:
    """Whether responses are more than right and wrong."""
    return bool(((cells["observed"] > 0.0) & (cells["observed"] < 1.0)).any())


def _cells(cells: pl.DataFrame) -> dict[str, FloatArray]:
    """Count responses in the squares of a panel; right and wrong ones by prediction alone."""
    edges = np.linspace(0.0, 1.0, 31)  # thirty squares along each axis
    tallest = 0.22  # share of a panel's height that the tallest bar of a histogram takes
    predicted, observed = (cells[name].to_numpy() for name in ("predicted", "observed"))
    if not _is_graded(cells):
        counts = np.histogram(predicted, edges)[0]
        (held,) = np.nonzero(counts)
        heights = tallest * counts[held] / counts.max()
        return {"x": edges[held], "x_end": edges[held + 1], "y": 0.0 * heights, "y_end": heights, "n": counts[held]}
    counts = np.histogram2d(predicted, observed, bins=(edges, edges))[0]
    i, j = np.nonzero(counts)
    return {"x": edges[i], "x_end": edges[i + 1], "y": edges[j], "y_end": edges[j + 1], "n": counts[i, j]}


def _means(bins: pl.DataFrame) -> dict[str, FloatArray]:
    predicted, observed = (bins[name].to_numpy() for name in ("predicted", "observed"))
    doubt = 2.0 * np.nan_to_num(bins["standard_error"].to_numpy())
    low, high = (np.clip(observed + side * doubt, 0.0, 1.0) for side in (-1.0, 1.0))
    return {"x": predicted, "y": observed, "low": low, "high": high}


def selection_weights_chart(found: SelectionWeights) -> Chart:
    """Draw the weights of chosen items, the largest first, and below them the weight of each subscenario.

    tinyBenchmarks Figures 9 and 10. The grey bar of a subscenario is the weight that all its items have in the overall
    score. Of more than 60, those are drawn that a selection weighs most unlike that.
    """
    names = found.selections["selection"].to_list()
    if len(names) > MOST_COLOURS:
        raise ParameterError(f"a figure of weights takes at most {MOST_COLOURS} selections, got {len(names)}.")
    items = Data(
        "weights",
        {
            "selection": [name for name in names for _ in found.weights[name]],
            "rank": np.concatenate([np.arange(1, found.weights[name].size + 1) for name in names]),
            "weight": np.concatenate([found.weights[name] for name in names]),
        },
    )
    means = [float(found.weights[name].sum()) / found.weights[name].size for name in names]
    finest = found.finest.partition_by("selection", maintain_order=True)
    off = np.max([(one["weight"] - one["weight_in_score"]).abs().to_numpy() for one in finest], axis=0)
    drawn = np.sort(np.argsort(-rounded(off), kind="stable")[:MOST_PARTS])
    shown_parts = finest[0][drawn]
    is_only_one = found.table["scenario"].n_unique() == 2  # and the overall score
    parts = Data(
        "parts",
        {
            "selection": [name for name in names for _ in drawn],
            "part": [
                shortened(", ".join(one) if one[1] and not is_only_one else one[1] or one[0], 40)
                for one in shown_parts.select("scenario", "subscenario").rows()
            ]
            * len(names),
            "place": list(range(drawn.size)) * len(names),
            "weight": np.concatenate([one["weight"].to_numpy()[drawn] for one in finest]),
            "in_score": np.tile(shown_parts["weight_in_score"].to_numpy(), len(names)),
        },
    )
    color = shade("selection", names, labelLimit=260, columns=3, symbolType="circle")
    x = number("rank", "Item, the largest weight first", tickMinStep=1)
    weight, part = number("weight", "Weight in the overall score (%)", "~%"), nominal("part", "place", labelLimit=230)
    alike = marks("rule", y=of(weight, "alike"), data="alike", strokeDash=[2, 2], color="@soft")
    curves = (alike, *(marks(kind, x, weight, color=color) for kind in ("line", "point")))
    first = equals("selection", names[0])
    rows = (
        marks("bar", of(weight, "in_score"), part, where=first, color="@soft", opacity=0.55),
        marks("point", weight, part, color=color, opacity=1, size=45),
    )
    told, *others = found.selections.iter_rows(named=True)
    words = (
        f"Weights make {told['selection']}'s {told['n_items']} items worth "
        f"{told['effective_items']:.0f} of equal weight"
        + "".join(f", {one['selection']}'s {one['n_items']} worth {one['effective_items']:.0f}" for one in others)
    )
    left = off.size - drawn.size
    height, title = 17 * len(drawn), "Weight of their scenario or subscenario"
    return Chart(
        words,
        below(
            panel(600, 180, *curves, title="Weight of each chosen item", data="weights"),
            panel(420, height, *rows, title=title, data="parts"),
            spacing=30,
        ),
        (items, Data("alike", {"selection": names, "alike": means}), parts),
        f"{words}.",
        note="Dotted: every item alike. Grey bar: weight of all items of the part in the overall score."
        + (f" The {left} others are weighed more alike." if left else ""),
    )


def task_costs_chart(found: TaskOverview) -> Chart:
    """Draw what a response to each task costs, and the mean score on it: dearest tasks on top (WILD Figure 1)."""
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
    mean, spread = found.score[known], found.spread[known]
    data = Data(
        "tasks",
        {
            "task": [found.tasks[task] for task in known.tolist()],
            "place": np.arange(known.size),
            "cost": found.cost[known],
            "score": mean,
            "low": np.clip(mean - spread, 0.0, 1.0),
            "high": np.clip(mean + spread, 0.0, 1.0),
        },
    )
    task, unnamed = nominal("task", "place", labelLimit=170, grid=False), nominal("task", "place", labels=False)
    x = number("score", "Score", "%", domain=[0.0, 1.0])
    bars = marks("bar", number("cost", f"Cost of a response ({found.unit})"), task)
    scores = (marks("rule", span(x), unnamed, color="@soft", strokeWidth=1.5), marks("point", x, unnamed, opacity=1))
    height = 17 * known.size
    words = f"A response to {shortened(high)} costs {found.cost_ratio:.1f} times one to {shortened(low)}"
    return Chart(
        words,
        beside(panel(240, height, bars), panel(240, height, *scores)),
        (data,),
        f"{words}.",
        note="Means over models. Bars of scores: ± one standard deviation between models.",
    )


def task_correlations_chart(found: TaskOverview) -> Chart:
    """Draw the correlations of the scores on tasks, those that are alike side by side (WILD Figures 16 and 17)."""
    pairs = [pair for pair in found.pairs() if np.isfinite(pair["correlation"])]
    words = "No two tasks have models in common"
    if pairs:
        median = float(np.median([pair["correlation"] for pair in pairs]))
        ends = (
            f"{shortened(str(pair['task']))} and {shortened(str(pair['other_task']))} {how} ({pair['correlation']:.2f})"
            for pair, how in ((pairs[0], "most"), (pairs[-1], "least"))
        )
        words = f"Half of the pairs of tasks correlate above {median:.2f}: {', '.join(ends)}"
    data, spec = correlations("tasks", found.tasks, found.order, (found.correlation, found.lower, found.upper))
    return Chart(
        words,
        spec,
        (data,),
        f"{words}.",
        note="Scores as they are, not abilities: short tasks correlate less by noise. Neighbours are alike. Pale: not "
        "clearly above 0.",
    )
