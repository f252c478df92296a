"""Tables read a part at a time, so that a file larger than memory can be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from itembank.data.parquet import quiet
from itembank.data.readers.csv_files import csv_batches
from itembank.data.readers.json_files import json_batches
from itembank.data.readers.opening import Keep, Kind, Table, translated
from itembank.data.readers.parquet_files import check_end

ROWS_AT_ONCE = 500_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a file.

    Attributes
    ----------
    table : Table
    share : float
        How much of the file lies before them, in [0, 1].
    """

    table: Table
    share: float


def table_batches(path: Path, kind: Kind, keep: Keep, text: Sequence[str] = ()) -> Iterator[Batch]:
    """Give the rows of a file a part at a time: the table of `read_table_file`, cut into parts.

    Parameters
    ----------
    path : Path
    kind : 'parquet', 'csv' or 'json'
    keep : function from column names to those to load
    text : column names
        Read as text from JSON Lines, where types are noted.

    Raises
    ------
    DataError
        When the file, or the part that is asked for, cannot be read.
    ValueError
        When it cannot be read in parts.
    """
    if kind == "parquet":
        yield from _of_parquet(path, keep)
        return
    n_bytes = max(1, path.stat().st_size)  # of a gzipped file too few: its share stays below what is said
    if kind == "json":
        for table, n_before in json_batches(path, keep=keep, text=text):
            yield Batch(table, n_before / n_bytes)
        return
    for frame, n_before in csv_batches(path, keep=keep):
        yield Batch(Table(str(path), frame, is_typed=False), min(1.0, n_before / n_bytes))


def _of_parquet(path: Path, keep: Keep) -> Iterator[Batch]:
    check_end(path)
    with translated(path, "Parquet file"):
        columns, n_rows = _shape(path)
        kept = set(keep(columns))
        places = [place for place, name in enumerate(columns) if name in kept]  # names like ^x$ would be patterns
        for first in range(0, max(n_rows, 1), ROWS_AT_ONCE):
            yield Batch(Table(str(path), _some_rows(path, places, first)), first / max(n_rows, 1))


@quiet
def _shape(path: Path) -> tuple[list[str], int]:
    """Names of the columns, and the number of rows."""
    scan = pl.scan_parquet(path, glob=False)
    return scan.collect_schema().names(), int(scan.select(pl.len()).collect().item())


@quiet
def _some_rows(path: Path, places: Sequence[int], first: int) -> pl.DataFrame:
    """Read some rows of the columns at these places."""
    return pl.scan_parquet(path, glob=False).select(pl.nth(*places)).slice(first, ROWS_AT_ONCE).collect()
