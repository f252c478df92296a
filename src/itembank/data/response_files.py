"""The response file: one long Parquet file that carries everything known, readable by any Parquet reader.

Columns: `model_id`, `item_id`, `scenario`, `subscenario`, `response` and, where known, `n_trials` and costs; one row
a model and item, model after model. What else is known of models and items travels in the file's key-value metadata
(`itembank.models`, `itembank.items`: a Parquet table each, in base64), so that the file is never apart from it. The
digest of the whole file (`itembank.digest`) is checked before anything is read.
"""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from itembank.data.atomic import check_destination, replacing_file
from itembank.data.coded_responses import blocks
from itembank.data.digests import BLANK, DIGEST_KEY, PARQUET_MARK, is_sealed, seal, seal_holds
from itembank.data.parquet import read_parquet, read_parquet_metadata
from itembank.data.readers.labels import Labels
from itembank.data.readers.opening import translated
from itembank.data.readers.parquet_files import read_parquet_file
from itembank.data.readers.rows import ResponseRows
from itembank.data.responses import DEFAULT_SCENARIO, ResponseMatrix
from itembank.errors import DataError, ParameterError
from itembank.numerics.arrays import BoolArray, FloatArray

SCHEMA_VERSION = "1"
VERSION_KEY = "itembank.schema_version"
MODELS_KEY = "itembank.models"
ITEMS_KEY = "itembank.items"
ROWS_IN_GROUP = 122_880
OWN_COLUMNS = ("model_id", "item_id", "scenario", "subscenario", "response", "n_trials")


def write_responses(responses: ResponseMatrix, path: str | Path) -> None:
    """Write a response file, whole or not at all; `read_responses` gives the same matrix back.

    The rows are made and written a part at a time, so that the long table is never in memory.

    Parameters
    ----------
    responses : ResponseMatrix
        Or the codes that `itembank import` holds.
    path : str or Path
        Must end in ``.parquet``.

    Raises
    ------
    ParameterError
        When the path ends in something else, or is a folder.

    Examples
    --------
    >>> import numpy as np
    >>> from itembank import ResponseMatrix, read_responses, write_responses
    >>> write_responses(ResponseMatrix.create(np.array([[0.0, 1.0], [1.0, np.nan]])), "responses.parquet")
    >>> read_responses("responses.parquet").model_ids
    ['model-1', 'model-2']
    """
    path = Path(path)
    check_response_destination(path)
    metadata = {
        VERSION_KEY: SCHEMA_VERSION,
        MODELS_KEY: _packed_table(responses.models),
        ITEMS_KEY: _packed_table(responses.items),
        DIGEST_KEY: BLANK,
    }
    with replacing_file(path) as temporary:
        _write_rows(responses, temporary, metadata)
        seal(temporary)


def check_response_destination(path: Path) -> None:
    """Raise `ParameterError` when no response file can be written at `path`; worth asking before long reading."""
    if path.suffix.lower() != ".parquet":
        raise ParameterError(f"a response file is a Parquet file; its name must end in .parquet, got {path.name!r}.")
    check_destination(path)


def is_response_file(path: Path) -> bool:
    """Whether a file was made by `write_responses`."""
    with path.open("rb") as file:
        if file.read(len(PARQUET_MARK)) != PARQUET_MARK:
            return False
    if is_sealed(path):  # known by its bytes: damaged metadata must not make it pass for another program's table
        return True
    try:
        return VERSION_KEY in read_parquet_metadata(path)
    except pl.exceptions.PolarsError:
        return False  # the reader of tables says what is wrong with it


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


def _write_rows(responses: ResponseMatrix, path: Path, metadata: dict[str, str]) -> None:
    """Write one row for every cell of which something is known, group after group of rows."""
    names = {
        "model_id": _categories(responses.models["model_id"]),
        **{column: _categories(responses.items[column]) for column in ("item_id", "scenario", "subscenario")},
    }
    parts = _long_tables(responses, names)
    n_rows = sum(int(np.count_nonzero(_told(part))) for part in blocks(responses))
    groups = _regrouped(parts, _group_sizes(n_rows))
    first = next(groups)

    def source(*_choices: object) -> Iterator[pl.DataFrame]:
        yield first
        yield from groups

    register_io_source(source, schema=first.schema).sink_parquet(path, metadata=metadata)


def _group_sizes(n_rows: int) -> list[int]:
    """Rows of each row group, as even as can be; the same on every machine, so that the bytes of the file are."""
    n_groups = max(1, round(n_rows / ROWS_IN_GROUP))
    size, more = divmod(n_rows, n_groups)
    return [size + (number < more) for number in range(n_groups)]


def _regrouped(parts: Iterator[pl.DataFrame], sizes: Sequence[int]) -> Iterator[pl.DataFrame]:
    """Put tables together, and cut them into tables of these sizes."""
    left = next(parts)
    for size in sizes:
        while left.height < size:
            left = pl.concat([left, next(parts)])
        yield left[:size].rechunk()
        left = left[size:]


def _long_tables(responses: ResponseMatrix, names: Mapping[str, pl.Series]) -> Iterator[pl.DataFrame]:
    """Give one row for every cell of which something is known, some models at a time."""
    of_items = ("item_id", "scenario", "subscenario")
    whole = pl.DataFrame()  # the items of a part in which everything is known: the next part mostly has the same
    first = 0
    for part in blocks(responses):
        told = _told(part)
        if told.all():
            model = np.repeat(np.arange(part.n_models), part.n_items)
            if whole.height != model.size:
                item = np.tile(np.arange(part.n_items), part.n_models)
                whole = pl.DataFrame({column: names[column].gather(item) for column in of_items})
            items = whole
        else:
            model, item = np.nonzero(told)
            items = pl.DataFrame({column: names[column].gather(item) for column in of_items})
        yield pl.DataFrame([names["model_id"].gather(model + first), *items, *_numbers(part, told)])
        first += part.n_models


def _numbers(responses: ResponseMatrix, told: BoolArray) -> Iterator[pl.Series]:
    """Give responses, trials and costs of these cells."""
    yield pl.Series("response", responses.responses[told], nan_to_null=True)
    if responses.n_trials is not None:
        yield pl.Series("n_trials", responses.n_trials[told].astype(np.int64))
    for unit, cost in responses.costs.items():
        yield pl.Series(unit, cost[told].astype(np.float64), nan_to_null=True)


def _told(responses: ResponseMatrix) -> BoolArray:
    """Where a response, trials or a cost is known, (n_models, n_items)."""
    told = responses.observed
    if responses.n_trials is not None:
        told |= responses.n_trials != 0
    for cost in responses.costs.values():
        told |= ~np.isnan(cost)
    return told


def _categories(names: pl.Series) -> pl.Series:
    """Names that rows may repeat, stored once each."""
    return names.cast(pl.Categorical)


def _packed_table(table: pl.DataFrame) -> str:
    """Return a table as text: Parquet in base64."""
    content = io.BytesIO()
    table.write_parquet(content)
    return base64.b64encode(content.getvalue()).decode("ascii")


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
