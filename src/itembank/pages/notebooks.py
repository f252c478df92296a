"""What a notebook shows of a result: the answer and the first table of its page."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

from itembank.auditing.item_audit import ItemAudit
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.estimation.estimates import ScoreEstimates
from itembank.pages.audit_page import audit_page
from itembank.pages.bank_page import bank_answers, contents_section
from itembank.pages.blocks import Answer, Answers, Column, Data, Section, Table, Text
from itembank.pages.common import plural
from itembank.pages.pass_at_k_page import pass_at_k_page
from itembank.pages.prediction_study_page import prediction_study_page
from itembank.pages.pretraining_page import pretraining_page
from itembank.pages.render import Page, pieces_html
from itembank.pages.study_page import study_page
from itembank.pages.theme import interval_words, level_words, percent
from itembank.pages.transfer_page import transfer_page
from itembank.pages.validity_page import validity_page
from itembank.planning.accuracy import kept_accuracy
from itembank.responses.score_names import without_only_scenario
from itembank.scaling.pass_at_k.results import PassAtKLaw
from itembank.scaling.pretraining.law_results import PretrainingLaw
from itembank.scaling.transfers.convergent import ConvergentValidity
from itembank.scaling.transfers.transfers import Transfer
from itembank.studies.results import PredictionResult, StudyResult

MOST_ANSWERS = 4
"""Models whose overall score stands above the table."""


def pieces_of(result: object) -> str | None:
    """Return the pieces of a result as HTML, or None for a result that has a table only."""
    make = MAKERS.get(type(result))
    return None if make is None else pieces_html(make(result))


def _estimates(estimates: ScoreEstimates) -> Page:
    rows = without_only_scenario(estimates.rows())
    first = [row for row in rows if row["target"] == estimates.main_target][:MOST_ANSWERS]
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


def _bank(bank: Bank) -> Page:
    lead = (Answers(tuple(bank_answers(bank, kept_accuracy(bank)))),)
    return Page(bank.name or f"Bank {bank.bank_id}", "Item bank", lead, (contents_section(bank),))


def _selection(selection: Selection) -> Page:
    data = Data("chosen", {"item": selection.item_ids, "scenario": selection.scenarios, "weight": selection.weights})
    columns = (
        Column("item", "Item", "id"),
        Column("scenario", "Scenario"),
        Column("weight", "Weight", "number", 4, "Of the item in the estimate of its scenario's score"),
    )
    table = Table("Chosen items", data, columns, n_shown=10)
    words = f"By {selection.method}, from bank {selection.bank}."
    lead = (Text(words), Text(selection.explanation))
    return Page(f"Selection of {plural(selection.n_items, 'item')}", "Selection", lead, (Section("", (table,)),))


def _answer(row: dict[str, Any]) -> Answer:
    is_known = row["estimate"] == row["estimate"]
    interval = f"{interval_words(row['low'], row['high'])}, {level_words(row['level'])} interval" if is_known else ""
    words = f"from {row['n_items']:,} of {plural(row['n_total'], 'item')}, by {row['method']}"
    return Answer(row["model_id"], percent(row["estimate"]), interval, words)


def _beginning(make: Callable[[Any], Page]) -> Callable[[Any], Page]:
    """Return what makes the answer and the first table of a page."""

    def made(result: Any) -> Page:
        page = make(result)
        first = ((section, one) for section in page.sections for one in section.blocks if isinstance(one, Table))
        return replace(page, sections=tuple(Section(section.title, (one,)) for section, one in islice(first, 1)))

    return made


MAKERS: dict[type, Callable[[Any], Page]] = {
    ScoreEstimates: _estimates,
    Bank: _bank,
    Selection: _selection,
    ItemAudit: _beginning(audit_page),
    StudyResult: _beginning(study_page),
    PredictionResult: _beginning(prediction_study_page),
    PretrainingLaw: _beginning(pretraining_page),
    PassAtKLaw: _beginning(pass_at_k_page),
    Transfer: _beginning(lambda one: transfer_page([one])),
    ConvergentValidity: _beginning(validity_page),
}
"""What makes the pieces of a result of each type."""
