"""Which items of a bank were linked to it, batch by batch, and with what error: two columns of the item table."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from itembank.numerics.arrays import BoolArray
from itembank.responses.responses import ResponseMatrix

BATCH, LINKING_ERROR = "linked_after", "linking_error"
"""Columns of the item table: the version of the bank that a linked item came to, and the standard error of the mean
score on all items of its batch (0 to 1); null for items of a calibration."""


def with_batch(responses: ResponseMatrix, is_new: BoolArray, version: str, error: float) -> ResponseMatrix:
    """Mark the items (n_items,) that a link brought."""
    flags = pl.Series(is_new)
    items = responses.items.with_columns(
        pl.when(flags).then(pl.lit(version)).alias(BATCH), pl.when(flags).then(pl.lit(error)).alias(LINKING_ERROR)
    )
    return responses.with_tables(items=items)


def batches(items: pl.DataFrame) -> Iterator[tuple[BoolArray, float]]:
    """Give the items (n_items,) of each batch and its linking error."""
    if not {BATCH, LINKING_ERROR} <= set(items.columns):
        return
    version = items[BATCH].cast(pl.String)
    errors = items[LINKING_ERROR].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    for one in sorted(set(version.drop_nulls().to_list())):
        members = (version == one).fill_null(value=False).to_numpy()
        known = errors[members]
        if np.isfinite(known).any():
            yield members, float(np.nanmax(known))
