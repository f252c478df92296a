"""The page of a gate: the verdict, the difference against the margin, what changed, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal

from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS
from itembank.gating.results import Gate, Look, Verdict, signed
from itembank.gating.results import points as size
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
    heads,
    noted,
)
from itembank.pages.grammar import ROW, Spec, marks, nominal, number, of, picture, shade, span, tips
from itembank.pages.render import Page
from itembank.pages.theme import count, level_words, percent, points
from itembank.tables import plural
from itembank.tabular import picked

METHODS: Final[Mapping[str, str]] = {
    "paired": "answers of both to the same questions",
    "probabilities": "answers and probabilities of the right options of both",
    "bank": "questions chosen with a bank, and the errors of its past models",
    "compare": "a comparison with the bank",
}
TONES: Final[Mapping[Verdict, Literal["good", "bad", "open"]]] = {"pass": "good", "fail": "bad", "undecided": "open"}
LINES: Final[Mapping[str, str]] = {"no change": "@muted", "tolerance": "@third", "margin": "@other"}
HEIGHT = 70
"""Of the picture of one difference."""


def gate_page(found: Gate, *, title: str = "", command: str = "", then: Sequence[Pair] = ()) -> Page:
    """Return the page of a gate; `then` says what to do next, each as a purpose and a command."""
    spec, look = found.spec, found.last
    rows = [
        {
            "place": place,
            **picked(one, "scenario", "n_items", "baseline", "candidate", "change"),
            "fell": one.right_to_wrong,
            "rose": one.wrong_to_right,
        }
        for place, one in enumerate(found.by_change)
    ]
    most_scenarios = 30  # rows of a picture
    sections = [
        Section("The difference", _difference_charts(found)),
        Section("What changed", (*_changes_charts(found, rows[:most_scenarios]), _scenarios(rows), *_flipped(found))),
        *([Section("What next", (Facts(tuple(then), are_commands=True),))] if then else []),
    ]
    both = " either way" if spec.both_sides else ""
    errors = f"{level_words(spec.false_alarm)} of healthy candidates fail, {level_words(spec.miss)} of broken ones pass"
    over = ", over all looks together" if len(found.looks) > 1 or found.next_items else ""
    return Page(
        title=title or f"{found.candidate_id} against {found.baseline_id}",
        kind="Gate",
        lead=_lead(found),
        sections=tuple(sections),
        provenance=(
            ("Margin", f"{size(spec.margin)}{both}; a drop of up to {size(spec.healthy)} is healthy"),
            ("Errors", f"At most {errors}{over}"),
            ("Baseline", f"{found.baseline_id}, {points(found.baseline_score)} on its questions"),
            (
                "Candidate",
                f"{found.candidate_id}, {points(found.candidate_score)}, {count(look.n_items)} of "
                f"{plural(found.n_total, 'question')}",
            ),
            ("Difference by", METHODS.get(found.method, found.method)),
            ("Difference of", ESTIMANDS_IN_WORDS[found.estimand]),
            *((("Bank", found.bank_id),) if found.bank_id else ()),
        ),
        command=command,
    )


def _lead(found: Gate) -> tuple[Block, ...]:
    look, spec = found.last, found.spec
    changed = found.right_to_wrong + found.wrong_to_right
    interval = f"{signed(look.low)} to {signed(look.high)} points, {level_words(spec.level)} interval"
    value = points(look.difference, is_signed=True)
    of_items = f"{count(look.n_items)} of {plural(found.n_total, 'question')}"
    answers = (
        Answer("Verdict", found.verdict.upper(), words=f"Margin {size(spec.margin)}", tone=TONES[found.verdict]),
        Answer(
            f"{found.candidate_id} minus {found.baseline_id}",
            value,
            "exactly" if look.is_exact else interval,
            f"{points(found.baseline_score)} to {points(found.candidate_score)}, from {of_items}",
            found.sentence,
        ),
        Answer(
            "Answers changed",
            percent(changed / max(look.n_items, 1)),
            words=f"{count(found.right_to_wrong)} fell, {count(found.wrong_to_right)} rose",
        ),
    )
    return (Text(found.sentence), Answers(answers), *(noted(one, is_clause=True) for one in found.notes))


def _looks(found: Gate, looks: Sequence[Look]) -> Data:
    """Return intervals at looks in points, and the bounds that decide: of a rise, where that is the question."""
    in_points: dict[str, list[float]] = {name: [] for name in ("difference", "low", "high", "lower", "upper")}
    for one in looks:
        is_rise = found.spec.both_sides and one.difference > 0.0
        bounds = (one.by_alarm[0], one.by_miss[1]) if is_rise else (one.by_miss[0], one.by_alarm[1])
        for name, value in zip(in_points, (one.difference, one.low, one.high, *bounds), strict=True):
            in_points[name].append(100.0 * value)
    name = "gate-look" if len(looks) == 1 else "gate-looks"
    return Data(name, {"n_items": [one.n_items for one in looks], **in_points})


def _lines(found: Gate) -> Data:
    """Return what the difference is compared with, in points."""
    healthy, margin = 100.0 * found.spec.healthy, 100.0 * found.spec.margin
    at = {"no change": [0.0], "tolerance": [-healthy, healthy], "margin": [-margin, margin]}
    kept = [(name, value) for name, values in at.items() for value in values[: 1 + found.spec.both_sides]]
    return Data("gate-lines", {"line": [name for name, _ in kept], "at": [value for _, value in kept]})


def _marks(value: Spec, items: Spec | None = None) -> list[Spec]:
    """Draw lines of reference, intervals, and in them the bounds that decide: from left to right, or above items."""
    tip = tips(
        n_items=("Questions", ",d"),
        difference=("Difference (points)", "+.1f"),
        low=("From", "+.1f"),
        high=("To", "+.1f"),
        lower=("Bound below", "+.2f"),
        upper=("Bound above", "+.2f"),
    )

    def placed(channel: Spec, across: Spec | None) -> tuple[Spec | None, Spec | None]:
        return (channel, across) if items is None else (across, channel)

    across: Spec = items or {"value": HEIGHT / 2}
    look: Spec = {"tip": tip, "color": "@main"}
    lines: Spec = {"data": "gate-lines", "color": shade("line", LINES), "strokeDash": [5, 3], "strokeWidth": 2}
    return [
        marks("rule", *placed(of(value, "at"), None), **lines),
        marks("rule", *placed(span(value), across), **look, strokeWidth=2, opacity=0.8),
        marks("rule", *placed(span(value, "lower", "upper"), across), **look, strokeWidth=7, opacity=0.5),
        marks("point", *placed(value, across), **look, size=70, filled=True, opacity=1),
    ]


def _difference_charts(found: Gate) -> tuple[Chart, ...]:
    """Draw the difference, and below it how it became known where there were several looks."""
    look, lines, level = found.last, _lines(found), level_words(found.spec.level)
    value = number("difference", "Candidate minus baseline (points)", zero=False, tickCount=8)
    against = f"margin {size(found.spec.margin)}, tolerance {size(found.spec.healthy)}"
    last = Chart(
        f"{found.verdict.capitalize()}: the difference is {signed(look.difference)} points, the margin "
        f"{size(found.spec.margin)}",
        picture(*_marks({**value, "scale": {"zero": False, "padding": 12}}), height=HEIGHT),
        (_looks(found, [look]), lines),
        f"Difference {signed(look.difference)} points, interval {signed(look.low)} to {signed(look.high)}, {against}.",
        note=f"Thin: {level} interval. Thick: the bounds that decide. "
        + (
            "Within both margins they let it pass; beyond a tolerance, with the point at a margin or beyond it, they "
            "fail it."
            if found.spec.both_sides
            else "Right of the margin they let it pass; left of the tolerance, with the point at the margin or left of "
            "it, they fail it."
        ),
    )
    if len(found.looks) == 1:
        return (last,)
    data = _looks(found, found.looks)
    ticks = {"values": data.columns["n_items"], "labelSeparation": 8, "labelOverlap": True}
    items = number("n_items", "Questions answered", "d", log=True, scale={"nice": False, "padding": 24}, **ticks)
    columns = (
        Column("n_items", "Questions", "count"),
        *heads("difference"),
        Column("low", f"{level} from", "number"),
        *heads("high", "lower", "upper"),
    )
    told = "; ".join(
        f"{one.n_items} questions {signed(one.difference)} ({signed(one.low)} to {signed(one.high)})"
        for one in found.looks
    )
    every = Chart(
        f"{plural(len(found.looks), 'look')}, the last at {count(look.n_items)} of {plural(found.n_total, 'question')}",
        picture(*_marks(value, items), height=300),
        (data, lines),
        f"Difference with its interval at each look: {told}; {against}.",
        table=Table("Looks", data, columns, n_shown=30),
        note="Error rates are over all looks together.",
    )
    return last, every


def _changes_charts(found: Gate, rows: Sequence[Mapping[str, Any]]) -> tuple[Chart, ...]:
    """Draw how many answers fell, to the left, and rose, to the right; nothing if none did."""
    if not found.right_to_wrong + found.wrong_to_right:
        return ()
    long = [
        {"scenario": one["scenario"], "place": one["place"], "way": way, "n": one[way], "at": sign * one[way]}
        for one in rows
        for way, sign in (("fell", -1), ("rose", 1))
    ]
    names = ("scenario", "place", "way", "n", "at")
    data = Data("gate-changes", {name: [one[name] for one in long] for name in names})
    whole = "datum.value % 1 ? '' : format(abs(datum.value), ',d')"
    x = number("at", "Answers that fell, and that rose", labelExpr=whole)
    y = nominal("scenario", "place")
    tip = tips(scenario="Scenario", way="Answers that", n=("Number", ",d"))
    color = shade("way", {"fell": "@other", "rose": "@main"})
    n_all = len(found.scenarios)
    told = "; ".join(f"{one['scenario']} {one['fell']} fell, {one['rose']} rose" for one in rows[:10])
    chart = Chart(
        f"{plural(found.right_to_wrong, 'answer')} fell and {count(found.wrong_to_right)} rose, of "
        f"{count(found.last.n_items)}",
        picture(marks("bar", x, y, tip=tip, color=color), height=ROW * max(len(rows), 1)),
        (data,),
        f"Answers that changed, by scenario: {told}.",
        note="Fell: from right to wrong, or to a lower response. Scenarios that changed the difference most come first"
        + (f", the first {len(rows)} of {n_all}." if len(rows) < n_all else "."),
    )
    return (chart,)


def _scenarios(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        Column("scenario", "Scenario"),
        *heads("change", "fell", "rose"),
        Column("n_items", "Questions", "count"),
        *heads("baseline", "candidate"),
    )
    return Table.of("Scenarios", "gate-scenarios", rows, columns, note="The verdict is about all questions together.")


def _flipped(found: Gate) -> tuple[Table, ...]:
    most_flipped = 200  # items that a page lists
    shown = found.flipped[:most_flipped]
    rows = [{**asdict(one), "way": "fell" if one.candidate < one.baseline else "rose"} for one in shown]
    columns = (
        *heads("item_id"),
        Column("baseline", "Baseline", "response"),
        Column("candidate", "Candidate", "response"),
        *heads("way", "scenario"),
    )
    cut = f"The first {most_flipped} of {count(len(found.flipped))}; in Python, `flipped` of the result has all."
    note = cut if len(shown) < len(found.flipped) else ""
    return (Table.of("Questions whose answers changed", "gate-flipped", rows, columns, note=note),) if shown else ()
