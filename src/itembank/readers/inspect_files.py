"""Files of Inspect: its `.eval` archives and `.json` logs, and where they lie in a folder."""

import io
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from itembank.errors import DataError, ItembankError
from itembank.files.documents import parse_json, regular_size
from itembank.files.memory import most_in_object, most_text, refuse_object, refuse_text
from itembank.readers.json_files import Record, first_record
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import Zstandard, open_binary

ARCHIVE = ".eval"
ZSTANDARD = 93
"""Compression method of newer archives, which `zipfile` reads from Python 3.14 on."""

_READS_ZSTANDARD = sys.version_info >= (3, 14)
_LOCAL_HEADER = 30
_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version|status)":\s*[^,]{1,20},.{0,80}?"eval":\s*\{', re.DOTALL)
_SUMMARIES = re.compile(r"_journal/summaries/(\d+)\.json")


@dataclass(frozen=True, slots=True)
class LogFile:
    """What is read of one log."""

    path: Path
    header: Mapping[str, Any]  # Its `eval`, and `status` and `results` where the run came to its end
    samples: Sequence[Record]  # One a sample and epoch, without messages and events


def is_inspect_file(path: Path) -> bool:
    """Whether a file is a log of Inspect, by its name or its first bytes."""
    if path.suffix.lower() == ARCHIVE:
        return True
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with open_binary(path) as file:
        return _START.match(file.read(4096)) is not None


def inspect_files(paths: Sequence[Path], spec: ReadingSpec) -> list[Path]:
    """Find the logs at these places: files as they are given, and those inside folders; none twice."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = [file for file in sorted(path.rglob("*")) if not spec.leaves_out(file)]
            found.update(dict.fromkeys(file for file in inside if is_inspect_file(file)))
        else:
            found[path] = None
    return list(found)


def is_inspect_record(record: Record) -> bool:
    """Whether an object is a log of Inspect."""
    return isinstance(record.get("eval"), dict) and not {"status", "samples", "plan"}.isdisjoint(record)


def read_log(path: Path) -> LogFile:
    """Read a log, finished or not.

    Raises
    ------
    DataError
        When it is damaged, grows beyond measure, or is compressed in a way that nothing installed can read.
    """
    header, samples = _archived(path) if path.suffix.lower() == ARCHIVE else _in_one_file(path)
    if not isinstance(header.get("eval"), dict) or not all(isinstance(one, dict) for one in samples):
        raise DataError(f"{path}: is no log of Inspect: it must have an object 'eval' and samples that are objects.")
    return LogFile(path, header, samples)


def _in_one_file(path: Path) -> tuple[Record, list[Record]]:
    """Read a `.json` log."""
    record = first_record(path)
    return record, _listed(path, record.get("samples") or [])


def _archived(path: Path) -> tuple[Record, list[Record]]:
    """Read an `.eval` log; of a run that was killed there is a journal only."""
    regular_size(path)
    with _translated(path), zipfile.ZipFile(path) as archive, path.open("rb") as file:
        members = {one.filename: one for one in archive.infolist()}  # of two with one name, the last counts

        def document(name: str) -> Any:
            return _parsed(path, _content(path, file, archive, members[name]), name)

        header = document("header.json" if "header.json" in members else "_journal/start.json")
        if not isinstance(header, dict):
            raise DataError(f"{path}: the header must be an object, got {type(header).__name__}.")
        if "summaries.json" in members:
            return header, _listed(path, document("summaries.json"))
        parts = sorted((int(found[1]), name) for name in members if (found := _SUMMARIES.fullmatch(name)))
        return header, [one for _, name in parts for one in _listed(path, document(name))]


def _listed(path: Path, samples: Any) -> list[Record]:
    if not isinstance(samples, list):
        raise DataError(f"{path}: the samples must be a list, got {type(samples).__name__}.")
    return samples


def _content(path: Path, file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Unpack a member, as far as it may grow."""
    most = min(most_text(member.compress_size), most_in_object())
    with _opened(file, archive, member) as stream:
        content = stream.read(int(most) + 1)
    if len(content) > most:
        raise refuse_object(path, most) if most == most_in_object() else refuse_text(path, most)
    if zlib.crc32(content) != member.CRC:
        raise DataError(f"{path}: {member.filename} is damaged (its checksum differs). Copy the file again.")
    return content


def _opened(file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member for reading."""
    if member.compress_type != ZSTANDARD or _READS_ZSTANDARD:
        return archive.open(member)
    file.seek(member.header_offset)
    start = file.read(_LOCAL_HEADER)
    # The local header has names of its own length, in two bytes each.
    lengths = int.from_bytes(start[26:28], "little") + int.from_bytes(start[28:30], "little")
    file.seek(member.header_offset + _LOCAL_HEADER + lengths)
    packed = io.BytesIO(file.read(member.compress_size))
    return cast(IO[bytes], io.BufferedReader(Zstandard(packed, Path(archive.filename or ""))))


def _parsed(path: Path, content: bytes, name: str) -> Any:
    try:
        return parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: {name} cannot be read as JSON: {error}.") from error


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what unpacking raises into a `DataError` that names the file."""
    try:
        yield
    except (ItembankError, MemoryError):
        raise
    except Exception as error:
        # A damaged archive raises many things: errors of zipfile and of Zstandard, struct.error, KeyError, ...
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"there is no {error}" if isinstance(error, KeyError) else (str(error) or type(error).__name__)
        raise DataError(
            f"{path}: the log cannot be read: {reason.splitlines()[0][:300]}. Copy it again; of a run that was "
            "killed, 'inspect log recover' may save more."
        ) from error
