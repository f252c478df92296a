"""Tables read a part at a time, so that a file larger than memory can be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from itembank.readers.csv_files import csv_batches
from itembank.readers.json_files import json_batches
from itembank.readers.parquet_files import check_end
from itembank.responses.opening import Keep, Kind, Table, quiet, translated

ROWS_AT_ONCE = 500_000
"""Rows of a part of a Parquet file that has few columns."""
CELLS_AT_ONCE = 2_000_000
"""Cells of a part of one that has many."""
MANY_COLUMNS = 32
"""More columns than a long table has; a Parquet file that keeps so many is read some columns at a time, as it lies."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a file."""

    table: Table
    share: float  # How much of the file lies before them, in [0, 1]
    is_from_first_row: bool  # Whether no rows of these columns came before


def table_batches(
    path: Path, kind: Kind, keep: Keep, *, text: Sequence[str] = (), in_each: Keep = list
) -> Iterator[Batch]:
    """Give the rows of a file a part at a time: the table of `read_table_file`, cut into parts.

    Parameters
    ----------
    path : Path
    kind : 'parquet', 'csv' or 'json'
    keep : function from column names to those to load
    text : column names
        Read as text from JSON Lines, where types are noted.
    in_each : function from the columns that are kept to those that every part has
        Where a file is read some columns at a time.

    Raises
    ------
    DataError
        When the file, or the part that is asked for, cannot be read.
    ValueError
        When it cannot be read in parts.
    """
    if kind == "parquet":
        yield from _of_parquet(path, keep, in_each)
        return
    n_bytes = max(1, path.stat().st_size)  # of a gzipped file too few: its share stays below what is said
    if kind == "json":
        for table, n_before in json_batches(path, keep=keep, text=text):
            yield Batch(table, n_before / n_bytes, is_from_first_row=n_before == 0)
        return
    for frame, n_before in csv_batches(path, keep=keep):
        table = Table(str(path), frame, is_typed=False)
        yield Batch(table, min(1.0, n_before / n_bytes), is_from_first_row=n_before == 0)


def _of_parquet(path: Path, keep: Keep, in_each: Keep) -> Iterator[Batch]:
    check_end(path)
    with translated(path, "Parquet file"):
        columns, n_rows = _shape(path)
        kept = set(keep(columns))
        places = [place for place, name in enumerate(columns) if name in kept]  # names like ^x$ would be patterns
        if len(places) > MANY_COLUMNS:
            always = in_each([columns[place] for place in places])
            yield from _some_columns_each(path, columns, places, n_rows, always)
            return
        for first in range(0, max(n_rows, 1), ROWS_AT_ONCE):
            table = Table(str(path), _some_rows(path, places, first, ROWS_AT_ONCE))
            yield Batch(table, first / max(n_rows, 1), is_from_first_row=first == 0)


def _some_columns_each(
    path: Path, columns: Sequence[str], places: Sequence[int], n_rows: int, always: Sequence[str]
) -> Iterator[Batch]:
    """Give all rows of some columns at a time, so that each column is read once."""
    first_places = [place for place in places if columns[place] in always]
    others = [place for place in places if columns[place] not in always]
    step = max(1, CELLS_AT_ONCE // max(1, n_rows))
    for first in range(0, len(others), step):
        table = Table(str(path), _some_rows(path, [*first_places, *others[first : first + step]], 0, n_rows))
        yield Batch(table, first / len(others), is_from_first_row=True)


@quiet
def _shape(path: Path) -> tuple[list[str], int]:
    """Names of the columns, and the number of rows."""
    scan = pl.scan_parquet(path, glob=False)
    return scan.collect_schema().names(), int(scan.select(pl.len()).collect().item())


@quiet
def _some_rows(path: Path, places: Sequence[int], first: int, n_rows: int) -> pl.DataFrame:
    """Read some rows of the columns at these places."""
    return pl.scan_parquet(path, glob=False).select(pl.nth(*places)).slice(first, n_rows).collect()
