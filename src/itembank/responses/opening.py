"""Opening files of results: what kind they are, what is wrong with them, and Parquet at which Polars panics."""

import gzip
import io
import os
import re
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path, PurePath
from typing import IO, Any, Literal, ParamSpec, TypeVar, cast

import polars as pl

from itembank.errors import DataError
from itembank.files.documents import PARQUET_MARK, regular_size
from itembank.files.memory import most_in_object, most_text, refuse_object, refuse_text

Kind = Literal["parquet", "csv", "json"]
Keep = Callable[[Sequence[str]], Sequence[str]]
"""Which of a file's columns to load."""

SUFFIXES: dict[str, Kind] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".jsonlines": "json",
    ".ndjson": "json",
    ".json": "json",
}
UTF_16 = "UTF-16 text (save it as UTF-8)"
FOREIGN_MARKS = {
    PARQUET_MARK: "a Parquet file",
    b"PK\x03\x04": "a zip archive (an Excel or NumPy file?)",
    b"\x1f\x8b": "gzipped (then its name must end in .gz)",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard (then its name must end in .zst)",
    b"\x80\x04\x95": "a Python pickle, and those are never read",
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
}
BOXES = {".zip", ".tar", ".tgz", ".7z", ".rar", ".xlsx", ".xls", ".ods"}
"""Suffixes of archives and spreadsheets."""
PACKED = (".gz", ".zst")
"""Suffixes of files that are unpacked as they are read."""
ENDINGS = (*SUFFIXES, ".eval", ".zip")
"""What the names of files of results end in, before they are packed."""
JSON_START = re.compile(rb'[{\[]\s*["{\[\]}]')
"""How JSON begins; the name of a column may begin with a bracket, too."""
BYTES_AT_ONCE = 1 << 17
CUT = "the packed stream is cut or damaged. Copy it again."
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is in a file."""

    source: str  # For messages
    frame: pl.DataFrame
    is_typed: bool = True  # Whether the source tells numbers from text (CSV does not)
    # For text columns of sources that may mix types (JSON).
    found: Mapping[str, frozenset[type]] = field(default_factory=dict)


def name_without_ending(path: PurePath) -> str:
    """Return the name of a file without the ending that says its kind; dots within a name are kept: gpt-3.5."""
    name = path.name
    for endings in (PACKED, ENDINGS):
        known = next((one for one in endings if name.lower().endswith(one)), "")
        name = name[: len(name) - len(known)] or name
    return name


def kind_by_name(path: PurePath) -> Kind | None:
    """Tell the kind of a file from its suffix, that before the one of a packed file; None where it says none."""
    inner = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return SUFFIXES.get(inner.suffix.lower())


def file_kind(path: Path) -> Kind:
    """Tell the kind of a file from its suffix, and refuse one that is empty or is not what its suffix says."""
    kind = kind_by_name(path)
    if kind is None:
        path.stat()  # raises where there is nothing of this name
        is_box = not BOXES.isdisjoint(map(str.lower, path.suffixes))
        raise DataError(
            f"{path}: the name of a file must end in one of {', '.join(SUFFIXES)}, or one of these and .gz or .zst."
            + " Unpack an archive first, and save a spreadsheet as CSV." * is_box
        )
    if path.suffix.lower() in PACKED and kind == "parquet":
        raise DataError(f"{path}: a Parquet file must not be packed once more; it is compressed already. Unpack it.")
    with translated(path), open_binary(path) as file:
        start = file.read(4096)
    _check_start(path, start, kind)
    return kind


def _check_start(path: Path, start: bytes, kind: Kind) -> None:
    """Refuse a file whose first bytes say that it is something else."""
    text = start.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        raise DataError(f"{path}: the file is empty.")
    name = "Parquet" if kind == "parquet" else kind.upper()
    what = _foreign(start, text)
    if what is not None and not (kind == "parquet" and start.startswith(PARQUET_MARK)):
        raise DataError(f"{path}: the name says {name}, but the file is {what}.")
    if kind == "parquet":
        if what is None:
            raise DataError(
                f"{path}: the name says {name}, but the file does not begin with PAR1. Rename it to what it is."
            )
        return
    is_json = text[:1] in {b"{", b"["} if kind == "json" else JSON_START.match(text) is not None
    if is_json != (kind == "json"):
        what = "looks like JSON" if is_json else "begins with neither { nor ["
        raise DataError(f"{path}: the name says {name}, but the file {what}. Rename it to what it is.")
    # the last byte may be the first half of an end of a line
    if kind == "csv" and b"\n" not in start and b"\r" in start[:-1]:
        raise DataError(
            f"{path}: lines must end in a line feed (LF, or CR and LF), got CR alone, as of old Macs. Save it as CSV "
            "(UTF-8) once more."
        )


def _foreign(start: bytes, text: bytes) -> str | None:
    """Say what a file is whose first bytes are those of no table of text; None where they may be of one."""
    for mark, what in FOREIGN_MARKS.items():
        if text.startswith(mark):
            return what
    if text[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "a page of HTML (an error in place of the content?)"
    if start[257:262] == b"ustar":
        return "a tar archive (unpack it)"
    return UTF_16 if b"\0" in start[:4] else None


def open_binary(path: Path) -> IO[bytes]:
    """Open an ordinary file for reading bytes, unpacking it; reading raises `DataError` where it gives too much."""
    n_bytes, suffix = regular_size(path), path.suffix.lower()
    most = most_text(n_bytes) if suffix in PACKED else float("inf")
    file: Any = gzip.open(path) if suffix == ".gz" else path.open("rb")  # noqa: SIM115 (closed with what reads it)
    if suffix == ".zst":
        file = Zstandard(file)
    return cast(IO[bytes], io.BufferedReader(_Watched(file, path, most), BYTES_AT_ONCE))


class _Above(io.RawIOBase):
    """A stream that is made of another one as it is read."""

    def __init__(self, below: Any) -> None:
        self._below = below

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def close(self) -> None:
        """Close the stream beneath too."""
        self._below.close()
        super().close()


class Zstandard(_Above):
    """What a stream that Zstandard has packed unpacks to; reading raises `EOFError` where it is cut or damaged."""

    _PACKED_AT_ONCE = 1 << 12
    """A few bytes may unpack to thousands of times as many."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__(packed)
        self._zstd = zstandard()
        self._frame: Any = None
        self._rest, self._ready = b"", memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        """Unpack the next bytes; several frames are one stream."""
        while not self._ready:
            packed = self._rest or self._below.read(self._PACKED_AT_ONCE)
            if not packed:
                if self._frame is not None:
                    raise EOFError(CUT)
                return 0
            self._frame = self._frame or self._zstd.ZstdDecompressor()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._zstd.ZstdError as error:
                raise EOFError(CUT) from error
            self._rest = b""
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        n_bytes = min(len(buffer), len(self._ready))
        buffer[:n_bytes], self._ready = self._ready[:n_bytes], self._ready[n_bytes:]
        return n_bytes


def zstandard() -> Any:
    """Return the standard library's module of Zstandard, or before Python 3.14 its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd


class _Watched(_Above):
    """Bytes of a file, counted as they come: in all, and since the last end of a line."""

    def __init__(self, file: Any, path: Path, most: float) -> None:
        super().__init__(file)
        self._path, self._most, self._most_in_line = path, most, most_in_object()
        self._n_bytes = self._n_in_line = 0

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes, and count them."""
        n_read = int(self._below.readinto(buffer))
        self._n_bytes += n_read
        n_after = _after_last_line(memoryview(buffer)[:n_read])
        self._n_in_line = self._n_in_line + n_read if n_after is None else n_after
        if self._n_bytes > self._most:
            raise refuse_text(self._path, self._most)
        if self._n_in_line > self._most_in_line:
            raise refuse_object(self._path, self._most_in_line)
        return n_read


def _after_last_line(part: memoryview) -> int | None:
    """Return how many bytes follow the last end of a line, None where there is none."""
    for first in (max(0, len(part) - BYTES_AT_ONCE), 0):  # the whole is copied only where its end holds none
        end = bytes(part[first:]).rfind(b"\n")
        if end >= 0:
            return len(part) - first - end - 1
    return None


@contextmanager
def translated(path: Path, what: str = "file") -> Iterator[None]:
    """Turn the errors of reading into a `DataError` that names the file and what is wrong with its text."""
    try:
        yield
    except UNREADABLE as error:
        # A missing or forbidden file is said best by the operating system.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        bad_text = None if path.suffix.lower() in {".parquet", ".pq"} else encoding_problem(path)
        reason = bad_text or (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise DataError(f"{path}: the {what} cannot be read: {reason}") from error


def encoding_problem(path: Path) -> str | None:
    """Say where the file is not UTF-8, or None."""
    try:
        with open_binary(path) as file:
            content = file.read()
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return not_utf8(content, error.start)
    except (OSError, EOFError, zlib.error):
        return CUT
    return None


def not_utf8(content: bytes, position: int, *, before: int = 0, lines_before: int = 0) -> str:
    """Say at which byte and line text is not UTF-8; `before` counts what preceded `content`."""
    line = lines_before + content.count(b"\n", 0, position) + 1
    where = f"byte 0x{content[position]:02x} at position {before + position}, line {line}"
    return f"it is not UTF-8: {where}. Save it as UTF-8."


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_one_at_a_time = threading.Lock()


def quiet(read: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a reader of the file that comes first, which raises an error of damaged files where Polars panics.

    Polars is given the file itself: it would take a name such as r[1].parquet, or ~/r.parquet, for other files.
    """

    @wraps(read)
    def reader(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        try:
            with ExitStack() as opened, _without_panic_on_terminal():
                source: Any = arguments[0]
                file = opened.enter_context(source.open("rb")) if isinstance(source, Path) else source
                given: Any = (file, *arguments[1:])
                return read(*given, **options)
        except pl.exceptions.PanicException as error:
            raise pl.exceptions.ComputeError("it is damaged. Copy it again.") from error

    return reader


@contextmanager
def _without_panic_on_terminal() -> Iterator[None]:
    """Hold back what is written to standard error; give it back unless it tells of a panic."""
    standard_error = 2
    with _one_at_a_time, tempfile.TemporaryFile() as held:
        try:
            before = os.dup(standard_error)
        except OSError:  # there is no standard error
            yield
            return
        is_panic = False
        try:
            with suppress(OSError, ValueError, AttributeError):
                sys.stderr.flush()
            os.dup2(held.fileno(), standard_error)
            yield
        except pl.exceptions.PanicException:
            is_panic = True
            raise
        finally:
            os.dup2(before, standard_error)
            os.close(before)
            held.seek(0)
            if not is_panic:
                os.write(standard_error, held.read())


read_parquet = quiet(pl.read_parquet)
read_parquet_schema = quiet(pl.read_parquet_schema)
read_parquet_metadata = quiet(pl.read_parquet_metadata)
