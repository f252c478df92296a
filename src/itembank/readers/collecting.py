"""Reading many files: which of them there are, and what is wrong with any of them said in one error."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from itembank.errors import DataError, MissingDependencyError, command_line_words, speaks_command_line
from itembank.files.memory import allowed_memory, allowing
from itembank.numerics.parallel import in_parallel, runs_here
from itembank.progress import ProgressCallback
from itembank.readers.detection import files_below
from itembank.readers.kept_parts import active_parts
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
    kept_as: str = "",
) -> tuple[list[Part], list[str]]:
    """Read each file, and return what was read and what is wrong with the others, in the order of the files.

    With `in_processes`, files are read wherever joblib's configuration says (`itembank.numerics.parallel`); `read`
    must then need nothing but its file, and leave nothing behind. With `kept_as`, files that an import had read
    before it was killed are not read again (`keeping_parts`): it must name everything but the file that decides what
    `read` makes, which must then look at no other file.
    """
    kept = active_parts() if kept_as else None
    found: dict[int, tuple[Any, str | None]] = {}
    if kept is not None:
        found = {number: (part, None) for number, part in kept.found(kept_as, files).items()}
    left = [number for number in range(len(files)) if number not in found]
    reading = _elsewhere if in_processes and not runs_here(len(left)) else _here
    for number, part, problem in reading(files, left, read, progress, name):
        found[number] = part, problem
        if kept is not None and problem is None:
            kept.add(kept_as, number, files[number], part)
    ordered = [found[number] for number in range(len(files))]
    parts = [part for part, problem in ordered if problem is None]
    return parts, [problem for _, problem in ordered if problem is not None]


def _here(
    files: Sequence[File],
    left: Sequence[int],
    read: Callable[[File], Part],
    progress: ProgressCallback,
    name: Callable[[File], str],
) -> Iterator[tuple[int, Part | None, str | None]]:
    """Read the files that are left one after another."""
    n_before = len(files) - len(left)
    for n_done, number in enumerate(left, start=n_before):
        progress(f"reading files ({name(files[number])})", n_done / len(files))
        try:
            yield number, read(files[number]), None
        except UNUSABLE as error:
            yield number, None, str(error)


def _elsewhere(
    files: Sequence[File],
    left: Sequence[int],
    read: Callable[[File], Part],
    progress: ProgressCallback,
    _name: Callable[[File], str],
) -> Iterator[tuple[int, Part | None, str | None]]:
    """Read the files that are left in other processes; they come in any order."""
    shared = (read, allowed_memory(), speaks_command_line())
    n_done = len(files) - len(left)
    progress("reading files", n_done / len(files))
    for place, (part, problem) in in_parallel(_read_elsewhere, [(files[number], *shared) for number in left]):
        n_done += 1
        progress(f"reading files ({n_done:,} of {len(files):,})", n_done / len(files))
        yield left[place], part, problem


def _read_elsewhere(
    file: File, read: Callable[[File], Part], most_memory: float | None, is_command_line: bool
) -> tuple[Part | None, str | None]:
    """Read one file as the process that asked for it would; return what is wrong in place of an error."""
    with allowing(most_memory), command_line_words(are_used=is_command_line):
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
