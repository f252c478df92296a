"""Tables of results: long or wide, told from their columns."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from itembank.data.readers.json_files import first_record
from itembank.data.readers.long_table import check_columns, rows_of_long, text_columns, wanted_columns
from itembank.data.readers.opening import Kind, Table
from itembank.data.readers.rows import ResponseRows
from itembank.data.readers.specs import Format, ReadingSpec
from itembank.data.readers.table_batches import table_batches
from itembank.data.readers.table_files import read_table_file
from itembank.data.readers.wide_table import rows_of_wide_items, rows_of_wide_models
from itembank.errors import DataError, DataWarning, shown

LAYOUTS: dict[Format, Callable[[Table, ReadingSpec], ResponseRows]] = {
    "long": rows_of_long,
    "wide-models": rows_of_wide_models,
    "wide-items": rows_of_wide_items,
}

WIDE_COLUMNS = ("model_id", "item_id", "scenario", "subscenario")
"""Columns of ours that a wide table may have."""
ROWS_LOOKED_AT = 1000
"""Of a wide table, to tell whether it holds responses."""


def table_rows(path: Path, spec: ReadingSpec) -> ResponseRows:
    """Read one table file, long or wide."""

    def keep(columns: Sequence[str]) -> Sequence[str]:
        if layout_of(columns, spec) != "long":
            return columns
        check_columns(str(path), columns, spec)
        return wanted_columns(columns, spec)

    table = read_table_file(path, keep=keep, text=text_columns(spec))
    return rows_of_table(table, spec)


def rows_of_table(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a table, long or wide."""
    layout = layout_of(table.frame.columns, spec)
    if layout is None:
        raise DataError(
            f"{table.source}: there must be a column model_id or item_id (both in a long table), got columns "
            f"{shown(table.frame.columns, 12)}. Say what the file calls them: columns={{'model_id': '...'}} "
            "(--column model_id=...)."
        )
    if layout != "long":
        check_wide(table.source, spec)
    return LAYOUTS[layout](table, spec)


def holds_responses(path: Path, kind: Kind, spec: ReadingSpec) -> bool:
    """Whether a file is a table of responses: a long one by its columns, a wide one by its first rows too."""
    if kind == "json" and layout_of(list(first_record(path)), spec) is None:
        return False
    batch = next(table_batches(path, kind, list, text=text_columns(spec)), None)
    if batch is None:
        return False
    table = replace(batch.table, frame=batch.table.frame.head(ROWS_LOOKED_AT))
    layout = layout_of(table.frame.columns, spec)
    if layout is None or table.frame.height == 0:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            if layout == "long":
                check_columns(table.source, table.frame.columns, spec)
            else:
                LAYOUTS[layout](table, spec)
        except DataError:
            return False
    return True


def check_wide(source: str, spec: ReadingSpec) -> None:
    """Raise `DataError` where choices were made that only long tables are read by."""
    unread = [name for name in spec.columns if name not in WIDE_COLUMNS]
    if unread:
        raise DataError(
            f"{source}: a wide table has no column {shown(unread)} of its own. Leave it out of columns=... (--column)."
        )
    if spec.prefix_scenario:
        raise DataError(
            f"{source}: prefix_scenario (--prefix-scenario) is for long tables, and this one is wide. Leave it out."
        )


def layout_of(columns: Sequence[str], spec: ReadingSpec) -> Format | None:
    """Which of the layouts a table with these columns has; None when none."""
    if spec.format in LAYOUTS:
        return spec.format
    if spec.response_column != "response":
        return "long"
    has_model, has_item = spec.column("model_id") in columns, spec.column("item_id") in columns
    has_counts = {spec.column("n_correct"), spec.column("n_trials")} <= set(columns)
    if (has_model and has_item) or ((has_model or has_item) and (spec.column("response") in columns or has_counts)):
        return "long"
    if has_item:
        return "wide-items"
    return "wide-models" if has_model else None
