"""Many models on one page: a chart of all intervals in order, and tables."""

from collections.abc import Iterator

import numpy as np

from itembank.pages.blocks import Answer, Answers, Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, layer, layers, number_axis, tips
from itembank.pages.common import plural
from itembank.pages.estimated import Estimated
from itembank.pages.interval_charts import PRECISE, ROW_HEIGHT, interval_marks, row_of, share
from itembank.pages.model_details import next_blocks
from itembank.pages.past_models import score_words
from itembank.pages.theme import ATYPICAL_WORDS, count, interval_words, percent, points

MOST_NAMED = 60
"""Models that get a row with their name; more stand in order along the chart."""


def many_lead(made: Estimated) -> Answers:
    """Say how many models there are, the highest and the lowest estimate, and how wide intervals are."""
    at = made.overall
    value, low, high = (one[:, at] for one in (made.estimates.value, made.estimates.low, made.estimates.high))
    known = np.flatnonzero(~np.isnan(value))
    n_items = int(np.median(made.estimates.n_items[:, at]))
    size = Answer("Models estimated", count(made.n_models), words=f"{plural(n_items, 'item')} each (median)")
    if known.size == 0:
        return Answers((size,))
    first, last = (int(known[one(value[known])]) for one in (np.argmax, np.argmin))
    ends = (
        Answer(f"{which} estimate", percent(value[k]), interval_words(low[k], high[k]), made.estimates.model_ids[k])
        for which, k in (("Highest", first), ("Lowest", last))
    )
    half = 0.5 * float(np.median((high - low)[known]))
    level = f"{100.0 * made.estimates.level:g} % intervals"
    return Answers((size, *ends, Answer("Half-width", f"± {points(half)}", words=f"median of {level}")))


def many_sections(made: Estimated) -> Iterator[Section]:
    """Yield the sections of many models."""
    data = _models(made)
    blocks: list[Block] = [_chart(made, data), _table(data, has_missing=bool(np.any(made.estimates.n_missing)))]
    yield Section("All models", tuple(blocks))
    table = _scenario_table(made)
    if table is not None:
        yield Section("Scenario by scenario", (table,))
    following = next_blocks(made, range(made.n_models))
    if following:
        yield Section(
            "What to run next",
            (*following, Text("For all answers of one model: itembank estimate BANK ITS_RESULTS --report FILE.html")),
        )


def _models(made: Estimated) -> Data:
    at, estimates = made.overall, made.estimates
    order = np.argsort(-np.nan_to_num(estimates.value[:, at], nan=-1.0), kind="stable")
    scores = estimates.value[order, at]
    return Data(
        "models",
        {
            "rank": np.arange(1, order.size + 1),
            "model": [estimates.model_ids[k] for k in order.tolist()],
            "estimate": scores,
            "low": estimates.low[order, at],
            "high": estimates.high[order, at],
            "below": [made.past.share_below(estimates.main_target, one) for one in scores.tolist()],
            "n_items": estimates.n_items[order, at],
            "n_missing": estimates.n_missing[order],
            "typicality": estimates.typicality.typicality[order],
            "is_flagged": estimates.typicality.is_flagged[order],
        },
    )


def _chart(made: Estimated, data: Data) -> Chart:
    told = tips(
        model="Model",
        estimate=("Estimate", PRECISE),
        low=("From", PRECISE),
        high=("To", PRECISE),
        typicality=("Typicality", ".2f"),
    )
    if len(data) <= MOST_NAMED:
        marks = interval_marks(data, row_of("model", label_limit=200), told)
        spec = layers(_past_band(made, "x"), marks, height=ROW_HEIGHT * len(data))
    else:
        scale = {"nice": False, "zero": False, "padding": 6}
        place = number_axis("rank", "Models, the highest estimate first", scale=scale)
        marks = interval_marks(data, place, told, along="y")
        spec = layers(_past_band(made, "y"), marks, height=380)
    title, alternative = _words(data)
    past = made.past.known(made.estimates.main_target).size
    grey = f"Grey: the middle half of {plural(past, 'past model')}. " if past else ""
    hollow = f" Hollow: {ATYPICAL_WORDS}." if any(data.columns["is_flagged"]) else ""
    note = f"{grey}Bars: {100.0 * made.estimates.level:g} % intervals.{hollow}"
    return Chart(title, spec, (data, *_band_data(made)), alternative, note=note)


def _band_data(made: Estimated) -> tuple[Data, ...]:
    found = made.past.quantiles(made.estimates.main_target)
    if made.past.known(made.estimates.main_target).size == 0:
        return ()
    return (Data("past-half", {"lower": [found["lower"]], "upper": [found["upper"]]}),)


def _past_band(made: Estimated, along: str) -> list[Spec]:
    value = share("lower", score_words(made.estimates.main_target), scale={"zero": False})
    return [
        layer({"type": "rect", "color": "@faint"}, data.name, **{along: value, f"{along}2": {"field": "upper"}})
        for data in _band_data(made)
    ]


def _words(data: Data) -> tuple[str, str]:
    columns = data.columns
    value, low, high = (np.asarray(columns[name], dtype=np.float64) for name in ("estimate", "low", "high"))
    known = np.flatnonzero(~np.isnan(value))
    if known.size == 0:
        return "No model has an estimate", "No model has an estimate."
    n_like_best = int(np.sum(high[known] >= low[known[0]])) - 1
    title = (
        f"Estimates from {percent(value[known[-1]])} to {percent(value[known[0]])}; intervals of "
        f"{plural(n_like_best, 'other model')} reach that of the highest"
    )
    said = "; ".join(
        f"{columns['model'][k]}: {percent(value[k])}, {interval_words(low[k], high[k])}" for k in known[:12].tolist()
    )
    n_flagged = int(np.sum(columns["is_flagged"]))
    unlike = f" {plural(n_flagged, 'model')} {ATYPICAL_WORDS}." if n_flagged else ""
    return title, f"{title}. The highest: {said}.{unlike}"


def _table(data: Data, *, has_missing: bool) -> Table:
    columns = [
        Column("rank", "Rank", "count"),
        Column("model", "Model", "id"),
        Column("estimate", "Estimate", "percent"),
        Column("low", "From", "percent"),
        Column("high", "To", "percent"),
        Column("below", "Past models below", "percent", 0, "Share of past models whose score is lower"),
        Column("n_items", "Answered", "count"),
        Column("n_missing", "Missing", "count", explanation="Items of the selection without an answer"),
        Column("typicality", "Typicality", "number", 2, "Share of past models that answered as unusually, or more"),
        Column("is_flagged", "Unlike past", "flag", explanation="Typicality below 0.10", has_menu=True),
    ]
    empty = {name for name in ("below", "typicality") if np.isnan(np.asarray(data.columns[name], dtype=float)).all()}
    empty |= {"is_flagged"} if "typicality" in empty else set()
    empty |= set() if has_missing else {"n_missing"}
    return Table("Models", data, tuple(one for one in columns if one.name not in empty), n_shown=25)


def _scenario_table(made: Estimated) -> Table | None:
    """List every model's estimate of every scenario."""
    estimates = made.estimates
    places = [k for k, name in enumerate(estimates.targets) if name in made.past.scenarios]
    if len(places) < 2:
        return None
    names = [estimates.targets[k] for k in places]
    data = Data(
        "scenarios",
        {
            "model": [model for model in estimates.model_ids for _ in places],
            "scenario": names * made.n_models,
            **{name: getattr(estimates, name)[:, places].ravel() for name in ("value", "low", "high", "n_items")},
        },
    )
    columns = (
        Column("model", "Model", "id", has_menu=True),
        Column("scenario", "Scenario", has_menu=True),
        Column("value", "Estimate", "percent"),
        Column("low", "From", "percent"),
        Column("high", "To", "percent"),
        Column("n_items", "Answered", "count"),
    )
    return Table("Scenarios of all models", data, columns)
