"""Reading one table file, whichever kind it is."""

import csv
import io
import mmap
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Literal

import polars as pl

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.files.documents import PARQUET_MARK
from itembank.readers.json_files import read_records, table_of_records
from itembank.responses.opening import (
    PACKED,
    Keep,
    Table,
    encoding_problem,
    file_kind,
    open_binary,
    quiet,
    read_parquet_schema,
    translated,
)

SEPARATORS = (",", "\t", ";")
BAR = "|"
"""Separates columns only where no other sign does: names of tasks have it, too."""
QUOTED = re.compile(r'"[^"]*"')
MOST_LOOKED_AT = 2**23
"""Bytes of text that hold the first rows."""
FIRST_ROWS = 20_000


Type = Literal["name", "number"]
"""What a column is read as, where all of it can be: one of few names, or numbers."""
NAME: Type = "name"
NUMBER: Type = "number"
Types = Callable[[Sequence[str]], Mapping[str, Type]]
"""Types of some of the columns that are read; text of others stays text."""


def read_csv_file(
    path: Path, *, keep: Keep, text: Sequence[str] = (), infer: bool = False, types: Types | None = None
) -> Table:
    """Read the columns that `keep` chooses, as text or as `types` says, or with types found for those not in `text`.

    The separator is the one of comma, tab and semicolon that cuts the first line into most columns; else a bar.
    """
    header, separator = check_csv_file(path)
    if path.suffix.lower() in PACKED:  # its growth is looked at, for Polars would keep whatever comes out of it
        with translated(path, "CSV file"), open_binary(path) as file:
            while file.read(1 << 20):
                pass
    kept = keep(header)
    wanted = set(kept)
    columns = [place for place, name in enumerate(header) if name in wanted]  # names like ^x$ would be patterns
    known = {} if types is None or path.suffix.lower() in PACKED else types(kept)
    with _as_csv(path, len(header), separator) as file:
        if known:
            lines = pl.scan_csv(file, separator=separator, infer_schema=False)
            frame = _typed(lines, {place: known.get(header[place]) for place in columns})
        else:
            names = pl.read_csv(file, separator=separator, n_rows=0).columns if infer else []  # as written
            file.seek(0)
            frame = pl.read_csv(
                file,
                separator=separator,
                columns=columns,
                infer_schema=infer,
                infer_schema_length=None,
                schema_overrides={one: pl.String for one, name in zip(names, header, strict=infer) if name in text},
            )
    frame = frame[:, : len(columns)]
    frame.columns = [header[place] for place in columns]
    frame = _without_blank_lines(frame)
    if columns and frame[:, -1].null_count():
        short = _other_line(path, len(header), separator, is_longer=False)
        if short:
            warn(f"{path}: {short}. What it lacks counts as empty.", DataWarning)
    return Table(str(path), frame, is_typed=False)


@contextmanager
def _as_csv(path: Path, n_columns: int, separator: str) -> Iterator[IO[bytes]]:
    """Open a file; turn the errors of reading into a `DataError`, which names a line of too many fields."""
    with translated(path, "CSV file"), path.open("rb") as file:
        try:
            yield file
        except pl.exceptions.ComputeError as error:
            if "more fields than defined" not in str(error):
                raise
            where = _other_line(path, n_columns, separator, is_longer=True) or "a line has more fields than the first"
            raise DataError(
                f"{path}: the CSV file cannot be read: {where}. A comma within a value (0,5) needs quotes round the "
                "value, or semicolons between all of them; names of rows need a name in the first line (R: write.csv)."
            ) from error


def _other_line(path: Path, n_columns: int, separator: str, *, is_longer: bool) -> str:
    """Name the first line that has more fields than the first one, or fewer, of those at the beginning of a file."""
    with open_binary(path) as file:
        lines = csv.reader(io.StringIO(file.read(MOST_LOOKED_AT).decode(errors="replace")), delimiter=separator)
        with suppress(csv.Error):
            for fields in lines:
                if len(fields) > n_columns if is_longer else 0 < len(fields) < n_columns:
                    more = "more" if is_longer else "fewer"
                    return (
                        f"line {lines.line_num} has {more} fields than the first one, {len(fields)} and not "
                        f"{n_columns}: {separator.join(fields)[:60]!r}"
                    )
    return ""


def _typed(lines: pl.LazyFrame, types: Mapping[int, Type | None]) -> pl.DataFrame:
    """Read the columns at these places: a part of the file after the other, so that its text is never in memory."""
    columns, is_bad = [], {}
    for place, one in types.items():
        column = pl.nth(place)
        if one == NUMBER:
            is_text, column = column.is_not_null(), column.cast(pl.Float64, strict=False)
            is_bad[place] = (is_text & column.is_null()).alias(f"\0{place}")
        columns.append(column.cast(pl.Categorical) if one == NAME else column)
    frame = lines.select(*columns, *is_bad.values()).collect(engine="streaming")
    as_text = [place for place in is_bad if frame[f"\0{place}"].any()]
    frame = frame.select(pl.nth(range(len(types))))
    if not as_text:
        return frame
    return frame.with_columns(lines.select(pl.nth(*as_text)).collect(engine="streaming").get_columns())


def _first_rows_of_csv(path: Path, places: Sequence[int], n_columns: int, separator: str) -> pl.DataFrame:
    """Return the rows that `read_csv_file` reads first, all as text."""
    with _as_csv(path, n_columns, separator), open_binary(path) as file:
        text = file.read(MOST_LOOKED_AT)
        if len(text) == MOST_LOOKED_AT:  # the rows end with the last end of a line that is in no quoted field
            end = text.rfind(b"\n")
            while end >= 0 and text.count(b'"', 0, end) % 2:
                end = text.rfind(b"\n", 0, end)
            text = text[: end + 1 or len(text)]
        frame = pl.read_csv(text, separator=separator, columns=[*places], infer_schema=False, n_rows=FIRST_ROWS)
        return frame[:, : len(places)]  # older releases take no columns for all of them


def _without_blank_lines(frame: pl.DataFrame) -> pl.DataFrame:
    if any(column.null_count() == 0 for column in frame.iter_columns()):  # then there are none
        return frame
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def check_csv_file(path: Path) -> tuple[list[str], str]:
    """Return column names and separator; `DataError` when a name is repeated, or the end is cut."""
    names: dict[str, list[str]] = {}
    reason = ""
    for separator in (*SEPARATORS, BAR):
        try:
            with (
                translated(path, "CSV file"),
                open_binary(path) as file,
                io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines,
            ):
                names[separator] = next(csv.reader(lines, delimiter=separator), [])
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: the CSV file cannot be read: {encoding_problem(path)}") from error
        except csv.Error as error:  # without the right separator the line is one huge field
            reason = str(error)
    if not names:
        raise DataError(f"{path}: the first line cannot be read as column names: {reason}.")
    separator = _separator(names)
    header = _without_blanks(names[separator])
    _check_first_line(path, names[separator])
    if len(header) == 1 and " " in header[0]:
        raise DataError(
            f"{path}: columns must be separated by commas, tabs or semicolons, not by blanks (R: write.csv), got a "
            f"first line of {header[0][:60]!r}."
        )
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise DataError(
            f"{path}: column names must be unique, got {len(repeated)} more than once: {shown(repeated)}."
            f"{no_header(header) or ' If the names fill two lines, make one line of both.'}"
        )
    _check_last_line(path, len(header), separator)
    return header, separator


def no_header(names: Sequence[str]) -> str:
    """Say what to do where the first line, which has these names, seems to hold a row, or blanks between names."""
    numbers = [name for name in names if re.fullmatch(r"[01]?(\.\d+)?", name) and name]
    if not numbers:
        return ""
    return f" {numbers[0]!r} may be no name: if the first line is a row, put one before it: model_id,item_id,response."


def _check_first_line(path: Path, header: Sequence[str]) -> None:
    """Refuse a file whose first line is a title, a comment or empty, and has its column names below."""
    if sum(map(bool, header)) > 1:
        return
    with translated(path, "CSV file"), open_binary(path) as file:
        lines = [line.decode("utf-8-sig", errors="replace") for line in islice(file, 20)]
    filled = [max(sum(map(bool, line.strip().split(separator))) for separator in SEPARATORS) for line in lines]
    names = next((place for place, n in enumerate(filled) if n > max(1, filled[0])), None)
    if names is not None:
        raise DataError(
            f"{path}: the first line must hold the names of the columns, got {lines[0].strip()[:60]!r}; line "
            f"{names + 1} may hold them: {lines[names].strip()[:60]!r}. Delete the lines before it."
        )


def probable_header(path: Path) -> list[str]:
    """Return column names by the first line alone, whatever is wrong with the rest of the file."""
    with translated(path, "CSV file"), open_binary(path) as file:
        line = file.readline(2**24).decode("utf-8-sig", errors="replace")
    names: dict[str, list[str]] = {}
    for separator in (*SEPARATORS, BAR):
        with suppress(csv.Error):  # without the right separator the line is one huge field
            names[separator] = next(csv.reader([line], delimiter=separator), [])
    return _without_blanks(names[_separator(names)]) if names else []


def _separator(names: Mapping[str, Sequence[str]]) -> str:
    """Return the separator that cuts the first line into most columns, into the names here; a bar if no other does."""
    return max(names, key=lambda one: (one != BAR and len(names[one]) > 1, len(names[one])))


def _without_blanks(names: Sequence[str]) -> list[str]:
    """Take blanks off the ends of names of columns, but where two names would be one; number those without a name."""
    n_alike = Counter(name.strip() for name in names)
    stripped = [name.strip() if n_alike[name.strip()] == 1 or not name.strip() else name for name in names]
    return [name or f"Unnamed: {place}" * (n_alike[""] > 1) for place, name in enumerate(stripped)]


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


def read_parquet_file(path: Path, *, keep: Keep, types: Types | None = None) -> Table:
    """Read the columns that `keep` chooses, as they are; text and whole numbers as names where `types` says so."""
    check_end(path)
    with translated(path, "Parquet file"):
        schema = read_parquet_schema(path)
        kept = keep(list(schema))
        wanted, known = set(kept), {} if types is None else types(kept)
        columns: list[pl.Expr] = []
        whole: dict[str, frozenset[type]] = {}
        for place, (name, dtype) in enumerate(schema.items()):
            column, one = pl.nth(place), known.get(name)  # names like ^x$ would be patterns
            if one == NAME and (dtype == pl.String or dtype.is_integer()):
                column = column.cast(pl.String).cast(pl.Categorical)
                whole |= {name: frozenset({int})} if dtype.is_integer() else {}
            elif one == NUMBER and dtype.is_numeric():
                column = column.cast(pl.Float64)
            columns += [column] if name in wanted else []
        return Table(str(path), _columns_of_parquet(path, columns), found=whole)


@quiet
def _columns_of_parquet(file: Path | IO[bytes], columns: Sequence[pl.Expr], n_rows: int | None = None) -> pl.DataFrame:
    return pl.scan_parquet(file, n_rows=n_rows).select(columns).collect(engine="streaming")


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


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns of a file that was not cut."""
    check_end(path)
    with translated(path, "Parquet file"):
        return list(read_parquet_schema(path))


def first_rows(path: Path, names: Collection[str] | None = None, *, text: Sequence[str] = ()) -> Table:
    """Return the first rows of a file, to see what its columns of these names hold; `text` is read as text."""
    kind = file_kind(path)
    if kind == "json":
        keep: Keep = list if names is None else lambda every: [name for name in every if name in names]
        return table_of_records(path, islice(read_records(path), 1), keep=keep, text=text)
    header, separator = (parquet_columns(path), "") if kind == "parquet" else check_csv_file(path)
    # by place, as names like ^x$ would be patterns
    places = [place for place, name in enumerate(header) if names is None or name in names]
    if kind == "parquet":
        with translated(path, "Parquet file"):
            n_rows = min(FIRST_ROWS, max(1, 2_000_000 // max(1, len(places))))  # of very many columns fewer
            return Table(str(path), _columns_of_parquet(path, [pl.nth(*places)], n_rows))
    frame = _first_rows_of_csv(path, places, len(header), separator)
    frame.columns = [header[place] for place in places]
    return Table(str(path), _without_blank_lines(frame), is_typed=False)


def read_table_file(
    path: Path, *, keep: Keep = list, text: Sequence[str] = (), infer: bool = False, types: Types | None = None
) -> Table:
    """Read a Parquet, CSV or JSON Lines table.

    `keep` chooses the columns to load. The columns `text` are read as text from CSV and JSON Lines, where mixed types
    are noted; with `infer` the types of the others are found in CSV, too. What `types` says of columns spares memory.
    """
    kind = file_kind(path)
    if kind == "parquet":
        table = read_parquet_file(path, keep=keep, types=types)
    elif kind == "csv":
        table = read_csv_file(path, keep=keep, text=text, infer=infer, types=types)
    else:
        table = table_of_records(path, read_records(path), keep=keep, text=text)
    if table.frame.height == 0:
        raise DataError(f"{path}: the file is empty: it has column names but no rows.")
    return table
