"""The past models of a bank: their scores, over time, by maker and by size."""

from typing import Any, NamedTuple

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import average_ranks
from itembank.pages.ability_axis import AbilityAxis
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import (
    Spec,
    brushed,
    layer,
    number_axis,
    quartiles_along,
    row_axis,
    row_height,
    score_axis,
    tips,
)
from itembank.pages.common import in_words, plural, scores_in_words
from itembank.pages.model_columns import Groups, Numbers, date_column, group_columns, iso_day, n_different, size_column
from itembank.pages.theme import count, interval_words, percent

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
    if past.date is not None and _is_drawn(past.date):
        charts.append(_over_time(past, past.date, table))
    if past.size is not None and _is_drawn(past.size):
        charts.append(_by_size(past, past.size, None if charts else table))
    is_enough = past.score.size >= LEAST_MODELS
    charts += [_by_group(past, place) for place in range(len(past.groups)) if is_enough]
    best = past.data.columns["model"][0]
    lead = f"{plural(past.score.size, 'past model')}, with {scores_in_words(past.score)}. The best is {best}."
    if not charts and is_enough:
        where = "where the model table has such columns (itembank import --models FILE)"
        hint = f"Dates, sizes and makers of models are drawn {where}."
        charts.append(Text(hint))
    return Section("Past models", (*charts, table), lead)


def _is_drawn(column: Numbers) -> bool:
    return int(np.isfinite(column.values).sum()) >= LEAST_MODELS


def _past(bank: Bank) -> Past:
    scores = bank.best_known_scores
    rows = np.flatnonzero(np.isfinite(scores[:, -1]))
    rows = rows[np.argsort(-scores[rows, -1], kind="stable")]
    models = bank.responses.models[rows.tolist()]
    date, size, groups = date_column(models), size_column(models), group_columns(models)
    if date is not None and n_different(date.values) < LEAST_DATES:
        groups, date = [*groups, Groups(date.name, _days_in_words(date))], None
    columns: dict[str, Any] = {"model": models["model_id"].to_list(), "score": scores[rows, -1]}
    for place, group in enumerate(groups):
        columns[f"group_{place}"] = group.values
    if date is not None:
        columns["day"] = [int(day) * MILLISECONDS if np.isfinite(day) else None for day in date.values.tolist()]
        columns["date"] = _days_in_words(date)
    if size is not None:
        columns["size"] = size.values
    if bank.calibration.is_fitted:
        axis = AbilityAxis.of(bank)
        columns |= {"ability": axis.positions[rows], "ability_error": axis.errors[rows]}
    if 1 < bank.targets.n_scenarios <= MOST_SCENARIOS:
        columns |= {f"score_{j}": scores[rows, j] for j in range(bank.targets.n_scenarios)}
    return Past(Data("models", columns), scores[rows, -1], date, size, groups)


def _days_in_words(date: Numbers) -> list[str | None]:
    return [iso_day(day) if np.isfinite(day) else None for day in date.values.tolist()]


def _table(bank: Bank, past: Past) -> Table:
    columns = [
        Column("model", "Model", "id"),
        Column("score", "Score", "percent", explanation="The overall score"),
        Column("ability", "Ability", "number", 2, "On the axis of the item map, in standard deviations"),
        Column("ability_error", "±", "number", 2, "Standard error of the ability"),
        Column("date", "Date" if past.date is None else past.date.name),
        *([] if past.size is None else [_size_column(past.size)]),
        *(Column(f"group_{place}", group.name, has_menu=True) for place, group in enumerate(past.groups)),
        *(Column(f"score_{j}", name, "percent") for j, name in enumerate(bank.targets.scenarios)),
    ]
    note = "Scores are of all items. What a model did not answer counts as missing, not as wrong."
    held = tuple(one for one in columns if one.name in past.data.columns)
    return Table("Past models", past.data, held, note=note)


def _size_column(size: Numbers) -> Column:
    """Write billions given as such with decimals, whole parameters with commas."""
    is_large = float(np.nanmedian(size.values)) >= LARGE
    return Column("size", size.name, "count" if is_large else "number", 2)


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
    x = {"field": "day", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": {"tickCount": 6}}
    tooltip = tips(model="Model", date=date.name, score=("Score", ".1%"))
    line = layer({"type": "line", "interpolate": "step-after", "color": "@other"}, "frontier", x=x, y=_y())
    steps = layer({"type": "point", "color": "@other", "size": 45}, "frontier", x=x, y=_y(), tooltip=tips(model="Best"))
    spec = {
        "width": "container",
        "height": 300,
        "layer": [*_band(x, bands), _dots(x, tooltip, filters=True), line, steps],
    }
    first, last = iso_day(days[0]), iso_day(days[-1])
    title = f"The best score rose from {percent(scores[is_best][0])} ({first}) to {percent(scores.max())} ({last})"
    if is_best.sum() == 1:
        title = f"No model since {iso_day(days[is_best][0])} scores more than {percent(scores.max())}"
    words = f"{title}, in {plural(int(is_best.sum()), 'step')}; {plural(order.size, 'model')} with a date."
    note = f"Dates are of the column {date.name}. Orange: the best score until then. {BAND}"
    return Chart(
        title, spec, (past.data, frontier, bands), words, note=note + _left_out(past, order.size), filters=table
    )


def _by_size(past: Past, size: Numbers, table: Table | None) -> Chart:
    known = np.isfinite(size.values)
    values, scores = size.values[known], past.score[known]
    is_log = values.max() > FAR_APART * values.min()
    band = quartiles_along(np.log(values) if is_log else values, scores)
    place = np.exp(band.pop("place")) if is_log else band.pop("place")
    bands = Data("by_size", {"size": place, **band})
    x = number_axis("size", size.name, scale={"type": "log", "nice": False} if is_log else {"zero": False})
    x["axis"] = {"format": "~s", "tickCount": 6, "labelSeparation": 8, "labelExpr": "replace(datum.label, 'G', 'B')"}
    tooltip = tips(model="Model", size=(size.name, ".3s"), score=("Score", ".1%"))
    dots = _dots(x, tooltip, filters=table is not None)
    spec = {"width": "container", "height": 280, "layer": [*_band(x, bands), dots]}
    related = _rank_correlation(values, scores)
    is_clear = related > max(0.2, 2.0 / np.sqrt(scores.size - 1.0))
    how = "Larger models score higher" if is_clear else "Size says little of the score"
    title = f"{how}: rank correlation {in_words(related)}"
    words = f"{title}, over {plural(int(known.sum()), 'model')} whose size is known."
    note = f"Sizes are of the column {size.name}. {BAND}{_left_out(past, int(known.sum()))}"
    return Chart(title, spec, (past.data, bands), words, _band_table(bands, size.name), note, table)


def _band_table(bands: Data, name: str) -> Table | None:
    columns = (
        Column("size", name, "number"),
        *(
            Column(one, title, "percent")
            for one, title in (("low", "Lower quarter"), ("middle", "Middle"), ("high", "Upper quarter"))
        ),
    )
    return Table("Scores by size", bands, columns) if len(bands) else None


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
    summary |= {name: quartiles[:, k] for k, name in enumerate(("least", "low", "middle", "high", "best"))}
    data = Data(f"by_group_{place}", summary)
    y = row_axis("group", rows)
    whole, half = ("least", "best"), ("low", "high")
    tooltip = tips(group=group.name, n=("Models", "d"), middle=("Middle", ".1%"), best=("Best", ".1%"))
    parts = [
        layer({"type": "rule", "color": "@soft"}, x=score_axis(whole[0], "Score"), x2={"field": whole[1]}, y=y),
        layer({"type": "bar", "color": "@soft", "height": 7}, x=score_axis(half[0], ""), x2={"field": half[1]}, y=y),
        layer({"type": "point", "color": "@ink", "size": 30}, x=score_axis("middle", ""), y=y, tooltip=tooltip),
        layer({"type": "point", "color": "@main", "size": 50}, x=score_axis("best", ""), y=y, tooltip=tooltip),
    ]
    spec = {"width": "container", "height": row_height(len(rows), 20), "layer": parts}
    title = f"By {group.name}: the best model is of {rows[0]}, {percent(quartiles[0, -1])}"
    middle = interval_words(quartiles[:, 2].min(), quartiles[:, 2].max())
    words = f"{title}. The middle models of {len(rows)} groups score {middle}."
    rest = f" The {MOST_GROUPS} with the most models, of {count(names.size)}." if names.size > MOST_GROUPS else ""
    note = f"Blue: the best model; black: the middle one; bar: the middle half; line: all.{rest}"
    columns = (
        Column("group", group.name),
        Column("n", "Models", "count"),
        *(
            Column(one, head, "percent")
            for one, head in (("best", "Best"), ("middle", "Middle"), ("low", "Lower quarter"), ("least", "Least"))
        ),
    )
    return Chart(title, spec, (data,), words, Table(f"Scores by {group.name}", data, columns, MOST_GROUPS), note)


def _y() -> Spec:
    return score_axis("score", "Overall score")


def _band(x: Spec, bands: Data) -> list[Spec]:
    """Draw the middle half and the middle of what lies around; nothing where that is not known."""
    if not len(bands):
        return []
    low, middle = score_axis("low", ""), score_axis("middle", "")
    return [
        layer({"type": "area", "color": "@main", "opacity": 0.14}, bands.name, x=x, y=low, y2={"field": "high"}),
        layer({"type": "line", "color": "@main", "strokeWidth": 1.5}, bands.name, x=x, y=middle),
    ]


def _dots(x: Spec, tooltip: list[Spec], *, filters: bool) -> Spec:
    """One point a model; a rectangle drawn over them filters a table where one is to be filtered."""
    mark = {"type": "point", "opacity": 0.5, "size": 25}
    if not filters:
        return layer({**mark, "color": "@main"}, x=x, y=_y(), tooltip=tooltip)
    colour = {"condition": {"param": "brush", "value": "@main"}, "value": "@soft"}
    return brushed(layer(mark, x=x, y=_y(), color=colour, tooltip=tooltip))


def _left_out(past: Past, n_drawn: int) -> str:
    missing = past.score.size - n_drawn
    return f" {plural(missing, 'model')} without it {'is' if missing == 1 else 'are'} not drawn." if missing else ""


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Spearman's, equal values at the mean of their ranks; 0 where one is constant."""
    ranks = np.array([average_ranks(x), average_ranks(y)])
    return float(np.corrcoef(ranks)[0, 1]) if (np.ptp(ranks, axis=1) > 0.0).all() else 0.0
