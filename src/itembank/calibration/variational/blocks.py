"""Responses laid out for the passes over them: items first, and as the likelihood of their family wants them.

Right and wrong answers too many for a copy stay as they are, and are laid out a block of items at a time.
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

CELLS_PER_BLOCK = 32_000
"""Few enough that a block and its temporaries stay in the cache: 256 KB an array in double precision."""


COLUMNS_AT_ONCE = 256
"""The same of answers that stay where they are: enough for blocks of few models."""


MOST_COUPLED_CELLS = 30_000_000
"""A coupled step keeps two matrices of this many numbers: 480 MB in double precision."""


class Part(NamedTuple):
    """Responses to a block of items, as numbers."""

    items: slice  # Which items
    models: IntArray | None  # (n_columns,): Which models the columns are; None for all
    values: FloatArray  # (n_block, n_columns): As those of `Blocks`; weights None for once each
    weights: FloatArray | None  # (n_block, n_columns)


class ResponseBlocks(ABC):
    """Responses that the passes go over, a block of items at a time.

    They are laid out once (`Blocks`), or, where a copy would fill the memory, at each pass (`UncopiedBlocks`).
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

    @abstractmethod
    def mean_values(self) -> FloatArray:
        """Mean of each item's values, (n_items,)."""

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


@dataclass(frozen=True, slots=True)
class UncopiedBlocks(ResponseBlocks):
    """Right and wrong answers that stay where they are, laid out block after block at each pass."""

    responses: FloatArray  # (n_models, n_columns): 0, 1 or NaN
    columns: IntArray  # (n_items,): Which of them the items are
    lower_asymptote: FloatArray  # (n_items,)
    dtype: np.dtype[np.floating]  # Kind of numbers of the passes

    @property
    def n_cells(self) -> int:
        """Number of cells, those without an answer included."""
        return self.n_items * int(self.responses.shape[0])

    def parts(self) -> Iterator[Part]:
        """Lay out the answers block by block, of consecutive items and the models that answered any of those near."""
        # Share of the models from which on a block has all of them.
        nearly_all = 0.8
        for start in range(0, self.n_items, COLUMNS_AT_ONCE):
            columns = self.columns[start : start + COLUMNS_AT_ONCE]
            is_run = bool((np.diff(columns) == 1).all())
            answers = self.responses[:, columns[0] : columns[-1] + 1] if is_run else self.responses[:, columns]
            values: FloatArray = answers.T.astype(self.dtype, order="C")
            models = missing = None
            if np.isnan(values.sum()):
                missing = np.isnan(values)
                is_asked = ~missing.all(axis=0)
                if is_asked.mean() < nearly_all:
                    models = np.flatnonzero(is_asked)
                    values, missing = values[:, models], missing[:, models]
                values[missing] = 0.5
            step = max(1, CELLS_PER_BLOCK // max(1, values.shape[1]))
            for first in range(0, columns.size, step):
                place = slice(first, min(first + step, columns.size))
                values[place] -= self.dtype.type(0.5)
                weights = None if missing is None else (~missing[place]).astype(self.dtype)
                yield Part(slice(start + place.start, start + place.stop), models, values[place], weights)

    def mean_values(self) -> FloatArray:
        """Mean of each item's values, (n_items,)."""
        mean = np.empty(self.n_items)
        for part in self.parts():
            counts = part.values.shape[1] if part.weights is None else part.weights.sum(axis=1)
            mean[part.items] = part.values.sum(axis=1) / counts
        return mean

    def take_items(self, items: IntArray | BoolArray) -> "UncopiedBlocks":
        """Return the answers to some of the items."""
        return UncopiedBlocks(self.responses, self.columns[items], self.lower_asymptote[items], self.dtype)


def make_blocks(data: FitData, *, single_precision: bool) -> Blocks:
    """Lay the responses out for the passes; items must be in the order of `table_groups`."""
    if data.family == "beta-binomial":  # counts, in double precision
        trials = np.ones(data.responses.shape) if data.weights is None else data.weights.astype(np.float64)
        fractions = data.responses.T.astype(np.float64, order="C")
        group, run = _groups_and_runs(data)
        return Blocks(fractions, np.ascontiguousarray(trials.T), data.lower_asymptote, group, run=run)
    # with more trials in a cell, single precision would lose the contribution of a single one
    if data.n_trials is not None and data.n_trials.max() > 100.0:
        single_precision = False
    dtype = np.float32 if single_precision else np.float64
    weights: FloatArray | None = None
    if data.weights is not None:
        weights = data.weights.T.astype(dtype, order="C")
    if data.family == "beta":
        # logits of the responses, and sums of the terms of their densities that no parameter but phi enters
        values: FloatArray = np.empty(data.responses.shape[::-1], dtype=dtype)
        sums = np.empty((values.shape[0], 2))
        # Items transposed at once, from columns into rows: fewer would read every line of memory several times.
        items_at_once = 64
        step = max(items_at_once, CELLS_PER_BLOCK // values.shape[1])
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
    values = data.responses.T.astype(dtype, order="C")
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
    and without tables: fewer than 1,000 cells cost less one by one than a table of 12,289 nodes. With fewer than 32
    groups tables are quick enough, whatever their size.
    """
    n_cells = n_models * np.bincount(precision_of_group[group])
    result: BoolArray = n_cells[precision_of_group] < 1000
    return result & (precision_of_group.size >= 32)


def _groups_and_runs(data: FitData) -> tuple[IntArray, IntArray]:
    """Give `Blocks.group` and `Blocks.run`."""
    group, precision_of_group = table_groups(data)
    small = is_small(group, precision_of_group, data.responses.shape[0])[group]
    begins = (np.diff(group) != 0) & ~(small[1:] & small[:-1])
    return group, np.append(0, np.cumsum(begins)).astype(np.int64)
