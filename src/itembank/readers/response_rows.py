"""`response_file_rows`: our own files as rows."""

import base64
import io
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.files.documents import is_sealed, seal_holds
from itembank.readers.rows import ResponseRows
from itembank.readers.table_files import read_parquet_file
from itembank.responses.error_kinds import KINDS, Errors
from itembank.responses.labels import names_of
from itembank.responses.lost_answers import LostAnswers, counted_as
from itembank.responses.opening import read_parquet, read_parquet_metadata, translated
from itembank.responses.response_files import ERRORS_KEY, ITEMS_KEY, MODELS_KEY, SCHEMA_VERSION, VERSION_KEY
from itembank.responses.responses import DEFAULT_SCENARIO


def response_file_rows(path: Path) -> ResponseRows:
    """Read a response file as rows, in the order of its matrix, in which lost answers are missing."""
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
        of_items = {"scenario", "subscenario"}  # told by the table of items
        table = read_parquet_file(path, keep=lambda every: [name for name in every if name not in of_items]).frame
        return ResponseRows(str(path), _rows(table, models, items, errors), models, items, errors=errors)
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: the response file does not fit together ({error}). Import it again.") from error


def _rows(table: pl.DataFrame, models: pl.DataFrame, items: pl.DataFrame, errors: Errors | None) -> pl.DataFrame:
    """Return the frame of rows; ids that were whole numbers once are text here, and of no kind."""
    for key, known in (("model_id", models["model_id"]), ("item_id", items["item_id"])):
        if table[key].null_count() or not names_of(table[key]).is_in(known.implode()).all():
            raise ValueError(f"a row has a {key} that the file does not tell of")
    told = [name for name in table.columns if name not in {"model_id", "item_id", "n_trials", "n_errors", "error"}]
    frame = table.select(
        pl.col("model_id", "item_id").cast(pl.Categorical),
        *(pl.col(name).cast(pl.Float64).fill_null(np.nan) for name in told),
        *(pl.col(name).cast(pl.Int64) for name in table.columns if name == "n_trials"),
    )
    if "n_errors" not in table.columns:
        return frame
    kinds = {name: code for code, name in enumerate(KINDS)}
    kind = table["error"].cast(pl.String).replace_strict(kinds, default=0, return_dtype=pl.Int64)
    counted = LostAnswers(table["n_errors"].to_numpy(), kind.to_numpy(), errors or "missing")
    trials = frame["n_trials"].to_numpy() if "n_trials" in frame.columns else None
    response, n_trials = counted_as(frame["response"].to_numpy(), trials, counted, np.nan)
    frame = frame.with_columns(table["n_errors"], kind.alias("error"), response=response)
    return frame if n_trials is None else frame.with_columns(n_trials=n_trials)
