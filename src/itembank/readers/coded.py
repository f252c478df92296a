"""`coded_responses`: tables and response files as codes, in a byte or so a cell."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.files.memory import check_matrix_fits
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.progress import ProgressCallback
from itembank.readers.detection import Found
from itembank.readers.long_table import check_columns, tell_of_missing, text_columns, wanted_columns
from itembank.readers.matrix import table_of_items, table_of_models
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.repeats import tell_of_copies
from itembank.readers.response_rows import response_file_tables
from itembank.readers.rows import ResponseRows, joined_source
from itembank.readers.streamed import FileTotals, NotPlainError, StreamedCells
from itembank.readers.streamed_wide import WideParts
from itembank.readers.table import LAYOUTS, check_wide, layout_of, with_usual_names
from itembank.readers.table_batches import Batch, table_batches
from itembank.responses.code_array import CodeArray
from itembank.responses.coded_responses import CodedResponses, are_many
from itembank.responses.opening import PACKED, UNREADABLE, file_kind
from itembank.responses.response_files import OWN_COLUMNS
from itembank.responses.responses import with_scenario_columns

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


def _floats(column: pl.Series) -> FloatArray:
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy()


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
