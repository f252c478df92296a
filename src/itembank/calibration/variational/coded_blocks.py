"""Many right and wrong answers for the passes: held as codes, made into numbers a block of items at a time.

Blocks have only the models that answered. Models run whole benchmarks as a rule: items that the same models answered
come into one block, whose columns are these models. Where missing cells are scattered, each item has a list of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.calibration.variational.blocks import CELLS_PER_BLOCK, Part, ResponseBlocks
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.code_array import MISSING, RIGHT, Codes, ItemCodes

LEAST_FILLED = 0.5
"""Share of answered cells from which on items share columns: a cell of a list takes twice the time of a shared one."""
NEARLY_ALL = 0.8
"""Share of the models from which on a block has all of them, and keeps no copy of its codes."""
LEAST_ALIKE = 4
"""Items answered by the same models that are worth a block of their own."""


class Piece(NamedTuple):
    """Codes of a block of items."""

    items: slice | IntArray  # As those of `Part`
    models: IntArray | None
    codes: Codes | None  # (n_block, n_columns): None where they are read anew each time
    is_complete: bool = False  # Whether no cell is missing


@dataclass(frozen=True, slots=True)
class CodedBlocks(ResponseBlocks):
    """Answers laid out for the passes as codes, items first, block after block."""

    codes: ItemCodes
    lower_asymptote: FloatArray  # (n_items,)
    dtype: np.dtype[np.floating]  # Kind of numbers of the passes
    is_complete: bool  # Whether no cell is missing
    pieces: tuple[Piece, ...]  # Every item in one of them

    @property
    def n_cells(self) -> int:
        """Number of cells, those without an answer included."""
        return self.codes.n_cells

    @property
    def may_couple(self) -> bool:
        """Never: a coupled step keeps numbers of every cell."""
        return False

    def take_items(self, items: IntArray | BoolArray) -> "CodedBlocks":
        """Return the answers to some of the items."""
        return coded_blocks(
            self.codes.take(items), self.lower_asymptote[items], self.dtype, is_complete=self.is_complete
        )

    def parts(self) -> Iterator[Part]:
        """Decode block after block."""
        for piece in self.pieces:
            codes = self.codes.block(piece.items) if piece.codes is None else piece.codes
            models = piece.models
            if models is not None and models.ndim == 2:  # lists are kept in two bytes a model where that is enough
                models = models.astype(np.int32)
            yield Part(piece.items, models, *_numbers(codes, self.dtype, is_complete=piece.is_complete))


def coded_blocks(
    codes: ItemCodes, lower_asymptote: FloatArray, dtype: np.dtype[np.floating], *, is_complete: bool | None = None
) -> CodedBlocks:
    """Lay codes out for the passes; whether no cell is missing is looked up unless it is told."""
    if is_complete is None:
        is_complete = not any((block == MISSING).any() for _, block in codes.blocks())
    pieces = tuple(_piece(codes, items, is_complete=is_complete) for items in _cut(codes, is_complete=is_complete))
    return CodedBlocks(codes, lower_asymptote, dtype, is_complete, pieces)


def _numbers(codes: Codes, dtype: np.dtype[np.floating], *, is_complete: bool) -> tuple[FloatArray, FloatArray | None]:
    """Return values and weights of codes, as those of `Blocks`."""
    values: FloatArray = codes.astype(dtype)
    values -= values.dtype.type(0.5)
    if is_complete:
        return values, None
    weights: FloatArray = (codes <= RIGHT).astype(dtype)
    values *= weights
    return values, weights


def _cut(codes: ItemCodes, *, is_complete: bool) -> Iterator[slice | IntArray]:
    """Cut the items into blocks that stay in the cache and have few missing cells."""
    if is_complete:
        step = max(1, CELLS_PER_BLOCK // codes.n_models)
        return (slice(first, min(first + step, codes.n_items)) for first in range(0, codes.n_items, step))
    return _cut_by_pattern(codes)


def _cut_by_pattern(codes: ItemCodes) -> Iterator[IntArray]:
    """Put items together that the same models answered."""
    pattern, n_answers = _patterns(codes)
    order = np.argsort(pattern, kind="stable")
    # where each run of items of one pattern begins and ends
    edges = np.concatenate([[0], np.flatnonzero(np.diff(pattern[order])) + 1, [order.size]])
    first = 0
    while first < order.size:
        run = int(np.searchsorted(edges, first, side="right"))
        last = first + max(1, CELLS_PER_BLOCK // max(int(n_answers[order[first]]), 1))
        if edges[run] - edges[run - 1] >= LEAST_ALIKE:
            last = min(last, int(edges[run]))
        yield np.sort(order[first:last])
        first = last


def _piece(codes: ItemCodes, items: slice | IntArray, *, is_complete: bool) -> Piece:
    """Give some items the models that answered any of them, or each item its own."""
    if is_complete:
        return Piece(items, None, None, is_complete=True)
    block = codes.block(items)
    is_known = block != MISSING
    models = np.flatnonzero(is_known.any(axis=0))
    n_items, n_known = block.shape[0], int(np.count_nonzero(is_known))
    n_cells = n_items * models.size
    if n_known >= LEAST_FILLED * n_cells:
        if models.size >= NEARLY_ALL * codes.n_models:
            return Piece(items, None, None, is_complete=n_known == block.size)
        return Piece(items, models, np.ascontiguousarray(block[:, models]), is_complete=n_known == n_cells)
    n_answers = np.count_nonzero(is_known, axis=1)
    rows, columns = np.nonzero(is_known)
    place = np.arange(rows.size) - np.repeat(np.cumsum(n_answers) - n_answers, n_answers)
    shape = (n_items, int(n_answers.max()))
    lists = np.zeros(shape, dtype=np.uint16 if codes.n_models <= np.iinfo(np.uint16).max else np.int32)
    own = np.full(shape, MISSING, dtype=np.uint8)
    lists[rows, place], own[rows, place] = columns, block[rows, columns]
    return Piece(items, lists, own)


def _patterns(codes: ItemCodes) -> tuple[IntArray, IntArray]:
    """Give the sets of models that answered an item numbers as they first appear, and count each item's answers."""
    number, n_answers = np.empty(codes.n_items, dtype=np.int64), np.empty(codes.n_items, dtype=np.int64)
    seen: dict[int, int] = {}
    for part, block in codes.blocks():
        is_known = block != MISSING
        n_answers[part] = np.count_nonzero(is_known, axis=1)
        # Two sets of one hash would only share a block.
        hashes = [hash(row.tobytes()) for row in np.packbits(is_known, axis=1)]
        number[part] = [seen.setdefault(one, len(seen)) for one in hashes]
    return number, n_answers
