"""Results that a log's reader has gathered, checked and made rows of as every long table is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from itembank.readers.long_table import rows_of_long
from itembank.readers.reading_specs import LONG_COLUMNS, ReadingSpec
from itembank.readers.rows import ResponseRows, rename_model
from itembank.responses.opening import Table

ALWAYS_TEXT = ("model_id", "item_id", "scenario", "subscenario", "seed", "epoch")


def rows_of_columns(
    source: str,
    columns: Mapping[str, Sequence[Any]],
    spec: ReadingSpec,
    *,
    models: Sequence[Mapping[str, Any]] = (),
    items: Sequence[Mapping[str, Any]] = (),
) -> ResponseRows:
    """Make rows of columns that have our names; a value of None is missing.

    Parameters
    ----------
    source : str
        For messages.
    columns : mapping of a long table's column to n_rows values
    spec : ReadingSpec
        Its choices for tables (what columns are called, words for right, the maximum) have no say: the reader has made
        responses of [0, 1] already.
    models, items : records with `model_id` or `item_id`
        What else is known of each model and item.

    Raises
    ------
    DataError
        As for a long table.
    """
    spec = replace(spec, columns={}, response_column="response", true_value=None, max_response=1.0)
    frame = pl.DataFrame([_series(name, columns[name]) for name in LONG_COLUMNS if name in columns])
    rows = rows_of_long(Table(source, frame), spec)
    rows = replace(
        rows,
        model_table=_with_known(rows.models.names.to_frame("model_id"), models),
        item_table=_with_known(rows.item_table, items),
    )
    return rows if spec.model_id is None else rename_model(rows, spec.model_id)


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """Make a column: text, whatever ids and names were, or numbers."""
    if name in ALWAYS_TEXT:
        return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
    return pl.Series(name, values, dtype=pl.Float64)


def _with_known(table: pl.DataFrame, records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Add what records tell to a table whose first column is the id; the first record of an id counts."""
    if not records:
        return table
    key = table.columns[0]
    known = pl.DataFrame(list(records), infer_schema_length=None, strict=False).unique(
        key, keep="first", maintain_order=True
    )
    new = [name for name in known.columns if name == key or name not in table.columns]
    return table.join(known.select(new), on=key, how="left", maintain_order="left")
