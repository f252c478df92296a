"""`coded_responses`: tables and response files as codes, in a byte or so a cell."""

import base64
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning
from itembank.files.digests import is_sealed, seal_holds
from itembank.files.memory import check_matrix_fits, most_memory
from itembank.files.parquet import read_parquet, read_parquet_metadata
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.progress import ProgressCallback
from itembank.readers.collecting import Found
from itembank.readers.columns import id_kind, numbers
from itembank.readers.long_table import (
    RowIds,
    check_columns,
    settle_counts,
    tell_of_missing,
    text_columns,
    wanted_columns,
)
from itembank.readers.matrix import SAME, table_of_items, table_of_models, tell_of_copies
from itembank.readers.reading_specs import COST_COLUMNS, Format, ReadingSpec
from itembank.readers.rows import ResponseRows, joined_source
from itembank.readers.table import LAYOUTS, check_wide, layout_of, with_usual_names
from itembank.readers.table_files import Batch, read_parquet_file, table_batches
from itembank.responses.code_array import CodeArray
from itembank.responses.coded_responses import CodedResponses, are_many
from itembank.responses.labels import IdKind, Labels
from itembank.responses.opening import PACKED, UNREADABLE, Table, file_kind, translated
from itembank.responses.response_files import ITEMS_KEY, MODELS_KEY, OWN_COLUMNS, SCHEMA_VERSION, VERSION_KEY
from itembank.responses.responses import DEFAULT_SCENARIO, with_scenario_columns

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


NAMES = ("scenario", "subscenario")
"""What a table of one row an item may tell of it."""
CELLS_AT_ONCE = 1_000_000
"""Cells that are put at a time, each of which takes a hundred bytes meanwhile."""


class WideParts:
    """Puts the parts of one wide table into cells.

    Parameters
    ----------
    cells : StreamedCells
    spec : ReadingSpec
    layout : 'wide-models' or 'wide-items'

    Attributes
    ----------
    about : list of str
        Columns that hold no responses, as the file calls them: that of the ids first.
    """

    def __init__(self, cells: StreamedCells, spec: ReadingSpec, layout: Format) -> None:
        self._cells, self._spec, self._layout = cells, spec, layout
        self._seen: BoolArray = np.empty(0, dtype=bool)
        self.about = [spec.column(name) for name in (("model_id",) if layout == "wide-models" else ("item_id", *NAMES))]
        cells.files[-1].tells_of_missing = False  # an empty cell is how a wide table says so

    def add(self, table: Table, *, is_from_first_row: bool) -> None:
        """Put a part into its cells; `is_from_first_row` says whether no rows of its columns came before.

        Raises
        ------
        NotPlainError
            When the part is not plain.
        """
        cells, about = self._cells, self.about
        others = [name for name in table.frame.columns if name not in about]
        if about[0] not in table.frame.columns or not others:
            raise NotPlainError
        values, bad = numbers(table.frame[others])
        if bad:
            raise NotPlainError
        names = pl.Series(others, dtype=pl.String)
        if self._layout == "wide-models":
            rows, columns = cells.ids(table, self._spec, "model_id", cells.models), cells.items.add(names)
        else:
            rows, columns = cells.ids(table, self._spec, "item_id", cells.items), cells.models.add(names)
            self._refuse_again(rows, is_from_first_row=is_from_first_row)
            for name, column in zip(NAMES, about[1:], strict=True):
                if column in table.frame.columns:
                    cells.add_item_names(name, table.frame[column], rows)
        if np.any(columns < 0):  # a column without a name
            raise NotPlainError
        cells.files[-1].n_rows += values.size
        cells.files[-1].n_missing += int(np.count_nonzero(np.isnan(values)))
        step = max(1, CELLS_AT_ONCE // columns.size)
        for first in range(0, rows.size, step):
            self._put(rows[first : first + step], columns, values[first : first + step])

    def _put(self, rows: IntArray, columns: IntArray, values: FloatArray) -> None:
        """Put the values (n_rows, n_columns) of some rows into their cells."""
        if self._layout == "wide-models":
            model, item, response = np.repeat(rows, columns.size), np.tile(columns, rows.size), values
        else:
            model, item, response = np.repeat(columns, rows.size), np.tile(rows, columns.size), values.T
        self._cells.put(model, item, np.ascontiguousarray(response).ravel() / self._spec.max_response, None, {})

    def _refuse_again(self, rows: IntArray, *, is_from_first_row: bool) -> None:
        """Raise `NotPlainError` when an item has two rows."""
        if is_from_first_row:
            self._seen = np.empty(0, dtype=bool)
        if rows.size and rows.max() >= self._seen.size:
            more = max(int(rows.max()) + 1 - self._seen.size, self._seen.size // 2)
            self._seen = np.concatenate([self._seen, np.zeros(more, dtype=bool)])
        if self._seen[rows].any() or np.unique(rows).size < rows.size:
            raise NotPlainError
        self._seen[rows] = True


def response_file_rows(path: Path) -> ResponseRows:
    """Read a response file as rows, in the order of its matrix.

    Raises
    ------
    DataError
        When the file is cut, is not what was written, or of a schema this release does not know.
    """
    metadata = _checked_metadata(path)
    table = read_parquet_file(path, keep=list).frame
    try:
        return _rows(str(path), table, _unpacked_table(metadata[MODELS_KEY]), _unpacked_table(metadata[ITEMS_KEY]))
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        raise _misfit(path, error) from error


def response_file_tables(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tables of models and items of a response file, as `response_file_rows` does.

    Raises
    ------
    DataError
        As `response_file_rows`.
    """
    metadata = _checked_metadata(path)
    try:
        return _unpacked_table(metadata[MODELS_KEY]), _known_items(_unpacked_table(metadata[ITEMS_KEY]))
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        raise _misfit(path, error) from error


def _checked_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a response file that is whole, and of a schema that this release knows."""
    if is_sealed(path) and not seal_holds(path):  # files of earlier releases state no digest
        raise DataError(
            f"{path}: the response file is not the one that was written: it is damaged, or another program changed it. "
            "Copy it again, or import the results again."
        )
    with translated(path, "response file"):
        metadata = read_parquet_metadata(path)
    if metadata.get(VERSION_KEY) != SCHEMA_VERSION:
        raise DataError(
            f"{path}: the response file must have schema version {SCHEMA_VERSION}, got {metadata.get(VERSION_KEY)!r}. "
            "Read it with the release of itembank that wrote it."
        )
    return metadata


def _misfit(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: the response file does not fit together ({error}). Import it again.")


def _known_items(items: pl.DataFrame) -> pl.DataFrame:
    """Return what a file tells of items: where nobody named a scenario, other sources may."""
    return items.drop("scenario") if (items["scenario"] == DEFAULT_SCENARIO).all() else items


def _unpacked_table(text: str) -> pl.DataFrame:
    return read_parquet(io.BytesIO(base64.b64decode(text)))


def _rows(source: str, table: pl.DataFrame, models: pl.DataFrame, items: pl.DataFrame) -> ResponseRows:
    """Make rows; models and items keep their order, also those without rows."""
    items = _known_items(items)
    return ResponseRows(
        source,
        _labels(table["model_id"], models["model_id"]),
        _labels(table["item_id"], items["item_id"]),
        _floats(table["response"]),
        table["n_trials"].to_numpy() if "n_trials" in table.columns else None,
        {name: _floats(table[name]) for name in table.columns if name not in OWN_COLUMNS},
        model_table=models,
        item_table=items,
    )


def _labels(column: pl.Series, names: pl.Series) -> Labels:
    index = column.cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
    return Labels(names.rename("name"), index)  # ids that were whole numbers once are text here: of no kind


def _floats(column: pl.Series) -> FloatArray:
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy()


Known = Callable[[ResponseRows], tuple[pl.DataFrame | None, pl.DataFrame | None]]
BYTES_OF_CODES = 3.0
"""A cell of right and wrong takes: one, half as much for arrays that grow, and one where a calibration turns them."""
CAN_STREAM = hasattr(pl, "Categories")
"""Whether this release of Polars has codes of names that hold from one part of a file to the next (1.32)."""


def coded_responses(found: Found, spec: ReadingSpec, known: Known, progress: ProgressCallback) -> CodedResponses | None:
    """Read files that `may_be_coded`; None where one is not plain, before any warning is given.

    Parameters
    ----------
    found : Found
        What the paths hold.
    spec : ReadingSpec
    known : function
        Given the ids that were read, returns tables of models and of items, or None.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When the tables of models or items do not fit, or the matrix would not fit the memory.
    """
    paths = [path for some in found.paths.values() for path in some]
    cells = StreamedCells(spec.repeats)
    try:
        if "responses" in found.paths:
            tables = _read_response_file(paths[0], cells, progress)
        else:
            _read_tables(paths, cells, spec, progress)
            tables = pl.DataFrame(schema={"model_id": pl.String}), _item_table(cells)
        observed = _observed(cells, spec)
    except (NotPlainError, DataError, ValueError, *UNREADABLE):
        return None
    rows = ResponseRows(
        joined_source([joined_source([str(path) for path in some]) for some in found.paths.values()]),
        cells.models.labels(cells.kinds.get("model_id")),
        cells.items.labels(cells.kinds.get("item_id")),
        np.empty(0),
        model_table=tables[0],
        item_table=tables[1],
    )
    return _told(cells, rows, spec, known, n_known=int(np.count_nonzero(observed)))


def may_be_coded(found: Found, spec: ReadingSpec) -> bool:
    """Whether these are tables, or one response file, and nothing was asked for that is settled on whole tables."""
    is_asked = spec.true_value is not None or spec.prefix_scenario or spec.model_id is not None or spec.model_names
    has_tasks = bool(spec.tasks or spec.exclude_tasks)
    if not CAN_STREAM or found.problems or is_asked or has_tasks or spec.repeats == "count":
        return False
    forms = [form for form, paths in found.paths.items() for _ in paths]
    return forms == ["responses"] or all(form in {"auto", *LAYOUTS} for form in forms)


def _read_tables(paths: Sequence[Path], cells: StreamedCells, spec: ReadingSpec, progress: ProgressCallback) -> None:
    """Read tables, long or wide, one after the other."""
    for number, path in enumerate(paths):
        kind = file_kind(path)
        if path.suffix.lower() in {".json", *PACKED}:  # one array; what a packed file grows to is looked at first
            raise NotPlainError
        cells.files.append(FileTotals(str(path)))
        parts = _Parts(cells, spec, can_be_wide=kind != "json")
        for batch in table_batches(path, kind, parts.keep, text=text_columns(spec), in_each=parts.in_each):
            _tell_progress(progress, path, cells.files[-1].n_rows, (number + batch.share) / len(paths))
            parts.add(batch)
        if not cells.files[-1].n_rows:
            raise NotPlainError


class _Parts:
    """Puts the parts of one table into cells, once its columns have told whether it is long or wide."""

    def __init__(self, cells: StreamedCells, spec: ReadingSpec, *, can_be_wide: bool) -> None:
        self._cells, self._spec, self._can_be_wide = cells, spec, can_be_wide
        self._wide: WideParts | None = None

    def keep(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the columns that are read."""
        source, layout = self._cells.files[-1].source, layout_of(columns, self._spec)
        if with_usual_names(columns, self._spec) is not self._spec:  # which is told once, and of the whole table
            raise NotPlainError
        if layout == "long":
            check_columns(source, columns, self._spec)
            return wanted_columns(columns, self._spec)
        if layout is None or not self._can_be_wide:
            raise NotPlainError
        check_wide(source, self._spec)
        self._wide = WideParts(self._cells, self._spec, layout)
        return columns

    def in_each(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the columns that every part has."""
        return columns if self._wide is None else self._wide.about

    def add(self, batch: Batch) -> None:
        """Put a part into its cells."""
        if self._wide is None:
            self._cells.add_long(batch.table, self._spec)
        else:
            self._wide.add(batch.table, is_from_first_row=batch.is_from_first_row)


def _read_response_file(
    path: Path, cells: StreamedCells, progress: ProgressCallback
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a response file; return its tables of models and items."""
    models, items = response_file_tables(path)
    for known, names in ((cells.models, models["model_id"]), (cells.items, items["item_id"])):
        known.add(names)
        if known.n_names != names.len():
            raise NotPlainError
    cells.files.append(FileTotals(str(path)))
    for batch in table_batches(path, "parquet", list):
        frame = batch.table.frame
        if "n_trials" in frame.columns and frame["n_trials"].null_count():
            raise NotPlainError
        _tell_progress(progress, path, cells.files[-1].n_rows, batch.share)
        model, item = cells.models.add(frame["model_id"]), cells.items.add(frame["item_id"])
        if cells.models.n_names != models.height or cells.items.n_names != items.height:
            raise NotPlainError
        trials = frame["n_trials"].to_numpy() if "n_trials" in frame.columns else None
        costs = {name: _floats(frame[name]) for name in frame.columns if name not in OWN_COLUMNS}
        cells.files[-1].units.update(dict.fromkeys(costs))  # also those that nobody knows
        cells.files[-1].n_rows += frame.height
        cells.put(model, item, _floats(frame["response"]), trials, costs)
    return models, items


def _tell_progress(progress: ProgressCallback, path: Path, n_rows: int, share: float) -> None:
    progress(f"reading files ({path.name}{f', {n_rows:,} rows' if n_rows else ''})", share)


def _item_table(cells: StreamedCells) -> pl.DataFrame:
    """Return scenario and subscenario of each item, where they are told."""
    columns = {"item_id": cells.items.names()}
    for name, (known, of_item) in cells.item_names.items():
        if known.n_names:
            numbers = np.full(cells.items.n_names, -1, dtype=np.int64)
            numbers[: of_item.size] = of_item[: numbers.size]
            lookup = pl.concat([known.names(), pl.Series("name", [None], dtype=pl.String)])
            columns[name] = lookup.gather(np.where(numbers < 0, known.n_names, numbers))
    return pl.DataFrame(columns)


def _observed(cells: StreamedCells, spec: ReadingSpec) -> BoolArray:
    """Return where there are responses; `NotPlainError` where there is something to say of those that are missing."""
    n_models, n_items = cells.models.n_names, cells.items.n_names
    if not n_models or not n_items:
        raise NotPlainError
    cells.response.grow(n_models, n_items)
    observed = cells.response.known(n_models, n_items)
    is_empty = not (observed.any(axis=1).all() and observed.any(axis=0).all())
    if (is_empty and spec.empty != "keep") or (spec.missing == "forbid" and not observed.all()):
        raise NotPlainError
    n_copies = _n_copies(cells, int(np.count_nonzero(observed)))
    if n_copies and (cells.has_attempts or spec.repeats == "mean"):
        raise NotPlainError
    return observed


def _n_copies(cells: StreamedCells, n_known: int) -> int:
    """Rows with a response beyond the first of each cell."""
    return sum(file.n_rows - file.n_missing for file in cells.files) - n_known


def _told(cells: StreamedCells, rows: ResponseRows, spec: ReadingSpec, known: Known, n_known: int) -> CodedResponses:
    """Give the warnings of reading, and join what is known of models and items."""
    for file in cells.files:
        if file.tells_of_missing:
            tell_of_missing(file.source, file.n_missing, file.n_rows)
    models, items = known(rows)
    shape = (rows.models.n_names, rows.items.n_names)
    costs = {unit: cells.costs.get(unit) or CodeArray() for file in cells.files for unit in file.units}
    n_arrays = 1 + (cells.n_trials is not None) + len(costs)
    stays_coded = n_arrays == 1 and cells.response.is_binary and are_many(*shape)
    bytes_each = BYTES_OF_CODES if stays_coded else 8.0
    check_matrix_fits(rows.source, *shape, n_responses=cells.n_rows, n_arrays=n_arrays, bytes_each=bytes_each)
    if spec.repeats != "last":
        tell_of_copies(rows.source, _n_copies(cells, n_known))
    for array in (cells.n_trials, *costs.values()):
        if array is not None:
            array.grow(*shape)
    return CodedResponses(
        cells.response,
        table_of_models(rows, models),
        with_scenario_columns(table_of_items(rows, items, spec)),
        cells.n_trials,
        costs,
    )
