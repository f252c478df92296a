"""Reading one table file, whichever kind it is."""

import csv
import io
import mmap
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import polars as pl

from itembank.errors import DataError, shown
from itembank.files.documents import PARQUET_MARK
from itembank.readers.json_files import json_batches, read_records, table_of_records
from itembank.responses.opening import (
    PACKED,
    Keep,
    Kind,
    Table,
    encoding_problem,
    file_kind,
    open_binary,
    quiet,
    read_parquet,
    read_parquet_schema,
    translated,
)

SEPARATORS = (",", "\t", ";")
QUOTED = re.compile(r'"[^"]*"')
BYTES_AT_ONCE = 2**23
"""Text of a part of a file."""
MOST_IN_HEADER = 2**24
"""Bytes of a first line."""
MOST_IN_RECORD = 4
"""Parts that one row may fill; looking for the end of a longer one again and again would take long."""


def read_csv_file(path: Path, *, keep: Keep, text: Sequence[str] = (), infer: bool = False) -> Table:
    """Read the columns that `keep` chooses, as text, or with types found for those not in `text`.

    The separator is the one of comma, tab and semicolon that cuts the first line into most columns.
    """
    header, separator = check_csv_file(path)
    if path.suffix.lower() in PACKED:  # its growth is looked at, for Polars would keep whatever comes out of it
        with translated(path, "CSV file"), open_binary(path) as file:
            while file.read(1 << 20):
                pass
    kept = set(keep(header))
    columns = [place for place, name in enumerate(header) if name in kept]  # names like ^x$ would be patterns
    with translated(path, "CSV file"):
        frame = pl.read_csv(
            path,
            separator=separator,
            columns=columns,
            infer_schema=infer,
            infer_schema_length=None,
            schema_overrides={name: pl.String for name in text if name in header} if infer else None,
            glob=False,
        )
    return Table(str(path), _without_blank_lines(frame), is_typed=False)


def csv_batches(path: Path, *, keep: Keep) -> Iterator[tuple[pl.DataFrame, int]]:
    """Give the rows that `read_csv_file` reads a part at a time, all as text, each with the bytes of text before it.

    A `ValueError` says that a row is too long, as where a quote is never closed; `read_csv_file` may read the file.
    """
    header, separator = check_csv_file(path)
    kept = set(keep(header))
    columns = [place for place, name in enumerate(header) if name in kept]
    with translated(path, "CSV file"), open_binary(path) as file:
        n_before, first_line = 0, b""
        for records in _whole_records(file, BYTES_AT_ONCE):
            text = b"".join([first_line, *records])
            frame = pl.read_csv(text, separator=separator, columns=columns, infer_schema=False)
            yield _without_blank_lines(frame), n_before
            n_before += len(text) - len(first_line)
            first_line = first_line or text[: _end_of_record(text) + 1]


def _without_blank_lines(frame: pl.DataFrame) -> pl.DataFrame:
    if any(column.null_count() == 0 for column in frame.iter_columns()):  # then there are none
        return frame
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _whole_records(file: IO[bytes], n_bytes: int) -> Iterator[Sequence[bytes | memoryview]]:
    """Cut a file at ends of lines that lie in no quoted field, about every `n_bytes`; each cut in pieces."""
    left = b""
    while part := file.read(n_bytes):
        if b'"' not in part and b'"' not in left:  # looking for one is faster than counting
            end = part.rfind(b"\n")
            if end >= 0:
                yield left, memoryview(part)[: end + 1]
                left = part[end + 1 :]
                continue
        left += part
        end = left.rfind(b"\n")
        is_quoted = bool(left.count(b'"', 0, max(end, 0)) % 2)
        while is_quoted and end >= 0:
            before = left.rfind(b"\n", 0, end)
            is_quoted ^= bool(left.count(b'"', max(before, 0), end) % 2)
            end = before
        if end >= 0:
            yield (memoryview(left)[: end + 1],)
            left = left[end + 1 :]
        elif len(left) > MOST_IN_RECORD * n_bytes:
            raise ValueError("a row is too long to be read in parts.")
    if left:
        yield (left,)


def _end_of_record(text: bytes) -> int:
    """Place of the first end of a line that lies in no quoted field; that of the last character where there is none."""
    end = text.find(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end + 1)
    return end if end >= 0 else len(text) - 1


def check_csv_file(path: Path) -> tuple[list[str], str]:
    """Return column names and separator; `DataError` when a name is repeated, or the end is cut."""
    header, separator = _header(path)
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated == [""]:
        raise DataError(
            f"{path}: {header.count('')} columns have no name. Delete those that are empty, name the others."
        )
    if repeated:
        raise DataError(f"{path}: column names must be unique, got {len(repeated)} more than once: {shown(repeated)}.")
    _check_last_line(path, len(header), separator)
    return header, separator


def _header(path: Path) -> tuple[list[str], str]:
    names: dict[str, list[str]] = {}
    reason = ""
    for separator in SEPARATORS:
        try:
            with translated(path, "CSV file"), open_binary(path) as file:
                names[separator] = _first_line(file, separator)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: the CSV file cannot be read: {encoding_problem(path)}") from error
        except csv.Error as error:  # without the right separator the line is one huge field
            reason = str(error)
    if not names:
        raise DataError(f"{path}: the first line cannot be read as column names: {reason}.")
    best = max(names, key=lambda separator: len(names[separator]))
    return names[best], best


def probable_header(path: Path) -> list[str]:
    """Return column names by the first line alone, whatever is wrong with the rest of the file."""
    with translated(path, "CSV file"), open_binary(path) as file:
        line = file.readline(MOST_IN_HEADER).decode("utf-8-sig", errors="replace")
    names: list[str] = []
    for separator in SEPARATORS:
        with suppress(csv.Error):  # without the right separator the line is one huge field
            names = max(names, next(csv.reader([line], delimiter=separator), []), key=len)
    return names


def _first_line(file: IO[bytes], separator: str) -> list[str]:
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines:
        return next(csv.reader(lines, delimiter=separator), [])


def _check_last_line(path: Path, n_columns: int, separator: str) -> None:
    """Refuse a file whose last line has no end and too few fields: it was cut (unpacking notices that itself)."""
    if path.suffix.lower() in PACKED:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[-1:] in {b"\n", b"\r"}:
            return
        last = content[content.rfind(b"\n") + 1 :].decode("utf-8", errors="replace")
        if last.count('"') % 2:  # within a quoted field that spans lines
            return
        n_fields = QUOTED.sub("", last).count(separator) + 1
        if n_fields < n_columns:
            line = content[:].count(b"\n") + 1
            raise DataError(
                f"{path}: the file is cut: its last line, {line}, has {n_fields} of {n_columns} fields and no end. "
                "Copy it again."
            )


def read_parquet_file(path: Path, *, keep: Keep) -> Table:
    """Read the columns that `keep` chooses."""
    check_end(path)
    with translated(path, "Parquet file"):
        columns = list(read_parquet_schema(path))
        kept = set(keep(columns))
        places = [place for place, name in enumerate(columns) if name in kept]  # names like ^x$ would be patterns
        return Table(str(path), read_parquet(path, columns=places, glob=False))


def check_end(path: Path) -> None:
    """Refuse a file that was cut: the last bytes are the mark again."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - len(PARQUET_MARK)))
        end = file.read()
    if size < 12 or end != PARQUET_MARK:
        raise DataError(
            f"{path}: the Parquet file is cut: it must end in PAR1 but stops after {size} bytes. Copy it again."
        )


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

    `keep` chooses the columns to load; `text` are those read as text from JSON Lines, where types are noted. Where a
    file is read some columns at a time, every part has the columns of `in_each`. A `ValueError` says that a file cannot
    be read in parts.
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


FIRST_ROWS = 20_000


def first_rows(path: Path, kind: Kind, keep: Keep = list) -> pl.DataFrame:
    """Return the first rows of a file, to see what its columns hold."""
    if kind == "parquet":
        with translated(path, "Parquet file"):
            columns = list(read_parquet_schema(path))
            kept = set(keep(columns))
            return _some_rows(path, [place for place, name in enumerate(columns) if name in kept], 0, FIRST_ROWS)
    try:
        batch = next(table_batches(path, kind, keep), None)
    except ValueError:  # it cannot be read in parts
        return read_table_file(path, keep=keep).frame.head(FIRST_ROWS)
    return pl.DataFrame() if batch is None else batch.table.frame.head(FIRST_ROWS)


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


def read_table_file(path: Path, *, keep: Keep = list, text: Sequence[str] = (), infer: bool = False) -> Table:
    """Read a Parquet, CSV or JSON Lines table.

    `keep` chooses the columns to load. The columns `text` are read as text from CSV and JSON Lines, where mixed types
    are noted; with `infer` the types of the others are found in CSV, too.
    """
    kind = file_kind(path)
    if kind == "parquet":
        table = read_parquet_file(path, keep=keep)
    elif kind == "csv":
        table = read_csv_file(path, keep=keep, text=text, infer=infer)
    else:
        table = table_of_records(path, read_records(path), keep=keep, text=text)
    if table.frame.height == 0:
        raise DataError(f"{path}: the file is empty: it has column names but no rows.")
    return table
