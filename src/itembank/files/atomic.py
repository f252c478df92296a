"""Files and folders written whole or not at all, in a temporary place that is renamed; and the user's cache folder."""

import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from itembank.errors import ItembankError, ParameterError, visible

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors of a full disk, a quota that is used up, a file too large; Polars has them in its text."""

SUFFIX = ".partial"
"""End of the names of temporary places."""

BANK_RECORD = "bank.json"
"""What makes a folder a bank's."""


def check_destination(path: Path, *, is_folder: bool = False) -> None:
    """Raise `ParameterError` when no file, or no folder, can be written at `path`; worth asking before long work."""
    try:
        str(path).encode()  # names of files may hold any bytes, which other programs and libraries do not take
    except UnicodeEncodeError as error:
        raise ParameterError(f"{visible(str(path))} must be a name in UTF-8. Give another name.") from error
    if is_folder and path.exists() and not path.is_dir():
        raise ParameterError(f"{path} is a file; give the name of a folder.")
    if is_folder and path.is_symlink() and not path.exists():
        raise ParameterError(f"{path} is a link to a place that is not there; remove it, or give another name.")
    if not is_folder and path.is_dir():
        raise ParameterError(f"{path} is a folder; give the name of a file.")
    if not is_folder and path.exists() and not path.is_file():
        raise ParameterError(f"{path} is a device or a pipe; give the name of an ordinary file.")
    place = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    try:
        with tempfile.TemporaryFile(dir=place):  # permissions alone do not tell: /proc takes nothing from anybody
            pass
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written: nothing can be made in {place} ({error.strerror}). Choose another place."
        ) from error


def check_no_bank(path: Path) -> None:
    """Raise `ParameterError` for the folder of a bank, in which nothing else is to lie."""
    if (path / BANK_RECORD).is_file():
        raise ParameterError(f"{path} is the folder of a bank; give another folder.")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write; it becomes `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path)
    with _temporary_place(path, is_folder=False) as temporary:
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

    A folder that was at `path` changes places with it in one step, so that there is always one. Where the system
    cannot do so it is moved aside first: a crash at that moment leaves it where `kept_aside` finds it.
    """
    with _workplace(path) as (new, aside):
        with _naming_a_full_disk(path):
            yield new
        _put(new, path, aside)


@contextmanager
def adding_to_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder to fill; what it holds is in the folder `path` when the block ends without an error.

    Where nothing was at `path`, all comes there in one step. Otherwise files and folders come one after another, each
    in the place of one of the same name; what has another name stays. A bank's folder is refused.
    """
    check_no_bank(path)
    with _workplace(path) as (new, aside):
        with _naming_a_full_disk(path):
            yield new
        if not path.exists():
            new.replace(path)
            return
        for one in sorted(new.iterdir()):
            _put(one, path / one.name, aside)


@contextmanager
def adding_files(path: Path, *, last: str) -> Iterator[Path]:
    """Give a temporary folder to fill; its files come to the same places under `path` when the block ends well.

    A folder that `path` does not have comes in one step. In others come files one after another, those whose names
    begin with `last` after all others. A bank's folder is refused.
    """
    check_no_bank(path)
    with _workplace(path) as (new, _):
        with _naming_a_full_disk(path):
            yield new
        _merge(new, path, last)


def _merge(new: Path, path: Path, last: str) -> None:
    if not (new.is_dir() and path.is_dir()):
        new.replace(path)
        return
    for one in sorted(new.iterdir(), key=lambda file: (file.name.startswith(last), file.name)):
        _merge(one, path / one.name, last)


@contextmanager
def _workplace(path: Path) -> Iterator[tuple[Path, Path]]:
    """Make a folder to fill beside a target, and name a place for what is there; both are removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path)
    with _temporary_place(path, is_folder=True) as workplace:
        try:
            (workplace / "new").mkdir()
            yield workplace / "new", workplace / "old"
        finally:
            shutil.rmtree(workplace, ignore_errors=True)


@contextmanager
def _temporary_place(path: Path, *, is_folder: bool) -> Iterator[Path]:
    """Make a temporary file or folder of a target and hold its lock.

    Until it is locked it looks like one that a killed command left, and may be swept away: then another is made.
    """
    while True:
        if is_folder:
            place = Path(tempfile.mkdtemp(SUFFIX, _prefix(path), path.parent))
        else:
            handle, name = tempfile.mkstemp(SUFFIX, _prefix(path), path.parent)
            os.close(handle)
            place = Path(name)
        with ExitStack() as lock:
            try:
                is_ours = lock.enter_context(held(place)) is not None and place.exists()
            except FileNotFoundError:
                is_ours = False
            if is_ours:
                yield place
                return


def kept_aside(path: Path) -> Path | None:
    """Return the folder that was at `path` before a command that replaced it was killed; None where there is none."""
    kept = (place / "old" for place in _temporary_places(path))
    return None if path.exists() else next((folder for folder in kept if folder.is_dir()), None)


def sweep(path: Path) -> None:
    """Remove what killed commands left beside `path` while they wrote it.

    What another command writes at this moment stays, and so does a folder that is the only one left of what was at
    `path`.
    """
    for place in _temporary_places(path):
        if (place / "old").is_dir() and not path.exists():
            continue
        with suppress(OSError), _locked(place) as (_, can_lock):
            # where nothing tells whether its writer lives, it is left over after a week
            if time.time() - place.stat().st_mtime > 7 * 24 * 3600.0 if can_lock is None else can_lock:
                shutil.rmtree(place) if place.is_dir() else place.unlink()


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}."


def _temporary_places(path: Path) -> list[Path]:
    """Temporary files and folders of this target, whoever made them."""
    ours = re.compile(re.escape(_prefix(path)) + r"[a-z0-9_]{8}" + re.escape(SUFFIX))
    try:
        return [place for place in path.parent.iterdir() if ours.fullmatch(place.name)]
    except OSError:
        return []


@contextmanager
def held(place: Path) -> Iterator[tuple[int, ...] | None]:
    """Hold the lock of a file or folder, which the system takes from the dead; None if another process has it.

    Gives the handles (`pass_fds`) by which a process that is started holds it, too.
    """
    if os.name == "nt":  # which has no such locks, and renames no file that is open
        yield ()
        return
    with _locked(place) as (handle, can_lock):
        yield None if can_lock is False else (handle,)


@contextmanager
def _locked(place: Path) -> Iterator[tuple[int, bool | None]]:
    """Open a file or folder, and hold its lock if `_lock` can take it; gives the handle, and what that says."""
    handle = os.open(place, os.O_RDONLY)
    try:
        yield handle, _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Take the lock of an open file or folder; False if another process has it, None if the system has no locks."""
    try:
        import fcntl  # noqa: PLC0415 (absent on Windows)

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _exchange(first: Path, second: Path) -> bool:
    """Let two folders change places in one step (Linux's renameat2); False where the system cannot."""
    import ctypes  # noqa: PLC0415 (seldom needed)

    current_folder, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of linux/fs.h
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    names = os.fsencode(first), os.fsencode(second)
    return int(rename(current_folder, names[0], current_folder, names[1], exchange)) == 0


def _put(new: Path, path: Path, aside: Path) -> None:
    """Move a file or folder to where another may be."""
    if not path.is_dir():
        new.replace(path)
    elif not _exchange(new, path):
        path.replace(aside)
        try:
            new.replace(path)
        except OSError:
            aside.replace(path)
            raise


@contextmanager
def _naming_a_full_disk(path: Path) -> Iterator[None]:
    """Say what could not be written when the disk is full, which errors of a write leave out or hide in their text."""
    try:
        yield
    except Exception as error:
        is_full = isinstance(error, OSError) and error.errno in FULL
        is_told = any(f"(os error {number})" in str(error) for number in FULL)
        if not is_full and not is_told and (isinstance(error, OSError | ItembankError) or not _is_full(path.parent)):
            raise
        named = OSError(
            f"{path} cannot be written: no space is left on the disk. What was there is unchanged; make room and try "
            "again."
        )
        named.errno = errno.ENOSPC
        raise named from error


def _is_full(folder: Path) -> bool:
    """Whether not even a megabyte can be written: some writers say no more than that writing failed."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1_000_000))
    except OSError as error:
        return error.errno in FULL
    return False


def ordinary_mode() -> int:
    """Return the mode that a new file has (the process's mask can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


VARIABLE = "ITEMBANK_CACHE"
MOST_BYTES = 2 * 1024**3
"""Beyond this size the files that were written first give way."""


def user_cache_folder() -> Path:
    """Return where work is kept between runs; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    import platformdirs  # noqa: PLC0415 (only banks with a folder need it)

    return platformdirs.user_cache_path("itembank")


def drop_oldest() -> None:
    """Remove the files that were written first, beyond the size that may be kept."""
    files = []
    for path in user_cache_folder().rglob("*.safetensors"):
        with suppress(OSError):  # another process may remove it first
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
