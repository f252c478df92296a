"""What a comparison says of its pairs of models, and its charts: differences, models in order, tables of all pairs."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itembank.comparison.comparisons import Comparison
from itembank.estimation.estimator_specs import RUN
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Chart, Column, Data, Table, heads
from itembank.pages.grammar import ENDS, ROW, Spec, marks, nominal, number, picture, ruled, score, shade, span, tips
from itembank.pages.theme import interval_words, level_words, points
from itembank.tables import plural

MOST_MODELS = 40
"""Rows of a picture of many models."""


@dataclass(frozen=True, slots=True)
class PairFinding:
    """One pair of models on one target, the better one first."""

    better: str
    worse: str
    # Score of the better less that of the worse, and its interval; NaN where there are too few responses.
    difference: float
    low: float  # Adjusted for all pairs (`DifferenceTests.joint_low`)
    high: float
    probability: float  # That the better one is better
    is_clear: bool  # Whether the two can be told apart at the comparison's level, after Holm's adjustment for all pairs
    is_exact: bool  # Whether the difference of just these runs is meant, and known
    detectable: float  # Smallest true difference that these items would show
    n_items: int  # Items that both answered
    level: float  # Of the interval, and with which `detectable` would be found
    power: float

    @classmethod
    def of(cls, comparison: Comparison, pair: int, target: int) -> Self:
        """Take one pair from a comparison and put the better model first."""
        names = [comparison.model_ids[side[pair]] for side in (comparison.pairs.first, comparison.pairs.second)]
        found, tests, at = comparison.difference, comparison.tests, (pair, target)
        value, low, high = (float(one[at]) for one in (found.value, tests.joint_low, tests.joint_high))
        probability = float(tests.probability_b_better[at])
        is_turned = value < 0.0
        if is_turned:
            value, low, high, probability = -value, -high, -low, 1.0 - probability
        return cls(
            names[0] if is_turned else names[1],
            names[1] if is_turned else names[0],
            value,
            low,
            high,
            probability,
            bool(comparison.is_clear[at]),
            bool(comparison.estimand == RUN and found.standard_error[at] == 0.0),
            float(tests.smallest_detectable_difference[at]),
            int(comparison.pairs.n_shared_items[at]),
            comparison.spec.level,
            comparison.spec.power,
        )

    @property
    def interval_words(self) -> str:
        """The interval: '0.4 to 3.8 points, 95 % interval'."""
        if self.is_exact:
            return "exactly, in this run"
        low, high = (points(end).removesuffix(" points") for end in (self.low, self.high))
        return f"{low} to {high} points, {level_words(self.level)} interval" if math.isfinite(self.low) else ""

    def sentence(self, of_what: str) -> str:
        """Say which is better, by how much and how surely."""
        if not math.isfinite(self.difference):
            return f"{self.worse} and {self.better} cannot be compared on {of_what}: there are not enough responses."
        if self.is_exact:
            by = f"{self.better} is ahead of {self.worse} by {points(self.difference)} on {of_what}"
            by = by if self.difference > 0.0 else f"The scores of {self.better} and {self.worse} on {of_what} are equal"
            return f"{by} in this run, on exactly these questions. That says nothing of other questions."
        chance = f"the probability that it is better is {probability_words(self.probability)}"
        if self.is_clear:
            by = f"{points(self.difference)} on {of_what} ({self.interval_words})"
            return f"{self.better} beats {self.worse} by {by}; {chance}."
        lead = f"{self.better} is ahead by {points(self.difference)} on {of_what} ({self.interval_words}), but {chance}"
        if self.difference == 0.0:
            lead = f"Their scores on {of_what} are equal ({self.interval_words})"
        return f"{self.better} and {self.worse} cannot be told apart. {lead}."

    @property
    def detectable_words(self) -> str:
        """Say how large a difference these items would show."""
        if not math.isfinite(self.detectable):
            return ""
        if self.detectable > 1.0:
            return "These questions are too few to show any difference."
        return (
            f"On these questions a true difference of {points(self.detectable)} would be detected "
            f"{level_words(self.power)} of the time."
        )


def probability_words(probability: float) -> str:
    """Write a probability; one that is nearly sure as 'above 0.99'."""
    if not math.isfinite(probability):
        return "unknown"
    return "above 0.99" if probability >= 0.995 else f"{probability:.2f}"


def pair_number(comparison: Comparison, one: int, other: int) -> int:
    """Return which pair two models are; each stands once, the earlier model first."""
    low, high = sorted((one, other))
    n_models = len(comparison.model_ids)
    return low * n_models - low * (low + 1) // 2 + high - low - 1


def scenario_differences(comparison: Comparison, pair: PairFinding) -> Chart:
    """Draw the differences of two models on every target with their intervals, the overall score first."""
    pair_at = pair_number(comparison, comparison.model_ids.index(pair.better), comparison.model_ids.index(pair.worse))
    rows: list[dict[str, Any]] = []
    for place, name in enumerate(sorted(comparison.targets, key=lambda name: name != comparison.last)):
        found = PairFinding.of(comparison, pair_at, comparison.targets.index(name))
        sign = 1.0 if found.better == pair.better else -1.0
        low, high = sorted([100.0 * sign * found.low, 100.0 * sign * found.high])
        row = {"target": name, "place": place, "difference": 100.0 * sign * found.difference, "low": low, "high": high}
        row["probability"] = found.probability if sign > 0.0 else 1.0 - found.probability
        rows.append(row | {"n_items": found.n_items, "clear": "clear" if found.is_clear else "not clear"})
    data = Data("scenario-differences", {name: [row[name] for row in rows] for name in rows[0]})
    level = level_words(comparison.spec.level)
    columns = (
        *heads("target", "difference"),
        Column("low", f"{level} from", "number"),
        *heads("high"),
        Column("probability", "Probability", "number", 2, f"That {pair.better} is better"),
        Column("n_items", "Shared items", "count"),
    )
    of_scenarios = [row for row in rows if row["target"] != comparison.last]
    told = [row["difference"] for row in of_scenarios if row["clear"] == "clear" or comparison.is_exact]
    ahead, behind = sum(value > 0.0 for value in told), sum(value < 0.0 for value in told)
    n_scenarios, clearly = plural(len(of_scenarios), "scenario"), "in this run" if comparison.is_exact else "clearly"
    title = (
        f"Of {n_scenarios}, {pair.better} is {clearly} ahead in {ahead} and behind in {behind}"
        if ahead or behind
        else f"In none of {len(of_scenarios)} scenarios is either model clearly better"
    )
    words = "; ".join(
        f"{row['target']} {row['difference']:+.1f} ({row['low']:.1f} to {row['high']:.1f})"
        for row in rows
        if np.isfinite(row["difference"])
    )
    color = shade("clear", {"clear": "@main", "not clear": "@muted"}, is_told=False)
    x, y = number("difference", "Difference (points)"), nominal("target", "place")
    tip = tips(target="Score", difference=("Difference (points)", "+.1f"), low=("From", ".1f"), high=("To", ".1f"))
    spec = picture(
        ruled("x", 0.0),
        marks("rule", span(x), y, tip=tip, color=color, strokeWidth=2.5, opacity=0.55),
        marks("point", x, y, tip=tip, color=color, size=55, opacity=1),
        height=ROW * len(rows),
    )
    return Chart(
        title,
        spec,
        (data,),
        f"Points that {pair.better} is ahead of {pair.worse}, with {level} intervals: {words}.",
        table=Table("Differences by scenario", data, columns, n_shown=60),
        note=f"Right of zero {pair.better} is better. Bars are {level} intervals, each by itself: with many "
        "scenarios, some are clear by chance alone.",
    )


def order_of(comparison: Comparison, target: int) -> IntArray:
    """Return the rows of the models, best first; those without a score last."""
    return np.argsort(-comparison.ranking.score[:, target], kind="stable")


def models_table(comparison: Comparison, target: int, intervals: FloatArray | None = None) -> Table:
    """Return all models in order, with tied groups and the difference to the best.

    `intervals` are those of their scores, (n_models, 2), if known.
    """
    order = order_of(comparison, target).tolist()
    is_known = ~np.isnan(comparison.typicality.typicality)
    rows: list[dict[str, Any]] = []
    for k, row in enumerate(order):
        pair = None if k == 0 else PairFinding.of(comparison, pair_number(comparison, order[0], row), target)
        flagged = comparison.typicality.is_flagged[row]
        highest, lowest = (int(one[row, target]) for one in (comparison.ranking.rank_low, comparison.ranking.rank_high))
        rows.append(
            {
                "rank": k + 1,
                "model_id": comparison.model_ids[row],
                "group": int(comparison.ranking.group[row, target]),
                "score": float(comparison.ranking.score[row, target]),
                **({} if intervals is None else {"from": float(intervals[row, 0]), "to": float(intervals[row, 1])}),
                "behind": 0.0 if pair is None else 100.0 * pair.difference,
                "low": None if pair is None else 100.0 * pair.low,
                "high": None if pair is None else 100.0 * pair.high,
                "places": str(highest) if highest == lowest else f"{highest} to {lowest}",
                "against": "the best" if pair is None else _against(pair),
                "looks": ("unlike past models" if flagged else "like past models") if is_known[row] else "",
            }
        )
    level = level_words(comparison.spec.level)
    told_apart = "As many models are clearly better than each of a group"
    ends = () if intervals is None else heads("from", "to")
    care = "The interval of a model unlike past ones may be too narrow"
    columns = (
        *heads("rank", "places", "model_id", "score"),
        *ends,
        Column("group", "Tied group", "count", explanation=told_apart, has_menu=True),
        *heads("behind"),
        Column("low", f"{level} from", "number"),
        *heads("high", "against"),
        *([Column("looks", "Answers", has_menu=True, explanation=care)] if is_known.any() else []),
    )
    return Table.of("Models in order", "ranking", rows, columns, n_shown=20)


def _against(pair: PairFinding) -> str:
    if pair.is_exact:
        return "behind in this run" if pair.difference > 0.0 else "equal in this run"
    return "behind" if pair.is_clear else "tied with the best"


def _tips(**more: str | tuple[str, str]) -> list[Spec]:
    return tips(model_id="Model", rank=("Rank", "d"), shade="Tied", score=("Score", ".1%"), **more)


def score_chart(comparison: Comparison, table: Table) -> Chart:
    """Draw the scores of a ranking with their intervals, the best first, in the colours of the tied groups."""
    rows, color, note = _drawn(table)
    x, ends = score("score", "Score"), {"from": ENDS["low"], "to": ENDS["high"]}
    spec = _in_rows(rows, x, span(x, "from", "to"), _tips(**ends), color)
    names = zip(*(rows[name][:10] for name in ("model_id", "score", "from", "to")), strict=True)
    words = "; ".join(f"{name} {points(value)} ({interval_words(low, high)})" for name, value, low, high in names)
    level = level_words(comparison.spec.level)
    best, tied = rows["model_id"][0], list(table.data.columns["against"]).count("tied with the best")
    lead = f"; {plural(tied, 'model', 'are')} tied with it"
    return Chart(
        f"{best} leads{lead if tied else ', and no model is tied with it'}",
        spec,
        (Data("scores-shown", rows),),
        f"Scores in order with {level} intervals: {words}.",
        note=f"Bars are {level} intervals. The colour changes at each new tied group.{note}",
    )


def order_chart(comparison: Comparison, table: Table) -> Chart:
    """Draw how far each model is behind the best, with its interval, in the colours of the tied groups."""
    rows, color, note = _drawn(table)
    best, level = rows["model_id"][0], level_words(comparison.spec.level)
    x = number("behind", "Points behind the best")
    behind = {"behind": ("Points behind the best", ".1f"), "low": ("From", ".1f"), "high": ("To", ".1f")}
    tip = _tips(**behind, **({"looks": "Answers"} if "looks" in rows else {}))
    spec = _in_rows(rows, x, span(x), tip, color, ruled("x", 0.0))
    next_ones = zip(*(rows[name][1:11] for name in ("model_id", "behind", "low", "high")), strict=True)
    words = "; ".join(
        f"{name} {behind:.1f} ({low:.1f} to {high:.1f})"
        for name, behind, low, high in next_ones
        if low is not None and np.isfinite(behind)
    )
    return Chart(
        f"How far each model is behind {best}",
        spec,
        (Data("ranking-shown", rows),),
        f"Points behind {best}, with {level} intervals, of the next models: {words}.",
        note=f"Bars are {level} intervals of the difference, adjusted for all pairs (Holm). A model whose bar contains "
        f"0 cannot be told from {best}. The colour changes at each new tied group.{note}",
    )


def _in_rows(rows: dict[str, list[Any]], x: Spec, ends: Spec, tip: list[Spec], color: Spec, *below: Spec) -> Spec:
    """Draw a row a model, the best first: its value, and the interval around it."""
    y = nominal("model_id", "rank")
    hollow = {**color, "condition": {"test": "datum.looks === 'unlike past models'", "value": "@paper"}}
    look: Spec = {"stroke": color, "fill": hollow, "filled": True, "size": 55, "opacity": 1, "strokeWidth": 1.5}
    return picture(
        *below,
        marks("rule", ends, y, tip=tip, color=color, strokeWidth=2.5, opacity=0.5),
        marks("point", x, y, tip=tip, **look),
        height=max(60, ROW * len(rows["rank"])),
    )


def _drawn(table: Table) -> tuple[dict[str, Any], Spec, str]:
    """Return the rows of the best models, the colour of tied groups, and what a note has to say of both."""
    n_shown = min(MOST_MODELS, len(table.data))
    rows: dict[str, Any] = {name: list(values[:n_shown]) for name, values in table.data.columns.items()}
    rows["shade"] = [f"group {group}" for group in rows["group"]]
    rows["parity"] = [int(group) % 2 for group in rows["group"]]
    color = {**shade("parity", {}, is_told=False), "scale": {"domain": [1, 0], "range": ["@main", "@other"]}}
    note = " Hollow: models that answered unlike past ones." if "unlike past models" in rows.get("looks", ()) else ""
    if n_shown < len(table.data):
        note += f" The {n_shown} best of {len(table.data)} models are drawn; the table has all."
    return rows, color, note
