"""What may be published: no questions, no answers, no secrets, and of models what is needed."""

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path

import polars as pl

from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.bank.marks import ADDED, ANSWERED_HOW
from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.responses.model_features import (
    DATE_WORDS,
    FINAL_COLUMN,
    PARAMETER_COLUMNS,
    RECIPE_COLUMNS,
    TOKEN_COLUMNS,
    place_of_word,
)
from itembank.responses.prompts import IN_WORDS, PROMPT_SETTINGS
from itembank.responses.score_names import EXTERNAL
from itembank.responses.secrets import is_secret, without_secrets

QUESTIONS = {
    *("question", "questions", "prompt", "prompts", "text", "doc", "document", "query", "input", "inputs", "passage"),
    *("context", "choices", "options", "arguments", "instruction", "statement", "problem", "rubric", "reference"),
}
"""Names, or last parts of names, of columns of text that hold questions."""
ANSWERS = {"answer", "answers", "target", "targets", "correct", "gold", "solution", "label"}
"""The same of columns that hold answers, be they text or numbers."""
OF_MODELS = {
    *("model_id", ANSWERED_HOW, ADDED, "is_partial", "n_items_run", "n_items_full", "run_date"),
    *("prompt_hash", "n_shot", "num_fewshot", "harness", "chat_template"),
    *(*PARAMETER_COLUMNS, *TOKEN_COLUMNS, *RECIPE_COLUMNS, FINAL_COLUMN, "flops", "step"),
}
"""Columns of models that estimates, forecasts, checks and laws look for; others have names that say what they tell."""
FIXED = {"item_id", "scenario", "subscenario", "model_id"}
"""Columns that no bank can do without."""
TELLING_WORDS = (
    *(*DATE_WORDS, "params", "parameters", "param", "size"),
    *("org", "organization", "organisation", "developer", "creator", "company", "provider", "vendor", "lab"),
    *("author", "owner", "publisher", "family", "series", "mixture", "recipe", "arch", "architecture"),
)
"""Words in the name of a column that tells when models came out, how large they are, or whose."""


def for_publication(bank: Bank, included: Collection[str] = (), dropped: Collection[str] = ()) -> Bank:
    """Return the bank as it may be published: without columns of models that nothing needs and nobody asked for.

    `included` are columns of items that may be published although they look like questions or answers, and further ones
    of models; `dropped` are columns that stay here.
    """
    kept = without_columns(bank, dropped)
    check_no_questions(kept, included)
    columns = whole_bank(kept).responses.models.columns
    needed = {name for name in columns if name in OF_MODELS or name.startswith(EXTERNAL) or name.endswith("_version")}
    telling = {name for name in columns if place_of_word(name, TELLING_WORDS) < len(TELLING_WORDS)}
    needed |= {name for name in telling if not is_secret(name)}
    kept = without_columns(kept, [name for name in columns if name not in needed and name not in included])
    responses = whole_bank(kept).responses
    texts_of = [column for column in responses.models if column.dtype == pl.String]
    texts_of += [responses.items[PROMPT_SETTINGS]] if PROMPT_SETTINGS in responses.items.columns else []
    for column in texts_of:
        column_name, texts = column.name, column.cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
        found = sum(without_secrets(text) != text for text in texts)
        if found:
            leave_out = remedy("drop_columns=", "--drop-column")
            remedied = (
                "Read the logs again: ids are then without"
                if column_name == "model_id"
                else f"Leave it out ({leave_out})"
            )
            raise DataError(
                f"a bank that is published must hold no secrets and no home folders, and {found} values of column "
                f"{column_name!r} do. {remedied}."
            )
    return kept


def left_out(bank: Bank, published: Bank) -> tuple[str, ...]:
    """Columns of a bank's tables that the published one is without; those of models go with the models."""
    pairs = [(bank.responses.items, published.responses.items)]
    pairs += [] if published.published else [(bank.responses.models, published.responses.models)]
    return tuple(name for whole, kept in pairs for name in whole.columns if name not in kept.columns)


def check_no_questions(bank: Bank, included: Collection[str] = ()) -> None:
    """Refuse item columns that look like questions or answers, but for those that are to be published all the same."""
    responses = whole_bank(bank).responses  # items that were retired are published, too
    known = {*responses.items.columns, *responses.models.columns}
    unknown = [name for name in included if name not in known]
    if unknown:
        near = did_you_mean(unknown, known)
        raise DataError(f"columns to be included must be of the bank's items or models, got {shown(unknown)}.{near}")
    found = [name for name in question_columns(bank) if name not in included]
    if found:
        leave_out = f"Leave them out ({remedy('drop_columns=', '--drop-column')})"
        if not FIXED.isdisjoint(found):
            leave_out = "Import the results with other names, as no bank can do without these"
        include = remedy("include_columns=", "--include-column")
        raise DataError(
            f"a bank that is published must hold no questions and no answers, and columns {shown(found)} of its items "
            f"look like it. {leave_out}, or say that they may be published ({include})."
        )


def question_columns(bank: Bank) -> list[str]:
    """Columns of items that look like questions or answers."""
    items = whole_bank(bank).responses.items
    return [name for name in items.columns if _looks_like_text(items[name])]


def without_columns(bank: Bank, names: Collection[str]) -> Bank:
    """Return the bank without some columns of its items or models."""
    items, models = bank.responses.items, bank.responses.models
    wrong = [name for name in names if name in FIXED or name not in {*items.columns, *models.columns}]
    if wrong:
        raise DataError(f"columns to be left out must be further columns of the bank's tables, got {shown(wrong)}.")
    if not names:
        return bank
    slim = _slim(bank, names)
    if slim.whole is not None:
        slim = dataclasses.replace(slim, whole=_slim(slim.whole, names))
    slim.cache.share(bank.cache)
    return slim


def _slim(bank: Bank, names: Collection[str]) -> Bank:
    tables = (bank.responses.items, bank.responses.models)
    items, models = (table[[name for name in table.columns if name not in names]] for table in tables)
    return dataclasses.replace(bank, responses=bank.responses.with_tables(items=items, models=models))


def _looks_like_text(column: pl.Series) -> bool:
    """Whether a column's name tells that it holds questions or answers, or its content that it is prose or nested."""
    word = column.name.lower().rpartition(".")[2].rpartition("_")[2]
    if word in ANSWERS or (word in QUESTIONS and not column.dtype.is_numeric()):
        return True
    if column.dtype.is_nested():
        return column.dtype not in (pl.List(pl.Int64), pl.List(pl.Float64))
    if column.dtype != pl.String:
        return False
    texts = column.drop_nulls()
    if column.name == PROMPT_SETTINGS:
        return not all(map(_are_settings, texts.unique().to_list()))
    # nobody would take fifty characters with spaces for an id or a category
    is_long = (texts.str.len_chars() > 50) & texts.str.contains(r"\s\S+\s\S+\s")
    return bool(is_long.any())


def _are_settings(text: str) -> bool:
    """Whether a text is what `settings_text` writes, each value a number or a short text."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and all(
        name in IN_WORDS and not isinstance(value, dict | list) and len(str(value)) <= 200
        for name, value in content.items()
    )


def file_sizes(folder: Path) -> dict[str, int]:
    """Bytes of every file below a folder, by its path in order."""
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    return dict(sorted(files.items()))
