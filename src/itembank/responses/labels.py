"""Columns of names: unique names, numbers in their place, and what is told of the names in several rows."""

from typing import Literal

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, quoted
from itembank.numerics.arrays import BoolArray, IntArray

IdKind = Literal["text", "whole numbers"]
"""What ids were before they became text; None where the source has no types (CSV)."""


def names_of(column: pl.Series) -> pl.Series:
    """Return the different names of a column of text or categories, in order of first appearance, as text."""
    return column.unique(maintain_order=True).drop_nulls().cast(pl.String)


def numbered(column: pl.Series, names: pl.Series | None = None) -> IntArray:
    """Return the place of each row's name among these names, those of the column by default; -1 where it has none.

    Returns (n_rows,) of int32; `names` must hold all that the column does.
    """
    coded = column.cast(pl.Categorical)
    known = (names_of(coded) if names is None else names).cast(pl.Categorical).to_physical().to_numpy()
    place = np.full(int(known.max(initial=0)) + 2, -1, dtype=np.int32)  # the last is that of rows without a name
    place[known] = np.arange(known.size)
    codes = coded.to_physical()
    codes = codes.cast(pl.UInt32).fill_null(place.size - 1) if codes.null_count() else codes
    result: IntArray = place[codes.to_numpy()]
    return result


def named(rows: pl.DataFrame, which: IntArray) -> list[str]:
    """Name model and item of the first few of these rows, for messages."""
    first = rows[which[:N_SHOWN]].select("model_id", "item_id")
    return [f"{quoted(model)} item {quoted(item)}" for model, item in first.iter_rows()]


def number_of_pair(one: IntArray, other: IntArray, n_others: int) -> IntArray:
    """Return the number of each row's pair of numbers, both known, the latter below `n_others`, (n_rows,) of int64."""
    result = one.astype(np.int64)
    result *= n_others
    result += other
    return result


def come_again(number: IntArray, n_numbers: int, among: BoolArray) -> BoolArray:
    """Whether each number, below `n_numbers`, is there more than once among those marked, itself one, all (n_rows,)."""
    own = number if among.all() else number[among]
    is_there = np.zeros(n_numbers, dtype=bool)
    is_there[own] = True
    if np.count_nonzero(is_there) == own.size:
        return np.zeros(number.shape, dtype=bool)
    return among & (np.bincount(own, minlength=n_numbers)[number] > 1)


def first_in_group(group: IntArray, n_groups: int, label: IntArray) -> tuple[IntArray, IntArray]:
    """Label of the first row of each group that has one, and the rows whose label differs from it.

    Groups and labels are (n_rows,), labels below 0 absent; the first label of a group (n_groups,) is -1 where no row
    has one.
    """
    first = np.full(n_groups, -1, dtype=np.int64)
    known = np.flatnonzero(label >= 0)
    backwards = known[::-1]  # of several assignments to one place the last one stays
    first[group[backwards]] = label[backwards]
    return first, known[label[known] != first[group[known]]]


def first_told(group: IntArray, n_groups: int, column: pl.Series) -> tuple[pl.Series, IntArray]:
    """Name of the first row of each group that has one, (n_groups,) and null elsewhere; and the rows that differ."""
    names = names_of(column)
    first, differing = first_in_group(group, n_groups, numbered(column, names))
    return pl.concat([names, pl.Series([None], dtype=pl.String)]).gather(
        np.where(first < 0, names.len(), first)
    ), differing
