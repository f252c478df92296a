"""The page of a pre-training law: what a larger training run would score, and what such forecasts were worth."""

from typing import Any

import numpy as np
import polars as pl

from itembank.errors import shown
from itembank.pages.blocks import Answer, Answers, Block, Caution, Column, Section, Table, Text
from itembank.pages.pretraining_charts import (
    LAW_WORDS,
    drawn_law,
    forecast_chart,
    held_out_chart,
)
from itembank.pages.render import Page
from itembank.pages.theme import compute, count, interval_words, level_words, percent, plural, points
from itembank.scaling.pretraining.law_results import HeldOutForecasts, PretrainingLaw

MOST_ANSWERS = 3
Rows = list[dict[str, Any]]
"""Of `PretrainingLaw.rows`, which take a while to make."""
TOO_NARROW = 0.03
"""How far below their level intervals may hold before a reader is told."""


def pretraining_page(law: PretrainingLaw, *, name: str = "", title: str = "", command: str = "") -> Page:
    """Return the page of pre-training laws.

    Parameters
    ----------
    law : PretrainingLaw
    name : str
        Short name of the law to show; the law's `best` where it is empty.
    title, command : str
    """
    name = name or law.best
    rows = law.rows()
    leading = _leading(law, name, rows)
    found: list[Block] = []
    worth = _worth(law, name)
    if worth is None:
        found.append(Caution("No sizes were held out: nobody knows how good these forecasts are."))
    elif worth["coverage"] < law.level - TOO_NARROW:
        found.append(
            Caution(
                f"Intervals that claim {level_words(law.level)} held only {percent(worth['coverage'])} of the sizes "
                f"held out; those of the forecasts are therefore {worth['widening']:.1f} times as wide as the law says."
            )
        )
    by_hand = law.closer_by_hand(name)
    found += [Caution(f"The {by_hand}")] if by_hand else []
    doubtful = [f"{row['recipe']} on {row['scenario']}" for row in rows if row["law"] == name and row["note"]]
    if doubtful:
        found.append(
            Caution(
                f"{plural(len(doubtful), 'forecast')} are doubtful: {shown(doubtful)}. The table says why, under Note."
            )
        )
    found += [Text(law.message)] if law.message else []
    return Page(
        title=title or f"Scores at {compute(law.target_flops)}",
        kind="Pre-training forecast",
        lead=(*_lead(law, name, leading), *found),
        sections=tuple(_sections(law, name, rows)),
        provenance=(
            ("Law shown", LAW_WORDS.get(name, name)),
            ("Laws fitted", ", ".join(LAW_WORDS.get(one, one) for one in law.names)),
            ("Models", f"{count(len(law.model_ids))}, of them {count(int(law.is_final.sum()))} finished"),
            ("Recipes and scenarios", f"{len(law.recipes)} and {len(law.scenarios)}"),
            ("Target", compute(law.target_flops)),
            ("Level", level_words(law.level)),
        ),
        command=command,
    )


def _leading(law: PretrainingLaw, name: str, rows: Rows) -> Rows:
    """Return the forecast of the best recipe of every scenario."""
    found = []
    for one in law.scenarios:
        wanted = (one.scenario, drawn_law(one, name))
        known = [row for row in rows if (row["scenario"], row["law"]) == wanted and np.isfinite(row["score"])]
        if known:
            found.append(max(known, key=lambda row: row["score"]))
    return found


def _lead(law: PretrainingLaw, name: str, leading: Rows) -> tuple[Block, ...]:
    """Say what the law says, and how far off it was on sizes held out."""
    if not leading:
        return (Text("No recipe has enough finished sizes for a law."),)
    worth = _worth(law, name)
    first = leading[0]
    words = [
        f"The {LAW_WORDS.get(name, name)} says that {first['recipe']} scores {percent(first['score'])} "
        f"({interval_words(first['low'], first['high'])}) on {first['scenario']} at {compute(law.target_flops)}, "
        f"{first['beyond']:.3g} times the compute of its largest run."
    ]
    if worth is not None:
        words.append(
            f"Forecasts of the largest sizes, held out, were off by {points(worth['mean_absolute_error'])} on average."
        )
    answers = [_answer(law, row) for row in leading[:MOST_ANSWERS]]
    more = len(leading) - len(answers)
    note = f"The other {plural(more, 'scenario')} {'is' if more == 1 else 'are'} below." if more > 0 else ""
    return (Text(" ".join(words)), Answers(tuple(answers)), Text(note))


def _answer(law: PretrainingLaw, row: dict[str, Any]) -> Answer:
    level = level_words(law.level)
    value, interval = percent(row["score"]), f"{interval_words(row['low'], row['high'])}, {level} interval"
    best = f", the best of {len(law.recipes)} recipes" if len(law.recipes) > 1 else ""
    words = (
        f"{row['recipe']}{best}, at {row['beyond']:.3g} times its largest run, from {plural(row['n_sizes'], 'size')}"
    )
    citation = (
        f"{row['recipe']} on {row['scenario']} at {compute(law.target_flops)}: {value} ({interval}), law {row['law']}, "
        "itembank"
    )
    return Answer(row["scenario"], value, interval, words, citation)


def _worth(law: PretrainingLaw, name: str) -> dict[str, Any] | None:
    return next((row for row in law.comparison() if row["law"] == name), None)


def _sections(law: PretrainingLaw, name: str, rows: Rows) -> list[Section]:
    drawn = [one for one in law.scenarios if one.fitted]
    made = []
    if drawn:
        made.append(Section("Forecasts", (forecast_chart(law, name, forecasts=rows), _forecasts(law, rows))))
    held_out = law.held_out
    if held_out is not None and not held_out.table.is_empty():
        lead = "The largest sizes were left out and forecast from the smaller ones. Nothing was tuned on them."
        blocks: list[Block] = [
            held_out_chart(held_out, name),
            _comparison(law),
            Text(law.best_reason),
            _held_out(held_out),
        ]
        made.append(Section("Sizes held out", tuple(blocks), lead))
    return made


def _forecasts(law: PretrainingLaw, rows: Rows) -> Table:
    columns = (
        Column("scenario", "Scenario", has_menu=True),
        Column("recipe", "Recipe", has_menu=True),
        Column("law", "Law", has_menu=True),
        Column("score", "Score", "percent"),
        Column("low", f"{level_words(law.level)} from", "percent"),
        Column("high", "to", "percent"),
        Column("beyond", "Beyond", "number", 1, "Compute over that of the recipe's largest run"),
        Column("n_sizes", "Sizes", "count", explanation="Finished models of the recipe"),
        Column("residual", "Residual (points)", "number", 1, "Root mean square at the sizes fitted"),
        Column("note", "Note"),
    )
    rows = [row | {"residual": 100.0 * row["residual"]} for row in rows]
    return Table.of(f"Forecasts at {compute(law.target_flops)}", "forecasts", rows, columns)


def _comparison(law: PretrainingLaw) -> Table:
    columns = (
        Column("law", "Law"),
        Column("mean_absolute_error", "Mean error (points)", "number", 2),
        Column("mean_error", "Bias (points)", "number", 2, "Negative: forecasts were too low"),
        Column("coverage", "Held", "percent", 1, "Share of intervals that held the score, before widening"),
        Column("width", "Width (points)", "number", 1, "Mean width of the intervals before widening"),
        Column("widening", "Widened by", "number", 2, "Factor on the intervals of forecasts"),
        Column("decision_accuracy", "Right decisions", "percent"),
        Column("n_forecasts", "Forecasts", "count"),
    )
    in_points = ("mean_absolute_error", "mean_error", "width")
    rows = [row | {name: 100.0 * row[name] for name in in_points} for row in law.comparison()]
    return Table.of("What laws were worth on the sizes held out", "laws", rows, columns)


def _held_out(held_out: HeldOutForecasts) -> Table:
    columns = (
        Column("scenario", "Scenario", has_menu=True),
        Column("recipe", "Recipe", has_menu=True),
        Column("law", "Law", has_menu=True),
        Column("beyond", "Beyond", "number", 1, "Compute of the forecast over the largest fitted"),
        Column("score", "Forecast", "percent"),
        Column("low", "from", "percent"),
        Column("high", "to", "percent"),
        Column("actual", "Actual", "percent"),
        Column("error", "Error (points)", "number"),
        Column("is_covered", "Held", "flag", has_menu=True),
    )
    rows = held_out.table.with_columns(pl.col("error") * 100.0)
    return Table.of("Every forecast of a size held out", "held-out", rows, columns)
