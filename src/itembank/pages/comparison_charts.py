"""Charts of comparisons: differences with intervals, the models in order, and every pair."""

from collections.abc import Sequence

import numpy as np

from itembank.comparison.comparisons import Comparison
from itembank.data.score_names import OVERALL
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Chart, Column, Data, Table
from itembank.pages.common import plural
from itembank.pages.comparison_pairs import PairFinding, pair_number, square
from itembank.pages.panels import Spec, across, in_order, layers, ruled, tips
from itembank.reports.theme import interval_words, level_words, percent, points

MOST_MODELS = 40
"""Rows of a picture of many models."""
MOST_WRITTEN = 10
"""Models up to which each cell of a matrix states its number."""
ROW_PIXELS = 20
CLIPPED_AT = 0.95
"""Quantile of the sizes of differences that takes the strongest colour: a few extreme ones hide no others."""


def scenario_differences(comparison: Comparison, pair: PairFinding) -> Chart:
    """Draw the differences of two models on every target with their intervals, the overall score first."""
    number = pair_number(comparison, comparison.model_ids.index(pair.better), comparison.model_ids.index(pair.worse))
    names = sorted(comparison.targets, key=lambda name: name != OVERALL)
    found = [PairFinding.of(comparison, number, comparison.targets.index(name)) for name in names]
    signs = [1.0 if one.better == pair.better else -1.0 for one in found]
    ends = [sorted([100.0 * sign * one.low, 100.0 * sign * one.high]) for sign, one in zip(signs, found, strict=True)]
    data = Data(
        "scenario-differences",
        {
            "target": names,
            "place": list(range(len(names))),
            "difference": [100.0 * sign * one.difference for sign, one in zip(signs, found, strict=True)],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "probability": [
                one.probability if sign > 0.0 else 1.0 - one.probability
                for sign, one in zip(signs, found, strict=True)
            ],
            "n_items": [one.n_items for one in found],
            "clear": ["clear" if low > 0.0 or high < 0.0 else "not clear" for low, high in ends],
        },
    )
    level = level_words(comparison.spec.level)
    columns = (
        Column("target", "Score"),
        Column("difference", "Difference (points)", "number"),
        Column("low", f"{level} from", "number"),
        Column("high", "to", "number"),
        Column("probability", "Probability", "number", digits=2, explanation=f"That {pair.better} is better"),
        Column("n_items", "Shared items", "count"),
    )
    of_scenarios = [one for name, one in zip(names, ends, strict=True) if name != OVERALL]
    ahead, behind = sum(low > 0.0 for low, _ in of_scenarios), sum(high < 0.0 for _, high in of_scenarios)
    words = "; ".join(
        f"{name} {value:+.1f} ({low:.1f} to {high:.1f})"
        for name, value, (low, high) in zip(names, data.columns["difference"], ends, strict=True)
        if np.isfinite(value)
    )
    note = f"Bars are {level} intervals, each by itself: with many scenarios, some are clear by chance alone."
    return Chart(
        _scenario_title(pair, ahead, behind, len(of_scenarios)),
        forest("target", "place", len(data), f"Points that {pair.better} is ahead", colour="clear"),
        (data,),
        f"Points that {pair.better} is ahead of {pair.worse}, with {level} intervals: {words}.",
        table=Table("Differences by scenario", data, columns, n_shown=60),
        note=note,
    )


def _scenario_title(pair: PairFinding, ahead: int, behind: int, n_scenarios: int) -> str:
    """Say in how many scenarios the two differ clearly."""
    if not ahead and not behind:
        return f"No scenario of {n_scenarios} shows by itself which of the two is better"
    return f"{pair.better} is clearly ahead in {ahead} and clearly behind in {behind} of {plural(n_scenarios, 'scenario')}"


def forest(name: str, place: str, n_rows: int, title: str, *, colour: str) -> Spec:
    """Return points with intervals around zero, a row each: `difference`, `low`, `high`; what is 'clear' in colour."""
    shade = {
        "field": colour,
        "type": "nominal",
        "scale": {"domain": ["clear", "not clear"], "range": ["@main", "@muted"]},
        "legend": None,
    }
    y = in_order(name, place)
    shown = tips((name, "Of"), ("difference", "Difference (points)", "+.1f"), ("low", "From", ".1f"), ("high", "To", ".1f"))
    return layers(
        ruled("x", 0.0),
        {
            "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.55},
            "encoding": {"y": y, "x": across("low", title), "x2": {"field": "high"}, "color": shade, "tooltip": shown},
        },
        {
            "mark": {"type": "point", "size": 55, "opacity": 1},
            "encoding": {"y": y, "x": across("difference", title), "color": shade, "tooltip": shown},
        },
        height=ROW_PIXELS * n_rows,
    )


def order_of(comparison: Comparison, target: int) -> IntArray:
    """Return the rows of the models, best first; those without a score last."""
    result: IntArray = np.argsort(-comparison.ranking.score[:, target], kind="stable")
    return result


def models_table(comparison: Comparison, target: int) -> Table:
    """Return all models in order, with tied groups and the difference to the best."""
    order = order_of(comparison, target)
    pairs = [None if k == 0 else PairFinding.of(comparison, pair_number(comparison, order[0], row), target) for k, row in enumerate(order.tolist())]  # fmt: skip
    flagged = comparison.typicality.is_flagged
    data = Data(
        "ranking",
        {
            "rank": list(range(1, order.size + 1)),
            "model_id": [comparison.model_ids[row] for row in order.tolist()],
            "group": comparison.ranking.group[order, target].tolist(),
            "score": comparison.ranking.score[order, target].tolist(),
            "behind": [0.0 if one is None else 100.0 * one.difference for one in pairs],
            "low": [None if one is None else 100.0 * one.low for one in pairs],
            "high": [None if one is None else 100.0 * one.high for one in pairs],
            "standing": ["the best" if one is None else "behind" if one.is_clear else "tied with the best" for one in pairs],
            "looks": ["unlike past models" if flagged[row] else "like past models" for row in order.tolist()],
        },
    )
    level = level_words(comparison.spec.level)
    columns = (
        Column("rank", "Rank", "count"),
        Column("model_id", "Model", "id"),
        Column("group", "Group", "count", explanation="Models of a group cannot be told apart from its best", has_menu=True),
        Column("score", "Score", "percent"),
        Column("behind", "Behind the best (points)", "number"),
        Column("low", f"{level} from", "number"),
        Column("high", "to", "number"),
        Column("standing", "Against the best", has_menu=True),
        Column("looks", "Answered", has_menu=True, explanation="Intervals of models that answered unlike past ones deserve care"),
    )  # fmt: skip
    return Table("Models in order", data, columns, n_shown=20)


def order_chart(comparison: Comparison, target: int, table: Table) -> Chart:
    """Draw how far each model is behind the best, with its interval, in the colours of the tied groups."""
    n_shown = min(MOST_MODELS, len(table.data))
    rows = {name: list(values[:n_shown]) for name, values in table.data.columns.items()}
    rows["shade"] = [f"group {group}" for group in rows["group"]]
    rows["parity"] = [int(group) % 2 for group in rows["group"]]
    data = Data("ranking-shown", rows)
    shade = {
        "field": "parity",
        "type": "nominal",
        "scale": {"domain": [1, 0], "range": ["@main", "@other"]},
        "legend": None,
    }
    y = in_order("model_id", "rank")
    shown = tips(
        ("model_id", "Model"), ("rank", "Rank", "d"), ("shade", "Tied"), ("score", "Score", ".1%"),
        ("behind", "Points behind the best", ".1f"), ("low", "From", ".1f"), ("high", "To", ".1f"),
        ("looks", "Answered"),
    )  # fmt: skip
    title = f"Points behind {table.data.columns['model_id'][0]}"
    spec = layers(
        ruled("x", 0.0),
        {
            "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.5},
            "encoding": {"y": y, "x": across("low", title), "x2": {"field": "high"}, "color": shade, "tooltip": shown},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, "strokeWidth": 1.5},
            "encoding": {
                "y": y,
                "x": across("behind", title),
                "stroke": shade,
                "fill": {
                    "condition": {"test": "datum.looks === 'unlike past models'", "value": "@paper"},
                    **shade,
                },
                "tooltip": shown,
            },
        },
        height=max(60, 15 * n_shown),
    )
    tied = sum(one == "tied with the best" for one in table.data.columns["standing"])
    best = table.data.columns["model_id"][0]
    level = level_words(comparison.spec.level)
    words = "; ".join(
        f"{name} {behind:.1f} ({low:.1f} to {high:.1f})"
        for name, behind, low, high in list(zip(rows["model_id"], rows["behind"], rows["low"], rows["high"], strict=True))[1:11]
        if low is not None and np.isfinite(behind)
    )
    cut = f" The {n_shown} best of {len(table.data)} models are drawn, the table has all." if n_shown < len(table.data) else ""
    hollow = " Hollow points: models that answered unlike past ones." if any(one.startswith("unlike") for one in rows["looks"]) else ""
    return Chart(
        f"{best} leads; {plural(tied, 'model')} cannot be told apart from it" if tied else f"{best} leads, and no other model is tied with it",
        spec,
        (data,),
        f"Points behind {best}, with {level} intervals, of the next models: {words}.",
        note=f"Bars are {level} intervals of the difference to the best. The colour changes where a new tied group begins.{hollow}{cut}",
    )


def matrix_chart(comparison: Comparison, target: int) -> Chart:
    """Draw the probability that the model of a row is better than that of a column."""
    order = order_of(comparison, target)[:MOST_MODELS]
    names = [comparison.model_ids[row] for row in order.tolist()]
    probability = comparison.tests.probability_b_better[:, target]
    value = 100.0 * comparison.difference.value[:, target]
    tied = (comparison.tests.p_holm[:, target] >= 1.0 - comparison.spec.level).astype(np.float64)
    tables = {
        "probability": square(comparison, probability, 1.0 - probability),
        "difference": square(comparison, value, -value),
        "tied": square(comparison, tied, tied),
    }
    chosen = {name: one[np.ix_(order, order)] for name, one in tables.items()}
    row, column = np.nonzero(np.isfinite(chosen["difference"]))
    data = Data(
        "pairs-shown",
        {
            "row": [names[k] for k in row],
            "column": [names[k] for k in column],
            "row_place": row,
            "column_place": column,
            **{name: one[row, column] for name, one in chosen.items() if name != "tied"},
            "tied": ["tied" if one else "told apart" for one in chosen["tied"][row, column]],
        },
    )
    n_pairs = len(data) // 2
    n_apart = sum(one == "told apart" for one in data.columns["tied"]) // 2
    cut = f" The {len(names)} best of {len(comparison.model_ids)} models are drawn." if len(names) < len(comparison.model_ids) else ""
    return Chart(
        f"{n_apart} of {plural(n_pairs, 'pair')} can be told apart",
        _matrix(len(names)),
        (data,),
        f"A matrix of {len(names)} models in the order of their scores; {n_apart} of {n_pairs} pairs can be told apart. "
        f"{_neighbours(chosen['probability'], names)}",
        note="Blue: the model of the row is better, orange: worse. Pale: the two cannot be told apart, once the number of "
        f"pairs is taken into account (Holm), even where each pair by itself looks clear.{cut}",
    )  # fmt: skip


def _neighbours(probability: FloatArray, names: Sequence[str]) -> str:
    """Say of the first models how surely each is better than the next."""
    found = [
        f"{names[k]} better than {names[k + 1]}: {probability[k, k + 1]:.2f}" for k in range(min(len(names) - 1, 5))
    ]
    return f"Probability that one is better than the next: {'; '.join(found)}."


def _matrix(n_models: int) -> Spec:
    step = int(np.clip(620 // max(n_models, 1), 15, 54))
    x = {**in_order("column", "column_place", labelAngle=-60, orient="top"), "scale": {"padding": 0}}
    y = {**in_order("row", "row_place"), "scale": {"padding": 0}}
    for one in (x, y):
        one["axis"] = {**one["axis"], "labelLimit": 130, "grid": False, "domain": False}
    shown = tips(
        ("row", "Row"), ("column", "Column"), ("difference", "Points ahead", "+.1f"),
        ("probability", "Probability better", ".2f"), ("tied", "Pair"),
    )  # fmt: skip
    colour = {
        "field": "probability",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": "diverging"},
        "legend": {"title": "Probability that the row is better", "titleLimit": 320, "orient": "bottom", "format": ".0%", "gradientLength": 200},
    }
    opacity = {"condition": {"test": "datum.tied === 'tied'", "value": 0.35}, "value": 1}
    encoding: Spec = {"color": colour, "opacity": opacity, "tooltip": shown}
    parts: list[Spec] = [{"mark": {"type": "rect", "stroke": "@paper"}, "encoding": encoding}]
    if n_models <= MOST_WRITTEN:
        dark = "datum.tied !== 'tied' && (datum.probability < 0.12 || datum.probability > 0.88)"
        ink = {"condition": {"test": dark, "value": "@paper"}, "value": "@ink"}
        number = {"field": "difference", "type": "quantitative", "format": "+.1f"}
        parts.append({"mark": {"type": "text", "fontSize": 11}, "encoding": {"text": number, "color": ink}})
    return {
        "autosize": "pad",
        "width": {"step": step},
        "height": {"step": step},
        "encoding": {"x": x, "y": y},
        "layer": parts,
    }


def profile_chart(comparison: Comparison, target: int) -> Chart:
    """Draw every model's score in each scenario less the mean of all models compared."""
    order = order_of(comparison, target)[:MOST_MODELS]
    places = [k for k in range(len(comparison.targets)) if k != target]
    centred = 100.0 * (comparison.ranking.score - np.nanmean(comparison.ranking.score, axis=0))
    cells = centred[np.ix_(order, places)]
    row, column = np.nonzero(np.isfinite(cells))
    size = np.abs(cells[row, column])
    limit = float(np.quantile(size, CLIPPED_AT)) if size.size else 1.0
    names = [comparison.model_ids[k] for k in order.tolist()]
    scenarios = [comparison.targets[k] for k in places]
    data = Data(
        "profiles",
        {
            "model_id": [names[k] for k in row],
            "place": row,
            "scenario": [scenarios[k] for k in column],
            "scenario_place": column,
            "points": cells[row, column],
            "score": comparison.ranking.score[order][:, places][row, column],
        },
    )
    shown = tips(("model_id", "Model"), ("scenario", "Scenario"), ("score", "Score", ".1%"), ("points", "Against the mean", "+.1f"))
    colour = {
        "field": "points",
        "type": "quantitative",
        "scale": {"domain": [-limit, limit], "clamp": True, "range": "diverging"},
        "legend": {"title": "Points above the mean", "titleLimit": 320, "orient": "bottom", "gradientLength": 200},
    }
    spec = {
        "autosize": "pad",
        "width": {"step": int(np.clip(640 // max(len(places), 1), 18, 54))},
        "height": {"step": 16},
        "mark": {"type": "rect", "stroke": "@paper"},
        "encoding": {
            "x": in_order("scenario", "scenario_place", labelAngle=-60, orient="top", grid=False, domain=False, labelLimit=130),
            "y": in_order("model_id", "place", grid=False, domain=False, labelLimit=150),
            "color": colour,
            "tooltip": shown,
        },
    }
    best = [names[int(np.nanargmax(cells[:, k]))] for k in range(len(places)) if np.isfinite(cells[:, k]).any()]
    words = "; ".join(f"{scenario}: {name}" for scenario, name in zip(scenarios, best, strict=False))
    return Chart(
        "Where each model is above (blue) and below (orange) the mean of the models compared",
        spec,
        (data,),
        f"The best model by scenario: {words}.",
        table=Table(
            "Scores by model and scenario",
            data,
            (
                Column("model_id", "Model", "id"),
                Column("scenario", "Scenario", has_menu=True),
                Column("score", "Score", "percent"),
                Column("points", "Against the mean (points)", "number"),
            ),
        ),
        note=f"The strongest colours stand for {limit:.0f} points and more. Estimates, without their intervals.",
    )


def score_words(comparison: Comparison, target: int) -> str:
    """Say from where to where the scores go."""
    known = comparison.ranking.score[:, target]
    known = known[np.isfinite(known)]
    return interval_words(known.min(), known.max()) if known.size else percent(float("nan"))


def lead_words(comparison: Comparison, target: int) -> str:
    """Say which model leads and who is tied with it."""
    order = order_of(comparison, target)
    names = [comparison.model_ids[row] for row in order.tolist()]
    group = comparison.ranking.group[order, target]
    tied = names[1 : int(np.sum(group == group[0]))]
    second = PairFinding.of(comparison, pair_number(comparison, order[0], order[1]), target)
    if not tied:
        return f"{names[0]} is first, {points(second.difference)} ahead of {names[1]} ({second.interval_words}); no other model is tied with it."
    others = ", ".join(tied[:3]) + (f" and {len(tied) - 3} more" if len(tied) > 3 else "")
    return f"{names[0]} is first, but cannot be told apart from {plural(len(tied), 'other model')}: {others}."
