"""What a notebook shows of a result: the answer and the table of its page."""

from collections.abc import Callable
from typing import Any

from itembank.data.score_names import OVERALL
from itembank.estimation.estimates import ScoreEstimates
from itembank.pages.blocks import Answer, Answers, Column, Data, Page, Section, Table
from itembank.pages.common import plural
from itembank.pages.render import pieces_html
from itembank.reports.theme import interval_words, level_words, percent

MOST_ANSWERS = 4
"""Models whose overall score stands above the table."""


def pieces_of(result: object) -> str | None:
    """Return the pieces of a result as HTML, or None for a result that has a table only."""
    make = MAKERS.get(type(result))
    return None if make is None else pieces_html(make(result))


def _estimates(estimates: ScoreEstimates) -> Page:
    rows = estimates.rows()
    first = [row for row in rows if row["target"] == OVERALL][:MOST_ANSWERS]
    names = ("model_id", "target", "estimate", "low", "high", "n_items", "n_total", "typicality")
    data = Data("estimates", {name: [row[name] for row in rows] for name in names})
    columns = (
        Column("model_id", "Model", "id"),
        Column("target", "Score"),
        Column("estimate", "Estimate", "percent"),
        Column("low", "Low", "percent"),
        Column("high", "High", "percent"),
        Column("n_items", "Items run", "count"),
        Column("n_total", "Of", "count"),
        Column("typicality", "Typicality", "number", 2),
    )
    table = Table(f"Estimates with {level_words(estimates.level)} intervals", data, columns, n_shown=100)
    return Page(
        f"Estimated scores of {plural(estimates.n_models, 'model')}",
        "Estimates",
        (Answers(tuple(_answer(row) for row in first)),),
        (Section("All scores", (table,)),),
    )


def _answer(row: dict[str, Any]) -> Answer:
    is_known = row["estimate"] == row["estimate"]
    interval = f"{interval_words(row['low'], row['high'])}, {level_words(row['level'])} interval" if is_known else ""
    words = f"from {row['n_items']:,} of {plural(row['n_total'], 'item')}, by {row['method']}"
    return Answer(row["model_id"], percent(row["estimate"]), interval, words)


MAKERS: dict[type, Callable[[Any], Page]] = {ScoreEstimates: _estimates}
"""What makes the pieces of a result of each type."""
