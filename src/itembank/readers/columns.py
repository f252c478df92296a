"""Columns of a table as ids and as numbers, with every problem named."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, first_few, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.labels import IdKind, Labels
from itembank.responses.opening import Table

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "<na>", "-")
TRUTH_WORDS = {"true": 1.0, "false": 0.0}
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_PLAIN = (pl.Boolean, pl.Null)


def id_labels(table: Table, column: str, problems: list[str], *, name: str | None = None) -> Labels | None:
    """Return the ids of a column; None, with the reason added to `problems`, when they are none."""
    name = name or column
    series = table.frame[column]
    kind, problem = id_kind(table, column, name)
    if problem:
        problems.append(problem)
        return None
    empty = series.is_null()
    if kind != "whole numbers":
        empty |= series.cast(pl.String) == ""
    if empty.any():
        rows = [index + 1 for index in empty.arg_true().to_list()]
        problems.append(f"{name} must not be empty, got {len(rows)} rows without: {_row_numbers(rows)}.")
        return None
    return Labels.of(series.cast(pl.String) if series.dtype.is_integer() else series, kind)


def optional_labels(table: Table, column: str) -> Labels | None:
    """Return the labels of a column that rows may leave empty; None when the column is absent or empty."""
    if column not in table.frame.columns:
        return None
    series = table.frame[column]
    if series.dtype not in _TEXT:
        series = series.cast(pl.String)
    labels = Labels.of(series)
    blank = labels.names == ""
    if not blank.any():
        return labels if labels.n_names else None
    return Labels.of(series.cast(pl.String).replace("", None)) if labels.n_names > 1 else None


def id_kind(table: Table, column: str, name: str) -> tuple[IdKind | None, str | None]:
    """Type of the ids, or what is wrong with it."""
    dtype = table.frame.schema[column]
    found = table.found.get(column)
    if found is None:
        if dtype.is_integer():
            return "whole numbers", None
        if dtype in _TEXT or dtype == pl.Null:
            return ("text" if table.is_typed else None), None
        return None, f"{name} must be text or whole numbers, got {dtype}. Write the ids as text."
    foreign = sorted(kind.__name__ for kind in found - {int, str})
    if foreign:
        return None, f"{name} must be text or whole numbers, got {', '.join(foreign)}. Write the ids as text."
    if found == {int, str}:
        text = table.frame[column].unique(maintain_order=True)
        numbers = text.filter(text.str.contains(r"^-?\d+$")).to_list()
        others = text.filter(~text.str.contains(r"^-?\d+$")).to_list()
        return None, (
            f"{name} must have one type, got whole numbers and text: {shown(numbers, 3)} and "
            f"{shown(others or numbers, 3)}. Write the ids as text."
        )
    return ("whole numbers" if found == {int} else "text"), None


def numbers(frame: pl.DataFrame) -> tuple[FloatArray, dict[str, pl.Series]]:
    """Return all columns as numbers, and for each column that holds something else its rows as a mask.

    Text is read as a number, as true or false, or as missing (empty, NA, NaN, null, None, -).

    Returns
    -------
    values : (n_rows, n_columns)
        NaN where missing or not a number.
    not_numbers : mapping of column name to mask
    """
    bad: dict[str, pl.Series] = {}
    values = np.empty((frame.height, frame.width), order="F")
    is_text = [dtype in _TEXT for dtype in frame.dtypes]
    readable = [
        index for index, dtype in enumerate(frame.dtypes) if is_text[index] or dtype.is_numeric() or dtype in _PLAIN
    ]
    columns = frame.columns  # a new list at every access
    if readable:
        text = frame[:, readable].with_columns(pl.col(*_TEXT).cast(pl.String))
        parsed = text.cast(pl.Float64, strict=False)
        values[:, readable] = parsed.fill_null(np.nan).to_numpy()
        unread = (parsed.null_count().to_numpy() > text.null_count().to_numpy()).ravel()
        for place in np.flatnonzero(unread).tolist():  # by place, as polars renames a column without a name
            index = readable[place]
            values[:, index], mask = _numbers_of_words(text.to_series(place), parsed.to_series(place))
            if mask.any():
                bad[columns[index]] = mask
    for index in set(range(frame.width)) - set(readable):  # lists, dates and the like
        series = frame.to_series(index)
        values[:, index] = np.nan
        if series.is_not_null().any():
            bad[series.name] = series.is_not_null()
    return values, bad


def _numbers_of_words(text: pl.Series, parsed: pl.Series) -> tuple[FloatArray, pl.Series]:
    """Look a second time at text that was not a number at once, and say where it is none."""
    word = text.str.strip_chars().str.to_lowercase()
    truth = word.replace_strict(TRUTH_WORDS, default=None, return_dtype=pl.Float64)
    again = word.cast(pl.Float64, strict=False)
    values = parsed.zip_with(parsed.is_not_null(), again.zip_with(again.is_not_null(), truth))
    unread = values.is_null() & text.is_not_null() & ~word.is_in(MISSING_WORDS)
    return values.fill_null(np.nan).to_numpy(), unread


def examples(series: pl.Series, rows: IntArray) -> list[str]:
    """Show the first few values of these rows, shortened."""
    return [str(value)[:40] for value in series.gather(rows[:N_SHOWN]).to_list()]


def _row_numbers(rows: Sequence[int]) -> str:
    return f"row {first_few(list(map(str, rows)))}"
