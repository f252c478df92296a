"""Losses of models on items, such as bits per byte, beside their responses."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, shown
from itembank.numerics.arrays import FloatArray
from itembank.readers.table_files import read_table_file
from itembank.responses.responses import ResponseMatrix

LOSS_COLUMNS = ("loss", "bits_per_byte")
"""Columns that hold a loss, in order of preference; the second is that of `read_choice_scores`."""


def read_losses(
    source: str | Path | pl.DataFrame, responses: ResponseMatrix, *, column: str | None = None
) -> FloatArray:
    """Losses of these responses, from a table of `read_choice_scores` or any with `model_id`, `item_id` and a loss.

    Parameters
    ----------
    source : path or table
    responses : ResponseMatrix
    column : str, optional
        Column of the loss; by default `loss`, else `bits_per_byte`.

    Returns
    -------
    (n_models, n_items)
        NaN where the table has no row.

    Raises
    ------
    DataError
        When a column is absent, a row comes twice, or no row is of these models and items.
    """
    table = source if isinstance(source, pl.DataFrame) else read_table_file(Path(source), infer=True).frame
    column = column or next((name for name in LOSS_COLUMNS if name in table.columns), LOSS_COLUMNS[0])
    absent = [name for name in ("model_id", "item_id", column) if name not in table.columns]
    if absent:
        raise DataError(f"a table of losses must have the columns {shown(absent)}; it has {shown(table.columns, 12)}.")
    table = table.select(pl.col("model_id", "item_id").cast(pl.String), _numbers(table[column]))
    repeated = table.filter(table.select("model_id", "item_id").is_duplicated())
    if repeated.height:
        names = [f"{model} on {item}" for model, item, _ in repeated.unique("item_id", maintain_order=True).iter_rows()]
        raise DataError(f"a table of losses must have one row a model and item, got several for {shown(names)}.")
    models = pl.DataFrame({"model_id": responses.model_ids}).with_row_index("model")
    items = pl.DataFrame({"item_id": responses.item_ids}).with_row_index("item")
    found = table.join(models, on="model_id").join(items, on="item_id").drop_nulls(column)
    if found.height == 0:
        raise DataError(
            f"the table of losses must tell of the models and items of the responses, got none of them: it has models "
            f"{shown(table['model_id'].unique(maintain_order=True).to_list(), 3)}, the responses "
            f"{shown(responses.model_ids, 3)}."
        )
    losses = np.full(responses.responses.shape, np.nan)
    losses[found["model"].to_numpy(), found["item"].to_numpy()] = found[column].to_numpy()
    return losses


def _numbers(column: pl.Series) -> pl.Series:
    """Return a column as numbers; `DataError` when it holds something else."""
    values = column.cast(pl.Float64, strict=False)
    bad = values.is_null() & column.is_not_null()
    if bad.any():
        raise DataError(
            f"{column.name} must be a number in every row of a table of losses, got "
            f"{shown(column.filter(bad).to_list())}."
        )
    return values
