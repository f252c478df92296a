"""The answers of a journal in the order in which they came, without making its session anew."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from itembank.bank.bank_views import bank_for, whole_bank
from itembank.bank.banks import Bank
from itembank.bank.marks import ANSWERED_HOW
from itembank.errors import DataError, shown
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answer_table import way_of
from itembank.sessions.events import Failed, Told
from itembank.sessions.journal import read_journal, warn_of_torn
from itembank.sessions.journal_lines import BEGINNING
from itembank.sessions.journal_sessions import MODEL_ID, events_of, settings_of, spec_of_settings
from itembank.sessions.session_spec import SessionSpec


class JournalAnswers(NamedTuple):
    """Answers of sessions."""

    responses: ResponseMatrix  # One model a journal, over all items that any was asked
    order: dict[str, list[str]]  # In the order of answering
    sessions: dict[str, SessionSpec]


def is_journal(path: Path) -> bool:
    """Whether a file is a session's journal, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(BEGINNING)) == BEGINNING


def journal_responses(bank: Bank, paths: Sequence[Path]) -> JournalAnswers:
    """Read the answers of sessions with this bank, also to items that it keeps aside by now.

    The last word on an item counts, in the place of the first answer to it.

    Parameters
    ----------
    bank : Bank
    paths : journals

    Returns
    -------
    JournalAnswers

    Raises
    ------
    DataError
        When a journal has no answer, two are of one model, or an item is not in the bank.
    IntegrityError, JournalError
        As `read_journal`.
    """
    answers, specs = zip(*map(_answers, paths), strict=True)
    names = [name for name, _ in answers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"each journal must be of another model, got several of {shown(twice)}. Give one at a time.")
    told = {item for _, found in answers for item in found}
    whole = whole_bank(bank).responses
    asked = [item for item in whole.item_ids if item in told]
    unknown = sorted(told - set(asked))
    if unknown:
        raise DataError(
            f"every item of a session must be in bank {bank.bank_id}, got {len(unknown)} that are not: "
            f"{shown(unknown)}. Take the bank that the sessions were started with."
        )
    values = np.array([[found.get(item, np.nan) for item in asked] for _, found in answers])
    items = whole.items[whole.item_indices(asked)]
    models = pl.DataFrame({"model_id": names, ANSWERED_HOW: [way_of(spec.criterion) for spec in specs]})
    matrix = ResponseMatrix.create(values, items=items, models=models)
    order = {name: list(found) for name, found in answers}
    return JournalAnswers(matrix, order, dict(zip(names, specs, strict=True)))


def bank_of_journals(bank: Bank, paths: Sequence[Path]) -> Bank:
    """Return the bank with the score that sessions were begun for, where it can still give that; else the bank itself.

    Raises
    ------
    DataError
        When the sessions were begun for several scores that differ.
    IntegrityError, JournalError
        As `read_journal`.
    """
    headers = [read_journal(path).header for path in paths]
    made_for = {(str(one.get("bank_id")), str(one.get("target_digest", ""))) for one in headers}
    found = {one.target_digest: one for pair in made_for if (one := bank_for(bank, *pair)) is not None}
    if len(found) > 1:
        raise DataError(
            f"sessions that are examined together must have been begun for one score, got several: "
            f"{shown(sorted(one.target_id for one in found.values()))}. Give one at a time."
        )
    return next(iter(found.values()), bank)


def _answers(path: Path) -> tuple[tuple[str, dict[str, float]], SessionSpec]:
    """Model and answers of one journal, in the order of answering, and the settings."""
    content = read_journal(path)
    warn_of_torn(path, content)
    settings = settings_of(content, path)
    name = settings.get(MODEL_ID)
    found: dict[str, float] = {}
    for event in events_of(content, path):
        if isinstance(event, Told):
            found[event.item_id] = event.response
        elif isinstance(event, Failed):
            found.pop(event.item_id, None)
    if not found or not isinstance(name, str):
        raise DataError(f"{path}: a session must name its model and have been told an answer to be examined.")
    return (name, found), spec_of_settings(settings)
