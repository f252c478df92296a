"""Reading many files: which of them there are, and what is wrong with any of them said in one error."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from itembank.errors import DataError, MissingDependencyError, command_line_words, speaks_command_line
from itembank.files.memory import allowed_memory, allowing
from itembank.numerics.parallel import in_parallel, runs_here
from itembank.progress import ProgressCallback
from itembank.readers.detection import files_below
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import refuse_or_leave_out
from itembank.readers.sources import SOURCES, is_companion

UNUSABLE = (DataError, MissingDependencyError)
"""What says that a file cannot be read, whatever the others are."""
File = TypeVar("File")
Part = TypeVar("Part")


def collect(
    files: Sequence[File],
    read: Callable[[File], Part],
    progress: ProgressCallback,
    *,
    name: Callable[[File], str],
    in_processes: bool = False,
) -> tuple[list[Part], list[str]]:
    """Read each file, and return what was read and what is wrong with the others, in the order of the files.

    With `in_processes`, files are read wherever joblib's configuration says (`itembank.numerics.parallel`); `read`
    must then need nothing but its file, and leave nothing behind.
    """
    if in_processes and not runs_here(len(files)):
        found = _elsewhere(files, read, progress)
    else:
        found = _here(files, read, progress, name)
    parts = [part for part, problem in found if problem is None]
    return parts, [problem for _, problem in found if problem is not None]


def _here(
    files: Sequence[File], read: Callable[[File], Part], progress: ProgressCallback, name: Callable[[File], str]
) -> list[tuple[Any, str | None]]:
    """Read files one after another."""
    found = []
    for n_done, file in enumerate(files):
        progress(f"reading files ({name(file)})", n_done / len(files))
        found.append(_read(file, read))
    return found


def _elsewhere(
    files: Sequence[File], read: Callable[[File], Part], progress: ProgressCallback
) -> list[tuple[Any, str | None]]:
    """Read files in other processes."""
    shared = (read, allowed_memory(), speaks_command_line())
    found = {}
    progress("reading files", 0.0)
    for number, one in in_parallel(_read_elsewhere, [(file, *shared) for file in files]):
        found[number] = one
        progress(f"reading files ({len(found):,} of {len(files):,})", len(found) / len(files))
    return [found[number] for number in range(len(files))]


def _read_elsewhere(
    file: File, read: Callable[[File], Part], most_memory: float | None, is_command_line: bool
) -> tuple[Part | None, str | None]:
    """Read one file as the process that asked for it would."""
    with allowing(most_memory), command_line_words(are_used=is_command_line):
        return _read(file, read)


def _read(file: File, read: Callable[[File], Part]) -> tuple[Part | None, str | None]:
    """Read one file; return what is wrong in place of an error."""
    try:
        return read(file), None
    except UNUSABLE as error:
        return None, str(error)


def read_each(
    paths: Sequence[Path], read: Callable[[Path], Part], progress: ProgressCallback, spec: ReadingSpec
) -> list[Part]:
    """Read each file; every one that cannot be read is named in one error, or left out where `spec` says so.

    Raises
    ------
    DataError
        With the problems of the first few files.
    """
    parts, problems = collect(paths, read, progress, name=lambda path: path.name)
    refuse_or_leave_out(problems, spec, has_rest=bool(parts))
    return parts


def own_files(paths: Sequence[Path], source: str, spec: ReadingSpec, hint: str = "") -> list[Path]:
    """Files of one program among these files and below these folders.

    Raises
    ------
    DataError
        When a folder has none; `hint` says where they are.
    """
    found: dict[Path, None] = {}
    for path in paths:
        below = [one for one in files_below(path, spec) if _is_own(one, source)] if path.is_dir() else [path]
        if not below:
            one = SOURCES[source]
            raise DataError(f"{path}: holds no {one.title} ({', '.join(one.files)}). {hint}".rstrip())
        found.update(dict.fromkeys(below))
    return list(found)


def _is_own(path: Path, source: str) -> bool:
    return SOURCES[source].holds(path) and not is_companion(path)


def named(paths: Sequence[Path]) -> str:
    """Name the first of these paths, for messages."""
    return ", ".join(map(str, paths[:3])) + (", ..." if len(paths) > 3 else "")
