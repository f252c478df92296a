"""Answers as small codes: `CodeArray` for numbers of cells that come a few at a time, `ItemCodes` item after item."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

Codes: TypeAlias = NDArray[np.uint8]

WRONG, RIGHT, MISSING = 0, 1, 255

CELLS_AT_ONCE = 2**20
"""Cells that are looked at together: a megabyte of codes, four of numbers."""

ITEMS_AT_ONCE = 64
"""Items transposed at once, from columns into rows: fewer would read every line of memory several times."""


class AnswerCounts(NamedTuple):
    """How many answers there are, and how many of them are right."""

    right: IntArray  # (n_items,)
    answered: IntArray  # (n_items,)
    answered_by: IntArray  # (n_models,): Answers of each model

    @property
    def mean(self) -> FloatArray:
        """Fraction of right answers of each item, (n_items,)."""
        return self.right / self.answered

    @property
    def is_complete(self) -> bool:
        """Whether every model answered every item."""
        return bool(np.all(self.answered == self.answered_by.size))

    @property
    def is_degenerate(self) -> BoolArray:
        """Which items all models answered alike, (n_items,)."""
        result: BoolArray = (self.right == 0) | (self.right == self.answered)
        return result


@dataclass(frozen=True, slots=True)
class ItemCodes:
    """Right and wrong answers as small codes, items first."""

    # (n_rows, n_models) of uint8: `RIGHT`, `WRONG` or `MISSING`. Read a block at a time, so that a mapped file need not
    # fit the memory.
    cells: Codes
    rows: IntArray | None = None  # (n_items,): Which rows the items are; None for all of them in their order

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.cells.shape[0] if self.rows is None else self.rows.shape[0])

    @property
    def n_models(self) -> int:
        """Number of models."""
        return int(self.cells.shape[1])

    @property
    def n_cells(self) -> int:
        """Number of cells, those without an answer included."""
        return self.n_items * self.n_models

    def take(self, items: IntArray | BoolArray) -> "ItemCodes":
        """Return some of the items; no answer is copied."""
        rows = np.arange(self.n_items) if self.rows is None else self.rows
        return ItemCodes(self.cells, rows[items])

    def block(self, items: slice | IntArray) -> Codes:
        """Return the codes of some items, (n_block, n_models)."""
        return self.cells[items] if self.rows is None else self.cells[self.rows[items]]

    def blocks(self) -> Iterator[tuple[slice, Codes]]:
        """Give all items, a block at a time."""
        step = max(1, CELLS_AT_ONCE // self.n_models)
        for first in range(0, self.n_items, step):
            part = slice(first, min(first + step, self.n_items))
            yield part, self.block(part)

    def counts(self) -> AnswerCounts:
        """Count the answers, in one pass over the cells."""
        right, answered = np.empty(self.n_items, dtype=np.int64), np.empty(self.n_items, dtype=np.int64)
        answered_by = np.zeros(self.n_models, dtype=np.int64)
        for part, codes in self.blocks():
            known = codes != MISSING
            right[part] = np.count_nonzero(codes == RIGHT, axis=1)
            answered[part] = np.count_nonzero(known, axis=1)
            answered_by += np.count_nonzero(known, axis=0)
        return AnswerCounts(right, answered, answered_by)

    def responses(self) -> FloatArray:
        """Return the answers as numbers, NaN where missing, float32 (n_models, n_items)."""
        result = np.empty((self.n_items, self.n_models), dtype=np.float32)
        for part, codes in self.blocks():
            result[part] = as_responses(codes, np.float32)
        return result.T


def as_responses(codes: Codes, dtype: type[np.floating]) -> FloatArray:
    """Return codes as numbers, NaN where missing, in the shape of the codes."""
    values: FloatArray = codes.astype(dtype)
    values[codes == MISSING] = np.nan
    return values


def codes_of(responses: FloatArray) -> ItemCodes:
    """Code binary responses (n_models, n_items), NaN where missing."""
    n_models, n_items = responses.shape
    cells = np.empty((n_items, n_models), dtype=np.uint8)
    for first in range(0, n_items, ITEMS_AT_ONCE):
        part = slice(first, first + ITEMS_AT_ONCE)
        values = responses[:, part].T
        cells[part] = np.where(np.isnan(values), float(MISSING), values)
    return ItemCodes(cells)


_KINDS = (np.uint8, np.uint16)
"""Kinds of codes, one after the other; the largest code of each says that a cell has no value."""
_FEW = 4
_FIRST = 64
"""Rows and columns that are made first."""


class CodeArray:
    """Numbers of cells (n_rows, n_columns), NaN where none was put, exact to the last bit.

    Right and wrong take one byte a cell. With more than 255 different values a cell takes two bytes, with more than
    65,535 it takes eight.
    """

    def __init__(self) -> None:
        self._cells: NDArray[Any] = np.full((_FIRST, _FIRST), 255, dtype=np.uint8)
        self._bits = np.empty(0, dtype=np.int64)  # of the known values, ascending
        self._codes = np.empty(0, dtype=np.int64)  # in the order of `_bits`
        self._values = np.empty(0)  # by code

    @classmethod
    def of_cells(cls, cells: NDArray[Any], values: FloatArray) -> Self:
        """Take codes (n_rows, n_columns) of uint8 or uint16 as they are, in memory or mapped; nothing is copied.

        Codes are places among `values` (n_values,); the largest number of their kind says that there is none.
        """
        array = cls()
        bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
        array._cells, array._values = cells, np.array(values, dtype=np.float64)
        array._codes = np.argsort(bits)
        array._bits = bits[array._codes]
        return array

    @classmethod
    def of_numbers(cls, values: FloatArray | IntArray) -> Self:
        """Take numbers (n_rows, n_columns), NaN for none."""
        array = cls()
        array._cells = np.full(values.shape, 255, dtype=np.uint8)
        for row, of_row in enumerate(values):
            codes = array._encoded(of_row)  # before the cells are taken, as new values may need larger ones
            array._cells[row] = codes
        return array

    def grow(self, n_rows: int, n_columns: int) -> None:
        """Make room for so many rows and columns, and some more, so that growing by one at a time costs little."""
        old = self._cells.shape
        if n_rows <= old[0] and n_columns <= old[1]:
            return
        new = [
            size if needed <= size else needed + needed // 4
            for needed, size in zip((n_rows, n_columns), old, strict=True)
        ]
        cells = np.full(new, self._missing, dtype=self._cells.dtype)
        cells[: old[0], : old[1]] = self._cells
        self._cells = cells

    def put(self, rows: IntArray, columns: IntArray, values: FloatArray) -> None:
        """Put values into cells, NaN for none; of several for one cell the last stays."""
        codes = self._encoded(values)  # before the cells are taken, as new values may need larger ones
        self._cells = np.ascontiguousarray(self._cells)
        self._cells.reshape(-1)[self._places(rows, columns)] = codes

    def get(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the values of cells, NaN where there are none."""
        return self._decoded(self._held(rows, columns))

    def is_known(self, rows: IntArray, columns: IntArray) -> BoolArray:
        """Whether these cells have a value."""
        return self._known(self._held(rows, columns))

    def holds(self, rows: IntArray, columns: IntArray, values: FloatArray, *, within: float = 0.0) -> bool:
        """Whether each of these cells has this value, or one no further away than `within`; NaN differs from none."""
        held = self._held(rows, columns)
        if self._has_few:  # codes take less time than numbers
            codes, is_known = self._compared(_bits(values))
            if np.array_equal(held, codes) and is_known.all():
                return True
        with np.errstate(invalid="ignore"):
            return not np.any(np.abs(self._decoded(held) - values) > within)

    def _held(self, rows: IntArray, columns: IntArray) -> NDArray[Any]:
        """Return what cells hold."""
        if not self._cells.flags.c_contiguous:
            return self._cells[rows, columns]
        return self._cells.reshape(-1).take(self._places(rows, columns))

    def _places(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Places of cells among all, in a third of the time that two indices take."""
        places: IntArray = rows * self._cells.shape[1] + columns
        return places

    def known(self, n_rows: int, n_columns: int) -> BoolArray:
        """Where the first rows and columns have a value, (n_rows, n_columns)."""
        return self._known(self._cells[:n_rows, :n_columns])

    def block(self, first: int, last: int, n_columns: int) -> FloatArray:
        """Return the values of rows `first` to `last` (not included), (last - first, n_columns)."""
        return self._decoded(self._cells[first:last, :n_columns])

    @property
    def is_binary(self) -> bool:
        """Whether every value that was ever put is 0 or 1."""
        return self._is_coded and bool(np.all((self._values == 0.0) | (self._values == 1.0)))

    def take(self, rows: IntArray, columns: IntArray) -> "CodeArray":
        """Return these rows and columns, in this order."""
        taken = CodeArray()
        taken._bits, taken._codes, taken._values = self._bits, self._codes, self._values
        taken._cells = self._cells[np.ix_(rows, columns)]
        return taken

    def columns(self, n_rows: int, columns: IntArray) -> FloatArray:
        """Return the values of the first rows in some columns, (n_rows, n_taken)."""
        return self._decoded(self._cells[:n_rows][:, columns])

    def crossed(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the values of some rows in some columns, (n_rows_taken, n_columns_taken)."""
        return self._decoded(self._cells[np.ix_(rows, columns)])

    def item_codes(self, n_rows: int, n_columns: int) -> ItemCodes:
        """Return right and wrong, column after column; cells that are so already are not copied.

        Values must be 0 and 1 (`is_binary`).
        """
        cells = self._cells[:n_rows, :n_columns]
        if cells.dtype == np.uint8 and cells.T.flags.c_contiguous and self._values.tolist() == [WRONG, RIGHT]:
            return ItemCodes(np.asarray(cells.T))
        lookup = np.full(int(self._missing) + 1, MISSING, dtype=np.uint8)
        lookup[: self._values.size] = self._values
        result = np.empty((n_columns, n_rows), dtype=np.uint8)
        for first in range(0, n_columns, ITEMS_AT_ONCE):
            part = slice(first, first + ITEMS_AT_ONCE)
            result[part] = lookup[cells[:, part].T]
        return ItemCodes(result)

    @property
    def _is_coded(self) -> bool:
        return self._cells.dtype != np.float64

    @property
    def _has_few(self) -> bool:
        """Whether cells hold codes of so few values that each is compared with all."""
        return self._is_coded and 0 < self._bits.size <= _FEW

    @property
    def _missing(self) -> float:
        """What a cell without a value holds."""
        return int(np.iinfo(self._cells.dtype).max) if self._is_coded else np.nan

    def _known(self, cells: NDArray[Any]) -> BoolArray:
        result: BoolArray = cells != self._missing if self._is_coded else ~np.isnan(cells)
        return result

    def _decoded(self, cells: NDArray[Any]) -> FloatArray:
        if not self._is_coded:
            return np.array(cells)
        lookup = np.full(int(self._missing) + 1, np.nan)
        lookup[: self._values.size] = self._values
        result: FloatArray = lookup[cells]
        return result

    def _encoded(self, values: FloatArray) -> NDArray[Any]:
        """Return what the cells of these values hold, after learning the new ones."""
        if not self._is_coded:
            return values
        bits = _bits(values)
        if self._has_few:
            codes, is_known = self._compared(bits)
            if is_known.all():
                return codes
        place, is_known = self._place(bits)
        is_missing = np.isnan(values)
        new = np.unique(bits[~(is_known | is_missing)])
        if new.size:
            self._learn(new)
            return self._encoded(values)
        codes = self._codes[place] if self._codes.size else place
        return np.where(is_missing, int(self._missing), codes) if is_missing.any() else codes

    def _place(self, bits: IntArray) -> tuple[IntArray, BoolArray]:
        """Place of each value among the known ones, and whether it is one of them."""
        if self._bits.size == 0:
            return np.zeros(bits.shape, dtype=np.int64), np.zeros(bits.shape, dtype=bool)
        place = np.minimum(np.searchsorted(self._bits, bits), self._bits.size - 1)
        return place, self._bits[place] == bits

    def _compared(self, bits: IntArray) -> tuple[NDArray[Any], BoolArray]:
        """Code of each value that is one of a few known ones, and whether it is: a tenth of the time of a search."""
        codes = np.zeros(bits.shape, dtype=self._cells.dtype)
        is_known = np.zeros(bits.shape, dtype=bool)
        for known, code in zip(self._bits, self._codes, strict=True):
            is_it = bits == known
            is_known |= is_it
            if code:
                codes += is_it * codes.dtype.type(code)
        return codes, is_known

    def _learn(self, bits: IntArray) -> None:
        """Give codes to new values; where there are too many, take larger codes, or the numbers themselves."""
        n_values = self._values.size + bits.size
        kind = next((kind for kind in _KINDS if n_values <= np.iinfo(kind).max), None)
        if kind is None:
            self._cells = self._decoded(self._cells)
            return
        if np.dtype(kind).itemsize > self._cells.dtype.itemsize:
            is_known = self._known(self._cells)
            self._cells = self._cells.astype(kind)
            self._cells[~is_known] = np.iinfo(kind).max
        together = np.concatenate([self._bits, bits])
        codes = np.concatenate([self._codes, np.arange(self._values.size, n_values)])
        order = np.argsort(together)
        self._values = np.concatenate([self._values, bits.view(np.float64)])
        self._bits, self._codes = together[order], codes[order]


def _bits(values: FloatArray) -> IntArray:
    """Bits of numbers, as 0 and -0 are two values."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
