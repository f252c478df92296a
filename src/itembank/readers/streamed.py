"""Long tables and response files read a part at a time into codes, in little memory.

What is read so is plain: numbers in range, one response a cell (or copies of it), names in every row. Where a file is
not, `StreamedCells` raises `NotPlainError`, and the readers that hold the whole table say what is wrong or settle it.
So no message and no rule stands here a second time.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from itembank.errors import DataWarning
from itembank.files.memory import most_memory
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.columns import id_kind, numbers
from itembank.readers.counts import RowIds, settle_counts
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.repeats import SAME
from itembank.readers.streamed_names import NameCodes
from itembank.responses.code_array import CodeArray
from itembank.responses.labels import IdKind, Labels
from itembank.responses.opening import Table

MOST_CELLS, CELLS_A_ROW = 2**28, 64
"""A matrix of more cells than both, at so many a row, is nearly empty; whole tables are judged for that."""
_COUNTS = ("n_trials", "n_correct")
_ATTEMPTS = ("seed", "epoch")
_NAMES = ("scenario", "subscenario")


class NotPlainError(Exception):
    """A file holds something that only the reader of whole tables settles."""


@dataclass(slots=True)
class FileTotals:
    """Rows of one file, those of them without a response (and whether to say so), and the units of the costs it tells.

    Of a wide table every cell is a row.
    """

    source: str
    n_rows: int = 0
    n_missing: int = 0
    units: dict[str, None] = field(default_factory=dict)
    tells_of_missing: bool = True


@dataclass(slots=True)
class StreamedCells:
    """Cells that rows were put into, a part of a file after the other."""

    repeats: str  # Of the spec: 'last' lets later rows count, every other choice must not matter
    models: NameCodes = field(default_factory=NameCodes)
    items: NameCodes = field(default_factory=NameCodes)
    kinds: dict[str, IdKind | None] = field(default_factory=dict)
    # mapping of 'scenario' and 'subscenario' to names, and the number of each item's (-1 for none)
    item_names: dict[str, tuple[NameCodes, IntArray]] = field(default_factory=dict)
    response: CodeArray = field(default_factory=CodeArray)
    n_trials: CodeArray | None = None
    costs: dict[str, CodeArray] = field(default_factory=dict)
    files: list[FileTotals] = field(default_factory=list)
    has_attempts: bool = False
    has_parts_without_trials: bool = False

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return sum(file.n_rows for file in self.files)

    def add_long(self, table: Table, spec: ReadingSpec) -> None:
        """Put some rows of a long table into their cells.

        Raises
        ------
        NotPlainError
            When they are not all plain.
        """
        model = self.ids(table, spec, "model_id", self.models)
        item = self.ids(table, spec, "item_id", self.items)
        values = {name: _numbers(table, spec, name) for name in ("response", *_COUNTS, *COST_COLUMNS)}
        response, trials = _settled(values, spec, model.size)
        costs = {unit: cost for unit in COST_COLUMNS if (cost := values[unit]) is not None}
        for name in _NAMES:
            if spec.column(name) in table.frame.columns:
                self.add_item_names(name, table.frame[spec.column(name)], item)
        self.has_attempts |= any(spec.column(name) in table.frame.columns for name in _ATTEMPTS)
        self.files[-1].n_rows += model.size
        self.files[-1].n_missing += int(np.count_nonzero(np.isnan(response)))
        told = [unit for unit in COST_COLUMNS if unit in self.files[-1].units or not _is_unknown(costs.get(unit))]
        self.files[-1].units = dict.fromkeys(told)
        self.put(model, item, response, trials, costs)

    def put(
        self,
        model: IntArray,
        item: IntArray,
        response: FloatArray,
        trials: IntArray | None,
        costs: Mapping[str, FloatArray],
    ) -> None:
        """Put rows into their cells; of copies the first counts.

        Parameters
        ----------
        model, item, response : (n_rows,)
        trials : (n_rows,) or None
        costs : mapping of unit to (n_rows,)

        Raises
        ------
        NotPlainError
            When a number is out of range, or rows of one cell are no copies.
        """
        _check_range(response, trials, costs)
        present = ~np.isnan(response)
        if not present.all():
            _refuse_untold(~present, trials, costs)
            model, item, response = model[present], item[present], response[present]
            trials = None if trials is None else trials[present]
            costs = {unit: cost[present] for unit, cost in costs.items()}
        columns = self._columns(response, trials, costs)
        self._make_room(columns)
        keys = [array for array, _ in columns[: 1 if trials is None else 2]]
        if self.repeats == "last":
            new = np.ones(model.shape, dtype=bool)
            order = slice(None)
        else:
            new = ~self.response.is_known(model, item)
            order = slice(None, None, -1)  # of several assignments to one cell the last one stays
        whole = bool(new.all())
        rows, places = (model, item) if whole else (model[new], item[new])
        for array, values in columns:
            array.put(rows[order], places[order], (values if whole else values[new])[order])
        if self.repeats != "last" and not (whole and _is_ascending(model * self.items.n_names + item)):
            for array, (_, values) in zip(keys, columns, strict=False):
                if not array.holds(model, item, values, within=SAME if array is self.response else 0.0):
                    raise NotPlainError

    def ids(self, table: Table, spec: ReadingSpec, name: str, known: NameCodes) -> IntArray:
        """Return the numbers of the ids of some rows."""
        column = spec.column(name)
        kind, problem = id_kind(table, column, name)
        if problem or (self.kinds.setdefault(name, kind) != kind):
            raise NotPlainError
        codes = known.add(table.frame[column])
        if codes.size and codes.min() < 0:
            raise NotPlainError
        return codes

    def add_item_names(self, name: str, column: pl.Series, item: IntArray) -> None:
        """Keep what scenario or subscenario rows give their items; it must be one an item."""
        known, of_item = self.item_names.get(name, (NameCodes(), np.empty(0, dtype=np.int64)))
        if self.items.n_names > of_item.size:
            more = max(self.items.n_names - of_item.size, of_item.size // 2)
            of_item = np.concatenate([of_item, np.full(more, -1, dtype=np.int64)])
        codes = known.add(column)
        told = np.flatnonzero(codes >= 0)[::-1]
        unknown = told[of_item[item[told]] < 0]
        of_item[item[unknown]] = codes[unknown]
        if np.any(of_item[item[told]] != codes[told]):
            raise NotPlainError
        self.item_names[name] = (known, of_item)

    def _columns(
        self, response: FloatArray, trials: IntArray | None, costs: Mapping[str, FloatArray]
    ) -> list[tuple[CodeArray, FloatArray]]:
        """Return where each number of the rows goes, responses and trials first."""
        columns: list[tuple[CodeArray, FloatArray]] = [(self.response, response)]
        if trials is None:
            self.has_parts_without_trials = True
        else:
            self.n_trials = self.n_trials or CodeArray()
            columns.append((self.n_trials, trials.astype(np.float64)))
        if self.n_trials is not None and self.has_parts_without_trials:
            raise NotPlainError
        unknown = np.full(response.shape, np.nan)
        for unit, cost in {**dict.fromkeys(self.costs, unknown), **costs}.items():
            if unit in self.costs or not _is_unknown(cost):
                columns.append((self.costs.setdefault(unit, CodeArray()), cost))
        return columns

    def _make_room(self, columns: Sequence[tuple[CodeArray, FloatArray]]) -> None:
        n_cells = self.models.n_names * self.items.n_names
        if n_cells > max(MOST_CELLS, CELLS_A_ROW * self.n_rows) or 8.0 * n_cells > most_memory():
            raise NotPlainError
        for array, _ in columns:
            array.grow(self.models.n_names, self.items.n_names)


def _numbers(table: Table, spec: ReadingSpec, name: str) -> FloatArray | None:
    """Return one column as numbers, None when absent."""
    column = spec.column(name)
    if column not in table.frame.columns:
        return None
    values, bad = numbers(table.frame[[column]])
    if bad:
        raise NotPlainError
    return values[:, 0]


def _settled(
    values: Mapping[str, FloatArray | None], spec: ReadingSpec, n_rows: int
) -> tuple[FloatArray, IntArray | None]:
    """Return responses and trials of some rows."""
    nobody = Labels(pl.Series("name", [], dtype=pl.String), np.zeros(n_rows, dtype=np.int64))
    if all(values[name] is None for name in _COUNTS) and (given := values["response"]) is not None:
        return given / spec.max_response, None
    problems: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        try:
            response, trials = settle_counts(values, spec, RowIds("", nobody, nobody), problems)
        except (DataWarning, pl.exceptions.PolarsError) as error:  # a message names rows, which have no names here
            raise NotPlainError from error
    if problems:
        raise NotPlainError
    return response, trials


def _is_unknown(cost: FloatArray | None) -> bool:
    return cost is None or bool(np.isnan(cost).all())


def _check_range(response: FloatArray, trials: IntArray | None, costs: Mapping[str, FloatArray]) -> None:
    with np.errstate(invalid="ignore"):
        is_bad = bool(np.any((response < 0.0) | (response > 1.0)))
        is_bad |= any(bool(np.any((cost < 0.0) | np.isinf(cost))) for cost in costs.values())
    if is_bad or (trials is not None and bool(np.any((trials < 1) & ~np.isnan(response)))):
        raise NotPlainError


def _refuse_untold(missing: BoolArray, trials: IntArray | None, costs: Mapping[str, FloatArray]) -> None:
    """Refuse rows that tell trials or costs of no response: whether they stay depends on rows to come."""
    if trials is not None and np.any(trials[missing] != 0):
        raise NotPlainError
    if any(np.any(~np.isnan(cost[missing])) for cost in costs.values()):
        raise NotPlainError


def _is_ascending(cell: IntArray) -> bool:
    """Whether rows go on from cell to cell, so that none comes twice."""
    return bool(np.all(cell[1:] > cell[:-1]))
