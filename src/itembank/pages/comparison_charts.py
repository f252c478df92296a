"""Charts of comparisons: differences with intervals, and the models in order."""

import numpy as np

from itembank.comparison.comparisons import Comparison
from itembank.numerics.arrays import IntArray
from itembank.pages.blocks import Chart, Column, Data, Table
from itembank.pages.charts import Spec, layers, tips
from itembank.pages.common import plural
from itembank.pages.comparison_pairs import PairFinding, pair_number
from itembank.pages.panels import across, in_order, ruled
from itembank.pages.theme import interval_words, level_words, percent, points

MOST_MODELS = 40
"""Rows of a picture of many models."""
ROW_PIXELS = 20


def scenario_differences(comparison: Comparison, pair: PairFinding) -> Chart:
    """Draw the differences of two models on every target with their intervals, the overall score first."""
    number = pair_number(comparison, comparison.model_ids.index(pair.better), comparison.model_ids.index(pair.worse))
    names = sorted(comparison.targets, key=lambda name: name != comparison.last)
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
                one.probability if sign > 0.0 else 1.0 - one.probability for sign, one in zip(signs, found, strict=True)
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
    of_scenarios = [one for name, one in zip(names, ends, strict=True) if name != comparison.last]
    ahead, behind = sum(low > 0.0 for low, _ in of_scenarios), sum(high < 0.0 for _, high in of_scenarios)
    words = "; ".join(
        f"{name} {value:+.1f} ({low:.1f} to {high:.1f})"
        for name, value, (low, high) in zip(names, data.columns["difference"], ends, strict=True)
        if np.isfinite(value)
    )
    note = f"Bars are {level} intervals, each by itself: with many scenarios, some are clear by chance alone."
    return Chart(
        _scenario_title(pair, ahead, behind, len(of_scenarios)),
        _forest(len(data), f"Points that {pair.better} is ahead"),
        (data,),
        f"Points that {pair.better} is ahead of {pair.worse}, with {level} intervals: {words}.",
        table=Table("Differences by scenario", data, columns, n_shown=60),
        note=note,
    )


def _scenario_title(pair: PairFinding, ahead: int, behind: int, n_scenarios: int) -> str:
    """Say in how many scenarios the two differ clearly."""
    if not ahead and not behind:
        return f"No scenario of {n_scenarios} shows by itself which of the two is better"
    return (
        f"{pair.better} is clearly ahead in {ahead} and clearly behind in {behind} of {plural(n_scenarios, 'scenario')}"
    )


def _forest(n_rows: int, title: str) -> Spec:
    """Return differences with intervals around zero, a row a target; clear ones in colour."""
    shade = {
        "field": "clear",
        "type": "nominal",
        "scale": {"domain": ["clear", "not clear"], "range": ["@main", "@muted"]},
        "legend": None,
    }
    y = in_order("target", "place")
    shown = tips(target="Score", difference=("Difference (points)", "+.1f"), low=("From", ".1f"), high=("To", ".1f"))
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
    pairs = [
        None if k == 0 else PairFinding.of(comparison, pair_number(comparison, order[0], row), target)
        for k, row in enumerate(order.tolist())
    ]
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
            "standing": [
                "the best" if one is None else "behind" if one.is_clear else "tied with the best" for one in pairs
            ],
            "looks": ["unlike past models" if flagged[row] else "like past models" for row in order.tolist()],
        },
    )
    level = level_words(comparison.spec.level)
    columns = (
        Column("rank", "Rank", "count"),
        Column("model_id", "Model", "id"),
        Column(
            "group", "Group", "count", explanation="Models of a group cannot be told apart from its best", has_menu=True
        ),
        Column("score", "Score", "percent"),
        Column("behind", "Behind the best (points)", "number"),
        Column("low", f"{level} from", "number"),
        Column("high", "to", "number"),
        Column("standing", "Against the best", has_menu=True),
        Column(
            "looks",
            "Answered",
            has_menu=True,
            explanation="Intervals of models that answered unlike past ones deserve care",
        ),
    )
    return Table("Models in order", data, columns, n_shown=20)


def order_chart(comparison: Comparison, table: Table) -> Chart:
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
        model_id="Model",
        rank=("Rank", "d"),
        shade="Tied",
        score=("Score", ".1%"),
        behind=("Points behind the best", ".1f"),
        low=("From", ".1f"),
        high=("To", ".1f"),
        looks="Answered",
    )
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
        for name, behind, low, high in list(
            zip(rows["model_id"], rows["behind"], rows["low"], rows["high"], strict=True)
        )[1:11]
        if low is not None and np.isfinite(behind)
    )
    cut = (
        f" The {n_shown} best of {len(table.data)} models are drawn, the table has all."
        if n_shown < len(table.data)
        else ""
    )
    hollow = (
        " Hollow points: models that answered unlike past ones."
        if any(one.startswith("unlike") for one in rows["looks"])
        else ""
    )
    return Chart(
        f"{best} leads; {plural(tied, 'model')} cannot be told apart from it"
        if tied
        else f"{best} leads, and no other model is tied with it",
        spec,
        (data,),
        f"Points behind {best}, with {level} intervals, of the next models: {words}.",
        note=f"Bars are {level} intervals of the difference to the best. The colour changes where a new tied group "
        f"begins.{hollow}{cut}",
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
        return (
            f"{names[0]} is first, {points(second.difference)} ahead of {names[1]} ({second.interval_words}); no other "
            "model is tied with it."
        )
    others = ", ".join(tied[:3]) + (f" and {len(tied) - 3} more" if len(tied) > 3 else "")
    return f"{names[0]} is first, but cannot be told apart from {plural(len(tied), 'other model')}: {others}."
