"""`Journal`: the file that keeps a session, one line an event, safe on the disk before anyone is told so."""

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from itembank.errors import DataError, DataWarning, JournalError, warn
from itembank.files.atomic import SUFFIX, ordinary_mode, sweep
from itembank.files.documents import MOST_BYTES, regular_size
from itembank.sessions.journal_lines import KIND, SCHEMA_VERSION, JournalContent, encode_line, parse_journal

POLLED_EVERY = 0.05
"""Seconds between two looks at a lock that is waited for."""


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
        Header and events as they stood when it was opened.
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
        """Make a new journal with this header; `kind`, `schema_version` and the time are added.

        It appears at `path` whole or not at all.

        Raises
        ------
        DataError
            When something stands at `path` already.
        JournalError
            When it cannot be written.
        """
        path = Path(path)
        record = {"kind": KIND, "schema_version": SCHEMA_VERSION, "time": _now(), **header}
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
            _publish(temporary, path)
            _sync_folder(path.parent)
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                raise JournalError(f"{path} cannot be written: {error}. No session was started.") from error
            raise
        finally:
            temporary.unlink(missing_ok=True)
        return cls(path, parse_journal(line, str(path)), handle)

    @classmethod
    def open(cls, path: str | Path, *, wait: float = 0.0) -> Self:
        """Open a journal to go on with it, waiting up to `wait` seconds for another process to close it.

        Raises
        ------
        JournalError
            When another process has it open, or it cannot be read or written.
        DataError, IntegrityError
            When it is no journal this release can go on with, or is damaged; see `read_journal`.
        """
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
                content = parse_journal(file.read(), str(path))
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                raise _unreadable(path, error) from error
            raise
        warn_of_torn(path, content)
        return cls(path, content, handle)

    @property
    def header(self) -> Mapping[str, Any]:
        """What the session is, and all it depends on besides the bank and the events."""
        return self.content.header

    @property
    def events(self) -> tuple[Mapping[str, Any], ...]:
        """The events that stood in it when it was opened, oldest first."""
        return self.content.events

    def append(self, event: Mapping[str, Any]) -> None:
        """Keep one event; it is on the disk when this returns, and nothing is changed when this raises.

        Raises
        ------
        JournalError
            When it cannot be written (a full disk), or the file was changed or removed meanwhile.
        """
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
                "Make room, or mend what the message says, and do it again."
            ) from error
        self._n_bytes += len(line)
        self._check = check
        self._may_have_tail = False

    def close(self) -> None:
        """Let others write; safe to do more than once."""
        if self._handle is not None:
            _unlock(self._handle)
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
    """Read a journal without opening it for writing: also while another process writes it.

    Raises
    ------
    DataError
        When there is no journal at `path`, its header is not whole, or it has another schema version.
    IntegrityError
        When a line before the end is not what was written.
    JournalError
        When it cannot be read.
    """
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
                    "Let it end, or wait for it (wait=, --wait)."
                ) from error
            time.sleep(POLLED_EVERY)
        else:
            return


def _unlock(handle: int) -> None:
    """Let go of the lock, which processes forked meanwhile would keep."""
    import fcntl  # noqa: PLC0415

    fcntl.flock(handle, fcntl.LOCK_UN)


def _write_all(handle: int, content: bytes, offset: int) -> None:
    """Write at a place in the file; a disk that fills up may take a part first."""
    done = 0
    while done < len(content):
        done += os.pwrite(handle, content[done:], offset + done)


def check_absent(path: str | Path) -> None:
    """Raise `DataError` when something stands at `path`; worth asking before long work."""
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: str | Path) -> DataError:
    return DataError(f"{path} is there already. Go on with it, or give another name.")


def _publish(temporary: Path, path: Path) -> None:
    """Give a file its name, unless something has it."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError:  # a file system without hard links
        if path.exists():
            raise _taken(path) from None
        temporary.rename(path)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder last, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
