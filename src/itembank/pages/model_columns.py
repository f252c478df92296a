"""Which columns of a model table tell when a model came out, how large it is and who made it."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray
from itembank.readers.compute import counts
from itembank.responses.model_features import days_of

DATE_WORDS = ("released", "release", "published", "date", "created", "seen", "day", "time")
SIZE_WORDS = ("params", "parameters", "param", "size")
MAKER_WORDS = (
    *("org", "organization", "organisation", "developer", "creator", "company", "provider", "vendor", "lab"),
    *("author", "owner", "publisher"),
)
KIND_WORDS = ("family", "series", "mixture", "recipe", "arch", "architecture")


class Numbers(NamedTuple):
    """A column of numbers: days since 1970, or sizes in whatever unit the table has; NaN where unknown."""

    name: str
    values: FloatArray


class Groups(NamedTuple):
    """A column that puts models into groups; None where unknown."""

    name: str
    values: list[str | None]


def date_column(models: pl.DataFrame) -> Numbers | None:
    """Return the column of dates whose name says most clearly that it is one; None where there is none."""
    found = [Numbers(column.name, days) for column in models if (days := days_of(column)) is not None]
    usable = [one for one in found if n_different(one.values) > 1]
    return min(usable, key=lambda one: _place(one.name, DATE_WORDS), default=None)


def size_column(models: pl.DataFrame) -> Numbers | None:
    """Return the column of sizes above zero, as its name says; None where there is none."""
    for name in _named(models, SIZE_WORDS):
        values, bad = counts(models[name])
        values = np.where(values > 0.0, values, np.nan)
        if not bad.size and n_different(values) > 1:
            return Numbers(name, values)
    return None


def group_columns(models: pl.DataFrame) -> list[Groups]:
    """Return who made the models and of what kind they are, as far as columns of text have such names."""
    found = []
    for words in (MAKER_WORDS, KIND_WORDS):
        names = [one for one in _named(models, words) if models[one].dtype == pl.String and _groups(models[one])]
        found += [Groups(name, models[name].to_list()) for name in names[:1]]
    return found


def tells_of_models(name: str) -> bool:
    """Whether a column's name says that it tells when models came out, how large they are, or whose."""
    words = (*DATE_WORDS, *SIZE_WORDS, *MAKER_WORDS, *KIND_WORDS)
    return _place(name, words) < len(words)


def iso_day(day: float) -> str:
    """Write a day since 1970 as 2024-12-31."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=int(day))).isoformat()


def _named(models: pl.DataFrame, words: Sequence[str]) -> list[str]:
    """Names of columns that hold one of the words, the clearest first."""
    names = [name for name in models.columns if name != "model_id" and _place(name, words) < len(words)]
    return sorted(names, key=lambda name: _place(name, words))


def _groups(column: pl.Series) -> bool:
    """Whether a column puts models into several groups, one of them of more than one model."""
    known = column.drop_nulls()
    return 1 < known.n_unique() < known.len()


def _place(name: str, words: Sequence[str]) -> int:
    """Place of the first word that a name holds; that of none is behind the last."""
    parts = set(re.split(r"[^a-z]+", name.casefold()))
    return next((k for k, word in enumerate(words) if word in parts), len(words))


def n_different(values: FloatArray) -> int:
    """Return how many different values are known."""
    return int(np.unique(values[np.isfinite(values)]).size)
