"""Writing files and folders whole or not at all: to a temporary place beside the target, then renamed."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the errors of a full disk, or of a quota that is used up; Polars has them in its text."""


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write; it becomes `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".partial")
    os.close(handle)
    temporary = Path(name)
    try:
        with _naming_a_full_disk(path):
            yield temporary
        temporary.chmod(ordinary_mode())  # mkstemp makes it private; a result is an ordinary file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes `path` when the block ends without an error.

    A folder that stood at `path` is moved aside first and removed last, so a crash never leaves half a folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".partial"))
    try:
        new = workplace / "new"
        with _naming_a_full_disk(path):
            new.mkdir()
            yield new
        if path.exists():
            old = workplace / "old"
            path.replace(old)
            try:
                new.replace(path)
            except OSError:
                old.replace(path)
                raise
        else:
            new.replace(path)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


@contextmanager
def _naming_a_full_disk(path: Path) -> Iterator[None]:
    """Say what could not be written when the disk is full, which errors of a write leave out or hide in their text."""
    try:
        yield
    except Exception as error:
        is_full = isinstance(error, OSError) and error.errno in FULL
        if not is_full and not any(f"(os error {number})" in str(error) for number in FULL):
            raise
        named = OSError(
            f"{path} cannot be written: no space is left on the disk. What stood there is as it was; make room and do "
            "it again."
        )
        named.errno = errno.ENOSPC
        raise named from error


def ordinary_mode() -> int:
    """Return the mode that a new file has (the process's mask can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
