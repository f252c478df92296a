"""The page of estimates: the score of one model or many, and how far to trust it."""

from collections.abc import Iterator

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import shown
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING
from itembank.pages.blocks import (
    Answer,
    Answers,
    Block,
    Caution,
    Chart,
    Column,
    Data,
    Facts,
    Pair,
    Section,
    Table,
    Text,
    bank_provenance,
)
from itembank.pages.grammar import PRECISE, intervals, marks, nominal, number, picture, score, span, tips
from itembank.pages.model_details import Estimated, model_sections, next_blocks
from itembank.pages.past_models import score_answer, score_words
from itembank.pages.render import Page
from itembank.pages.theme import ATYPICAL_WORDS, count, interval_words, percent, plural, points
from itembank.responses.responses import ResponseMatrix

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
    title: str = "",
    command: str = "",
) -> Page:
    """Return the page of what `estimate` found.

    Of up to three models it shows each by itself: beside past models, scenario by scenario, where its answers are
    typical and where not, every answer, and what to run next. Of more it shows all in order.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, as `estimate` took them.
    estimates : ScoreEstimates
    selection : Selection, optional
        The items that were run, as `estimate` took it.
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
    made = Estimated.of(bank, responses, estimates, selection)
    few = made.n_models <= MOST_DETAILED
    return Page(
        title=title or _title(made),
        kind="Estimates",
        lead=(_lead(made) if few else many_lead(made), *cautions(made)),
        sections=(
            *(_few(made) if few else many_sections(made)),
            Section("How to read this", (Facts(tuple(_caveat_pairs(made))),)),
        ),
        provenance=(*bank_provenance(bank), *_provenance(made)),
        command=command,
    )


def _title(made: Estimated) -> str:
    of = f" on {made.bank.name}" if made.bank.name else ""
    models = made.estimates.model_ids
    return f"{models[0] if len(models) == 1 else plural(len(models), 'model')}{of}"


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


def cautions(made: Estimated) -> Iterator[Caution]:
    """Yield what a reader must not miss."""
    estimates, bank = made.estimates, made.bank
    for words in estimates.typicality.in_words(estimates.model_ids, bank.n_compared_models):
        yield Caution(words)
    known = set(bank.responses.model_ids) & set(estimates.model_ids)
    if known:
        yield Caution(
            f"{shown(sorted(known))} helped to calibrate this bank: such an estimate is better than one of a new "
            "model, and its interval too narrow."
        )
    unknown = [name for name, row in zip(estimates.model_ids, estimates.value, strict=True) if np.isnan(row).any()]
    if unknown:
        yield Caution(f"{shown(unknown)}: some scores have nothing to go by. Run items of these scenarios.")
    n_missing = int(estimates.n_missing.max(initial=0))
    if n_missing:
        who = "It lacks" if estimates.n_models == 1 else "Some models lack up to"
        yield Caution(
            f"{who} {plural(n_missing, 'answer')} to the selection. What is missing counts as missing by chance: if "
            "these were the items that the model fails, the estimate is too high."
        )


def _caveat_pairs(made: Estimated) -> Iterator[Pair]:
    estimates, bank = made.estimates, made.bank
    yield "Which score", f"{ESTIMANDS_IN_WORDS[estimates.estimand].capitalize()}."
    if bank.targets.overall_in_words:
        yield "Overall score", f"{bank.targets.overall_in_words.capitalize()}."
    if bank.n_aside:
        yield "Items that do not count", f"{plural(bank.n_aside, 'item')} of the bank count in no score."
    yield "Interval", MEANING[estimates.interval_kind]
    if estimates.explanation:
        yield "Method", f"Estimated by {estimates.explanation}"
    yield (
        "Atypical models",
        "Typicality is the share of past models that answered as unusually. Below 0.10 a model counts as unlike past "
        "ones: it is drawn hollow, and its interval may be too narrow.",
    )
    yield "New prompts", "Prompt, harness and settings must be those of the bank; no statistic can tell that they are."


def _provenance(made: Estimated) -> Iterator[Pair]:
    estimates = made.estimates
    yield "Models", shown(estimates.model_ids)
    yield "Method", f"{estimates.method}, {100.0 * estimates.level:g} % intervals, {estimates.interval_kind}"


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


def _chart(made: Estimated, data: Data) -> Chart:
    tip = tips(
        model="Model",
        estimate=("Estimate", PRECISE),
        low=("From", PRECISE),
        high=("To", PRECISE),
        typicality=("Typicality", ".2f"),
    )
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
        at = nominal("model", labelLimit=200, grid=False)
        band = marks("rect", grey_band, data=half, color="@faint")
    marked = intervals(at, value, tip, data=data.name, is_upright=is_upright)
    spec = picture(band if half else (), marked, height=380 if is_upright else 22 * len(data))
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
