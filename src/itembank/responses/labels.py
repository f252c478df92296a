"""`Labels`: a column of names as unique names and an index into them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN
from itembank.numerics.arrays import BoolArray, IntArray

IdKind = Literal["text", "whole numbers"]
"""What ids were before they became text; None where the source has no types (CSV)."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of n_rows rows."""

    names: pl.Series  # unique text, in order of first appearance
    index: IntArray  # (n_rows,) of int32: Position of each row's name in `names`; -1 where the row has none
    kind: IdKind | None = None  # 'text', 'whole numbers'

    @classmethod
    def of(cls, column: pl.Series, kind: IdKind | None = None) -> Self:
        """Make labels of a column of text or categories."""
        coded = column if isinstance(column.dtype, pl.Categorical | pl.Enum) else column.cast(pl.Categorical)
        unique = coded.unique(maintain_order=True).drop_nulls()
        known = unique.to_physical().to_numpy()
        place = np.full(int(known.max(initial=0)) + 2, -1, dtype=np.int32)  # the last is that of rows without a name
        place[known] = np.arange(known.size)
        codes = coded.to_physical()
        codes = codes.cast(pl.UInt32).fill_null(place.size - 1) if codes.null_count() else codes
        return cls(unique.cast(pl.String).rename("name"), place[codes.to_numpy()], kind)

    @property
    def n_names(self) -> int:
        """Number of different names."""
        return self.names.len()

    def take(self, rows: IntArray) -> "Labels":
        """Labels of these rows alone; names that none of them has go."""
        index = self.index[rows]
        used = np.unique(index[index >= 0])
        lookup = np.full(self.n_names + 1, -1, dtype=np.int32)  # the last place is what index -1 finds
        lookup[used] = np.arange(used.size)
        return Labels(self.names.gather(used), lookup[index], self.kind)

    def at(self, rows: IntArray) -> list[str]:
        """Names of these rows."""
        return self.names.gather(self.index[rows]).to_list()


def named_pairs(models: Labels, items: Labels, rows: IntArray) -> list[str]:
    """Name model and item of the first few of these rows, for messages."""
    first = rows[:N_SHOWN]
    pairs = zip(models.at(first), items.at(first), strict=True)
    return [f"{model!r} item {item!r}" for model, item in pairs]


def number_of_pair(one: Labels, other: Labels) -> IntArray:
    """Return the number of each row's pair of names, both known, (n_rows,) of int64."""
    result = one.index.astype(np.int64)
    result *= other.n_names
    result += other.index
    return result


def join_labels(parts: Sequence[Labels]) -> Labels:
    """Put labels one after the other; a name in several parts is one name."""
    if len(parts) == 1:
        return parts[0]
    names = pl.concat([part.names for part in parts]).unique(maintain_order=True)
    lookups = [part.names.cast(pl.Enum(names)).to_physical().cast(pl.Int32).to_numpy() for part in parts]
    # The -1 appended to each lookup is what index -1 finds.
    pieces = [np.append(lookup, np.int32(-1))[part.index] for lookup, part in zip(lookups, parts, strict=True)]
    kinds = {part.kind for part in parts if part.kind is not None}
    return Labels(names, np.concatenate(pieces), kinds.pop() if len(kinds) == 1 else None)


def come_again(number: IntArray, n_numbers: int, among: BoolArray) -> BoolArray:
    """Whether each number, below `n_numbers`, is there more than once among those marked, itself one, all (n_rows,)."""
    own = number if among.all() else number[among]
    is_there = np.zeros(n_numbers, dtype=bool)
    is_there[own] = True
    if np.count_nonzero(is_there) == own.size:
        return np.zeros(number.shape, dtype=bool)
    result: BoolArray = among & (np.bincount(own, minlength=n_numbers)[number] > 1)
    return result


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
