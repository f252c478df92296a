"""Columns of a model table as numbers: dates as days, sizes by their logarithm."""

import datetime
import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray

DATE_WORDS = ("released", "release", "published", "date", "created", "seen", "day", "time")
"""Words in the name of a column that says how new a model is, the clearest first."""
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d")
PARAMETER_COLUMNS = ("params", "n_parameters")
TOKEN_COLUMNS = ("train_tokens",)
RECIPE_COLUMNS = ("recipe", "mixture", "family_or_data", "family")
FINAL_COLUMN = "is_final"
"""Columns that tell of a model's training: its size, its data, and whether it is the end of its run."""


def standardised(column: pl.Series) -> FloatArray | None:
    """Return how far numbers or dates lie from their mean, in standard deviations; None where there are none.

    Returns (n_models,): 0 where a value is unknown, and everywhere if all are equal. Sizes count by their logarithm.
    """
    dates = known_dates(column)
    if dates is None and not column.dtype.is_numeric():
        return None
    days = column if dates is None else dates.to_physical()
    numbers = days.cast(pl.Float64).fill_null(np.nan).to_numpy()
    is_known = np.isfinite(numbers)
    known = numbers[is_known]
    # sizes count by their logarithm: they are positive, far apart, and less skewed so
    is_far = dates is None and known.size and known.min() > 0.0 and known.max() >= 20.0 * known.min()
    if is_far and abs(_skewness(np.log(known))) < abs(_skewness(known)):
        numbers, known = np.log(numbers), np.log(known)
    centre, spread = (float(known.mean()), float(known.std())) if known.size else (0.0, 0.0)
    return np.where(is_known, (numbers - centre) * (1.0 / spread if spread > 0.0 else 0.0), 0.0)


def _skewness(numbers: FloatArray) -> float:
    centred = numbers - numbers.mean()
    return float(np.mean(centred**3) / np.mean(centred**2) ** 1.5)


def model_dates(models: pl.DataFrame, column: str | None = None) -> pl.Series | None:
    """Return how new models are, null where unknown, by the name of its column; None where it holds no dates.

    Without `column`, that of a column whose name says most clearly how new models are; when they were run says nothing.
    """
    others = {"model_id", "run_date"}
    names = [name for name in models.columns if (name not in others if column is None else name == column)]
    found = [dates for name in names if (dates := known_dates(models[name])) is not None]
    return min(found, key=lambda dates: place_of_word(dates.name, DATE_WORDS), default=None)


def place_of_word(name: str, words: Sequence[str]) -> int:
    """Place of the first word that a column's name holds; that of none is behind the last."""
    parts = set(re.split(r"[^a-z]+", name.casefold()))
    return next((k for k, word in enumerate(words) if word in parts), len(words))


def dates_of(column: pl.Series) -> pl.Series:
    """Read dates, text or whole numbers that say year and month, and mostly a day; null where a value is no date."""
    if column.dtype in {pl.Date, pl.Datetime}:
        return column.cast(pl.Date)
    text = column.cast(pl.String).str.strip_chars().str.slice(0, 10)
    day = pl.when(pl.col("text").str.len_chars() == len("2024-12")).then(pl.lit("-01")).otherwise(pl.lit(""))
    table = pl.DataFrame({"text": text}).select(text=pl.concat_str("text", day))
    forms = [pl.col("text").str.to_date(form, strict=False) for form in DATE_FORMATS]
    return table.select(pl.coalesce(forms)).to_series().rename(column.name)


def known_dates(column: pl.Series) -> pl.Series | None:
    """Return a column of dates as such, null where unknown; None where it holds others, or nothing."""
    if column.null_count() == column.len():
        return None
    if column.dtype.is_integer() and not column.drop_nulls().is_between(19900101, 21001231).all():
        return None
    if not (column.dtype in {pl.Date, pl.Datetime} or column.dtype.is_integer() or column.dtype == pl.String):
        return None
    dates = dates_of(column)
    return None if dates.null_count() > column.null_count() else dates


def months_between(first: datetime.date, last: datetime.date) -> float:
    """Months of 365.25 / 12 days from one day to another."""
    return (last - first).days * 12.0 / 365.25
