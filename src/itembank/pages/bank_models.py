"""The past models of a bank: their scores, and over time, as columns of the model table tell."""

import datetime as dt
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.pages.bank_items import AbilityAxis
from itembank.pages.blocks import Chart, Column, Data, Section, Table, Text
from itembank.pages.grammar import IN_BRUSH, Spec, brushed, marks, picture, score, tips, when
from itembank.pages.theme import interval_words, percent, plural
from itembank.responses.model_features import DATE_WORDS, days_of, model_dates, place_of_word

SIZE_WORDS = ("params", "parameters", "param", "size")
MAKER_WORDS = (
    *("org", "organization", "organisation", "developer", "creator", "company", "provider", "vendor", "lab"),
    *("author", "owner", "publisher"),
)
KIND_WORDS = ("family", "series", "mixture", "recipe", "arch", "architecture")

LEAST_MODELS = 8
"""Models that a picture is worth drawing of."""
MOST_SCENARIOS = 12
"""Columns of scenario scores that the table of models has room for."""
LEAST_DATES = 4
"""Different days that make a picture of time; of fewer the models are grouped by day."""
MILLISECONDS = 86_400_000


class Numbers(NamedTuple):
    """A column of days since 1970; NaN where unknown."""

    name: str
    values: FloatArray

    @property
    def n_different(self) -> int:
        """How many different values are known."""
        return int(np.unique(self.values[np.isfinite(self.values)]).size)


def dates_of_models(models: pl.DataFrame) -> Numbers | None:
    """Return how new models are, where they differ in it."""
    dates = model_dates(models)
    return None if dates is None or dates.drop_nulls().n_unique() < 2 else Numbers(dates.name, days_of(dates))


def tells_of_models(name: str) -> bool:
    """Whether a column's name says that it tells when models came out, how large they are, or whose."""
    words = (*DATE_WORDS, *SIZE_WORDS, *MAKER_WORDS, *KIND_WORDS)
    return place_of_word(name, words) < len(words)


def iso_day(day: float) -> str:
    """Write a day since 1970 as 2024-12-31."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=int(day))).isoformat()


def models_section(bank: Bank) -> Section | None:
    """Return the past models' scores; None for a bank that holds no model."""
    if bank.n_models == 0:
        return None
    scores = bank.best_known_scores
    rows = np.flatnonzero(np.isfinite(scores[:, -1]))
    if rows.size == 0:
        return Section("Past models", (Text("No past model answered enough items for an overall score."),))
    rows = rows[np.argsort(-scores[rows, -1], kind="stable")]
    models = bank.responses.models[rows.tolist()]
    told: list[tuple[Column, Any]] = [
        (Column("model", "Model", "id"), models["model_id"].to_list()),
        (Column("score", "Score", "percent", 1, "The overall score"), scores[rows, -1]),
    ]
    if bank.calibration.is_fitted:
        axis, where = AbilityAxis.of(bank), "On the axis of the item map, in standard deviations"
        told += [
            (Column("ability", "Ability", "number", 2, where), axis.positions[rows]),
            (Column("ability_error", "±", "number", 2, "Standard error of the ability"), axis.errors[rows]),
        ]
    date = dates_of_models(models)
    if date is not None:
        told.append((Column("date", date.name), [iso_day(day) if np.isfinite(day) else None for day in date.values]))
    if 1 < bank.targets.n_scenarios <= MOST_SCENARIOS:
        names = enumerate(bank.targets.scenarios)
        told += [(Column(f"score_{j}", name, "percent"), scores[rows, j]) for j, name in names]
    columns = {column.name: values for column, values in told}
    if date is not None:
        columns["day"] = date.values * MILLISECONDS
    note = "Scores are of all items. What a model did not answer counts as missing, not as wrong."
    table = Table("Past models", Data("models", columns), tuple(column for column, _ in told), note=note)
    lead = (
        f"{plural(rows.size, 'past model')}, with {scores_in_words(scores[rows, -1])}. The best is "
        f"{columns['model'][0]}."
    )
    is_drawn = date is not None and date.n_different >= LEAST_DATES and np.isfinite(date.values).sum() >= LEAST_MODELS
    return Section("Past models", (*((_over_time(date, table),) if date is not None and is_drawn else ()), table), lead)


def scores_in_words(scores: FloatArray) -> str:
    """Write the range of some scores: 'scores from 45.4 % to 83.9 %'."""
    low, high = float(scores.min()), float(scores.max())
    return f"scores from {interval_words(low, high)}" if high > low else f"a score of {percent(low)}"


def _over_time(date: Numbers, table: Table) -> Chart:
    names, all_scores = table.data.columns["model"], np.asarray(table.data.columns["score"])
    known = np.flatnonzero(np.isfinite(date.values))
    order = known[np.lexsort((-all_scores[known], date.values[known]))]  # of a day the best first
    days, scores = date.values[order], all_scores[order]
    is_best = scores > np.concatenate([[-np.inf], np.maximum.accumulate(scores)[:-1]])
    best = order[is_best]
    frontier = Data(
        "frontier",
        {
            "day": [int(day) * MILLISECONDS for day in [*days[is_best], days[-1]]],
            "score": [*scores[is_best].tolist(), float(scores.max())],
            "model": [*(names[k] for k in best.tolist()), names[int(best[-1])]],
        },
    )
    x: Spec = {"field": "day", "type": "temporal", "scale": {"type": "utc"}, "axis": {"title": None, "tickCount": 6}}
    y, tip = score("score", "Overall score"), tips(model="Model", date=date.name, score=("Score", ".1%"))
    spec = picture(
        brushed(marks("point", x, y, tip=tip, color=when(IN_BRUSH, "@main", "@soft"), opacity=0.5, size=25)),
        marks("line", x, y, data="frontier", interpolate="step-after", color="@other"),
        marks("point", x, y, data="frontier", tip=tips(model="Best"), color="@other", size=45),
        height=300,
    )
    first, last = iso_day(days[0]), iso_day(days[-1])
    title = f"The best score rose from {percent(scores[is_best][0])} ({first}) to {percent(scores.max())} ({last})"
    if is_best.sum() == 1:
        title = f"No model since {iso_day(days[is_best][0])} scores more than {percent(scores.max())}"
    words = f"{title}, in {plural(int(is_best.sum()), 'step')}; {plural(order.size, 'model')} with a date."
    note = f"Dates are of the column {date.name}. Orange: the best score until then."
    if order.size < all_scores.size:
        note += f" {plural(all_scores.size - order.size, 'model')} without a date: not drawn."
    return Chart(title, spec, (table.data, frontier), words, note=note, filters=table)
