"""What a long import has read, kept beside its output, so that the same command goes on after it was killed."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from typing import Any

from itembank.data.atomic import held, kept_place
from itembank.data.digests import digest_of
from itembank.data.readers.part_coding import BROKEN, NotCodedError, encoded, read_part, write_part

KEEP_AFTER = 10.0
"""Seconds of reading before anything is kept: what takes less is soon read again."""


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
    n_found : int
        Files that were not read again.
    """

    def __init__(self, folder: Path) -> None:
        self.n_found = 0
        self._folder = folder
        self._begun = time.monotonic()
        self._waiting: list[tuple[str, Any]] = []
        self._is_full = False
        self._stack = ExitStack()
        if folder.is_dir():
            self._hold()

    def found(self, kind: str, files: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Give the number and the part of each file that was read before; `kind` names the way of reading."""
        if not self._folder.is_dir():
            return
        for number, file in enumerate(files):
            try:
                key = self._key(kind, file)
                part = read_part(self._path(key), key)
            except (NotCodedError, *BROKEN):
                continue
            self.n_found += 1
            yield number, part

    def add(self, kind: str, file: Any, part: Any) -> None:
        """Keep what was read of a file, once reading has taken long enough; a full disk only ends the keeping."""
        if self._is_full:
            return
        with suppress(NotCodedError, OSError):
            self._waiting.append((self._key(kind, file), part))
        if time.monotonic() - self._begun < KEEP_AFTER:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._hold()
            for key, one in self._waiting:
                self._write(key, one)
        except OSError:
            self._is_full = True
        self._waiting.clear()

    def remove(self) -> None:
        """Remove all that was kept."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Let go of the folder."""
        self._stack.close()

    def _hold(self) -> None:
        """Hold the folder, so that nobody takes it for left over."""
        self._stack.close()
        self._stack.enter_context(held(self._folder))

    def _key(self, kind: str, file: Any) -> str:
        """Return what must be the same for a part to count, as text."""
        path = Path(getattr(file, "path", file))
        state = path.stat()
        told = [version("itembank"), kind, str(path.absolute()), state.st_size, state.st_mtime_ns]
        return json.dumps([*told, encoded(file, [])])

    def _path(self, key: str) -> Path:
        return self._folder / f"{digest_of(key.encode())}.npz"

    def _write(self, key: str, part: Any) -> None:
        """Write one part whole or not at all."""
        path = self._path(key)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            with suppress(NotCodedError):
                with temporary.open("wb") as file:
                    write_part(file, key, part)
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


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
