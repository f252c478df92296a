"""Reading many files: which of them there are, and what is wrong with any of them said in one error."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from itembank.errors import (
    DataError,
    ItembankError,
    MissingDependencyError,
    command_line_words,
    remedy,
    shell_word,
    shown,
    speaks_command_line,
    warned_once,
)
from itembank.files.atomic import BANK_RECORD
from itembank.files.documents import JOURNAL
from itembank.files.memory import allowed_memory, allowing
from itembank.numerics.parallel import in_parallel, runs_here
from itembank.progress import ProgressCallback, silent
from itembank.readers.jq_programs import how_to_run, program_for, summary_of
from itembank.readers.json_files import Record, first_object, first_record, read_values
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import Format, ReadingSpec
from itembank.readers.refusals import refuse_or_leave_out
from itembank.readers.rows import ResponseRows, joined_source
from itembank.readers.sources import (
    TABLES,
    is_companion,
    matches,
    no_readers,
    reader_function,
    source_called,
    source_of_name,
    source_of_record,
    sources,
)
from itembank.readers.table import columns_of, holds_responses, is_long_table
from itembank.responses.opening import SUFFIXES, file_kind, kind_by_name
from itembank.responses.response_files import is_response_file
from itembank.tables import plural


@contextmanager
def laid_out(path: Path, layout: str) -> Iterator[None]:
    """Turn the errors of taking a document apart into a `DataError` that names the file and the layout it must have."""
    try:
        yield
    except ItembankError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: must be laid out as {layout}, got something else in a place ({type(error).__name__}: {error}). "
            "Is it whole, and from a current release of that tool?"
        ) from error


@dataclass(frozen=True, slots=True)
class Found:
    """What files and folders hold."""

    # What its reader is to be given: files, and folders that it walks itself.
    paths: dict[Format, list[Path]] = field(default_factory=dict)
    n_files: dict[Format, int] = field(default_factory=dict)
    unknown: list[Path] = field(default_factory=list)  # Files below folders that no reader knows
    problems: list[str] = field(default_factory=list)  # Why other files cannot be told
    links: list[Path] = field(default_factory=list)  # Links to folders elsewhere, which are not followed

    def add(self, source_format: Format, path: Path, n_files: int = 1) -> None:
        """Add what one reader is to be given; a folder is given once."""
        known = self.paths.setdefault(source_format, [])
        if path not in known or not path.is_dir():
            known.append(path)
        self.n_files[source_format] = self.n_files.get(source_format, 0) + n_files


def find_sources(paths: Sequence[Path], spec: ReadingSpec, known: Iterable[Any] = ()) -> Found:
    """Tell what these files and folders hold; folders are walked, and links to folders are not followed.

    `known` are tables of models and items; files of them are no results where they are below a folder.
    """
    found, tables = Found(), {Path(one).resolve() for one in known if isinstance(one, str | Path)}
    for path in paths:
        try:
            if not path.is_dir() and spec.leaves_out(path):
                continue
            if not path.is_dir():
                found.add(format_of_file(path, spec), path)
            elif spec.jq is not None:
                for one in _rows_below(path, spec, tables, found):
                    found.add("long", one)
            elif spec.format == "auto":
                _look_below(path, spec, tables, found)
            else:
                source = source_called(spec.format)
                if source is None or not source.files:
                    as_logs = remedy("format='lm-eval'", "--as lm-eval")
                    raise DataError(f"{path}: is a folder; name its files, or read it as harness logs ({as_logs}).")
                found.add(spec.format, path, sum(map(source.holds, files_below(path, spec, found.links))))
        except DataError as error:
            found.problems.append(str(error))
    read = [path.resolve() for path in paths] if found.links else []
    links = {one: one.resolve() for one in found.links}
    found.links[:] = [one for one, place in links.items() if not any(map(place.is_relative_to, read))]
    if not (found.paths or found.problems):
        found.problems.append(f"there must be a file to read, got none but those of {shown(spec.exclude_files)}.")
    return found


def files_below(folder: Path, spec: ReadingSpec, links: list[Path] | None = None) -> Iterator[Path]:
    """Give all files below a folder in the order of their names, but hidden ones, and those that `spec` leaves out.

    Numbers in names count as numbers: run2 comes before run10. Links to folders, which are not followed, are added to
    `links`.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=natural_order)
        if links is not None:
            below = (Path(place, name) for name in folders)
            links.extend(path for path in below if path.is_symlink() and not spec.leaves_out(path))
        files = (Path(place, name) for name in sorted(names, key=natural_order) if not name.startswith("."))
        yield from (path for path in files if not spec.leaves_out(path))


def natural_order(name: str) -> tuple[list[str | int], str]:
    """Return a key that sorts names as people do: their texts and numbers in turn, then the names themselves."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split("([0-9]+)", name))], name


def _rows_below(folder: Path, spec: ReadingSpec, tables: Collection[Path], found: Found) -> list[Path]:
    """Return the files of JSON below a folder, else other tables, but `tables`; `DataError` when there are none."""
    files = [path for path in files_below(folder, spec, found.links) if path.resolve() not in tables]
    some = [[path for path in files if kind_by_name(path) in kinds] for kinds in (("json",), ("csv", "parquet"))]
    if not any(some):
        raise DataError(f"{folder}: must hold files of JSON, or tables, for the program of jq, got none.")
    return some[0] or some[1]


def format_of_file(path: Path, spec: ReadingSpec) -> Format:
    """Format of a file, by its name and content unless the spec says."""
    if spec.format not in TABLES:
        return spec.format
    is_table = any(suffix.lower() in SUFFIXES for suffix in path.suffixes)
    if spec.format == "auto" and not is_table and (by_name := source_of_name(path)):
        return by_name
    kind = file_kind(path)
    if kind == "parquet" and spec.format in {"auto", "responses"} and is_response_file(path):
        return "responses"
    if spec.format == "responses":
        raise DataError(f"{path}: is not a response file of itembank; make one with itembank import.")
    if spec.format != "auto":
        return spec.format
    if kind != "json":
        return "auto" if kind == "csv" else source_of_name(path) or "auto"
    record = first_record(path)
    if record.get("kind") == JOURNAL:
        own, status = "read_session(...)", f"itembank session status {shell_word(path)}"
        python, command = (
            "session_responses(read_session(...))",
            f"itembank import {shell_word(path)} -o answers.parquet",
        )
        raise DataError(
            f"{path}: is the journal of a session, which has its own estimate: {remedy(own, status)}. For anything "
            f"else make its answers a response file first: {remedy(python, command)}."
        )
    return source_of_record(record) or "auto"


def _look_below(folder: Path, spec: ReadingSpec, tables: Collection[Path], found: Found) -> None:
    """Tell what the files below a folder but `tables` hold; a reader that walks folders is given the folder."""
    n_before, files, broken = sum(found.n_files.values()), [], dict[Path, str]()
    told: dict[tuple[str, ...], bool] = {}
    for path in files_below(folder, spec, found.links):
        files.append(path)
        if tables and path.resolve() in tables:
            continue
        name, is_beside = source_of_name(path), is_companion(path)
        if (name is not None or is_beside) and _is_own_table(path, spec, told):
            name = "auto"
        elif is_beside:
            continue
        name = name or _format_inside(path, spec, broken)
        if name is None and path not in broken:
            found.unknown.append(path)
        elif name is not None:
            source = source_called(name)
            is_walked = source is not None and (source.holds(path) or matches(path, source.also))
            found.add(name, folder if is_walked else path)
    if sum(found.n_files.values()) == n_before:
        name = _source_of_companions(files, spec)
        if name is None:
            raise DataError("\n".join([_no_results(folder, files), *broken.values()]))
        if not any(path.is_file() and path.stat().st_size for path in broken):
            found.add(name, folder, 0)  # its reader says what is missing
    # a reader that walks the folder says itself what is wrong with its own, but SWE-bench's, for which all may be
    walked = [source_called(name) for name, own in found.paths.items() if folder in own]
    walkers = [one for one in walked if one is not None and not one.sure]
    found.problems.extend(why for path, why in broken.items() if not any(one.holds(path) for one in walkers))


def _format_inside(path: Path, spec: ReadingSpec, broken: dict[Path, str]) -> Format | None:
    """Tell a file by its content; None where it is no result of a known program, and no table of responses.

    Why a file that is called as tables and JSON are cannot be read is added to `broken`.
    """
    try:
        kind = file_kind(path)
        if kind == "parquet" and is_response_file(path):
            return "responses"
        of_program = source_of_record(first_record(path)) if kind == "json" else None
        return of_program or ("auto" if holds_responses(path, kind, spec) else None)
    except (DataError, OSError) as error:
        named = kind_by_name(path)
        is_other = named == "json" and _is_json(path)  # whole, but no objects: no results
        if named and not is_other and (path.is_file() or path.is_symlink()):
            broken[path] = str(error)
        return None


def _is_json(path: Path) -> bool:
    """Whether a file holds values of JSON, and nothing else."""
    try:
        return sum(map(len, read_values(path))) > 0
    except (DataError, OSError):
        return False


def _is_own_table(path: Path, spec: ReadingSpec, told: dict[tuple[str, ...], bool]) -> bool:
    """Whether a file that is called as those of a program is a long table of somebody's, which its beginning tells.

    `told` keeps it by the columns, which thousands of logs share.
    """
    kind = kind_by_name(path)
    if kind is None:
        return False
    try:
        record = first_object(path) if kind == "json" else {}
        columns = columns_of(path) if kind != "json" else list(record)
        if (key := tuple(columns)) not in told:
            told[key] = is_long_table(path, columns, spec)
        return told[key] and source_of_record(record) is None
    except (DataError, OSError):
        return False


def _source_of_companions(files: Sequence[Path], spec: ReadingSpec) -> Format | None:
    """Name of the program that wrote most of these files beside its results; None where there is none."""
    companions = [path for path in files if is_companion(path)]
    if 2 * len(companions) < len(files):
        return None
    told = (name for path in companions for name, one in sources().items() if matches(path, one.beside))
    name = next(told, None)
    if name is None or sources()[name].is_told_by_beside:
        return name
    return name if any(_format_inside(path, spec, {}) == name for path in companions) else None


def _no_results(folder: Path, files: Sequence[Path]) -> str:
    """Say that no file below a folder can be read as it is, what can be, and how to read other tables and JSON."""
    if not files:
        return f"{folder}: there must be files of results, got none (hidden ones are skipped)."
    names = list(dict.fromkeys(path.name for path in files))
    if folder / BANK_RECORD in files:
        python = f"write_responses(load_bank({str(folder)!r}).responses, 'responses.parquet')"
        return f"{folder}: is a bank, and no results. In Python {python} writes those of its past models into a file."
    titles = ", ".join(source.title for source in sources().values())
    lines = [
        f"{folder}: holds {plural(len(files), 'file')}, and none with results that itembank knows: {shown(names)}. "
        f"It knows tables with the columns model_id, item_id and response, and {titles}.{no_readers()}"
    ]
    tables = (path for path in files if kind_by_name(path) in {"csv", "parquet"} or ".jsonl" in path.suffixes)
    table = next(tables, None)
    record = next((path for path in files if kind_by_name(path) == "json"), None)
    if table is not None:
        ours = " ".join(f"--column {name}=..." for name in ("model_id", "item_id", "response"))
        python = f"read_table({str(table)!r}, columns={{'model_id': '...', 'item_id': '...', 'response': '...'}})"
        how = remedy(python, f"itembank import {shell_word(table)} {ours} -o responses.parquet")
        lines.append(f"To read a table whose columns have other names: {how}")
    if record is not None:
        program, keys = _rows_inside(record)
        known = f" (a row has {shown(keys, 12)})" if keys else ""
        how = f"To read JSON of any shape, by a program of jq{known}: {how_to_run(program, record)}"
        lines.append(how if program else f"{record.name} holds no answers of models to items{summary_of(keys)}.")
    return "\n".join(lines)


def _rows_inside(path: Path) -> tuple[str, list[str]]:
    """Program of jq that makes rows of a file, as far as its keys tell, and the keys of its first row."""
    try:
        return program_for(next(filter(None, read_values(path)), []))
    except (DataError, OSError):
        return program_for([])


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
    each = [(file, read, allowed_memory(), speaks_command_line()) for file in files]
    found: dict[int, tuple[Any, str | None]] = {}
    if in_processes and not runs_here(len(files)):
        progress("reading files", 0.0)
        for number, one in in_parallel(_read, each):
            found[number] = one
            progress(f"reading files ({len(found):,} of {len(files):,})", len(found) / len(files))
    else:
        for number, file in enumerate(files):
            progress(f"reading files ({name(file)})", number / len(files))
            found[number] = _read(*each[number])
    in_order = [found[number] for number in range(len(files))]
    return [part for part, problem in in_order if problem is None], [why for _, why in in_order if why is not None]


def _read(
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

    A warning that several files cause is given once.
    """
    with warned_once(paths):
        parts, problems = collect(paths, read, progress, name=lambda path: path.name)
    refuse_or_leave_out(problems, spec, has_rest=bool(parts))
    return parts


def own_files(paths: Sequence[Path], source: str, spec: ReadingSpec) -> list[Path]:
    """Files of one program among these files and below these folders."""
    found: dict[Path, None] = {}
    program = sources()[source]
    for path in paths:
        own = [path]
        if path.is_dir():
            own = [one for one in files_below(path, spec) if program.holds(one) and not is_companion(one)]
        if not own:
            names = f" ({', '.join(program.files)})" if program.files else ""
            raise DataError(f"{path}: holds no {program.title}{names}. {program.hint}".rstrip())
        found.update(dict.fromkeys(own))
    return list(found)


def rows_of_files(
    source: str,
    paths: Sequence[Path],
    spec: ReadingSpec,
    read: Callable[[Path, ReadingSpec], Iterable[Record]],
    *,
    progress: ProgressCallback,
) -> ResponseRows:
    """Read the files of one program, each of whose answers `read` gives as a record of a long table."""
    parts = read_each(own_files(paths, source, spec), lambda file: list(read(file, spec)), progress, spec)
    return rows_of_records(joined_source(paths), [one for part in parts for one in part], spec)


def rows_of_source(
    name: str,
    paths: Sequence[Path],
    spec: ReadingSpec,
    *,
    item_ids: Sequence[str] | None = None,
    progress: ProgressCallback = silent,
) -> ResponseRows:
    """Read the results of one program, by its name; `item_ids` are those of the caller's table of items."""
    answers = reader_function(name, "{}_answers")
    if answers is not None:
        return rows_of_files(name, paths, spec, answers, progress=progress)
    known = {} if sources()[name].lists_all_items else {"item_ids": item_ids}
    rows: ResponseRows = reader_function(name, "{}_rows")(paths, spec, progress=progress, **known)
    return rows
