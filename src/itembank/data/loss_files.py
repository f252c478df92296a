"""Losses of models on items, from a file: what the two-step law of pre-training goes through."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError, shown
from itembank.numerics.arrays import FloatArray

COLUMNS = ("model_id", "item_id", "loss")


def read_losses(path: str | Path, responses: ResponseMatrix) -> FloatArray:
    """Read a long table of losses, bits per byte of the right answer, for the models and items of responses.

    Parameters
    ----------
    path : str or Path
        Parquet or CSV with columns `model_id`, `item_id` and `loss`; rows of other models and items are left out.
    responses : ResponseMatrix

    Returns
    -------
    (n_models, n_items)
        NaN where the file says nothing.

    Raises
    ------
    DataError
        When a column is absent, a cell stands twice, a loss is no number, or no row belongs to the responses.
    """
    path = Path(path)
    table = _read(path)
    absent = [name for name in COLUMNS if name not in table.columns]
    if absent:
        raise DataError(f"{path}: losses need columns {shown(COLUMNS)}, got none named {shown(absent)}.")
    table = table.select(
        pl.col("model_id").cast(pl.String),
        pl.col("item_id").cast(pl.String),
        pl.col("loss").cast(pl.Float64, strict=False),
    )
    bad = table.filter(pl.col("loss").is_null())
    if bad.height:
        raise DataError(f"{path}: loss must be a number, got something else in {bad.height} rows: {_cells(bad)}.")
    repeated = table.filter(table.select("model_id", "item_id").is_duplicated())
    if repeated.height:
        raise DataError(f"{path}: each model and item must have one loss, got more for {_cells(repeated)}.")
    models = pl.DataFrame({"model_id": responses.model_ids}).with_row_index("row")
    items = pl.DataFrame({"item_id": responses.item_ids}).with_row_index("column")
    known = table.join(models, on="model_id").join(items, on="item_id")
    if not known.height:
        raise DataError(f"{path}: no row belongs to a model and an item of the responses. Check the ids.")
    values = np.full((responses.n_models, responses.n_items), np.nan)
    values[known["row"].to_numpy(), known["column"].to_numpy()] = known["loss"].to_numpy()
    return values


def _read(path: Path) -> pl.DataFrame:
    """Read Parquet or CSV by the file's name."""
    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: must be a Parquet or CSV table: {error}") from error


def _cells(rows: pl.DataFrame) -> str:
    """Name the first few cells."""
    return shown([f"{model} / {item}" for model, item in rows.select("model_id", "item_id").iter_rows()])
