"""The response file: one long Parquet file that carries everything known, readable by any Parquet reader.

Columns: `model_id`, `item_id`, `scenario`, `subscenario`, `response` and, where known, `n_trials`, costs, and
`n_errors` and `error` (lost attempts, and what they ended in); one row a model and item, model after model. What else
is known of models and items travels in the file's key-value metadata
(`itembank.models`, `itembank.items`: a Parquet table each, in base64), so that the file is never apart from it. The
digest of the whole file (`itembank.digest`) is checked before anything is read (`readers.response_rows`).
"""

import base64
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from itembank.errors import DataError, ParameterError
from itembank.files.atomic import check_destination, replacing_file
from itembank.files.documents import BLANK, DIGEST_KEY, PARQUET_MARK, is_sealed, seal
from itembank.numerics.arrays import FloatArray
from itembank.numerics.blocks import CELLS_AT_ONCE
from itembank.responses.opening import read_parquet_metadata
from itembank.responses.responses import ResponseMatrix

SCHEMA_VERSION = "1"
VERSION_KEY = "itembank.schema_version"
MODELS_KEY = "itembank.models"
ITEMS_KEY = "itembank.items"
ERRORS_KEY = "itembank.errors"
"""What lost answers count as in the column `response`."""


def write_responses(responses: ResponseMatrix, path: str | Path) -> None:
    """Write a response file, whole or not at all; `read_responses` gives the same matrix back.

    The rows are made and written a part at a time, so that the long table is never in memory.

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
        **({} if responses.lost is None else {ERRORS_KEY: responses.lost.errors}),
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
    if path.is_file() and not is_response_file(path):
        raise ParameterError(f"{path} is no response file, and is not overwritten. Delete it, or name another place.")


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


def _write_rows(responses: ResponseMatrix, path: Path, metadata: dict[str, str]) -> None:
    """Write one row for every cell of which something is known, group after group of rows."""
    names = {
        "model_id": responses.models["model_id"].cast(pl.Categorical),  # of names that rows repeat, stored once each
        **{column: responses.items[column].cast(pl.Categorical) for column in ("item_id", "scenario", "subscenario")},
    }
    parts = responses.long_tables(names)
    n_rows = sum(int(np.count_nonzero(part.told)) for part in responses.parts(CELLS_AT_ONCE))
    n_groups = max(1, round(n_rows / 122_880))
    size, more = divmod(n_rows, n_groups)
    groups = _regrouped(parts, [size + (number < more) for number in range(n_groups)])
    first = next(groups)

    def source(*_choices: object) -> Iterator[pl.DataFrame]:
        yield first
        yield from groups

    register_io_source(source, schema=first.schema).sink_parquet(path, metadata=metadata)


def _regrouped(parts: Iterator[pl.DataFrame], sizes: Sequence[int]) -> Iterator[pl.DataFrame]:
    """Put tables together, and cut them into tables of these sizes."""
    left = next(parts)
    for size in sizes:
        while left.height < size:
            left = pl.concat([left, next(parts)])
        yield left[:size].rechunk()
        left = left[size:]


def _packed_table(table: pl.DataFrame) -> str:
    """Return a table as text: Parquet in base64."""
    content = io.BytesIO()
    table.write_parquet(content)
    return base64.b64encode(content.getvalue()).decode("ascii")


COST = "cost:"


def pack_responses(responses: ResponseMatrix) -> pl.DataFrame:
    """Return a table of n_models * n_items rows: `response`, `n_trials` and `cost:...` where known; null is missing.

    Binary responses are stored as Boolean, others as they are (Float64 or Float32), so that unpacking gives the same
    numbers back.
    """
    is_binary = responses.is_binary
    parts = [_packed(part.responses, is_binary=is_binary) for part in responses.parts()]
    columns = {"response": pl.concat(parts, rechunk=True)}
    if responses.n_trials is not None:
        columns["n_trials"] = pl.Series(np.ascontiguousarray(responses.n_trials).ravel())
    for name, cost in responses.costs.items():
        columns[f"{COST}{name}"] = _packed(cost, is_binary=False)
    return pl.DataFrame(columns)


def unpack_responses(packed: pl.DataFrame, models: pl.DataFrame, items: pl.DataFrame) -> ResponseMatrix:
    """Return the response matrix of a packed table."""
    shape = (models.height, items.height)
    if packed.height != shape[0] * shape[1]:
        raise DataError(f"packed responses must have {shape[0]} x {shape[1]} rows, got {packed.height}.")
    costs = {
        name.removeprefix(COST): _unpacked(packed[name], shape) for name in packed.columns if name.startswith(COST)
    }
    n_trials = packed["n_trials"].to_numpy().reshape(shape) if "n_trials" in packed.columns else None
    return ResponseMatrix(_unpacked(packed["response"], shape), models, items, n_trials, costs)


def _packed(values: FloatArray, *, is_binary: bool) -> pl.Series:
    """One column; NaN becomes null."""
    flat = np.ascontiguousarray(values).ravel()
    series = pl.Series(flat, nan_to_null=True)
    return series.cast(pl.Boolean) if is_binary else series


def _unpacked(series: pl.Series, shape: tuple[int, int]) -> FloatArray:
    """Return the column as an array of float32 where it is one, else of float64; null becomes NaN."""
    kind = pl.Float32 if series.dtype == pl.Float32 else pl.Float64
    values: FloatArray = series.cast(kind).fill_null(np.nan).to_numpy(writable=True)
    return values.reshape(shape)
