"""Documents: JSON and TOML files of one object, read only when they are ordinary files of a sane size."""

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from itembank.errors import DataError

MOST_BYTES = 100_000_000
"""Of a document. A selection of a million items has less."""


def regular_size(path: Path) -> int:
    """Return the size of an ordinary file; a device or a pipe would be read without end, or waited for."""
    found = os.stat(path)  # noqa: PTH116 (follows links)
    if not stat.S_ISREG(found.st_mode):
        what = "folder" if stat.S_ISDIR(found.st_mode) else "pipe" if stat.S_ISFIFO(found.st_mode) else "device"
        raise DataError(f"{path} must be an ordinary file, got a {what}. Write its content into a file first.")
    return found.st_size


def read_document(path: Path) -> str:
    """Read the text of a document."""
    n_bytes = regular_size(path)
    if n_bytes > MOST_BYTES:
        raise DataError(f"{path} must have at most {MOST_BYTES:,} bytes, got {n_bytes:,}. Is it the right file?")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error}.") from error


def read_json(path: Path) -> Any:
    """Read a JSON document; raises as `read_document`, and `DataError` when it is not JSON."""
    text = read_document(path)
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(f"{path} cannot be read as JSON: {error}.") from error


def parse_json(text: str) -> Any:
    """Read JSON; `ValueError` says what is wrong, also where text holds half a character or nests too deeply."""
    try:
        value = json.loads(text)
        check_characters(value, text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def check_characters(value: Any, text: str) -> None:
    """Raise `ValueError` when JSON escapes half a character (a lone surrogate), which no file can hold."""
    if "\\ud" not in text and "\\uD" not in text:  # only an escape can be one
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"it holds half a character, {half} (a text cut in the middle?)") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML document; raises as `read_document`, and `DataError` when it is not TOML."""
    text = read_document(path)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise DataError(f"{path} cannot be read as TOML: it is nested too deeply.") from error
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise DataError(f"{path} cannot be read as TOML: {error}.") from error


MARK = b"itembank-sha256:"
N_DIGITS = 64
BLANK = MARK.decode("ascii") + "0" * N_DIGITS
"""What stands in the metadata of a file that is to be sealed."""

DIGEST_KEY = "itembank.digest"
"""Name of the digest in the metadata of Parquet files."""

PARQUET_MARK = b"PAR1"
_SEAL = re.compile(re.escape(MARK) + rb"[0-9a-f]{%d}" % N_DIGITS)
_MOST_HEADER = 100_000_000
_AT_ONCE = 1 << 20


RECORD_KEY = "sha256"
"""Where a JSON object states its digest."""


def digest_of(content: bytes) -> str:
    """SHA-256 of some bytes, as hexadecimal text."""
    return hashlib.sha256(content).hexdigest()


def digest_of_record(record: Mapping[str, Any], own: str) -> str:
    """SHA-256 of the content of a JSON file, less its entry `own`, which states the digest."""
    rest = {key: value for key, value in record.items() if key != own}
    return digest_of(json.dumps(rest, sort_keys=True, ensure_ascii=True).encode())


def with_digest(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a JSON file, as it will be read, with the digest of everything else in it."""
    content: dict[str, Any] = json.loads(json.dumps(record))
    return {**content, RECORD_KEY: digest_of_record(content, RECORD_KEY)}


def digest_fits(record: Mapping[str, Any]) -> bool:
    """Whether the content of a JSON file states the right digest, or none, as one written by hand."""
    return RECORD_KEY not in record or record[RECORD_KEY] == digest_of_record(record, RECORD_KEY)


def seal(path: Path) -> None:
    """Put the digest of a file where its metadata say `BLANK`."""
    with path.open("r+b") as file:
        place = _place(file)
        if place is None:
            raise ValueError(f"{path} has no place for a digest.")
        digest = _digest(file, place)
        file.seek(place)
        file.write(digest.encode("ascii"))


def is_sealed(path: Path) -> bool:
    """Whether a file states a digest of itself, be it right or wrong."""
    with path.open("rb") as file:
        return _place(file) is not None


def seal_holds(path: Path) -> bool:
    """Whether a file states a digest, and its bytes are still those that were sealed."""
    with path.open("rb") as file:
        place = _place(file)
        if place is None:
            return False
        file.seek(place)
        return file.read(N_DIGITS).decode("ascii") == _digest(file, place)


def _place(file: IO[bytes]) -> int | None:
    """Position of the digits of a file's digest; None where it has none."""
    start, metadata = _metadata(file)
    found = [match.start() for match in _SEAL.finditer(metadata)]
    return start + found[-1] + len(MARK) if found else None


def _metadata(file: IO[bytes]) -> tuple[int, bytes]:
    """Return where a file's metadata begin, and their bytes; none where the file is too short to have any."""
    n_bytes = file.seek(0, os.SEEK_END)
    if n_bytes < 12:  # no room for a length and a mark
        return 0, b""
    file.seek(0)
    if file.read(4) == PARQUET_MARK:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        start = max(n_bytes - 8 - length, 0)
    else:
        file.seek(0)
        length, start = int.from_bytes(file.read(8), "little"), 8
        if length > _MOST_HEADER:
            return 0, b""
    file.seek(start)
    return start, file.read(length)


def _digest(file: IO[bytes], place: int) -> str:
    """SHA-256 of a file with zeros for the digits at `place`."""
    digest = hashlib.sha256()
    file.seek(0)
    for part in _parts(file, place):
        digest.update(part)
    digest.update(b"0" * N_DIGITS)
    file.seek(place + N_DIGITS)
    for part in _parts(file, None):
        digest.update(part)
    return digest.hexdigest()


def _parts(file: IO[bytes], n_bytes: int | None) -> Iterator[bytes]:
    """Give the next bytes of a file piece by piece; all that are left without a number."""
    left = n_bytes
    while part := file.read(_AT_ONCE if left is None else min(_AT_ONCE, left)):
        left = None if left is None else left - len(part)
        yield part
