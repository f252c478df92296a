"""Columns of a model table as numbers: dates as days, sizes by their logarithm, text as categories."""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.numerics.arrays import FloatArray

WIDE = 20.0
"""Positive numbers of which the largest is so many times the smallest may be sizes: parameters, tokens."""
FIRST_DATE, LAST_DATE = 19900101, 21001231
"""Whole numbers between these are dates like 20241231 if all of a column are."""
DATE_WORDS = ("released", "release", "published", "date", "created", "seen", "day", "time")
"""Words in the name of a column that says how new a model is, the clearest first."""
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d")


@dataclass(frozen=True, slots=True)
class NumberFeature:
    """A column of numbers or dates: how far it lies from the mean, in standard deviations; 0 where unknown."""

    column: str
    is_date: bool
    is_log: bool
    centre: float
    spread: float

    @classmethod
    def fit(cls, column: pl.Series) -> "NumberFeature | None":
        """Learn from a column; None where it holds no numbers or dates."""
        dates = known_dates(column)
        if dates is None and not column.dtype.is_numeric():
            return None
        numbers = days_of(dates) if dates is not None else column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        known = numbers[np.isfinite(numbers)]
        is_log = dates is None and _is_size(known)
        known = np.log(known) if is_log else known
        centre, spread = (float(known.mean()), float(known.std())) if known.size else (0.0, 0.0)
        return cls(column.name, dates is not None, is_log, centre, spread)

    def of(self, column: pl.Series) -> FloatArray:
        """Return the feature of models (n_models, 1)."""
        numbers = self._numbers(column)
        if self.is_log:
            numbers = np.log(np.where(numbers > 0.0, numbers, np.nan))
        scale = 1.0 / self.spread if self.spread > 0.0 else 0.0
        return np.where(np.isfinite(numbers), (numbers - self.centre) * scale, 0.0)[:, None]

    def _numbers(self, column: pl.Series) -> FloatArray:
        if column.null_count() == column.len():
            return np.full(column.len(), np.nan)
        if self.is_date:
            dates = known_dates(column)
            found = None if dates is None else days_of(dates)
        else:
            as_numbers = column.cast(pl.Float64, strict=False)
            is_lost = as_numbers.null_count() > column.null_count()
            found = None if is_lost else as_numbers.fill_null(np.nan).to_numpy()
        if found is None:
            what = "dates like 2024-12-31" if self.is_date else "numbers"
            values = shown(column.drop_nulls().cast(pl.String).unique(maintain_order=True).to_list())
            raise DataError(
                f"column {self.column!r} holds {what}, so that its values must be {what} too, got {values}."
            )
        return found


@dataclass(frozen=True, slots=True)
class CategoryFeature:
    """A column of text or truth values: one indicator a category, less its frequency; 0 where unknown or unheard of."""

    column: str
    categories: tuple[str, ...]
    frequency: FloatArray  # (n_categories,)

    @classmethod
    def fit(cls, column: pl.Series) -> Self:
        """Learn from a column."""
        known = column.drop_nulls().cast(pl.String)
        categories = tuple(known.unique(maintain_order=True).to_list())
        counts = np.array([(known == category).sum() for category in categories], dtype=np.float64)
        return cls(column.name, categories, counts / max(known.len(), 1))

    def of(self, column: pl.Series) -> FloatArray:
        """Return the features of models, (n_models, n_categories)."""
        place = {category: k for k, category in enumerate(self.categories)}
        result = np.zeros((column.len(), len(self.categories)))
        for row, text in enumerate(column.cast(pl.String).to_list()):
            if text in place:
                result[row] = -self.frequency
                result[row, place[text]] += 1.0
        return result


@dataclass(frozen=True, slots=True)
class ModelFeatures:
    """What some columns of a model table say, as features of mean zero; made with `fit`."""

    parts: tuple[NumberFeature | CategoryFeature, ...]

    @classmethod
    def fit(cls, models: pl.DataFrame, columns: Sequence[str]) -> Self:
        """Learn centres, spreads and categories from a table."""
        series = [model_column(models, name, "the bank's model table") for name in columns]
        return cls(tuple(NumberFeature.fit(column) or CategoryFeature.fit(column) for column in series))

    def of(self, models: pl.DataFrame, source: str = "the bank's model table") -> FloatArray:
        """Return the features of models, (n_models, n_features)."""
        return np.column_stack([part.of(model_column(models, part.column, source)) for part in self.parts])


def model_column(models: pl.DataFrame, name: str, source: str) -> pl.Series:
    """Return a column, or raise `DataError` with those there are."""
    if name not in models.columns:
        raise DataError(
            f"a covariate must be a column of {source}, among {shown(models.columns)}, got {name!r}."
            f"{did_you_mean(name, models.columns)} What is known of models comes with their responses"
            f" ({remedy('read_responses(..., models=FILE)', 'itembank import --models FILE')})."
        )
    return models[name]


def _is_size(numbers: FloatArray) -> bool:
    """Whether numbers count by their logarithm: positive, far apart, and less skewed so."""
    if numbers.size == 0 or numbers.min() <= 0.0 or numbers.max() < WIDE * numbers.min():
        return False
    return abs(_skewness(np.log(numbers))) < abs(_skewness(numbers))


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
    if column.dtype.is_integer() and not column.drop_nulls().is_between(FIRST_DATE, LAST_DATE).all():
        return None
    if not (column.dtype in {pl.Date, pl.Datetime} or column.dtype.is_integer() or column.dtype == pl.String):
        return None
    dates = dates_of(column)
    return None if dates.null_count() > column.null_count() else dates


def days_of(dates: pl.Series) -> FloatArray:
    """Return dates as days since 1970, NaN where unknown."""
    return dates.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()


def months_between(first: datetime.date, last: datetime.date) -> float:
    """Months of 365.25 / 12 days from one day to another."""
    return (last - first).days * 12.0 / 365.25
