"""Files out of a compressed archive: ordinary files of chosen names, below one folder, of bounded number and size."""

import errno
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from itembank.errors import DataError, quoted
from itembank.files.atomic import replacing_file
from itembank.progress import ProgressCallback, silent

MOST_FILES = 100_000
"""More than any store holds several times over."""
UNFIT_NAME = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY}
"""Of names that the system cannot make a file of: too long, or of a file that is also a folder."""


def unpack(
    archive: Path, folder: Path, patterns: Sequence[str], *, most_bytes: int, progress: ProgressCallback = silent
) -> int:
    """Write the files of a tar archive whose names match, without the archive's own first folder.

    Links, devices and names that lead out of the folder are left out. Each file is written whole or not at all.

    Returns
    -------
    int
        Number of files.

    Raises
    ------
    DataError
        When the archive is damaged, holds none of these files, gives more than `most_bytes` or `MOST_FILES`, or
        names one as no file can be named.
    """
    n_files = n_bytes = 0
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                name = _name(member, patterns)
                content = tar.extractfile(member) if name else None
                if name is None or content is None:
                    continue
                n_bytes += member.size
                if n_bytes > most_bytes:
                    raise DataError(f"{archive}: its files must have at most {most_bytes:,} bytes, got more.")
                n_files += 1
                if n_files > MOST_FILES:
                    raise DataError(f"{archive}: must hold at most {MOST_FILES:,} files, got more.")
                with _named(archive, name), replacing_file(folder / name) as temporary, temporary.open("wb") as file:
                    shutil.copyfileobj(content, file)
                progress(f"unpacking ({n_files} files)", 0.0)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{archive}: the archive cannot be read: {error}. Fetch it again.") from error
    if n_files == 0:
        raise DataError(f"{archive}: must hold files named {', '.join(patterns)}, got none: its layout has changed.")
    return n_files


@contextmanager
def _named(archive: Path, name: PurePosixPath) -> Iterator[None]:
    """Name a file of an archive that cannot be made."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in UNFIT_NAME:
            raise
        raise DataError(
            f"{archive}: every file must have a name that a file can have here, got {quoted(name)} "
            f"({getattr(error, 'strerror', None) or error}). The archive was not made as its store makes them."
        ) from error


def _name(member: tarfile.TarInfo, patterns: Sequence[str]) -> PurePosixPath | None:
    """Name of a file below the archive's first folder; None when it is not wanted."""
    parts = PurePosixPath(member.name).parts[1:]
    if not member.isreg() or not parts or ".." in parts or member.name.startswith("/"):
        return None
    name = PurePosixPath(*parts)
    return name if any(fnmatchcase(str(name), pattern) for pattern in patterns) else None
