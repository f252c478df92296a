"""Responses laid out for the passes over them: items first, and as the likelihood of their family wants them.

Many right and wrong answers for the passes: held as codes, made into numbers a block of items at a time.

Blocks have only the models that answered. Models run whole benchmarks as a rule: items that the same models answered
come into one block, whose columns are these models. Where missing cells are scattered, each item has a list of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from itembank.calibration.fits import FitData
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.code_array import MISSING, RIGHT, Codes, ItemCodes

CELLS_PER_BLOCK = 32_000
"""Few enough that a block and its temporaries stay in the cache: 256 KB an array in double precision."""

FEW_CELLS = 1000
"""Fewer cells than this of one precision cost less one by one than a table of 12,289 nodes."""

MANY_GROUPS = 32
"""With fewer groups tables are quick enough, whatever their size."""

ITEMS_AT_ONCE = 64
"""Items transposed at once, from columns into rows: fewer would read every line of memory several times."""

MOST_COUPLED_CELLS = 30_000_000
"""A coupled step keeps two matrices of this many numbers: 480 MB in double precision."""

EXACT_TRIALS = 100.0
"""With more trials in a cell, single precision would lose the contribution of a single one."""


class Part(NamedTuple):
    """Responses to a block of items, as numbers."""

    items: slice | IntArray  # slice or (n_block,): Which items
    # None, (n_columns,) or (n_block, n_columns): Which models have a column: all; the same for all items of the block;
    # or each item's own.
    models: IntArray | None
    values: FloatArray  # (n_block, n_columns): As those of `Blocks`; weights None for once each
    weights: FloatArray | None  # (n_block, n_columns)


class ResponseBlocks(ABC):
    """Responses that the passes go over, a block of items at a time.

    They are laid out as numbers (`Blocks`), or as codes (`CodedBlocks`).
    """

    __slots__ = ()

    lower_asymptote: FloatArray  # (n_items,)
    dtype: np.dtype[np.floating]  # Kind of numbers of the passes

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.lower_asymptote.shape[0])

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells, those without a response included."""

    @property
    def may_couple(self) -> bool:
        """Whether a coupled step may keep numbers of every cell."""
        return self.n_cells <= MOST_COUPLED_CELLS

    @property
    def group(self) -> IntArray | None:
        """As that of `Blocks`; None for families that have no precision."""
        return None

    @property
    def sums(self) -> FloatArray | None:
        """As those of `Blocks`; None for families that need none."""
        return None

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Give the responses block by block, every item once."""

    @abstractmethod
    def take_items(self, items: IntArray | BoolArray) -> "ResponseBlocks":
        """Return the responses to some of the items."""


@dataclass(frozen=True, slots=True)
class Blocks(ResponseBlocks):
    """Responses laid out for the passes, items first."""

    # (n_items, n_models): Response minus one half; of family 'beta' its logit, of 'beta-binomial' the fraction of right
    # answers. Zero where not observed.
    values: FloatArray
    # (n_items, n_models): How often each response counts, zero where not observed; None for once each.
    weights: FloatArray | None
    lower_asymptote: FloatArray  # (n_items,)
    # (n_items,): Which items have one precision and one lower asymptote, rising; for families with a precision.
    group: IntArray | None = None
    sums: FloatArray | None = None  # (n_items, 2): Family 'beta': sums of log(1 - y) and of -log(y (1 - y))
    # (n_items,): Which items may share a block, rising: those of a group, and those of small groups beside each other.
    run: IntArray | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells, those without a response included."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype[np.floating]:  # type: ignore[override]  # frozen: nobody writes it
        """Kind of numbers of the passes."""
        return self.values.dtype

    def parts(self) -> Iterator[Part]:
        """Give the responses block by block; each of one run, of consecutive items, with all models."""
        for part in self.slices():
            yield Part(part, None, self.values[part], None if self.weights is None else self.weights[part])

    def mean_values(self) -> FloatArray:
        """Mean of each item's values, (n_items,)."""
        if self.weights is None:
            mean: FloatArray = self.values.mean(axis=1)
        else:
            mean = np.einsum("il,il->i", self.values, self.weights) / self.weights.sum(axis=1)
        return mean

    def slices(self) -> Iterator[slice]:
        """Cut the items into blocks of one run that stay in the cache."""
        step = max(1, CELLS_PER_BLOCK // self.values.shape[1])
        starts = [0, self.n_items]
        if self.run is not None:
            starts[1:1] = (np.flatnonzero(np.diff(self.run)) + 1).tolist()
        for start, end in pairwise(starts):
            for first in range(start, end, step):
                yield slice(first, min(first + step, end))

    def group_at(self, part: slice) -> int | IntArray:
        """Group of the items of a block, or, where there are several, that of each, (n_block,)."""
        if self.group is None:
            return 0
        groups = self.group[part]
        return int(groups[0]) if groups[0] == groups[-1] else groups

    def take_items(self, items: IntArray | BoolArray) -> "Blocks":
        """Return the responses to some of the items."""
        return Blocks(
            self.values[items],
            None if self.weights is None else self.weights[items],
            self.lower_asymptote[items],
            None if self.group is None else self.group[items],
            None if self.sums is None else self.sums[items],
            None if self.run is None else self.run[items],
        )


def make_blocks(data: FitData, *, single_precision: bool) -> Blocks:
    """Lay the responses out for the passes; items must be in the order of `table_groups`."""
    if data.family == "beta-binomial":
        return _of_agreeing_trials(data)
    if data.n_trials is not None and data.n_trials.max() > EXACT_TRIALS:
        single_precision = False
    dtype = np.float32 if single_precision else np.float64
    weights: FloatArray | None = None
    if data.weights is not None:
        weights = data.weights.T.astype(dtype, order="C")
    if data.family == "beta":
        return _of_probabilities(data, dtype, weights)
    values: FloatArray = data.responses.T.astype(dtype, order="C")
    values -= 0.5
    if weights is not None:
        values *= weights > 0.0
    return Blocks(values, weights, data.lower_asymptote)


def table_groups(data: FitData) -> tuple[IntArray, IntArray]:
    """Give the number of each item's combination of precision and lower asymptote, and the precision of each.

    Returns
    -------
    group : (n_items,)
    precision_of_group : (n_groups,)
        Index of the precision, rising.
    """
    index = np.zeros(data.lower_asymptote.shape[0]) if data.precision_index is None else data.precision_index
    pairs = np.column_stack([index, data.lower_asymptote])
    unique_pairs, group = np.unique(pairs, axis=0, return_inverse=True)
    return group.ravel().astype(np.int64), unique_pairs[:, 0].astype(np.int64)


def is_small(group: IntArray, precision_of_group: IntArray, n_models: int) -> BoolArray:
    """Whether the items of each group's precision have few cells, (n_groups,); arguments as `table_groups` gives them.

    A bank of many benchmarks with one number each has hundreds of such groups: they go through the passes together,
    and without tables, which would have more nodes than there are cells.
    """
    n_cells = n_models * np.bincount(precision_of_group[group])
    result: BoolArray = n_cells[precision_of_group] < FEW_CELLS
    return result & (precision_of_group.size >= MANY_GROUPS)


def _groups_and_runs(data: FitData) -> tuple[IntArray, IntArray]:
    """Give `Blocks.group` and `Blocks.run`."""
    group, precision_of_group = table_groups(data)
    small = is_small(group, precision_of_group, data.responses.shape[0])[group]
    begins = (np.diff(group) != 0) & ~(small[1:] & small[:-1])
    return group, np.append(0, np.cumsum(begins)).astype(np.int64)


def _of_probabilities(data: FitData, dtype: type[np.floating], weights: FloatArray | None) -> Blocks:
    """Take logits of the responses, and sum the terms of their densities that no parameter but phi enters."""
    values = np.empty(data.responses.shape[::-1], dtype=dtype)
    sums = np.empty((values.shape[0], 2))
    step = max(ITEMS_AT_ONCE, CELLS_PER_BLOCK // values.shape[1])
    for first in range(0, values.shape[0], step):
        part = slice(first, first + step)
        fractions = data.responses[:, part].T.astype(np.float64)
        if weights is not None:
            fractions[weights[part] == 0.0] = 0.5
        log_wrong, log_odds = np.log1p(-fractions), logit(fractions)
        terms = np.stack([log_wrong, -np.log(fractions) - log_wrong], axis=2)
        if weights is not None:
            terms *= weights[part][:, :, None]
        values[part], sums[part] = log_odds, terms.sum(axis=1)
    group, run = _groups_and_runs(data)
    return Blocks(values, weights, data.lower_asymptote, group, sums, run)


def _of_agreeing_trials(data: FitData) -> Blocks:
    """Lay out counts, in double precision."""
    weights = np.ones(data.responses.shape) if data.weights is None else data.weights.astype(np.float64)
    group, run = _groups_and_runs(data)
    return Blocks(
        data.responses.T.astype(np.float64, order="C"),
        np.ascontiguousarray(weights.T),
        data.lower_asymptote,
        group,
        run=run,
    )


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
