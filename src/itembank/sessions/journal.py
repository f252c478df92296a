"""`Journal`: the file that keeps a session, one line an event, safe on the disk before anyone is told so.

Each line is a JSON object with a checksum that depends on every line before it. The first line is the header: what the
session is, and all it depends on. Each line after it holds one event.

    {"kind":"itembank session","schema_version":1, ... ,"check":"5f6c..."}
    {"time":"2025-01-31T12:00:00Z","event":"asked","item_ids":["q17"],"check":"90ab..."}

``check`` is the beginning of the SHA-256 of the check of the line before (nothing for the header) and the bytes of
this line up to ``,"check"``. So a line that was changed, removed, moved or copied in is found when the journal is read.
"""

import contextlib
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from itembank.errors import DataError, DataWarning, IntegrityError, JournalError, remedy, warn
from itembank.files.atomic import SUFFIX, ordinary_mode, sweep
from itembank.files.documents import JOURNAL, MOST_BYTES, regular_size

SCHEMA_VERSION = 1
BEGINNING = b'{"kind":"itembank session"'
"""First bytes of a journal."""
_ENDING = re.compile(rb',"check":"([0-9a-f]{16})"\}')


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What is in a journal."""

    header: Mapping[str, Any]  # What the session is, less `check`
    events: tuple[Mapping[str, Any], ...]  # The events, oldest first, less `time` and `check`
    times: tuple[str, ...]  # When each was written, UTC
    n_bytes: int  # Length of the whole lines
    n_torn: int  # Bytes after the last whole line: a line that is being written, or whose writer was killed
    last_check: str  # Check of the last whole line


def is_journal(path: Path) -> bool:
    """Whether a file is a session's journal, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(BEGINNING)) == BEGINNING


def encode_line(record: Mapping[str, Any], previous_check: str) -> tuple[bytes, str]:
    """Return the line of a record, ending in a newline, and its check."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DataError(f"what is kept in a journal must be JSON without NaN and infinity: {error}.") from error
    try:
        line = text.encode("utf-8")  # numbers come back bit for bit, as Python writes the shortest digits that do
    except UnicodeEncodeError:  # half a surrogate pair, as undecodable bytes of a command line become
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii")
    body = line[:-1]
    check = _check(previous_check, body)
    return body + b',"check":"' + check.encode("ascii") + b'"}\n', check


def parse_journal(content: bytes, name: str, kind: str = JOURNAL) -> JournalContent:
    """Read the bytes of a journal called `name`; whatever follows the last newline is left out and counted."""
    end = content.rfind(b"\n") + 1
    lines = content[:end].split(b"\n")[:-1]
    if not lines:
        again = "Remove it and start the session again"
        if not content:
            raise DataError(f"{name} is empty, so it is not the journal of a session. {again}.")
        raise DataError(
            f"{name} holds no whole line, so it is not the journal of a session. If it was to be one, no answer was in "
            f"it: {again[0].lower()}{again[1:]}."
        )
    # what kind of file it is comes before whether it is whole; a damaged header is found below
    header = _object(lines[0])
    if header is not None or not lines[0].startswith(BEGINNING):
        if header is None or header.get("kind") != kind:
            what = "the journal of a session. Start one with itembank session start."
            raise DataError(f"{name} is not {what if kind == JOURNAL else f'a file of {kind}. Remove it.'}")
        version = header.get("schema_version")
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{name}: schema_version must be {SCHEMA_VERSION}, got {version!r}. Go on with the release of itembank "
                f"that wrote it ({header.get('itembank_version', 'unknown')})."
            )
    header, check = _parse_line(lines[0], "", f"{name}, line 1 (the header)", 0)
    events, times = [], []
    for number, line in enumerate(lines[1:], start=2):
        record, check = _parse_line(line, check, f"{name}, line {number} of {len(lines)}", number - 1)
        times.append(str(record.pop("time", "")))
        events.append(record)
    return JournalContent(header, tuple(events), tuple(times), end, len(content) - end, check)


def _parse_line(line: bytes, previous_check: str, where: str, n_whole: int) -> tuple[dict[str, Any], str]:
    """Read one line, and compare its check with what it must be after the line before."""
    n_ending = len(',"check":""}') + 16
    body = line[:-n_ending]
    ending = _ENDING.fullmatch(line[-n_ending:])
    check = _check(previous_check, body)
    record = _object(body + b"}")
    if record is None or ending is None or ending[1].decode("ascii") != check:
        rescue = (
            f"keep its first {n_whole} lines (head -n {n_whole}) as a new journal and tell the later answers again"
            if n_whole
            else "start another session and tell it the answers of this one"
        )
        raise IntegrityError(
            f"{where} is not what was written there. Copy the journal again from where it is whole; or {rescue}."
        )
    return record, check


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _check(previous_check: str, body: bytes) -> str:
    return hashlib.sha256(previous_check.encode("ascii") + body).hexdigest()[:16]


class Journal:
    """A session's journal, open for writing by this process alone.

    Make one with `Journal.create` or `Journal.open`; close it, or use it as a context manager. Each event is on the
    disk when `append` returns. A line that was torn by a crash is left out when the journal is opened, with a
    `DataWarning`, and cut off before the next event is written.

    Attributes
    ----------
    path : Path
        Where it is.
    content : JournalContent
        Header and events as they were when it was opened.
    """

    def __init__(self, path: Path, content: JournalContent, handle: int) -> None:
        self.path = path
        self.content = content
        self._handle: int | None = handle
        self._n_bytes = content.n_bytes
        self._check = content.last_check
        # Whether the file may hold bytes after its last whole line.
        self._may_have_tail = content.n_torn > 0

    @classmethod
    def create(cls, path: str | Path, header: Mapping[str, Any]) -> Self:
        """Make a new journal with this header; `kind`, a session's by default, `schema_version` and the time are added.

        It appears at `path` whole or not at all.
        """
        path = Path(path)
        record = {"kind": JOURNAL, "schema_version": SCHEMA_VERSION, "time": _now(), **header}
        line, _ = encode_line(record, "")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            sweep(path)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=SUFFIX)
        except OSError as error:
            raise JournalError(f"{path} cannot be made: {error}. Choose another place.") from error
        temporary = Path(name)
        try:
            _lock(handle, path, wait=0.0)
            _write_all(handle, line, 0)
            os.fsync(handle)
            temporary.chmod(ordinary_mode())  # mkstemp makes it private; a journal is an ordinary file
            try:
                path.hardlink_to(temporary)
            except FileExistsError as error:
                raise _taken(path) from error
            except OSError:  # a file system without hard links
                if path.exists():
                    raise _taken(path) from None
                temporary.rename(path)
            with contextlib.suppress(OSError):  # a new name in a folder lasts, where the file system can
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                raise JournalError(f"{path} cannot be written: {error}. No session was started.") from error
            raise
        finally:
            temporary.unlink(missing_ok=True)
        return cls(path, parse_journal(line, str(path), record["kind"]), handle)

    @classmethod
    def open(cls, path: str | Path, *, wait: float = 0.0, kind: str = JOURNAL) -> Self:
        """Open a journal to go on with it, waiting up to `wait` seconds for another process to close it."""
        path = Path(path)
        sweep(path)  # a start that was killed at its very end leaves a second name of the journal
        try:
            _check_size(path)
            handle = os.open(path, os.O_RDWR)
        except OSError as error:
            raise _unreadable(path, error) from error
        try:
            _lock(handle, path, wait)
            with os.fdopen(os.dup(handle), "rb") as file:
                content = parse_journal(file.read(), str(path), kind)
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                raise _unreadable(path, error) from error
            raise
        warn_of_torn(path, content)
        return cls(path, content, handle)

    def append(self, event: Mapping[str, Any]) -> None:
        """Keep one event; it is on the disk when this returns, and nothing is changed when this raises."""
        line, check = encode_line({"time": _now(), **event}, self._check)
        handle = self._open_handle()
        try:
            self._cut_tail(handle)
            # Set before the write: whatever interrupts it, the next append finds and removes what it left.
            self._may_have_tail = True
            _write_all(handle, line, self._n_bytes)
            os.fsync(handle)
        except OSError as error:
            with contextlib.suppress(OSError):  # else it is cut off later: nobody counts an unfinished line
                self._cut_tail(handle)
            raise JournalError(
                f"{self.path} cannot be written: {error}. The last event is not kept; everything before it is. "
                "Make room, or fix what the message says, and try again."
            ) from error
        self._n_bytes += len(line)
        self._check = check
        self._may_have_tail = False

    def close(self) -> None:
        """Let others write; safe to do more than once."""
        if self._handle is not None:
            import fcntl  # noqa: PLC0415

            # which processes forked meanwhile would keep
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open_handle(self) -> int:
        """Return the handle of the file, which must still be the one at `path`, ending where we left it."""
        if self._handle is None:
            raise JournalError(f"{self.path} was closed; open the session again.")
        try:
            here, there = os.fstat(self._handle), os.stat(self.path)  # noqa: PTH116 (compared with fstat)
        except FileNotFoundError as error:
            raise JournalError(f"{self.path} was removed while the session was open. Put it back.") from error
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise JournalError(f"{self.path} was replaced while the session was open. Put the one that was there back.")
        if here.st_size < self._n_bytes or (here.st_size > self._n_bytes and not self._may_have_tail):
            raise JournalError(
                f"{self.path} was changed by something else while the session was open: {here.st_size} bytes instead "
                f"of {self._n_bytes}. Open the session again."
            )
        return self._handle

    def _cut_tail(self, handle: int) -> None:
        if self._may_have_tail:
            os.ftruncate(handle, self._n_bytes)
            os.fsync(handle)
            self._may_have_tail = False


def warn_of_torn(path: Path, content: JournalContent) -> None:
    """Warn of a last line that is not whole."""
    if content.n_torn:
        warn(
            f"{path}: the last line was torn off while it was written ({content.n_torn} bytes) and is left out. "
            "Whatever was to be kept in it was never confirmed: tell it again.",
            DataWarning,
        )


def read_journal(path: str | Path) -> JournalContent:
    """Read a journal without opening it for writing: also while another process writes it."""
    path = Path(path)
    try:
        _check_size(path)
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    return parse_journal(content, str(path))


def _check_size(path: Path) -> None:
    """Raise `JournalError` for what is no ordinary file, `DataError` for what is larger than any session's journal."""
    try:
        n_bytes = regular_size(path)
    except DataError as error:
        raise JournalError(f"{path} cannot be opened: {error}") from error
    if n_bytes > MOST_BYTES:
        raise DataError(f"{path} must have at most {MOST_BYTES:,} bytes, got {n_bytes:,}: it is no session's journal.")


def _unreadable(path: Path, error: OSError) -> DataError | JournalError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"there is no journal at {path}. Start a session with itembank session start.")
    return JournalError(f"{path} cannot be opened: {error}.")


def _lock(handle: int, path: Path, wait: float) -> None:
    """Make this process the only one that writes; the system lets go when the process ends, however it does."""
    try:
        import fcntl  # noqa: PLC0415 (absent on Windows)
    except ImportError as error:
        raise JournalError(
            f"{path}: sessions with a journal need file locks of a POSIX system (Linux, macOS, WSL)."
        ) from error
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                raise JournalError(
                    f"another process has {path} open, and only one at a time may write to it. "
                    f"{remedy('Let it end, or wait for it (wait=)', 'Let it end, and try again')}."
                ) from error
            time.sleep(0.05)
        else:
            return


def _write_all(handle: int, content: bytes, offset: int) -> None:
    """Write at a place in the file; a disk that fills up may take a part first."""
    done = 0
    while done < len(content):
        done += os.pwrite(handle, content[done:], offset + done)


def check_absent(path: str | Path) -> None:
    """Raise `DataError` when `path` exists; worth asking before long work."""
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: str | Path) -> DataError:
    return DataError(f"{path} exists already. Go on with it, or give another name.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
