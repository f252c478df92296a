"""`NameCodes`: names that come a part at a time, numbered in the order of their first appearance."""

import numpy as np
import polars as pl

from itembank.numerics.arrays import IntArray
from itembank.responses.labels import IdKind, Labels

_NONE = -1
"""Number of a row without a name."""


class NameCodes:
    """Numbers of names; ``""`` and null are no names."""

    def __init__(self) -> None:
        self._kind = pl.Categorical(pl.Categories.random())
        self._held = pl.Series([""], dtype=self._kind)  # Polars forgets its codes once no column has them
        self._lookup = np.empty(0, dtype=np.int32)  # number of each of polars's own codes
        self._names: list[pl.Series] = []
        self.n_names = 0

    def add(self, column: pl.Series) -> IntArray:
        """Return the numbers of some more rows, (n_rows,); -1 where a row has no name."""
        text = column if column.dtype == pl.String else column.cast(pl.String)
        own = text.cast(self._kind)
        codes = own.to_physical().fill_null(0).to_numpy()
        if codes.size == 0:
            return np.empty(0, dtype=np.int64)
        self._make_room(int(codes.max()) + 1)
        numbers = self._lookup.take(codes)
        is_missing = text.is_null().to_numpy() if text.null_count() else None
        if is_missing is not None:
            numbers[is_missing] = _NONE
        if numbers.min() < _NONE:
            self._learn(text, codes, np.flatnonzero(numbers < _NONE))
            numbers = self._lookup.take(codes)
            if is_missing is not None:
                numbers[is_missing] = _NONE
        return numbers.astype(np.int64)

    def names(self) -> pl.Series:
        """Return the names, in order."""
        return pl.concat([pl.Series("name", [], dtype=pl.String), *self._names])

    def labels(self, kind: IdKind | None) -> Labels:
        """Return the names as labels of no rows."""
        return Labels(self.names(), np.empty(0, dtype=np.int64), kind)

    def _make_room(self, n_codes: int) -> None:
        if n_codes > self._lookup.size:
            more = np.full(max(n_codes - self._lookup.size, self._lookup.size // 2), _NONE - 1, dtype=np.int32)
            self._lookup = np.concatenate([self._lookup, more])

    def _learn(self, text: pl.Series, codes: IntArray, rows: IntArray) -> None:
        """Give numbers to the names of these rows, which are new."""
        first_row = np.full(int(codes.max()) + 1, codes.size, dtype=np.int32)
        first_row[codes[rows[::-1]]] = rows[::-1]  # of several assignments to one place the last one stays
        new = np.flatnonzero(first_row < codes.size)
        new = new[np.argsort(first_row[new])]
        found = text.gather(first_row[new]).rename("name")
        is_name = (found != "").to_numpy()
        numbers = np.full(new.size, _NONE)
        numbers[is_name] = np.arange(self.n_names, self.n_names + np.count_nonzero(is_name))
        self._lookup[new] = numbers
        self._names.append(found.filter(found != ""))
        self.n_names += int(np.count_nonzero(is_name))
