"""`Labels`: a column of names as unique names and an index into them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import polars as pl

from itembank.numerics.arrays import IntArray

IdKind = Literal["text", "whole numbers"]
"""What ids were before they became text; None where the source has no types (CSV)."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of n_rows rows."""

    names: pl.Series  # unique text, in order of first appearance
    index: IntArray  # (n_rows,): Position of each row's name in `names`; -1 where the row has none
    kind: IdKind | None = None  # 'text', 'whole numbers'

    @classmethod
    def of(cls, column: pl.Series, kind: IdKind | None = None) -> Self:
        """Make labels of a column of text or categories."""
        names = column.unique(maintain_order=True).drop_nulls().cast(pl.String)
        codes = column.cast(pl.Enum(names)).to_physical().cast(pl.Int64).fill_null(-1)
        return cls(names.rename("name"), codes.to_numpy(), kind)

    @property
    def n_names(self) -> int:
        """Number of different names."""
        return self.names.len()

    def take(self, rows: IntArray) -> "Labels":
        """Labels of these rows alone; names that none of them has go."""
        index = self.index[rows]
        used = np.unique(index[index >= 0])
        lookup = np.full(self.n_names + 1, -1, dtype=np.int64)  # the last place is what index -1 finds
        lookup[used] = np.arange(used.size)
        return Labels(self.names.gather(used), lookup[index], self.kind)

    def at(self, rows: IntArray) -> list[str]:
        """Names of these rows."""
        return self.names.gather(self.index[rows]).to_list()


def join_labels(parts: Sequence[Labels]) -> Labels:
    """Put labels one after the other; a name in several parts is one name."""
    if len(parts) == 1:
        return parts[0]
    names = pl.concat([part.names for part in parts]).unique(maintain_order=True)
    lookups = [part.names.cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy() for part in parts]
    # The -1 appended to each lookup is what index -1 finds.
    pieces = [np.append(lookup, -1)[part.index] for lookup, part in zip(lookups, parts, strict=True)]
    kinds = {part.kind for part in parts if part.kind is not None}
    return Labels(names, np.concatenate(pieces), kinds.pop() if len(kinds) == 1 else None)


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
