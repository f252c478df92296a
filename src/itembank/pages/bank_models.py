"""The past models of a bank: their scores, over time, by maker and by size, as columns of the model table tell."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import average_ranks
from itembank.pages.bank_items import AbilityAxis
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.grammar import IN_BRUSH, Spec, brushed, marks, nominal, number, of, picture, score, span, tips, when
from itembank.pages.theme import count, in_words, interval_words, percent, plural
from itembank.readers.compute import counts
from itembank.responses.model_features import DATE_WORDS, days_of, model_dates, place_of_word

SIZE_WORDS = ("params", "parameters", "param", "size")
MAKER_WORDS = (
    *("org", "organization", "organisation", "developer", "creator", "company", "provider", "vendor", "lab"),
    *("author", "owner", "publisher"),
)
KIND_WORDS = ("family", "series", "mixture", "recipe", "arch", "architecture")

LEAST_MODELS = 8
"""Models that a picture is worth drawing of."""
MOST_GROUPS = 20
MOST_SCENARIOS = 12
"""Columns of scenario scores that the table of models has room for."""
LEAST_DATES = 4
"""Different days that make a picture of time; of fewer the models are grouped by day."""
MILLISECONDS = 86_400_000
LARGE = 1000.0
"""Sizes from which the middle one counts things, and needs no decimals."""
FAR_APART = 20.0
"""Sizes of which the largest is so many times the smallest stand on a logarithmic scale."""
BAND = "Band: the middle half of the models around, line: the middle one."


class Numbers(NamedTuple):
    """A column of numbers: days since 1970, or sizes in whatever unit the table has; NaN where unknown."""

    name: str
    values: FloatArray

    @property
    def n_different(self) -> int:
        """How many different values are known."""
        return int(np.unique(self.values[np.isfinite(self.values)]).size)


class Groups(NamedTuple):
    """A column that puts models into groups; None where unknown."""

    name: str
    values: list[str | None]


def dates_of_models(models: pl.DataFrame) -> Numbers | None:
    """Return how new models are, where they differ in it."""
    dates = model_dates(models)
    return None if dates is None or dates.drop_nulls().n_unique() < 2 else Numbers(dates.name, days_of(dates))


def size_column(models: pl.DataFrame) -> Numbers | None:
    """Return the column of sizes above zero, as its name says; None where there is none."""
    for name in _named(models, SIZE_WORDS):
        values, bad = counts(models[name])
        found = Numbers(name, np.where(values > 0.0, values, np.nan))
        if not bad.size and found.n_different > 1:
            return found
    return None


def group_columns(models: pl.DataFrame) -> list[Groups]:
    """Return who made the models and of what kind they are, as far as columns of text have such names."""
    found = []
    for words in (MAKER_WORDS, KIND_WORDS):
        texts = [name for name in _named(models, words) if models[name].dtype == pl.String]
        # several groups, one of them of more than one model
        names = [name for name in texts if 1 < (known := models[name].drop_nulls()).n_unique() < known.len()]
        found += [Groups(name, models[name].to_list()) for name in names[:1]]
    return found


def tells_of_models(name: str) -> bool:
    """Whether a column's name says that it tells when models came out, how large they are, or whose."""
    words = (*DATE_WORDS, *SIZE_WORDS, *MAKER_WORDS, *KIND_WORDS)
    return place_of_word(name, words) < len(words)


def iso_day(day: float) -> str:
    """Write a day since 1970 as 2024-12-31."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=int(day))).isoformat()


def _named(models: pl.DataFrame, words: Sequence[str]) -> list[str]:
    """Names of columns that hold one of the words, the clearest first."""
    names = [name for name in models.columns if name != "model_id" and place_of_word(name, words) < len(words)]
    return sorted(names, key=lambda name: place_of_word(name, words))


class Past(NamedTuple):
    """Past models with what is known of them; rows without an overall score are left out."""

    # Columns `model`, `score`, `ability`, `ability_error`, `day`, `date`, `size`, `group_0`, ... as far as known.
    data: Data
    score: FloatArray  # (n_models,)
    date: Numbers | None
    size: Numbers | None
    groups: list[Groups]


def models_section(bank: Bank) -> Section | None:
    """Return the past models' scores; None for a bank that holds no model."""
    if bank.n_models == 0:
        return None
    past = _past(bank)
    if past.score.size == 0:
        return Section("Past models", (Text("No past model answered enough items for an overall score."),))
    table = _table(bank, past)
    charts: list[Block] = []
    if past.date is not None and np.isfinite(past.date.values).sum() >= LEAST_MODELS:
        charts.append(_over_time(past, past.date, table))
    if past.size is not None and np.isfinite(past.size.values).sum() >= LEAST_MODELS:
        charts.append(_by_size(past, past.size, None if charts else table))
    is_enough = past.score.size >= LEAST_MODELS
    charts += [_by_group(past, place) for place in range(len(past.groups)) if is_enough]
    best = past.data.columns["model"][0]
    lead = f"{plural(past.score.size, 'past model')}, with {scores_in_words(past.score)}. The best is {best}."
    if not charts and is_enough:
        where = "where the model table has such columns (itembank import --models FILE)"
        charts.append(Text(f"Dates, sizes and makers of models are drawn {where}."))
    return Section("Past models", (*charts, table), lead)


def scores_in_words(scores: FloatArray) -> str:
    """Write the range of some scores: 'scores from 45.4 % to 83.9 %'."""
    low, high = float(scores.min()), float(scores.max())
    return f"scores from {interval_words(low, high)}" if high > low else f"a score of {percent(low)}"


def _past(bank: Bank) -> Past:
    scores = bank.best_known_scores
    rows = np.flatnonzero(np.isfinite(scores[:, -1]))
    rows = rows[np.argsort(-scores[rows, -1], kind="stable")]
    models = bank.responses.models[rows.tolist()]
    date, size, groups = dates_of_models(models), size_column(models), group_columns(models)
    columns: dict[str, Any] = {"model": models["model_id"].to_list(), "score": scores[rows, -1]}
    if date is not None:
        days = [int(day) if np.isfinite(day) else None for day in date.values.tolist()]
        dates = [None if day is None else iso_day(day) for day in days]
        if date.n_different < LEAST_DATES:
            groups, date = [*groups, Groups(date.name, dates)], None
        else:
            columns |= {"day": [None if day is None else day * MILLISECONDS for day in days], "date": dates}
    columns |= {f"group_{place}": group.values for place, group in enumerate(groups)}
    if size is not None:
        columns["size"] = size.values
    if bank.calibration.is_fitted:
        axis = AbilityAxis.of(bank)
        columns |= {"ability": axis.positions[rows], "ability_error": axis.errors[rows]}
    if 1 < bank.targets.n_scenarios <= MOST_SCENARIOS:
        columns |= {f"score_{j}": scores[rows, j] for j in range(bank.targets.n_scenarios)}
    return Past(Data("models", columns), scores[rows, -1], date, size, groups)


def _table(bank: Bank, past: Past) -> Table:
    columns = [
        Column("model", "Model", "id"),
        Column("score", "Score", "percent", 1, "The overall score"),
        Column("ability", "Ability", "number", 2, "On the axis of the item map, in standard deviations"),
        Column("ability_error", "±", "number", 2, "Standard error of the ability"),
        Column("date", "Date" if past.date is None else past.date.name),
    ]
    if past.size is not None:  # billions given as such with decimals, whole parameters with commas
        is_large = float(np.nanmedian(past.size.values)) >= LARGE
        columns.append(Column("size", past.size.name, "count" if is_large else "number", 2))
    columns += [Column(f"group_{place}", group.name, has_menu=True) for place, group in enumerate(past.groups)]
    columns += [Column(f"score_{j}", name, "percent") for j, name in enumerate(bank.targets.scenarios)]
    note = "Scores are of all items. What a model did not answer counts as missing, not as wrong."
    held = tuple(one for one in columns if one.name in past.data.columns)
    return Table("Past models", past.data, held, note=note)


def _over_time(past: Past, date: Numbers, table: Table) -> Chart:
    known = np.flatnonzero(np.isfinite(date.values))
    order = known[np.lexsort((-past.score[known], date.values[known]))]  # of a day the best first
    days, scores = date.values[order], past.score[order]
    is_best = scores > np.concatenate([[-np.inf], np.maximum.accumulate(scores)[:-1]])
    names = past.data.columns["model"]
    best = order[is_best]
    frontier = Data(
        "frontier",
        {
            "day": [int(day) * MILLISECONDS for day in [*days[is_best], days[-1]]],
            "score": [*scores[is_best].tolist(), float(scores.max())],
            "model": [*(names[k] for k in best.tolist()), names[int(best[-1])]],
        },
    )
    band = quartiles_along(days, scores)
    bands = Data("over_time", {"day": [int(day * MILLISECONDS) for day in band.pop("place")], **band})
    x: Spec = {"field": "day", "type": "temporal", "scale": {"type": "utc"}, "axis": {"title": None, "tickCount": 6}}
    y, tip = score("score", "Overall score"), tips(model="Model", date=date.name, score=("Score", ".1%"))
    spec = picture(
        _band(x, bands),
        _dots(x, tip, is_brushed=True),
        marks("line", x, y, data="frontier", interpolate="step-after", color="@other"),
        marks("point", x, y, data="frontier", tip=tips(model="Best"), color="@other", size=45),
        height=300,
    )
    first, last = iso_day(days[0]), iso_day(days[-1])
    title = f"The best score rose from {percent(scores[is_best][0])} ({first}) to {percent(scores.max())} ({last})"
    if is_best.sum() == 1:
        title = f"No model since {iso_day(days[is_best][0])} scores more than {percent(scores.max())}"
    words = f"{title}, in {plural(int(is_best.sum()), 'step')}; {plural(order.size, 'model')} with a date."
    note = (
        f"Dates are of the column {date.name}. Orange: the best score until then. {BAND}{_left_out(past, order.size)}"
    )
    return Chart(title, spec, (past.data, frontier, bands), words, note=note, filters=table)


def _by_size(past: Past, size: Numbers, table: Table | None) -> Chart:
    known = np.isfinite(size.values)
    values, scores = size.values[known], past.score[known]
    is_log = bool(values.max() > FAR_APART * values.min())
    band = quartiles_along(np.log(values) if is_log else values, scores)
    place = np.exp(band.pop("place")) if is_log else band.pop("place")
    bands = Data("by_size", {"size": place, **band})
    billions: Spec = {"labelSeparation": 8, "labelExpr": "replace(datum.label, 'G', 'B')"}
    scale = {"nice": False} if is_log else {"zero": False}
    x = number("size", size.name, "~s", log=is_log, scale=scale, tickCount=6, **billions)
    tip = tips(model="Model", size=(size.name, ".3s"), score=("Score", ".1%"))
    spec = picture(_band(x, bands), _dots(x, tip, is_brushed=table is not None), height=280)
    ranks = np.array([average_ranks(values), average_ranks(scores)])
    related = float(np.corrcoef(ranks)[0, 1]) if (np.ptp(ranks, axis=1) > 0.0).all() else 0.0  # Spearman's
    is_clear = related > max(0.2, 2.0 / np.sqrt(scores.size - 1.0))
    how = "Larger models score higher" if is_clear else "Size says little of the score"
    title = f"{how}: rank correlation {in_words(related)}"
    words = f"{title}, over {plural(int(known.sum()), 'model')} whose size is known."
    note = f"Sizes are of the column {size.name}. {BAND}{_left_out(past, int(known.sum()))}"
    columns = (
        Column("size", size.name, "number"),
        Column("low", "Lower quarter", "percent"),
        Column("middle", "Middle", "percent"),
        Column("high", "Upper quarter", "percent"),
    )
    numbers = Table("Scores by size", bands, columns) if len(bands) else None
    return Chart(title, spec, (past.data, bands), words, numbers, note, table)


def _by_group(past: Past, place: int) -> Chart:
    """Return scores by maker or family, the groups of most models."""
    group = past.groups[place]
    values = np.array([one or "" for one in group.values], dtype=object)
    names, counts = np.unique(values[values != ""].astype(str), return_counts=True)
    largest = names[np.argsort(-counts, kind="stable")[:MOST_GROUPS]]
    scores = {str(name): past.score[values == name] for name in largest}
    rows = sorted(scores, key=lambda name: -float(scores[name].max()))
    quartiles = np.array([np.quantile(scores[name], [0.0, 0.25, 0.5, 0.75, 1.0]) for name in rows])
    summary: dict[str, Any] = {"group": rows, "n": [scores[name].size for name in rows]}
    summary |= dict(zip(("least", "low", "middle", "high", "best"), quartiles.T, strict=True))
    data = Data(f"by_group_{place}", summary)
    x, y = score("middle", "Score"), nominal("group", rows, labelLimit=130)
    tip = tips(group=group.name, n=("Models", "d"), middle=("Middle", ".1%"), best=("Best", ".1%"))
    spec = picture(
        marks("rule", span(x, "least", "best"), y, color="@soft"),
        marks("bar", span(x), y, color="@soft", height=7),
        marks("point", x, y, tip=tip, color="@ink", size=30),
        marks("point", of(x, "best"), y, tip=tip, color="@main", size=50),
        height=20 * len(rows),
    )
    title = f"By {group.name}: the best model is of {rows[0]}, {percent(quartiles[0, -1])}"
    middle = interval_words(quartiles[:, 2].min(), quartiles[:, 2].max())
    words = f"{title}. The middle models of {len(rows)} groups score {middle}."
    rest = f" The {MOST_GROUPS} with the most models, of {count(names.size)}." if names.size > MOST_GROUPS else ""
    note = f"Blue: the best model; black: the middle one; bar: the middle half; line: all.{rest}"
    heads = (("best", "Best"), ("middle", "Middle"), ("low", "Lower quarter"), ("least", "Least"))
    numbers = (Column(one, head, "percent") for one, head in heads)
    columns = (Column("group", group.name), Column("n", "Models", "count"), *numbers)
    return Chart(title, spec, (data,), words, Table(f"Scores by {group.name}", data, columns, MOST_GROUPS), note)


def quartiles_along(x: FloatArray, y: FloatArray, *, most: int = 8, least: int = 5) -> dict[str, FloatArray]:
    """Return the middle half of y in up to `most` ranges of x that hold about as many points each.

    `place` (median of x), `low`, `middle` and `high` (quartiles of y), each (n_ranges,); empty where there are too few
    points for two ranges of `least`.
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    n_ranges = min(most, x.size // least)
    ends = np.unique(np.quantile(x, np.linspace(0.0, 1.0, n_ranges + 1))) if n_ranges > 1 else np.zeros(0)
    number = np.searchsorted(ends[1:-1], x, side="right") if ends.size else np.zeros(x.size)
    parts = [number == k for k in range(max(ends.size - 1, 0)) if np.sum(number == k) >= least]
    parts = parts if len(parts) > 1 else []
    quartiles = np.array([np.quantile(y[part], [0.25, 0.5, 0.75]) for part in parts]).reshape(-1, 3)
    place = np.array([np.median(x[part]) for part in parts])
    return {"place": place, "low": quartiles[:, 0], "middle": quartiles[:, 1], "high": quartiles[:, 2]}


def _band(x: Spec, bands: Data) -> list[Spec]:
    """Draw the middle half and the middle of what lies around; nothing where that is not known."""
    middle = score("middle", "Overall score")
    drawn = [
        marks("area", x, span(middle), data=bands.name, color="@main", opacity=0.14),
        marks("line", x, middle, data=bands.name, color="@main", strokeWidth=1.5),
    ]
    return drawn if len(bands) else []


def _dots(x: Spec, tip: list[Spec], *, is_brushed: bool) -> Spec:
    """One point a model; a rectangle drawn over them filters a table where one is to be filtered."""
    color = when(IN_BRUSH, "@main", "@soft") if is_brushed else "@main"
    dots = marks("point", x, score("score", "Overall score"), tip=tip, color=color, opacity=0.5, size=25)
    return brushed(dots) if is_brushed else dots


def _left_out(past: Past, n_drawn: int) -> str:
    missing = past.score.size - n_drawn
    return f" {plural(missing, 'model')} without it {'is' if missing == 1 else 'are'} not drawn." if missing else ""
