"""JSON Lines and JSON arrays of objects, read in blocks, with the line of every error."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import polars as pl

from itembank.errors import DataError, DataWarning, warn
from itembank.files.documents import parse_json
from itembank.files.memory import most_in_object, refuse_object
from itembank.responses.opening import Keep, Table, not_utf8, open_binary, translated

Record: TypeAlias = dict[str, Any]
Shorten: TypeAlias = Callable[[Sequence[str]], list[Record] | None]

BYTES_A_BLOCK = 8_000_000
BYTES_OF_A_ROW = 1 << 16
LINES = {".jsonl", ".jsonlines", ".ndjson"}
"""Suffixes of files of a value a line."""


def read_records(path: Path, *, shorten: Shorten | None = None) -> Iterator[list[Record]]:
    """Give the objects of a JSON Lines file (or of one JSON array of objects) in blocks.

    `shorten` reads lines without what is not needed, or gives None where they must be read whole. A `DataError` says
    which line is not UTF-8, cut, or no JSON object.
    """
    yield from _read(path, shorten=shorten)


def read_values(path: Path) -> Iterator[list[Any]]:
    """Give the values of a JSON Lines file in blocks, whatever they are; a file of another layout is one value."""
    yield from _read(path, are_objects=False)


def _read(
    path: Path,
    *,
    shorten: Shorten | None = None,
    are_objects: bool = True,  # Whether the values are objects, and an array is one of many
) -> Iterator[list[Any]]:
    n_lines = n_bytes = 0
    with translated(path, "JSON file"), open_binary(path) as file:
        while block := file.readlines(BYTES_A_BLOCK):
            if n_lines == 0:
                block[0] = block[0].removeprefix(b"\xef\xbb\xbf")
                is_array = block[0].lstrip().startswith(b"[")
                if are_objects:
                    is_one = is_array or (path.suffix.lower() == ".json" and not _is_whole(block[0], dict))
                else:
                    is_one = LINES.isdisjoint(map(str.lower, path.suffixes)) and not _is_whole(block[0], object)
                if is_one:
                    yield _document(path, _whole(path, block, file), is_array=is_array, are_objects=are_objects)
                    return
            yield _block(path, block, n_lines, n_bytes, shorten=shorten, are_objects=are_objects)
            n_lines += len(block)
            n_bytes += sum(map(len, block))


def each_record(path: Path) -> Iterator[Record]:
    """Give the objects of a file one by one; reads no further than it must."""
    return (record for block in read_records(path) for record in block)


def finished_records(path: Path) -> list[Record]:
    """Return the objects of a file that a program appends to: all but the last line where that was cut, as is said."""
    try:
        return [*each_record(path)]
    except DataError:
        with open_binary(path) as file:
            *whole, last = file.read().split(b"\n")
        if not (whole and last.strip()) or _is_whole(last, dict):
            raise
        records = _block(path, [line + b"\n" for line in whole], 0, 0, shorten=None, are_objects=True)
        warn(f"{path}: the last line was cut, and is left out: its trial counts as not run.", DataWarning)
        return records


def first_record(path: Path) -> Record:
    """Return the first object of a file, whatever is wrong with those after it."""
    with translated(path, "JSON file"), open_binary(path) as file:
        line = file.readline(BYTES_A_BLOCK).decode("utf-8-sig", errors="replace")
    if _is_whole(line, dict):
        return dict(parse_json(line))
    return next(each_record(path), {})


def first_object(path: Path) -> Record:
    """Return the object that a file begins with, alone or in a list; empty where it is longer than a row of a table."""
    with translated(path, "JSON file"), open_binary(path) as file:
        text = file.read(BYTES_OF_A_ROW).decode("utf-8-sig", errors="replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip().removeprefix("[").lstrip())
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _whole(path: Path, block: list[bytes], file: IO[bytes]) -> bytes:
    """Return what was read of a file and all the rest of it."""
    start, most = b"".join(block), most_in_object()
    content = start + file.read(max(int(most) - len(start), 0) + 1)
    if len(content) > most:
        raise refuse_object(path, most)
    return content


def _is_whole(line: bytes | str, kind: type) -> bool:
    try:
        return isinstance(parse_json(line.decode() if isinstance(line, bytes) else line), kind)
    except ValueError:
        return False


def _document(path: Path, content: bytes, *, is_array: bool, are_objects: bool) -> list[Any]:
    """Read a file that is one JSON object, or one array of objects; or one value of any kind."""
    try:
        value = parse_json(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {not_utf8(content, error.start)}") from error
    except ValueError as error:
        what = "JSON array" if is_array else "JSON"
        advice = " (was the file cut?)" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{path}: the {what} cannot be read{advice}: {error}") from error
    if not are_objects:
        return [value]
    if is_array and not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        raise DataError(f"{path}: a JSON array must hold objects only.")
    if not is_array and not isinstance(value, dict):
        raise DataError(f"{path}: the file must hold JSON objects, got {type(value).__name__}.")
    return value if is_array else [value]


def _block(
    path: Path, lines: list[bytes], lines_before: int, bytes_before: int, *, shorten: Shorten | None, are_objects: bool
) -> list[Any]:
    """Read some lines at once; one by one when something is wrong, to say where."""
    content = b"".join(lines)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        where = not_utf8(content, error.start, before=bytes_before, lines_before=lines_before)
        raise DataError(f"{path}: {where}") from error
    filled = [line for line in text.split("\n") if line and not line.isspace()]
    short = None if shorten is None else shorten(filled)
    if short is not None:
        return short
    try:
        values = parse_json("[" + ",".join(filled) + "]")
    except ValueError:
        values = []
    if len(values) == len(filled) and (not are_objects or all(isinstance(value, dict) for value in values)):
        return list(values)
    return _one_by_one(path, text, lines_before, are_objects=are_objects)


def _one_by_one(path: Path, text: str, lines_before: int, *, are_objects: bool) -> list[Any]:
    """Read each line alone, and say which one cannot be read."""
    lines = text.split("\n")
    records = []
    for number, line in enumerate(lines, start=lines_before + 1):
        if not line or line.isspace():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            is_last = number - lines_before == len(lines) and isinstance(error, json.JSONDecodeError)
            advice = " It is the last line and has no end: the file was cut. Copy it again." if is_last else ""
            shortened = f"{line[:60]}..." if len(line) > 60 else line
            what = "object" if are_objects else "value"
            raise DataError(
                f"{path}: line {number} must be one JSON {what}, got {shortened!r} ({error}).{advice}"
            ) from error
        if are_objects and not isinstance(record, dict):
            raise DataError(f"{path}: line {number} must be one JSON object, got {type(record).__name__}.")
        records.append(record)
    return records


def table_of_records(path: Path, blocks: Iterable[list[Record]], *, keep: Keep, text: Sequence[str] = ()) -> Table:
    """Make a table of flat objects: those keys that `keep` chooses of the first block, the columns `text` as text."""
    kinds: dict[str, set[type]] = {name: set() for name in text}
    frames = []
    for records in filter(None, blocks):
        keys = list(dict.fromkeys(key for record in records for key in record))
        frames.append(pl.DataFrame({key: column_of(records, key, kinds.get(key)) for key in keep(keys)}))
    if not frames:
        raise DataError(f"{path}: the file is empty.")
    found = {name: frozenset(types) for name, types in kinds.items()}
    return Table(str(path), pl.concat(frames, how="diagonal_relaxed"), found=found)


def column_of(records: Sequence[Mapping[str, Any]], key: str, kinds: set[type] | None) -> pl.Series:
    """Values of one key, typed where all are of one type; a text column (`kinds` given) is text always."""
    values = [record.get(key) for record in records]
    found = set(map(type, values)) - {type(None)}
    if kinds is not None:
        kinds |= found
        return pl.Series(key, [None if value is None else str(value) for value in values], dtype=pl.String)
    if found in ({bool}, {int}) and all(value is None or abs(value) < 2**63 for value in values):
        return pl.Series(key, values, dtype=pl.Boolean if found == {bool} else pl.Int64)
    if found <= {bool, int, float}:
        return pl.Series(key, [None if value is None else as_float(value) for value in values], dtype=pl.Float64)
    as_text = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(key, as_text, dtype=pl.String)


def as_float(value: float) -> float:
    """Make a float of any number; one too large is infinite, and refused where numbers must be finite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def mapping(value: Any) -> dict[str, Any]:
    """Return an object of JSON, an empty one where there is something else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list of JSON, an empty one where there is something else."""
    return value if isinstance(value, list) else []
