"""Right and wrong answers in a byte each, item after item: in memory, or in a file that is mapped into it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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
        result: FloatArray = self.right / self.answered
        return result

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
