"""`coded_responses`: tables and response files read a part at a time into codes, in a byte or so a cell.

The readers of whole tables make rows of each part. What is read so is plain: one response a cell (or copies of it), and
nothing to say of any part. Where a file is not, reading stops with `NotPlainError` before any warning is given, and the
same readers are given the whole file.
"""

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning
from itembank.files.documents import is_sealed, seal_holds
from itembank.files.memory import check_matrix_fits, most_memory
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.progress import ProgressCallback
from itembank.readers.chosen_rows import is_row_number
from itembank.readers.collecting import Found
from itembank.readers.columns import NameCodes, tell_of_look_alikes
from itembank.readers.long_table import (
    Known,
    check_columns,
    other_names,
    rows_of_long,
    text_columns,
    wanted_columns,
)
from itembank.readers.matrix import SAME, table_of_items, table_of_models, tell_of_copies
from itembank.readers.reading_specs import COST_COLUMNS, Format, ReadingSpec
from itembank.readers.rows import ResponseRows, joined_source, row_problems
from itembank.readers.table import LAYOUTS, WIDE_COLUMNS, check_wide, layout_of, rows_of_wide, with_usual_names
from itembank.readers.table_files import read_parquet_file, table_batches
from itembank.readers.telling_apart import is_plain
from itembank.responses.code_array import CodeArray
from itembank.responses.coded_responses import CodedResponses, are_many
from itembank.responses.error_kinds import ERROR_COLUMNS, KINDS, STATUS_COLUMNS, Errors, is_called
from itembank.responses.labels import IdKind, Labels
from itembank.responses.lost_answers import LostAnswers, counted_as
from itembank.responses.opening import PACKED, UNREADABLE, file_kind, read_parquet, read_parquet_metadata, translated
from itembank.responses.response_files import (
    ERRORS_KEY,
    ITEMS_KEY,
    MODELS_KEY,
    OWN_COLUMNS,
    SCHEMA_VERSION,
    VERSION_KEY,
)
from itembank.responses.responses import DEFAULT_SCENARIO, with_scenario_columns

MOST_CELLS, CELLS_A_ROW = 2**28, 64
"""A matrix of more cells than both, at so many a row, is nearly empty; whole tables are judged for that."""
CELLS_AT_ONCE = 1_000_000
"""Cells of a wide table that are made rows of at a time, each of which takes a hundred bytes meanwhile."""


class NotPlainError(Exception):
    """A file holds something that is only settled when all of it is there."""


@dataclass(slots=True)
class FileTotals:
    """What is counted of one file; of a wide table every cell is a row."""

    source: str
    is_long: bool = False
    n_rows: int = 0
    n_missing: int = 0  # Rows without a response
    units: dict[str, None] = field(default_factory=dict)  # Of the costs that it tells
    others: list[str] = field(default_factory=list)  # Columns that are not read


@dataclass(slots=True)
class StreamedCells:
    """Cells that rows were put into, a part of a file after the other."""

    repeats: str  # Of the spec: 'last' lets later rows count, every other choice must not matter
    known: Known = field(default_factory=lambda: {"model_id": NameCodes(), "item_id": NameCodes()})
    model_ids: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String))
    item_ids: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String))
    kinds: dict[str, IdKind] = field(default_factory=dict)
    item_table: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"item_id": pl.String}))
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

    def put(self, rows: ResponseRows) -> None:
        """Put some rows of the last file into their cells; of copies the first counts.

        Their models and items must be numbered, and their names begin, as those of all rows before.

        `NotPlainError` when rows of one cell are no copies, or what becomes of one depends on rows to come.
        """
        self.model_ids, self.item_ids = rows.models.names, rows.items.names
        for name, labels in (("model_id", rows.models), ("item_id", rows.items)):
            if labels.kind is not None and self.kinds.setdefault(name, labels.kind) != labels.kind:
                raise NotPlainError
        if rows.lost is not None:
            raise NotPlainError
        self.has_attempts |= rows.seeds is not None
        self.files[-1].n_rows += rows.n_rows
        present = ~np.isnan(rows.response)
        model, item, response, trials, costs = self._numbers(rows, present)
        columns = self._columns(response, trials, costs)
        n_cells = self.model_ids.len() * self.item_ids.len()
        if n_cells > max(MOST_CELLS, CELLS_A_ROW * self.n_rows) or 8.0 * n_cells > most_memory():
            raise NotPlainError
        for array, _ in columns:
            array.grow(self.model_ids.len(), self.item_ids.len())
        if self.repeats == "last":
            for array, values in columns:
                array.put(model, item, values)
            return
        new = ~self.response.is_known(model, item)
        whole = bool(new.all())
        chosen = slice(None, None, -1) if whole else np.flatnonzero(new)[::-1]  # of several for one cell the last stays
        for array, values in columns:
            array.put(model[chosen], item[chosen], values[chosen])
        cell = model * self.item_ids.len() + item
        if not (whole and np.all(cell[1:] > cell[:-1])):  # where cells ascend, none comes twice
            self._check_copies(model, item, columns[: 1 if trials is None else 2])

    def _check_copies(self, model: IntArray, item: IntArray, columns: Sequence[tuple[CodeArray, FloatArray]]) -> None:
        """Raise `NotPlainError` where the response or the trials of a row are not those of its cell."""
        for array, values in columns:
            if not array.holds(model, item, values, within=SAME if array is self.response else 0.0):
                raise NotPlainError

    def _numbers(
        self, rows: ResponseRows, present: BoolArray
    ) -> tuple[IntArray, IntArray, FloatArray, IntArray | None, Mapping[str, FloatArray]]:
        """Return places and numbers of the rows with a response; the others must tell neither trials nor costs."""
        model, item, response, trials = rows.models.index, rows.items.index, rows.response, rows.n_trials
        if present.all():
            return model, item, response, trials, rows.costs
        missing = ~present
        if trials is not None and np.any(trials[missing] != 0):
            raise NotPlainError
        if any(np.any(~np.isnan(cost[missing])) for cost in rows.costs.values()):
            raise NotPlainError
        self.files[-1].n_missing += int(np.count_nonzero(missing))
        trials = None if trials is None else trials[present]
        costs = {unit: cost[present] for unit, cost in rows.costs.items()}
        return model[present], item[present], response[present], trials, costs

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
            if unit in self.costs or not np.isnan(cost).all():
                columns.append((self.costs.setdefault(unit, CodeArray()), cost))
        return columns

    def tell_of_items(self, table: pl.DataFrame) -> None:
        """Keep what a part tells of all items so far, in order; what two parts tell of one must be the same."""
        told = pl.concat([self.item_table, table.select("item_id")[self.item_table.height :]], how="diagonal")
        for name in table.columns[1:]:
            new = table[name]
            old = told[name] if name in told.columns else new
            if (old != new).any():
                raise NotPlainError
            told = told.with_columns(old.zip_with(old.is_not_null(), new).alias(name))
        self.item_table = told


def response_file_rows(path: Path) -> ResponseRows:
    """Read a response file as rows, in the order of its matrix."""
    models, items, errors = _response_file_tables(path)
    table = read_parquet_file(path, keep=list).frame
    try:
        return _rows_of_response_file(path, table, models, items, errors)
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        raise _misfit(path, error) from error


def _response_file_tables(path: Path) -> tuple[pl.DataFrame, pl.DataFrame, Errors | None]:
    """Return what a response file tells of models, of items and of lost answers, once it is known to be whole."""
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
    try:
        models, items = (read_parquet(io.BytesIO(base64.b64decode(metadata[key]))) for key in (MODELS_KEY, ITEMS_KEY))
        if (items["scenario"] == DEFAULT_SCENARIO).all():  # nobody named one, and other sources may
            items = items.drop("scenario")
        errors = next((one for one in get_args(Errors) if one == metadata.get(ERRORS_KEY)), None)
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        raise _misfit(path, error) from error
    return models, items, errors


def _misfit(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: the response file does not fit together ({error}). Import it again.")


def _rows_of_response_file(
    path: Path, table: pl.DataFrame, models: pl.DataFrame, items: pl.DataFrame, errors: Errors | None
) -> ResponseRows:
    """Make rows in which lost answers are missing; models and items keep their order, also those without rows."""

    def labels(key: str, names: pl.Series) -> Labels:
        index = table[key].cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
        return Labels(names.rename("name"), index)  # ids that were whole numbers once are text here: of no kind

    def floats(name: str) -> FloatArray:
        return table[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    response = floats("response")
    n_trials = table["n_trials"].to_numpy() if "n_trials" in table.columns else None
    lost = None
    if "n_errors" in table.columns:
        kinds = {name: code for code, name in enumerate(KINDS)}
        kind = table["error"].cast(pl.String).replace_strict(kinds, default=0, return_dtype=pl.Int64).to_numpy()
        counted = LostAnswers(table["n_errors"].to_numpy(), kind, errors or "missing")
        response, n_trials = counted_as(response, n_trials, counted, np.nan)
        lost = replace(counted, errors="missing")
    return ResponseRows(
        str(path),
        labels("model_id", models["model_id"]),
        labels("item_id", items["item_id"]),
        response,
        n_trials,
        {name: floats(name) for name in table.columns if name not in OWN_COLUMNS},
        lost=lost,
        errors=errors,
        model_table=models,
        item_table=items,
    )


KnownTables = Callable[[ResponseRows], tuple[pl.DataFrame | None, pl.DataFrame | None]]
BYTES_OF_CODES = 3.0
"""A cell of right and wrong takes: one, half as much for arrays that grow, and one where a calibration turns them."""
CAN_STREAM = hasattr(pl, "Categories")
"""Whether this release of Polars has codes of names that hold from one part of a file to the next (1.32)."""


def may_be_coded(found: Found, spec: ReadingSpec) -> bool:
    """Whether these are tables, or one response file, and nothing was asked for that is settled on whole tables."""
    is_asked = bool(
        spec.true_value is not None or spec.prefix_scenario or spec.model_id is not None or spec.model_names
    )
    has_rows_chosen = bool(spec.metric or spec.where or spec.drop_columns or spec.missing_values)
    is_asked = is_asked or (has_rows_chosen and "responses" not in found.paths)
    has_tasks = bool(spec.tasks or spec.exclude_tasks)
    if not CAN_STREAM or found.problems or is_asked or has_tasks or spec.repeats == "count":
        return False
    forms = [form for form, paths in found.paths.items() for _ in paths]
    suffixes = {path.suffix.lower() for paths in found.paths.values() for path in paths}
    if not suffixes.isdisjoint({".json", *PACKED}):  # one array; what a packed file grows to is looked at first
        return False
    return forms == ["responses"] or all(form in {"auto", *LAYOUTS} for form in forms)


def coded_responses(
    found: Found, spec: ReadingSpec, known: KnownTables, progress: ProgressCallback
) -> CodedResponses | None:
    """Read files that `may_be_coded`; None where one is not plain, before any warning is given.

    `known` is given the ids that were read, and returns tables of models and of items, or None.
    """
    paths = [path for some in found.paths.values() for path in some]
    cells = StreamedCells(spec.repeats)
    model_table = pl.DataFrame(schema={"model_id": pl.String})

    def tell(share: float) -> None:
        name, n_rows = Path(cells.files[-1].source).name, cells.files[-1].n_rows
        place = (len(cells.files) - 1 + share) / len(paths)
        progress(f"reading files ({name}{f', {n_rows:,} rows' if n_rows else ''})", place)

    try:
        if "responses" in found.paths:
            model_table = _put_response_file(paths[0], cells, tell)
        else:
            with warnings.catch_warnings():  # what would be said of a part is said of the whole
                warnings.simplefilter("error", DataWarning)
                for path in paths:
                    _put_table(path, cells, spec, tell)
                for name, ids in (("model_id", cells.model_ids), ("item_id", cells.item_ids)):
                    tell_of_look_alikes(cells.files[-1].source, ids, name)
        n_copies = _n_copies(cells, spec)
    except (NotPlainError, DataError, DataWarning, ValueError, *UNREADABLE):
        return None
    rows = ResponseRows(
        joined_source([joined_source([str(path) for path in some]) for some in found.paths.values()]),
        Labels(cells.model_ids, np.empty(0, dtype=np.int64), cells.kinds.get("model_id")),
        Labels(cells.item_ids, np.empty(0, dtype=np.int64), cells.kinds.get("item_id")),
        np.empty(0),
        model_table=model_table,
        item_table=cells.item_table,
    )
    return _told(cells, rows, spec, known, n_copies)


def _n_copies(cells: StreamedCells, spec: ReadingSpec) -> int:
    """Count rows beyond the first of each cell; `NotPlainError` where they, or empty cells, are to be settled."""
    shape = (cells.model_ids.len(), cells.item_ids.len())
    if 0 in shape:
        raise NotPlainError
    cells.response.grow(*shape)
    observed = cells.response.known(*shape)
    if shape[0] == 1 and not observed.all():  # what a table of one model leaves empty was lost
        raise NotPlainError
    is_empty = not (observed.any(axis=1).all() and observed.any(axis=0).all())
    if (is_empty and spec.empty != "keep") or (spec.missing == "forbid" and not observed.all()):
        raise NotPlainError
    n_copies = sum(file.n_rows - file.n_missing for file in cells.files) - int(np.count_nonzero(observed))
    if n_copies and (cells.has_attempts or spec.repeats == "mean" or any(file.others for file in cells.files)):
        raise NotPlainError  # columns that are not read may tell them apart
    return n_copies


def _told(
    cells: StreamedCells, rows: ResponseRows, spec: ReadingSpec, known: KnownTables, n_copies: int
) -> CodedResponses:
    """Give the warnings of reading, and join what is known of models and items."""
    models, items = known(rows)
    shape = (rows.models.n_names, rows.items.n_names)
    costs = {unit: cells.costs.get(unit) or CodeArray() for file in cells.files for unit in file.units}
    n_arrays = 1 + (cells.n_trials is not None) + len(costs)
    stays_coded = n_arrays == 1 and cells.response.is_binary and are_many(*shape)
    bytes_each = BYTES_OF_CODES if stays_coded else 8.0
    check_matrix_fits(rows.source, *shape, n_responses=cells.n_rows, n_arrays=n_arrays, bytes_each=bytes_each)
    if spec.repeats != "last":
        tell_of_copies(rows.source, n_copies, are_counted=cells.response.is_binary)
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


def _put_table(path: Path, cells: StreamedCells, spec: ReadingSpec, tell: Callable[[float], None]) -> None:
    """Put the rows of a table, long or wide, into their cells."""
    kind = file_kind(path)
    file = FileTotals(str(path))
    cells.files.append(file)
    about: list[str] = []  # columns of a wide table that hold no responses

    def keep(columns: Sequence[str]) -> Sequence[str]:
        layout = _plain_layout(columns, spec)
        file.is_long = layout == "long"
        if file.is_long:
            check_columns(file.source, columns, spec)
            file.others = _others(columns, spec)
            return wanted_columns(columns, spec)
        if kind == "json":
            raise NotPlainError
        check_wide(file.source, spec)
        about[:] = [spec.column(name) for name in (WIDE_COLUMNS[:1] if layout == "wide-models" else WIDE_COLUMNS[1:])]
        return columns

    def in_each(columns: Sequence[str]) -> Sequence[str]:
        return columns if file.is_long else about

    passes: list[list[IntArray]] = []  # items of the rows, each time that the file is gone through
    for batch in table_batches(path, kind, keep, text=text_columns(spec), in_each=in_each):
        tell(batch.share)
        if batch.is_from_first_row:
            passes.append([])
        for part in _at_once(batch.table.frame, file):
            rows_of = rows_of_long if file.is_long else rows_of_wide
            rows = rows_of(replace(batch.table, frame=part), spec, cells.known)
            cells.put(rows)
            cells.tell_of_items(rows.item_table)
            file.units |= dict.fromkeys(rows.costs)
            if len(about) > 1:  # one row an item
                passes[-1].append(rows.items.index[: part.height])
    if not file.n_rows or any(map(_has_repeated, passes)):
        raise NotPlainError
    file.units = {unit: None for unit in COST_COLUMNS if unit in file.units}


def _others(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Columns of a long table that are not read; none may say that an item, or a model, is another one."""
    others = other_names(columns, spec)
    if any(is_plain(name) or is_called(name, (*STATUS_COLUMNS, *ERROR_COLUMNS)) for name in others):
        raise NotPlainError
    return others


def _plain_layout(columns: Sequence[str], spec: ReadingSpec) -> Format:
    """Tell the layout of a table by its columns, which must have the names that the spec knows."""
    layout = layout_of(columns, spec)
    if layout is None or with_usual_names(columns, spec) is not spec:  # which is told once, and of the whole table
        raise NotPlainError
    if layout != "long" and any(map(is_row_number, columns)):
        raise NotPlainError
    return layout


def _at_once(frame: pl.DataFrame, file: FileTotals) -> Iterator[pl.DataFrame]:
    """Cut the rows of a wide table into parts that are not too large as rows of one cell each."""
    return iter([frame]) if file.is_long else frame.iter_slices(max(1, CELLS_AT_ONCE // max(1, frame.width)))


def _has_repeated(parts: Sequence[IntArray]) -> bool:
    numbers = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    return bool(np.unique(numbers).size < numbers.size)


def _put_response_file(path: Path, cells: StreamedCells, tell: Callable[[float], None]) -> pl.DataFrame:
    """Put the rows of a response file into their cells, and return its table of models."""
    models, cells.item_table, errors = _response_file_tables(path)
    file = FileTotals(str(path))
    cells.files.append(file)
    for batch in table_batches(path, "parquet", list):
        tell(batch.share)
        frame = batch.table.frame
        rows = _rows_of_response_file(path, frame, models, cells.item_table, errors)
        is_untold = rows.n_trials is not None and np.any((rows.n_trials < 1) & ~np.isnan(rows.response))
        n_null = sum(frame[name].null_count() for name in ("model_id", "item_id", "n_trials") if name in frame.columns)
        if is_untold or n_null or row_problems(rows):
            raise NotPlainError
        file.units |= dict.fromkeys(rows.costs)  # also those that nobody knows
        cells.put(rows)
    return models
