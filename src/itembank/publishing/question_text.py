"""Columns of a bank that may hold what must not be published: the text of questions, or their answers."""

import dataclasses
from collections.abc import Collection

import polars as pl

from itembank.data.bank_views import whole_bank
from itembank.data.banks import Bank
from itembank.data.prompts import PROMPT_SETTINGS
from itembank.errors import DataError, remedy, shown

QUESTIONS = {
    *("question", "questions", "prompt", "prompts", "text", "doc", "document", "query", "input", "inputs", "passage"),
    *("context", "choices", "options", "arguments", "instruction", "statement", "problem", "rubric", "reference"),
}
"""Names, or last parts of names, of columns of text that hold questions."""
ANSWERS = {"answer", "answers", "target", "targets", "correct", "gold", "solution", "label"}
"""The same of columns that hold answers, be they text or numbers."""
LONG = 50
"""Characters of a text with spaces that nobody would take for an id or a category."""


def check_no_questions(bank: Bank, included: Collection[str] = ()) -> None:
    """Refuse item columns that look like questions or answers, but for those that are to be published all the same.

    Raises
    ------
    DataError
        When there are such columns, or one to be included is not there.
    """
    items = whole_bank(bank).responses.items  # those that were retired are published, too
    unknown = [name for name in included if name not in items.columns]
    if unknown:
        raise DataError(f"columns to be included must be in the bank's items, got {shown(unknown)}.")
    found = [name for name in items.columns if name not in included and _looks_like_text(items[name])]
    if found:
        leave_out = remedy("drop_columns=", "--drop-column")
        include = remedy("include_columns=", "--include-column")
        raise DataError(
            f"a bank that is published must hold no questions and no answers, and columns {shown(found)} of its items "
            f"look like it. Leave them out ({leave_out}), or say that they may be published ({include})."
        )


def without_columns(bank: Bank, names: Collection[str]) -> Bank:
    """Return the bank without some columns of its items.

    Raises
    ------
    DataError
        When a column is not there, or no bank can be without it.
    """
    items = bank.responses.items
    wrong = [name for name in names if name not in items.columns or name in {"item_id", "scenario", "subscenario"}]
    if wrong:
        raise DataError(f"columns to be left out must be further columns of the bank's items, got {shown(wrong)}.")
    if not names:
        return bank
    slim = _slim(bank, names)
    if slim.history is not None and slim.history.whole is not None:
        whole = _slim(slim.history.whole, names)
        slim = dataclasses.replace(slim, history=dataclasses.replace(slim.history, whole=whole))
    slim.cache.folder, slim.cache.user_folder, slim.cache.bank_id = (
        bank.cache.folder,
        bank.cache.user_folder,
        bank.cache.bank_id,
    )
    return slim


def _slim(bank: Bank, names: Collection[str]) -> Bank:
    responses = bank.responses.with_tables(items=bank.responses.items.drop(names))
    return dataclasses.replace(bank, responses=responses)


def _looks_like_text(column: pl.Series) -> bool:
    """Whether a column's name tells that it holds questions or answers, or its content that it is prose or nested."""
    if column.name == PROMPT_SETTINGS:
        return False
    word = column.name.lower().rpartition(".")[2].rpartition("_")[2]
    if word in ANSWERS or (word in QUESTIONS and not column.dtype.is_numeric()):
        return True
    if column.dtype.is_nested():
        return column.dtype not in (pl.List(pl.Int64), pl.List(pl.Float64))
    if column.dtype != pl.String:
        return False
    texts = column.drop_nulls()
    is_long = (texts.str.len_chars() > LONG) & texts.str.contains(r"\s\S+\s\S+\s")
    return bool(is_long.any())
