"""Scores of past models as the background that new ones are seen against."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.estimation.estimates import ScoreEstimates
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Answer, Chart, Column, Data, Table, heads
from itembank.pages.grammar import ESTIMATE, ROW, Spec, intervals, marks, nominal, of, picture, score, span, tips
from itembank.pages.theme import UNKNOWN, count, interval_words, level_words, percent, points
from itembank.responses.score_names import OVERALL
from itembank.tables import plural

UNITS = {"cost_usd": "cost", "tokens": "tokens", "seconds": "time", "output_tokens": "output tokens"}
"""Costs that a saving is told in, the most wanted first, and what they are called."""


QUANTILES = {"tenth": 0.1, "lower": 0.25, "middle": 0.5, "upper": 0.75, "ninetieth": 0.9}
UNNAMED = "not named"
"""In place of the names of past models whose scores alone are published."""


@dataclass(frozen=True, slots=True)
class PastScores:
    """Full scores of the n_models past models of a bank."""

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    value: FloatArray  # (n_models, n_targets): NaN where a score is not known

    @classmethod
    def of(cls, bank: Bank) -> Self:
        """Take the known scores of a bank; of one that was published without models at most their overall scores."""
        if bank.published is not None:
            past = bank.published.past
            scores = np.zeros(0) if past is None else past.scores
            value = np.full((scores.size, len(bank.targets.names)), np.nan)
            value[:, -1] = scores
            ids = past.told if past is not None and past.told else (UNNAMED,) * scores.size
            return cls(ids, bank.targets.names, value)
        return cls(tuple(bank.responses.model_ids), bank.targets.names, bank.past_scores)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Names of the scenarios: of all targets but the last."""
        return self.targets[:-1]

    def known(self, target: str) -> FloatArray:
        """Known scores of a target, (n_known,); none of a target that the bank has not."""
        if target not in self.targets:
            return np.zeros(0)
        values = self.value[:, self.targets.index(target)]
        return values[~np.isnan(values)]

    def quantiles(self, target: str) -> dict[str, float]:
        """Quantiles of a target by name; NaN without models."""
        values = self.known(target)
        levels = list(QUANTILES.values())
        found = np.quantile(values, levels).tolist() if values.size else [float("nan")] * len(levels)
        return dict(zip(QUANTILES, found, strict=True))

    def share_below(self, target: str, score: float) -> float:
        """Share of past models whose score is lower; NaN without models, or without a score."""
        values = self.known(target)
        return float(np.mean(values < score)) if values.size and not np.isnan(score) else float("nan")


@dataclass(frozen=True, slots=True)
class OneModel:
    """Estimates of one model, as charts and sentences about it take them."""

    model_id: str  # The key begins the names of its data and is ours: letters, digits and hyphens
    key: str
    targets: tuple[str, ...]
    value: FloatArray  # (n_targets,)
    low: FloatArray  # (n_targets,)
    high: FloatArray  # (n_targets,)
    n_items: tuple[int, ...]  # (n_targets,)
    n_total: tuple[int, ...]  # (n_targets,)
    level: float
    is_flagged: bool
    target: str = OVERALL  # The score that the page is about

    @classmethod
    def of(cls, made: ScoreEstimates, row: int, key: str, target: str) -> Self:
        """Take the estimates of one model, for a page about this score."""
        return cls(
            model_id=made.model_ids[row],
            key=key,
            targets=made.targets,
            value=made.value[row],
            low=made.low[row],
            high=made.high[row],
            n_items=tuple(made.n_items[row].tolist()),
            n_total=tuple(made.n_total.tolist()),
            level=made.level,
            is_flagged=bool(made.typicality.is_flagged[row]),
            target=target,
        )

    @property
    def at(self) -> int:
        """Where the score that the page is about stands among the targets."""
        return self.targets.index(self.target)


def score_words(target: str) -> str:
    """Return what an axis of a score is called."""
    return "Overall score" if target == OVERALL else f"Score: {target}"


def summary_words(past: PastScores, model: OneModel) -> str:
    """Say in a sentence what a model scores, and where it is among past ones."""
    at = model.at
    what = "" if model.target == OVERALL else f" on {model.target}"
    if np.isnan(model.value[at]):
        return f"{model.model_id} has no estimate{what}: too few of its answers are known."
    known = past.known(model.target)
    below, above = (int(np.sum(one(known, model.value[at]))) for one in (np.less, np.greater))
    among = f", higher than {count(below)} of {plural(known.size, 'past model')} and lower than {count(above)}"
    said = "scores" if model.high[at] <= model.low[at] else "scores an estimated"
    return f"{model.model_id} {said} {points(float(model.value[at]))}{what}{among if known.size else ''}."


def standing_words(past: PastScores, model: OneModel) -> str:
    """Say where the model stands among past ones, with what the interval leaves open; '' where nothing is known."""
    at = model.at
    n_known = past.known(model.target).size
    if n_known == 0 or np.isnan(model.value[at]):
        return ""
    shares = [past.share_below(model.target, float(one[at])) for one in (model.value, model.low, model.high)]
    return (
        f"The estimate is higher than the scores of {percent(shares[0], 0)} of {plural(n_known, 'past model')} "
        f"({percent(shares[1], 0)} at the lower end of the interval, {percent(shares[2], 0)} at the upper)."
    )


def standing_chart(past: PastScores, model: OneModel) -> Chart | None:
    """Draw the scores of past models with the model's interval among them; None without past models."""
    words = standing_words(past, model)
    if not words:
        return None
    x = score("estimate", score_words(model.target))
    y = {**nominal("row", grid=False), "scale": {"domain": ["This model", "Past models"]}}
    old, ticks, note = _strip(past, model.target, f"{model.key}-past", x, y)
    at = model.at
    value, low, high = (float(one[at]) for one in (model.value, model.low, model.high))
    new = {"row": "This model", "model": model.model_id, "estimate": value, "low": low, "high": high}
    new["is_flagged"] = model.is_flagged
    one = Data(f"{model.key}-new", {name: [value] for name, value in new.items()})
    spec = picture(ticks, intervals(y, x, tips(model="Model", **ESTIMATE), data=one.name), height=60)
    title = f"Higher than {percent(past.share_below(model.target, value), 0)} of past models"
    note = f"{words} {_neighbours(past, model)} {note}".strip()
    return Chart(title, spec, (old, one), summary_words(past, model), _scores_table(old), note)


def _neighbours(past: PastScores, model: OneModel) -> str:
    """Name the best past model and those next above and below a score; '' where no names are told."""
    if UNNAMED in past.model_ids:
        return ""
    column, value = past.value[:, past.targets.index(model.target)], float(model.value[model.at])
    order = np.argsort(column, kind="stable")[: past.known(model.target).size]  # NaN comes last
    order = order[np.array(past.model_ids)[order] != model.model_id]
    below, above = order[column[order] < value], order[column[order] > value]
    named = {"Best": order[-1:], "next above": above[:1], "next below": below[-1:]}
    told = (
        f"{how}: {past.model_ids[k]}, {points(column[k])}"
        for how, one in named.items()
        for k in one.tolist()
        if how == "Best" or k != order[-1]
    )
    return f"{'; '.join(told)}."


def past_chart(past: PastScores, target: str) -> Chart | None:
    """Draw the scores of past models as a strip; None where none is known."""
    if not past.known(target).size:
        return None
    x, y = score("score", score_words(target)), nominal("row", grid=False)
    old, ticks, note = _strip(past, target, "past-models", x, y, best_first=True)
    ends = past.known(target)
    title = f"Past models score from {interval_words(float(ends.min()), float(ends.max()))} points"
    return Chart(title, picture(ticks, height=40), (old,), "", _scores_table(old), note)


def _strip(
    past: PastScores, target: str, name: str, x: Spec, y: Spec, *, best_first: bool = False
) -> tuple[Data, Spec, str]:
    """Return a tick for each past model: their data by score, the marks, and what must be said of them."""
    column = past.value[:, past.targets.index(target)]
    rows = np.flatnonzero(~np.isnan(column))
    chosen = rows[np.argsort(-column[rows] if best_first else column[rows], kind="stable")]
    # up to 2,000 past models are drawn one by one; of more, evenly many
    chosen = chosen[np.unique(np.linspace(0, chosen.size - 1, min(chosen.size, 2000)).round().astype(np.int64))]
    names = [past.model_ids[row] for row in chosen.tolist()]
    old = Data(name, {"row": ["Past models"] * len(names), "model": names, "score": column[chosen]})
    tip = tips(model="Past model", score=("Score", ".1%"))
    look: Spec = {"color": "@soft", "thickness": 1.2, "size": 18, "opacity": 0.7}
    note = "" if chosen.size == rows.size else f"Of {rows.size:,} past models {chosen.size:,} are drawn, evenly chosen."
    return old, marks("tick", of(x, "score"), y, tip=tip, data=name, **look), note


def _scores_table(old: Data) -> Table:
    """List past models with their scores, or the scores alone where no names are told."""
    named = () if UNNAMED in old.columns["model"] else (Column("model", "Past model", "id"),)
    return Table("Scores of past models", old, (*named, *heads("score")))


def scenario_blocks(past: PastScores, model: OneModel) -> tuple[Chart, Table] | None:
    """Draw and list each scenario's estimate beside past models; None where there is one scenario only."""
    names = [name for name in model.targets if name in past.scenarios]
    if len(names) < 2:
        return None
    data = _scenario_data(past, model, names)
    columns = (
        Column("scenario", "Scenario"),
        *heads("estimate"),
        Column("low", "From", "score", 1, "Lower end of the interval"),
        Column("high", "To", "score", 1, "Upper end of the interval"),
        Column("middle", "Past median", "score"),
        *heads("below", "n_items", "n_total"),
    )
    has_past = any(past.known(name).size for name in names)
    most_rows = 60  # scenarios that a chart shows; of more, those where the model is farthest from past ones
    rows, note = list(range(len(data))), ""
    if len(data) > most_rows:
        distance = np.abs(np.asarray(data.columns["below"], dtype=np.float64) - 0.5)
        rows = sorted(np.argsort(-np.nan_to_num(distance, nan=-1.0), kind="stable")[:most_rows].tolist())
        note = f"Of {len(data)} scenarios the {most_rows} farthest from past models are drawn."
    drawn = Data(f"{model.key}-drawn", {name: [values[k] for k in rows] for name, values in data.columns.items()})
    title, alternative = _scenario_words(data)
    beside = {"middle": ("Past median", ".1%"), "below": ("Past models below (%)", ".0%")} if has_past else {}
    tip = tips(scenario="Scenario", **ESTIMATE, **beside, n_items=("Answered", ","), n_total=("Questions", ","))
    x, y = score("estimate", "Score"), nominal("scenario", grid=False)
    of_past = (
        marks("bar", span(x, "tenth", "ninetieth"), y, data=drawn.name, height=12, color="@faint"),
        marks("bar", span(x, "lower", "upper"), y, data=drawn.name, height=12, color="@soft", opacity=0.75),
        marks("tick", of(x, "middle"), y, data=drawn.name, color="@muted", thickness=2, size=14),
    )
    marked = intervals(y, x, tip, data=drawn.name)
    spec = picture(of_past if has_past else (), marked, height=ROW * len(rows))
    grey = (
        "Grey: the middle half of past models (dark), the middle 80 % (light) and their median (line). "
        if has_past
        else ""
    )
    note = f"{grey}Bars: {level_words(model.level)} intervals. {note}".strip()
    return Chart(title, spec, (drawn,), alternative, note=note), Table("Scenarios", data, columns, n_shown=20)


def _scenario_data(past: PastScores, model: OneModel, names: Sequence[str]) -> Data:
    places = [model.targets.index(name) for name in names]
    of_past = [past.quantiles(name) for name in names]
    return Data(
        f"{model.key}-scenarios",
        {
            "scenario": list(names),
            "estimate": model.value[places],
            "low": model.low[places],
            "high": model.high[places],
            **{name: [one[name] for one in of_past] for name in QUANTILES},
            "below": [past.share_below(name, float(model.value[k])) for name, k in zip(names, places, strict=True)],
            "n_items": [model.n_items[k] for k in places],
            "n_total": [model.n_total[k] for k in places],
            "is_flagged": [model.is_flagged] * len(places),
        },
    )


def _scenario_words(data: Data) -> tuple[str, str]:
    """Return a title and a text alternative with the numbers that matter."""
    columns = data.columns
    value = np.asarray(columns["estimate"], dtype=np.float64)
    if np.isnan(value).all():
        return "No scenario has an estimate", "No scenario has an estimate."
    best, worst = int(np.nanargmax(value)), int(np.nanargmin(value))
    said = "; ".join(
        f"{columns['scenario'][k]}: {points(value[k])}, {interval_words(columns['low'][k], columns['high'][k])}"
        for k in range(min(len(data), 12))
    )
    below = np.asarray(columns["below"], dtype=np.float64)
    if np.isnan(below).all():
        title = f"From {points(value[worst])} on {columns['scenario'][worst]} to {points(value[best])}"
        return f"{title} on {columns['scenario'][best]}", f"Estimates by scenario. {said}."
    first, last = int(np.nanargmax(below)), int(np.nanargmin(below))
    if below[first] == below[last]:
        where = columns["scenario"][first] if np.isfinite(below).sum() == 1 else "every scenario"
        title = f"Above {percent(below[first], 0)} of past models on {where}"
        return title, f"{title}. {said}."
    title = (
        f"Against past models strongest on {columns['scenario'][first]} (above {percent(below[first], 0)} of them) and "
        f"weakest on {columns['scenario'][last]} (above {percent(below[last], 0)})"
    )
    return title, f"{title}. {said}."


def score_answer(bank: Bank, model: OneModel, items: IntArray, *, method: str) -> Answer:
    """Return the estimated score of one model with its interval in words.

    `items` are the positions (n,) of the items that it answered.
    """
    at, target = model.at, model.target
    value, low, high = (float(one[at]) for one in (model.value, model.low, model.high))
    used = f"{count(model.n_items[at])} of {plural(model.n_total[at], 'question')}"
    what = "Score on the full benchmark" if target == OVERALL else target.replace("_", " ").capitalize()
    if math.isnan(value):
        return Answer(f"{what}, {model.model_id}", UNKNOWN, words=f"From {used}.")
    level, interval = level_words(model.level), interval_words(low, high)
    saved = saving_words(bank, items)
    return Answer(
        f"{what}, {model.model_id}",
        points(value),
        f"{interval} points, {level} interval" if high > low else "known exactly: every question was answered",
        f"From {used}{f', {saved}' if saved else ''}.",
        f"{model.model_id}: {points(value)} ({level} interval {interval}), {target} score {bank.target_id} estimated "
        f"from {used} by {method}; item bank {bank.bank_id}, itembank {version('itembank')}",
    )


def saving_words(bank: Bank, items: IntArray) -> str:
    """Say what running these items saves of a full run: costs if they are known, else questions; '' for nothing."""
    rest = np.ones(bank.n_items, dtype=bool)
    rest[items] = False
    costs = costs_of_items(bank.responses)
    unit = next((one for one in UNITS if one in costs and costs[one].sum() > 0.0), None)
    weights = np.ones(bank.n_items) if unit is None else costs[unit]
    saved = math.floor(100.0 * float(weights[rest].sum() / weights.sum()) + 1e-9)
    return f"which saves {saved} % of the {'questions' if unit is None else UNITS[unit]}" if 0 < saved < 100 else ""
