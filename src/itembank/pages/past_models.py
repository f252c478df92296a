"""Scores of past models as the background that new ones are seen against."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Chart, Column, Data, Table
from itembank.pages.charts import Spec, layer, layers, tips
from itembank.pages.common import plural
from itembank.pages.interval_charts import PRECISE, ROW_HEIGHT, interval_marks, row_of, share
from itembank.pages.theme import interval_words, percent
from itembank.responses.score_names import OVERALL

QUANTILES = {"tenth": 0.1, "lower": 0.25, "middle": 0.5, "upper": 0.75, "ninetieth": 0.9}
MOST_ROWS = 60
"""Scenarios that a chart shows; of more, those where the model is farthest from past ones."""
MOST_TICKS = 2000
"""Past models that are drawn one by one; of more, evenly many."""


@dataclass(frozen=True, slots=True)
class PastScores:
    """Full scores of the n_models past models of a bank."""

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    value: FloatArray  # (n_models, n_targets): NaN where a score is not known

    @classmethod
    def of(cls, bank: Bank) -> Self:
        """Take the known scores of a bank; of one that was published without models there are none."""
        if bank.published is not None:
            return cls((), bank.targets.names, np.zeros((0, len(bank.targets.names))))
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
        result: FloatArray = values[~np.isnan(values)]
        return result

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

    @property
    def at(self) -> int:
        """Where the score that the page is about stands among the targets."""
        return self.targets.index(self.target)


def score_words(target: str) -> str:
    """Return what an axis of a score is called."""
    return "Overall score" if target == OVERALL else f"Score: {target}"


def standing_words(past: PastScores, model: OneModel) -> str:
    """Say where the model stands among past ones, with what the interval leaves open; '' where nothing is known."""
    at = model.at
    n_known = past.known(model.target).size
    if n_known == 0 or np.isnan(model.value[at]):
        return ""
    shares = [past.share_below(model.target, float(one[at])) for one in (model.value, model.low, model.high)]
    return (
        f"The estimate is higher than the score of {percent(shares[0], 0)} of {plural(n_known, 'past model')} "
        f"({percent(shares[1], 0)} at the lower end of the interval, {percent(shares[2], 0)} at the upper)."
    )


def standing_chart(past: PastScores, model: OneModel) -> Chart | None:
    """Draw the scores of past models with the model's interval among them; None without past models."""
    words = standing_words(past, model)
    if not words:
        return None
    column = past.value[:, past.targets.index(model.target)]
    rows = np.flatnonzero(~np.isnan(column))
    chosen = rows[np.argsort(column[rows], kind="stable")]
    chosen = chosen[np.unique(np.linspace(0, chosen.size - 1, min(chosen.size, MOST_TICKS)).round().astype(np.int64))]
    names = [past.model_ids[row] for row in chosen.tolist()]
    old = Data(f"{model.key}-past", {"row": ["Past models"] * len(names), "model": names, "score": column[chosen]})
    at = model.at
    axis = score_words(model.target)
    new = Data(
        f"{model.key}-new",
        {
            "row": ["This model"],
            "model": [model.model_id],
            "estimate": [float(model.value[at])],
            "low": [float(model.low[at])],
            "high": [float(model.high[at])],
            "is_flagged": [model.is_flagged],
        },
    )
    place = {**row_of("row"), "scale": {"domain": ["This model", "Past models"]}}
    ticks = layer(
        {"type": "tick", "color": "@soft", "thickness": 1.2, "size": 18, "opacity": 0.7},
        old.name,
        x=share("score", axis, scale={"zero": False}),
        y=place,
        tooltip=tips(model="Past model", score=("Score", PRECISE)),
    )
    spec = layers(ticks, interval_marks(new, place, _told(), title=axis), height=2 * 30)
    title = f"Higher than {percent(past.share_below(model.target, float(model.value[at])), 0)} of past models"
    table = Table(
        "Scores of past models",
        old,
        (Column("model", "Past model", "id"), Column("score", "Score", "percent")),
    )
    note = "" if chosen.size == rows.size else f"Of {rows.size:,} past models {chosen.size:,} are drawn, evenly chosen."
    return Chart(title, spec, (old, new), words, table, note)


def _told() -> list[Spec]:
    return tips(model="Model", estimate=("Estimate", PRECISE), low=("From", PRECISE), high=("To", PRECISE))


def scenario_blocks(past: PastScores, model: OneModel) -> tuple[Chart, Table] | None:
    """Draw and list each scenario's estimate beside past models; None where there is one scenario only."""
    names = [name for name in model.targets if name in past.scenarios]
    if len(names) < 2:
        return None
    data = _scenario_data(past, model, names)
    table = _scenario_table(data)
    has_past = any(past.known(name).size for name in names)
    rows, note = _drawn(data)
    drawn = Data(f"{model.key}-drawn", {name: [values[k] for k in rows] for name, values in data.columns.items()})
    title, alternative = _scenario_words(data)
    spec = layers(
        _past_marks(drawn) if has_past else [],
        interval_marks(drawn, row_of("scenario"), _scenario_told(has_past=has_past), title="Score"),
        height=ROW_HEIGHT * len(rows),
    )
    grey = (
        "Grey: past models, their middle half (dark) and the middle eight in ten (light), with a line at the median. "
        if has_past
        else ""
    )
    bars = f"Bars: {100.0 * model.level:g} % intervals."
    return Chart(title, spec, (drawn,), alternative, note=f"{grey}{bars} {note}".strip()), table


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


def _scenario_table(data: Data) -> Table:
    return Table(
        "Scenarios",
        data,
        (
            Column("scenario", "Scenario"),
            Column("estimate", "Estimate", "percent"),
            Column("low", "From", "percent", explanation="Lower end of the interval"),
            Column("high", "To", "percent", explanation="Upper end of the interval"),
            Column("middle", "Past median", "percent"),
            Column("below", "Past models below", "percent", 0, "Share of past models whose score is lower"),
            Column("n_items", "Answered", "count"),
            Column("n_total", "Items", "count"),
        ),
        n_shown=20,
    )


def _drawn(data: Data) -> tuple[list[int], str]:
    """Rows that a chart shows, in their order, and which rule left the others out."""
    if len(data) <= MOST_ROWS:
        return list(range(len(data))), ""
    distance = np.abs(np.asarray(data.columns["below"], dtype=np.float64) - 0.5)
    far = np.argsort(-np.nan_to_num(distance, nan=-1.0), kind="stable")[:MOST_ROWS]
    return sorted(far.tolist()), f"Of {len(data)} scenarios the {MOST_ROWS} farthest from past models are drawn."


def _scenario_words(data: Data) -> tuple[str, str]:
    """Return a title and a text alternative with the numbers that matter."""
    columns = data.columns
    value = np.asarray(columns["estimate"], dtype=np.float64)
    if np.isnan(value).all():
        return "No scenario has an estimate", "No scenario has an estimate."
    best, worst = int(np.nanargmax(value)), int(np.nanargmin(value))
    said = "; ".join(
        f"{columns['scenario'][k]}: {percent(value[k])}, {interval_words(columns['low'][k], columns['high'][k])}"
        for k in range(min(len(data), 12))
    )
    below = np.asarray(columns["below"], dtype=np.float64)
    if np.isnan(below).all():
        title = f"From {percent(value[worst])} on {columns['scenario'][worst]} to {percent(value[best])}"
        return f"{title} on {columns['scenario'][best]}", f"Estimates by scenario. {said}."
    first, last = int(np.nanargmax(below)), int(np.nanargmin(below))
    title = (
        f"Beside past models strongest on {columns['scenario'][first]} (above {percent(below[first], 0)} of them), "
        f"weakest on {columns['scenario'][last]} (above {percent(below[last], 0)})"
    )
    return title, f"{title}. {said}."


def _past_marks(data: Data) -> list[Spec]:
    """Grey bars of the middle eight in ten and of the middle half of past models, with a line at their median."""
    place = row_of("scenario")
    spans = (("tenth", "ninetieth", "@faint", 12), ("lower", "upper", "@soft", 12))
    bars = [
        layer(
            {"type": "bar", "color": colour, "height": size, "opacity": 0.75 if colour == "@soft" else 1},
            data.name,
            x=share(low, "Score", scale={"zero": False}),
            x2={"field": high},
            y=place,
        )
        for low, high, colour, size in spans
    ]
    middle = layer(
        {"type": "tick", "color": "@muted", "thickness": 2, "size": 14}, data.name, x=share("middle", "Score"), y=place
    )
    return [*bars, middle]


def _scenario_told(*, has_past: bool) -> list[Spec]:
    past: dict[str, tuple[str, str]] = {"middle": ("Past median", PRECISE), "below": ("Past models below", ".0%")}
    return tips(
        scenario="Scenario",
        estimate=("Estimate", PRECISE),
        low=("From", PRECISE),
        high=("To", PRECISE),
        **(past if has_past else {}),
        n_items=("Answered", ","),
        n_total=("Items", ","),
    )
