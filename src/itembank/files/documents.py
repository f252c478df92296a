"""Documents of one JSON or TOML object, of ordinary files of a sane size; digests of files; specs in TOML files.

A file that states the SHA-256 of its own bytes tells of one changed bit before anything is read of it: a writer puts
`BLANK` into its metadata and calls `seal` when it is whole, and the zeros give way to the digest of all bytes with the
zeros in their place. Parquet files (metadata at the end) and safetensors files (at the beginning) can be sealed; a JSON
object states its digest under the key `sha256`. The keys of a TOML file are the fields of a spec, its tables the specs
within.
"""

import hashlib
import json
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import IO, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.methods import MethodTable

MOST_BYTES = 100_000_000
"""Of a document. A selection of a million items has less."""


LONGEST_POINTER = 1024
"""Bytes, as Git LFS's specification has it."""


def regular_size(path: Path) -> int:
    """Return the size of an ordinary file; a device or a pipe would be read without end, or waited for.

    Raises `DataError` too of a pointer of Git LFS, which has the name of what it points to.
    """
    found = os.stat(path)  # noqa: PTH116 (follows links)
    if not stat.S_ISREG(found.st_mode):
        what = "folder" if stat.S_ISDIR(found.st_mode) else "pipe" if stat.S_ISFIFO(found.st_mode) else "device"
        raise DataError(f"{path} must be an ordinary file, got a {what}. Write its content into a file first.")
    if found.st_size <= LONGEST_POINTER and path.read_bytes().startswith(b"version https://git-lfs"):
        raise DataError(f"{path}: is a pointer of Git LFS in place of the content. To get that: git lfs pull.")
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
    """Read JSON; `ValueError` says what is wrong: half a character, a key twice in one object, too deep nesting."""
    try:
        value = json.loads(text, object_pairs_hook=_unrepeated)
        if (
            "\\ud" in text or "\\uD" in text
        ):  # an escape may be half a character (a lone surrogate): no file can hold it
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"it holds half a character, {half} (a text cut in the middle?)") from None
    return value


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs; of a key that comes twice, nobody knows which value counts."""
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        raise ValueError(f"an object must have each key once, got {shown(repeated)} more than once")
    return value


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
BLANK = f"{MARK.decode('ascii')}{'0' * N_DIGITS}"
"""What is in the metadata of a file that is to be sealed."""

DIGEST_KEY = "itembank.digest"
"""Name of the digest in the metadata of Parquet files."""

JOURNAL = "itembank session"
"""Kind of file in the header of a session's journal."""
PARQUET_MARK = b"PAR1"
_SEAL = re.compile(re.escape(MARK) + rb"[0-9a-f]{%d}" % N_DIGITS)


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
        if length > MOST_BYTES:
            return 0, b""
    file.seek(start)
    return start, file.read(length)


def _digest(file: IO[bytes], place: int) -> str:
    """SHA-256 of a file with zeros for the digits at `place`."""
    digest, at_once = hashlib.sha256(), 1 << 20
    file.seek(0)
    for start in range(0, place, at_once):
        digest.update(file.read(min(at_once, place - start)))
    digest.update(b"0" * N_DIGITS)
    file.seek(place + N_DIGITS)
    while part := file.read(at_once):
        digest.update(part)
    return digest.hexdigest()


Named: TypeAlias = Mapping[str, tuple[MethodTable[Any], str]]
"""By field: the methods that its tables are specs of, and the key of such a table that names the method."""

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def read_choices(path: Path, kind: type, named: Named | None = None) -> dict[str, Any]:
    """Read some fields of a spec from a TOML file.

    A field that is a spec itself is a table, ``[budget]``; one that is a method of a table of methods (`named`) is its
    name, or a table that names it and has its choices. Refusals name the file and the key.
    """
    content = read_toml(path)
    with errors_name(path):
        return fields_of(content, kind, named or {})


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Let refusals of what is in a file begin with its name."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def members_of(hint: Any) -> list[Any]:
    """Return the members of a union, of whatever depth; of another type itself."""
    if get_origin(hint) in {Union, UnionType}:
        return [member for one in get_args(hint) for member in members_of(one)]
    return [hint]


def fields_of(content: Mapping[str, Any], kind: Any, named: Named, where: str = "") -> dict[str, Any]:
    """Return the fields of a table, checked, as the spec takes them; `where` is its name, empty for the whole file.

    Raises as `read_choices`, but for the name of the file.
    """
    known = {one.name: one for one in fields(kind) if one.init}
    unknown = [key for key in content if key not in known]
    what = f"[{where}]" if where else "the file"
    if unknown and not known:
        raise ParameterError(f"{what} must be empty, for there is nothing to choose, got {shown(unknown)}.")
    if unknown:
        raise ParameterError(
            f"keys of {what} must be among {shown(list(known), len(known))}, got {shown(unknown)}."
            f"{did_you_mean(unknown, known)}"
        )
    needed = [name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    missing = [name for name in needed if name not in content]
    if where and missing:
        raise ParameterError(f"{what} needs {shown(missing, len(missing))} as well.")
    hints = get_type_hints(kind)
    place = f"{where}." if where else ""
    return {key: _value(value, hints[key], f"{place}{key}", named.get(key)) for key, value in content.items()}


def _value(value: Any, hint: Any, where: str, methods: tuple[MethodTable[Any], str] | None) -> Any:
    """Return a value as a field of this type takes it."""
    if methods is not None and isinstance(value, dict):
        (table, key), name = methods, value.get(methods[1])
        if not isinstance(name, str) or name not in table.kinds:
            raise ParameterError(f"{where}.{key}: {table.refusal(name)}")
        kind, content = table.kinds[name], {one: choice for one, choice in value.items() if one != key}
        return kind(**fields_of(content, kind, {}, where))
    members = members_of(hint)
    member = next((one for one in members if _fits(value, one)), None)
    inner = get_args(member)
    if member is None:
        raise ParameterError(f"{where} must be {_words(members)}, got {value!r:.100}.")
    if isinstance(value, list | tuple):
        return tuple(_value(one, inner[0], where, methods) for one in value)
    if isinstance(value, dict) and inner:
        return {key: _value(one, inner[1], f"{where}.{key}", None) for key, one in value.items()}
    if isinstance(value, dict):
        return member(**fields_of(value, member, {}, where))
    return float(value) if member is float else value


def _fits(value: Any, member: Any) -> bool:
    """Whether a value is of one type of a union."""
    origin = get_origin(member) or member
    if origin is Literal:
        return value in get_args(member)
    if isinstance(value, dict):
        return is_dataclass(member) or issubclass(origin, Mapping)
    if isinstance(value, list | tuple):
        return origin is tuple
    return type(value) is member or (member is float and type(value) is int)


def _words(members: Sequence[Any]) -> str:
    words = []
    for member in members:
        origin, inner = get_origin(member), get_args(member)
        if origin is Literal:
            words += [repr(one) for one in inner]
        elif origin is tuple:
            words.append(f"a list, each of it {_words(members_of(inner[0]))}")
        elif member is not NoneType:
            words.append(_WORDS.get(member, "a table"))
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)} or {last}" if most else last
