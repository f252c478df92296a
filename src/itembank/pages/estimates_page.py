"""The page of estimates: the score of one model or many, and how far to trust it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import shown
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING
from itembank.numerics.arrays import IntArray
from itembank.pages.blocks import (
    Answer,
    Answers,
    Block,
    Chart,
    Column,
    Data,
    Facts,
    Pair,
    Section,
    Table,
    Text,
    bank_argument,
    bank_provenance,
    bank_title,
    heads,
    noted,
)
from itembank.pages.grammar import (
    ENDS,
    ESTIMATE,
    ROW,
    bare,
    intervals,
    marks,
    nominal,
    number,
    picture,
    ramp,
    score,
    span,
    tips,
    when,
)
from itembank.pages.model_details import Estimated, model_sections, next_blocks
from itembank.pages.past_models import score_answer, score_words, summary_words
from itembank.pages.render import Page
from itembank.pages.theme import ATYPICAL_WORDS, count, interval_words, level_words, points
from itembank.responses.model_features import model_dates
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural
from itembank.tabular import few_of_each

MOST_NAMED = 60
"""Models that get a row with their name; more stand in order along the chart."""
MOST_DETAILED = 3
"""Models that are shown one by one; of more, all together."""


def estimates_page(
    bank: Bank,
    responses: ResponseMatrix,
    estimates: ScoreEstimates,
    selection: Selection | None = None,
    *,
    files: Sequence[str] = (),
    selection_file: str = "",
    title: str = "",
    command: str = "",
) -> Page:
    """Return the page of what `estimate` found.

    Of up to three models it shows each by itself: beside past models, scenario by scenario, how typical its answers
    are, every answer, and what to run next. Of more it shows all in order, and a heat map of models and scenarios.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, as `estimate` took them.
    estimates : ScoreEstimates
    selection : Selection, optional
        The items that were run, as `estimate` took it.
    files, selection_file : optional
        Where responses and selection are, for the commands of "What to run next".
    title : str
    command : str
        That writes the page; '' in Python.

    Raises
    ------
    DataError
        When the responses are not those of the models that were estimated.

    Examples
    --------
    >>> page = estimates_page(bank, responses, estimates, selection)  # doctest: +SKIP
    >>> page.save("estimates.html")  # doctest: +SKIP
    """
    made = Estimated.of(bank, responses, estimates, selection, files=files, selection_file=selection_file)
    few = made.n_models <= MOST_DETAILED
    notes = map(noted, few_of_each(estimates.notes, is_brief=False))
    how = f"{estimates.method}, {100.0 * estimates.level:g} % intervals, {estimates.main_interval}"
    return Page(
        title=title or _title(made),
        kind="Estimates",
        lead=(Text(_summary(made)), _lead(made) if few else many_lead(made), *notes),
        sections=(
            *(_few(made) if few else many_sections(made)),
            Section("How to read this", (Facts(tuple(_caveat_pairs(made))),)),
        ),
        provenance=(*bank_provenance(bank), ("Models", shown(estimates.model_ids)), ("Method", how)),
        command=command,
    )


def _title(made: Estimated) -> str:
    models = made.estimates.model_ids
    few = len(models) <= MOST_DETAILED
    named = f"{', '.join(models[:-1])}{' and ' * (len(models) > 1)}{models[-1]}" if few else f"{len(models)} models"
    dates = model_dates(made.responses.models) if len(models) == 1 else None
    when = f" ({dates[0]!s})" if dates is not None and dates[0] is not None else ""
    return f"{named}{when} on {bank_title(made.bank)}"


def _summary(made: Estimated) -> str:
    """Say the answer in a sentence: where the model is among past ones; of several the highest."""
    if made.n_models == 1:
        return summary_words(made.past, made.model(0))
    value = made.estimates.value[:, made.overall]
    if np.isnan(value).all():
        return "No model has an estimate: too few of their answers are known."
    first = int(np.nanargmax(value))
    return (
        f"Of {plural(made.n_models, 'model')} {made.estimates.model_ids[first]} has the highest estimate, "
        f"{points(float(value[first]))}."
    )


def _lead(made: Estimated) -> Block:
    estimates = made.estimates
    answers = tuple(
        score_answer(made.bank, made.model(row, estimates.main_target), made.answered(row)[0], method=estimates.method)
        for row in range(made.n_models)
    )
    return answers[0] if len(answers) == 1 else Answers(answers)


def _few(made: Estimated) -> Iterator[Section]:
    """Yield the sections of one model; of several, one for each with all its blocks."""
    if made.n_models == 1:
        yield from model_sections(made, 0)
        return
    for row, name in enumerate(made.estimates.model_ids):
        yield Section(name, tuple(block for part in model_sections(made, row) for block in part.blocks))


def _caveat_pairs(made: Estimated) -> Iterator[Pair]:
    estimates, bank = made.estimates, made.bank
    yield "Which score", f"{ESTIMANDS_IN_WORDS[estimates.estimand].capitalize()}."
    if bank.targets.overall_in_words:
        yield "Overall score", f"{bank.targets.overall_in_words.capitalize()}."
    if bank.n_aside:
        yield "Not in the score", f"{plural(bank.n_aside, 'question')} of the bank count in no score."
    yield "Interval", MEANING[estimates.main_interval]
    if estimates.explanation:
        yield "Method", f"Estimated by {estimates.explanation}"
    if not np.isnan(estimates.typicality.typicality).all():
        yield (
            "Atypical models",
            "Typicality is the share of past models that answered at least as unusually. Below 0.10 a model is unlike "
            "past ones: it is drawn hollow, and its interval may be too narrow.",
        )
    yield "New prompts", "Prompt, harness and settings must be those of the bank; statistics cannot check that."


def many_lead(made: Estimated) -> Answers:
    """Say how many models there are, the highest and the lowest estimate, and how wide intervals are."""
    at = made.overall
    value, low, high = (one[:, at] for one in (made.estimates.value, made.estimates.low, made.estimates.high))
    known = np.flatnonzero(~np.isnan(value))
    n_items = int(np.median(made.estimates.n_items[:, at]))
    size = Answer("Models estimated", count(made.n_models), words=f"{plural(n_items, 'question')} each (median)")
    if known.size == 0:
        return Answers((size,))
    first, last = (int(known[one(value[known])]) for one in (np.argmax, np.argmin))
    level = f"{level_words(made.estimates.level)} interval"
    ends = (
        Answer(
            f"{which} estimate",
            points(value[k]),
            f"{interval_words(low[k], high[k])} points, {level}",
            made.estimates.model_ids[k],
        )
        for which, k in (("Highest", first), ("Lowest", last))
    )
    half = 0.5 * float(np.median((high - low)[known]))
    return Answers((size, *ends, Answer("Interval", f"± {points(half)}", words=f"median half-width, {level}")))


def many_sections(made: Estimated) -> Iterator[Section]:
    """Yield the sections of many models."""
    at, estimates = made.overall, made.estimates
    order = np.argsort(-np.nan_to_num(estimates.value[:, at], nan=-1.0), kind="stable")
    scores = estimates.value[order, at]
    data = Data(
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
    columns = [
        *heads("rank", "model", "estimate", "low"),
        Column("high", "To", "score"),
        *heads("below", "n_items", "n_missing", "typicality", "is_flagged"),
    ]
    empty = {name for name in ("below", "typicality") if np.isnan(np.asarray(data.columns[name], dtype=float)).all()}
    empty |= {"is_flagged"} if "typicality" in empty else set()
    empty |= set() if bool(np.any(made.estimates.n_missing)) else {"n_missing"}
    table = Table("Models", data, tuple(one for one in columns if one.name not in empty), n_shown=25)
    yield Section("All models", (_chart(made, data), table))
    places = [k for k, name in enumerate(estimates.targets) if name in made.past.scenarios]
    if len(places) > 1:
        yield Section("Scenario by scenario", (_heat_map(made, order, places),))
    ranking = f"itembank compare {bank_argument(made.bank)} {made.results}{made.chosen} --ranking --report ranking.html"
    tied = Facts((("Find which models are tied", ranking),), are_commands=True)
    yield Section("What to run next", (tied, *next_blocks(made, range(made.n_models))))


def _chart(made: Estimated, data: Data) -> Chart:
    tip = tips(model="Model", **ESTIMATE, typicality=("Typicality", ".2f"))
    target = made.estimates.main_target
    known = made.past.known(target).size
    ends = made.past.quantiles(target)
    half = [{"lower": ends["lower"], "upper": ends["upper"]}] if known else []
    is_upright = len(data) > MOST_NAMED
    value = score("estimate", score_words(target))
    grey_band = span(value, "lower", "upper")
    if is_upright:
        scale = {"nice": False, "zero": False, "padding": 6}
        at = number("rank", "Models, the highest estimate first", scale=scale)
        band = marks("rect", y=grey_band, data=half, color="@faint")
    else:
        at = nominal("model", grid=False)
        band = marks("rect", grey_band, data=half, color="@faint")
    marked = intervals(at, value, tip, data=data.name, is_upright=is_upright)
    spec = picture(band if half else (), marked, height=380 if is_upright else ROW * len(data))
    title, alternative = _words(data)
    grey = f"Grey: the middle half of {plural(known, 'past model')}. " if known else ""
    hollow = f" Hollow: {ATYPICAL_WORDS}." if any(data.columns["is_flagged"]) else ""
    note = f"{grey}Bars: {100.0 * made.estimates.level:g} % intervals.{hollow}"
    return Chart(title, spec, (data,), alternative, note=note)


def _words(data: Data) -> tuple[str, str]:
    columns = data.columns
    value, low, high = (np.asarray(columns[name], dtype=np.float64) for name in ("estimate", "low", "high"))
    known = np.flatnonzero(~np.isnan(value))
    if known.size == 0:
        return "No model has an estimate", "No model has an estimate."
    n_like_best = int(np.sum(high[known] >= low[known[0]])) - 1
    others = f"the intervals of {plural(n_like_best, 'other model')} overlap its own"
    if n_like_best < 2:
        others = f"{'one other interval overlaps' if n_like_best else 'no other interval overlaps'} its own"
    title = f"{columns['model'][known[0]]} has the highest estimate; {others}"
    said = "; ".join(
        f"{columns['model'][k]}: {points(value[k])}, {interval_words(low[k], high[k])}" for k in known[:12].tolist()
    )
    n_flagged = int(np.sum(columns["is_flagged"]))
    unlike = f" {plural(n_flagged, 'model')} {ATYPICAL_WORDS}." if n_flagged else ""
    return title, f"{title}. The highest: {said}.{unlike}"


def _heat_map(made: Estimated, order: IntArray, places: Sequence[int]) -> Chart:
    """Draw the scenario scores of the first models in this order, and list those of all below."""
    estimates = made.estimates
    names, models = [estimates.targets[k] for k in places], [estimates.model_ids[k] for k in order.tolist()]
    at = np.ix_(order, np.array(places))
    found: dict[str, Any] = {name: getattr(estimates, name)[at].ravel() for name in ("value", "low", "high", "n_items")}
    found |= {"model": [one for one in models for _ in places], "scenario": names * len(models)}
    data = drawn = Data("scenarios", found)
    models, cut = models[:MOST_NAMED], ""
    if len(models) < made.n_models:
        n_cells, cut = len(models) * len(places), f"The {len(models)} highest estimates are drawn; the table has all."
        drawn = Data("scenarios-drawn", {name: values[:n_cells] for name, values in found.items()})
    value = found["value"]
    known = value[~np.isnan(value)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    tip = tips(model="Model", scenario="Scenario", value=ESTIMATE["estimate"], **ENDS, n_items=("Answered", ","))
    is_crowded = len(names) > 6 or len(names) * max(map(len, names)) > 100
    # many names stand upright, and what has no room is left out: the pointer and the table tell all
    upright: dict[str, Any] = {"labelAngle": -90, "labelOverlap": "greedy"} if len(names) > 30 else {}
    x = nominal("scenario", names, orient="top", **{"labelAngle": -45 if is_crowded else 0, **upright})
    color = ramp("value", "Estimated score", tones="heatmap", legend={"format": "%"}, domain=[low, high])
    layers = [marks("rect", tip=tip, stroke="@paper", color=color)]
    if len(names) <= 16:  # cells of more have no room for numbers, nor have narrow ones of a phone
        ink = when({"field": "value", "gt": low + 0.6 * (high - low)}, "@paper", "@ink")
        text = {"field": "value", "type": "quantitative", "format": ".0%"}
        has_room = {"value": {"expr": "bandwidth('x') < 18 ? 0 : 1"}}
        layers.append(marks("text", text=text, color=ink, fontSize=10, opacity=has_room))
    spec = picture(layers, encoding={"x": bare(x), "y": bare(nominal("model", models))}, height=ROW * len(models) + 20)
    columns = (
        Column("model", "Model", "id", has_menu=True),
        *heads("scenario", "value", "low"),
        Column("high", "To", "score"),
        *heads("n_items"),
    )
    middle = np.array(
        [np.nanmedian(one) if np.isfinite(one).any() else np.nan for one in value.reshape(order.size, -1).T]
    )
    title = "No scenario has an estimate"
    if known.size:
        hardest, easiest = (names[int(one(middle))] for one in (np.nanargmin, np.nanargmax))
        title = f"These models score least in {hardest} and most in {easiest}"
        if hardest == easiest:
            title = "These models score alike in all scenarios that have an estimate"
    words = "; ".join(f"{name} {points(one)}" for name, one in zip(names, middle.tolist(), strict=True))
    table = Table("Scenarios of all models", data, columns)
    return Chart(title, spec, (drawn,), f"{title}. Median estimate of these models: {words}.", table, cut)
