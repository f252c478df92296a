"""The page of a pre-training law: what a larger training run would score, and how good such forecasts were."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import shown
from itembank.pages.blocks import Answer, Answers, Block, Caution, Column, Section, Table, Text, heads
from itembank.pages.render import Page
from itembank.pages.theme import compute, count, interval_words, level_words, percent, points
from itembank.tables import plural
from itembank_scaling.pages.pretraining_charts import LAW_WORDS, drawn_law, forecast_chart, held_out_chart
from itembank_scaling.pretraining.law_results import PretrainingLaw, few_checked, times_words

Rows = list[dict[str, Any]]
"""Of `PretrainingLaw.rows`, which take a while to make."""


def pretraining_page(law: PretrainingLaw, *, name: str = "", title: str = "", command: str = "") -> Page:
    """Return the page of pre-training laws.

    Parameters
    ----------
    law : PretrainingLaw
    name : str
        Short name of the law to show; the law's `best` where it is empty.
    title, command : str
    """
    is_chosen = not name and bool(law.best_reason)
    name = name or law.best
    rows = law.rows()
    leading = []  # the forecast of the best recipe of every scenario
    for one in law.scenarios:
        wanted = (one.scenario, drawn_law(one, name))
        known = [row for row in rows if (row["scenario"], row["law"]) == wanted and np.isfinite(row["score"])]
        leading += [max(known, key=lambda row: row["score"])] if known else []
    what = "Scores"
    if leading:
        what = law.recipes[0] if len(law.recipes) == 1 else f"{len(law.recipes)} recipes"
        what += f" on {law.scenarios[0].scenario}" if len(law.scenarios) == 1 else ""
    notes = (Section("Notes on the fit", (Text(law.message),)),) if law.message else ()
    return Page(
        title=title or f"{what} at {compute(law.target_flops)}",
        kind="Pre-training forecast",
        lead=(*_lead(law, name, leading), *_cautions(law, name, rows)),
        sections=(*_sections(law, name, rows, is_chosen=is_chosen), *notes),
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


def _cautions(law: PretrainingLaw, name: str, rows: Rows) -> Iterator[Caution]:
    if law.doubts(name):
        yield Caution(law.trust(name))
    worth = law.worth(name)
    too_narrow = 0.03  # how far below its level coverage may be before a reader is told
    if worth is not None and worth["coverage"] < law.level - too_narrow:
        yield Caution(
            f"{level_words(law.level)} intervals cover only {percent(worth['coverage'], 0)} of the scores of held-out "
            f"sizes. Those of the forecasts are therefore widened {worth['widening']:.1f} times."
        )
    doubtful = [f"{row['recipe']} on {row['scenario']}" for row in rows if row["law"] == name and row["note"]]
    if doubtful:
        which = "1 forecast is" if len(doubtful) == 1 else f"{count(len(doubtful))} forecasts are"
        yield Caution(f"{which} doubtful: {shown(doubtful)}. The table of forecasts says why, under Note.")


def _lead(law: PretrainingLaw, name: str, leading: Rows) -> tuple[Block, ...]:
    """Say what the law forecasts, and how far off it was on held-out sizes."""
    if not leading:
        return (Text("No recipe has enough finished sizes for a law."),)
    worth = law.worth(name)
    first = leading[0]
    words = [
        f"At {compute(law.target_flops)}, {times_words(first['beyond'])} times the compute of its largest run, "
        f"{first['recipe']} should score {points(first['score'])} "
        f"({interval_words(first['low'], first['high'])}) on {first['scenario']}, by the {LAW_WORDS.get(name, name)}."
    ]
    if not law.doubts(name):
        words.append(law.trust(name))
    elif worth is not None:
        few = few_checked(worth["n_forecasts"])
        words.append(
            f"Forecasts of the held-out largest sizes were off by {points(worth['error'])} on average"
            f"{f' ({few}: this says little)' if few else ''}."
        )
    answers = [_answer(law, row) for row in leading[:3]]
    more = len(leading) - len(answers)
    note = f"The other {plural(more, 'scenario')} {'is' if more == 1 else 'are'} below." if more > 0 else ""
    return (Text(" ".join(words)), Answers(tuple(answers)), Text(note))


def _answer(law: PretrainingLaw, row: dict[str, Any]) -> Answer:
    level = level_words(law.level)
    value, interval = points(row["score"]), f"{interval_words(row['low'], row['high'])} points, {level} interval"
    best = f", the best of {len(law.recipes)} recipes" if len(law.recipes) > 1 else ""
    times, sizes = times_words(row["beyond"]), plural(row["n_sizes"], "size")
    words = f"{row['recipe']}{best}; {times} times its largest run, from {sizes}"
    citation = (
        f"{row['recipe']} on {row['scenario']} at {compute(law.target_flops)}: {value} ({interval}), law {row['law']}, "
        "itembank"
    )
    return Answer(row["scenario"], value, interval, words, citation)


def _sections(law: PretrainingLaw, name: str, rows: Rows, *, is_chosen: bool) -> list[Section]:
    drawn = [one for one in law.scenarios if one.fitted]
    made = []
    if drawn:
        made.append(Section("Forecasts", (_forecasts(law, name, rows), forecast_chart(law, name, forecasts=rows))))
    held_out = law.held_out
    if held_out is not None and not held_out.table.is_empty():
        lead = "The largest sizes were held out and forecast from the smaller ones."
        if is_chosen:
            lead += " The law shown was chosen by these errors, so its own error is somewhat larger."
        columns = (
            Column("law", "Law"),
            Column("error", "Error (points)", "number", 2, "Mean absolute error"),
            *heads("bias"),
            Column("coverage", "Coverage", "percent", 0, "Share of intervals that cover the score, before widening"),
            Column("half_width", "Half-width (points)", "number", 1, "Mean over the intervals, before widening"),
            *heads("widening", "decision_accuracy", "n_forecasts"),
        )
        in_points = ("error", "bias", "half_width")
        of_laws = [row | {name: 100.0 * row[name] for name in in_points} for row in law.comparison()]
        of_sizes = (
            *heads("scenario", "recipe", "law"),
            Column("beyond", "Beyond", "number", 1, "Compute of the forecast over the largest fitted"),
            Column("score", "Forecast", "score"),
            *heads("low"),
            Column("high", "To", "score"),
            *heads("actual"),
            Column("error", "Error (points)", "number"),
            *heads("is_covered"),
        )
        errors = held_out.table.with_columns(pl.col("error") * 100.0)
        blocks: list[Block] = [
            held_out_chart(held_out, name),
            Table.of("Errors of the laws on held-out sizes", "laws", of_laws, columns),
            Text(law.best_reason),
            Table.of("Every forecast of a held-out size", "held-out", errors, of_sizes),
        ]
        made.append(Section("Held-out sizes", tuple(blocks), lead))
    return made


def _forecasts(law: PretrainingLaw, name: str, rows: Rows) -> Table:
    """List all forecasts: of the law that is shown first, by scenario, the highest first."""
    columns = (
        *heads("recipe", "scenario", "score"),
        Column("low", f"{level_words(law.level)} from", "score"),
        Column("high", "to", "score"),
        *heads("law", "beyond", "n_sizes", "residual"),
        *([Column("note", "Note")] if any(row["note"] for row in rows) else []),
    )
    rows = [row | {"residual": 100.0 * row["residual"]} for row in rows]
    places = {one.scenario: place for place, one in enumerate(law.scenarios)}
    rows.sort(key=lambda row: (row["law"] != name, places[row["scenario"]], -np.nan_to_num(row["score"], nan=-1.0)))
    return Table.of(f"Forecasts at {compute(law.target_flops)}", "forecasts", rows, columns)
