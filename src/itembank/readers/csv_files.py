"""CSV tables: every column is text until it is asked to be a number."""

import csv
import io
import mmap
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import polars as pl

from itembank.errors import DataError, shown
from itembank.responses.opening import PACKED, Keep, Table, encoding_problem, open_binary, translated

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

    Raises
    ------
    DataError
        When the file is not UTF-8, a column name is repeated, rows are longer than the first, or the end is cut.
    """
    header, separator = check_csv_file(path)
    _check_growth(path)
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

    Raises
    ------
    DataError
        As `read_csv_file`, when the part at fault is asked for.
    ValueError
        When a row is too long, as where a quote is never closed; `read_csv_file` may read the file.
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
    if repeated:
        raise DataError(f"{path}: column names must be unique, got {len(repeated)} more than once: {shown(repeated)}.")
    _check_last_line(path, len(header), separator)
    return header, separator


def _check_growth(path: Path) -> None:
    """Unpack a compressed file once and keep nothing, for Polars would keep whatever comes out of it."""
    if path.suffix.lower() in PACKED:
        with translated(path, "CSV file"), open_binary(path) as file:
            while file.read(1 << 20):
                pass


def _header(path: Path) -> tuple[list[str], str]:
    """Column names and separator."""
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
    """Fields of the first line."""
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
