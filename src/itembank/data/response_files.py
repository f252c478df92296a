"""The response file: one long Parquet file that carries everything known, readable by any Parquet reader.

Columns: `model_id`, `item_id`, `scenario`, `subscenario`, `response` and, where known, `n_trials` and costs; one row
a model and item, model after model. What else is known of models and items travels in the file's key-value metadata
(`itembank.models`, `itembank.items`: a Parquet table each, in base64), so that the file is never apart from it. The
digest of the whole file (`itembank.digest`) is checked before anything is read.
"""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.data.atomic import check_destination, replacing_file
from itembank.data.digests import BLANK, DIGEST_KEY, PARQUET_MARK, is_sealed, seal, seal_holds
from itembank.data.parquet import read_parquet, read_parquet_metadata
from itembank.data.readers.labels import Labels
from itembank.data.readers.opening import translated
from itembank.data.readers.parquet_files import read_parquet_file
from itembank.data.readers.rows import ResponseRows
from itembank.data.responses import DEFAULT_SCENARIO, ResponseMatrix
from itembank.errors import DataError, ParameterError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

SCHEMA_VERSION = "1"
VERSION_KEY = "itembank.schema_version"
MODELS_KEY = "itembank.models"
ITEMS_KEY = "itembank.items"
OWN_COLUMNS = ("model_id", "item_id", "scenario", "subscenario", "response", "n_trials")


def write_responses(responses: ResponseMatrix, path: str | Path) -> None:
    """Write a response file, whole or not at all; `read_responses` gives the same matrix back.

    Parameters
    ----------
    responses : ResponseMatrix
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
    table = _long_table(responses)
    with replacing_file(path) as temporary:
        table.write_parquet(temporary, metadata=metadata)
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
    table = read_parquet_file(path, keep=list).frame
    try:
        return _rows(str(path), table, _unpacked_table(metadata[MODELS_KEY]), _unpacked_table(metadata[ITEMS_KEY]))
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        raise DataError(f"{path}: the response file does not fit together ({error}). Import it again.") from error


def _long_table(responses: ResponseMatrix) -> pl.DataFrame:
    """One row for every cell of which something is known."""
    told = _told(responses)
    model, item = np.nonzero(told)
    columns: dict[str, Any] = {
        "model_id": _categories(responses.models["model_id"], model),
        "item_id": _categories(responses.items["item_id"], item),
        "scenario": _categories(responses.items["scenario"], item),
        "subscenario": _categories(responses.items["subscenario"], item),
        "response": pl.Series(responses.responses[told], nan_to_null=True),
    }
    if responses.n_trials is not None:
        columns["n_trials"] = responses.n_trials[told].astype(np.int64)
    for unit, cost in responses.costs.items():
        columns[unit] = pl.Series(cost[told].astype(np.float64), nan_to_null=True)
    return pl.DataFrame(columns)


def _told(responses: ResponseMatrix) -> BoolArray:
    """Where a response, trials or a cost is known, (n_models, n_items)."""
    told = responses.observed
    if responses.n_trials is not None:
        told |= responses.n_trials != 0
    for cost in responses.costs.values():
        told |= ~np.isnan(cost)
    return told


def _categories(names: pl.Series, index: IntArray) -> pl.Series:
    """Names of rows, stored once each."""
    known = names.drop_nulls().unique(maintain_order=True)
    return names.cast(pl.Enum(known)).gather(index).cast(pl.Categorical)


def _packed_table(table: pl.DataFrame) -> str:
    """Return a table as text: Parquet in base64."""
    content = io.BytesIO()
    table.write_parquet(content)
    return base64.b64encode(content.getvalue()).decode("ascii")


def _unpacked_table(text: str) -> pl.DataFrame:
    return read_parquet(io.BytesIO(base64.b64decode(text)))


def _rows(source: str, table: pl.DataFrame, models: pl.DataFrame, items: pl.DataFrame) -> ResponseRows:
    """Make rows; models and items keep their order, also those without rows."""
    if (items["scenario"] == DEFAULT_SCENARIO).all():
        items = items.drop("scenario")  # nobody named one, so other sources may
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
