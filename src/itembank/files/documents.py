"""Documents: JSON and TOML files of one object, read only when they are ordinary files of a sane size."""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from itembank.errors import DataError

MOST_BYTES = 100_000_000
"""Of a document. A selection of a million items has less."""


def regular_size(path: Path) -> int:
    """Return the size of an ordinary file; a device or a pipe would be read without end, or waited for.

    Raises
    ------
    DataError
        When it is no ordinary file.
    OSError
        When there is none.
    """
    found = os.stat(path)  # noqa: PTH116 (follows links)
    if not stat.S_ISREG(found.st_mode):
        what = "folder" if stat.S_ISDIR(found.st_mode) else "pipe" if stat.S_ISFIFO(found.st_mode) else "device"
        raise DataError(f"{path} must be an ordinary file, got a {what}. Write its content into a file first.")
    return found.st_size


def read_document(path: Path) -> str:
    """Read the text of a document.

    Raises
    ------
    DataError
        When it is no ordinary file, too large, or not UTF-8.
    OSError
        When there is none, or it may not be read.
    """
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
