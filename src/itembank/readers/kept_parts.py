"""What a long import has read, kept beside its output, so that the same command goes on after it was killed."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from itembank.files.atomic import held, kept_place
from itembank.files.digests import digest_of
from itembank.readers.part_coding import BROKEN, NotCodedError, encoded, read_part, write_part

KEEP_AFTER = 10.0
"""Seconds of reading before anything is kept: what takes less is soon read again."""

State: TypeAlias = tuple[int, int] | None


class KeptParts:
    """Parts that were read of files, in a hidden folder.

    A part counts only for the file it was read of, as that is now (path, size and time of its last change), and for
    the same release and way of reading.

    Parameters
    ----------
    folder : Path
        Need not exist; made when there is something to keep.

    Attributes
    ----------
    folder : Path
    n_found : int
        Files that were not read again.
    """

    def __init__(self, folder: Path) -> None:
        self.n_found = 0
        self.folder = folder
        self._begun = time.monotonic()
        self._now: dict[str, list[State]] = {}
        self._waiting: list[tuple[str, int, Any, Any]] = []
        self._is_full = self._is_held = False
        self._stack = ExitStack()
        if folder.is_dir():
            with suppress(OSError):
                self._hold()

    def found(self, kind: str, files: Sequence[Any]) -> dict[int, Any]:
        """Return the parts of those files that were read before, by number; to be called before the others are read.

        Parameters
        ----------
        kind : str
            Names whatever else decides what is read of a file.
        files : sequence of paths, or of objects with a `path`
        """
        states = [_state(file) for file in files]  # of now, as a log may grow while it is read
        self._now[kind] = states
        parts = {}
        if self.folder.is_dir():
            for number, file in enumerate(files):
                with suppress(NotCodedError, *BROKEN):
                    key = _key(kind, file, states[number])
                    parts[number] = read_part(self._path(key), key)
        self.n_found += len(parts)
        return parts

    def add(self, kind: str, number: int, file: Any, part: Any) -> None:
        """Keep what was read of a file, once reading has taken long enough; a full disk only ends the keeping."""
        if self._is_full:
            return
        self._waiting.append((kind, number, file, part))
        if time.monotonic() - self._begun < KEEP_AFTER:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._hold()
            for waiting in self._waiting:
                self._write(*waiting)
        except OSError:
            self._is_full = True
        self._waiting.clear()

    def remove(self) -> None:
        """Remove all that was kept."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Let go of the folder."""
        self._stack.close()

    def _hold(self) -> None:
        """Hold the folder, so that nobody takes it for left over."""
        if not self._is_held:
            self._stack.enter_context(held(self.folder))
        self._is_held = True

    def _path(self, key: str) -> Path:
        return self.folder / f"{digest_of(key.encode())}.npz"

    def _write(self, kind: str, number: int, file: Any, part: Any) -> None:
        """Write one part whole or not at all."""
        try:
            key = _key(kind, file, self._now[kind][number])
        except NotCodedError:
            return
        path = self._path(key)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            with suppress(NotCodedError):
                with temporary.open("wb") as written:
                    write_part(written, key, part)
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _state(file: Any) -> State:
    """Return size and time of the last change of a file; None where there is none."""
    try:
        state = _path_of(file).stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


def _key(kind: str, file: Any, state: State) -> str:
    """Return what must be the same for a part to count, as text."""
    return json.dumps([_release(), kind, str(_path_of(file).absolute()), state, encoded(file, [])])


@cache
def _release() -> str:
    return version("itembank")


def _path_of(file: Any) -> Path:
    return Path(getattr(file, "path", file))


_active: ContextVar[KeptParts | None] = ContextVar("kept_parts", default=None)


def active_parts() -> KeptParts | None:
    """Return where parts are kept now; None where nobody asked."""
    return _active.get()


@contextmanager
def keeping_parts(output: Path) -> Iterator[KeptParts]:
    """Keep what is read of logs in this block beside `output`; what is kept is removed when the block ends well."""
    kept = KeptParts(kept_place(output))
    token = _active.set(kept)
    try:
        yield kept
        kept.remove()
    finally:
        _active.reset(token)
        kept.close()
