"""Response files, as rows or as their tables of models and items; `data.response_files` writes them."""

import base64
import io
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.files.documents import is_sealed, seal_holds
from itembank.numerics.arrays import FloatArray
from itembank.readers.parquet_files import read_parquet_file
from itembank.readers.rows import ResponseRows
from itembank.responses.labels import Labels
from itembank.responses.opening import read_parquet, read_parquet_metadata, translated
from itembank.responses.response_files import ITEMS_KEY, MODELS_KEY, OWN_COLUMNS, SCHEMA_VERSION, VERSION_KEY
from itembank.responses.responses import DEFAULT_SCENARIO


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
