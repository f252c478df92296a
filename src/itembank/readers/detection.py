"""What files and folders hold: the format of each, told by its name and its content."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from itembank.errors import DataError, remedy, shown
from itembank.readers.json_files import first_record, read_records
from itembank.readers.reading_specs import Format, ReadingSpec
from itembank.readers.sources import SOURCES, is_companion, matches, source_of_name, source_of_record
from itembank.readers.table import holds_responses
from itembank.responses.opening import PACKED, SUFFIXES, file_kind
from itembank.responses.response_files import is_response_file


@dataclass(frozen=True, slots=True)
class Found:
    """What files and folders hold."""

    # What its reader is to be given: files, and folders that it walks itself.
    paths: dict[Format, list[Path]] = field(default_factory=dict)
    n_files: dict[Format, int] = field(default_factory=dict)
    unknown: list[Path] = field(default_factory=list)  # Files below folders that no reader knows
    problems: list[str] = field(default_factory=list)  # Why other paths cannot be told

    def add(self, source_format: Format, path: Path, n_files: int = 1) -> None:
        """Add what one reader is to be given; a folder is given once."""
        known = self.paths.setdefault(source_format, [])
        if path not in known or not path.is_dir():
            known.append(path)
        self.n_files[source_format] = self.n_files.get(source_format, 0) + n_files


def find_sources(paths: Sequence[Path], spec: ReadingSpec) -> Found:
    """Tell what these files and folders hold; folders are walked, and links to folders are not followed."""
    found = Found()
    for path in paths:
        try:
            if not path.is_dir() and spec.leaves_out(path):
                continue
            if not path.is_dir():
                found.add(format_of_file(path, spec), path)
            elif spec.format == "auto":
                _look_below(path, spec, found)
            else:
                _add_folder(path, spec, found)
        except DataError as error:
            found.problems.append(str(error))
    if not (found.paths or found.problems):
        found.problems.append(f"there must be a file to read, got none but those of {shown(spec.exclude_files)}.")
    return found


def files_below(folder: Path, spec: ReadingSpec) -> Iterator[Path]:
    """Give all files below a folder in the order of their names, but hidden ones, and those that `spec` leaves out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = (Path(place, name) for name in sorted(names) if not name.startswith("."))
        yield from (path for path in files if not spec.leaves_out(path))


def format_of_file(path: Path, spec: ReadingSpec) -> Format:
    """Format of a file, by its name and content unless the spec says.

    Raises
    ------
    DataError
        When the file is not what its suffix says, or no response file where the spec says so.
    """
    if spec.format in SOURCES:
        return spec.format
    by_name = source_of_name(path)
    if spec.format == "auto" and by_name and not _is_table(path):
        return by_name
    kind = file_kind(path)
    if kind == "parquet" and spec.format in {"auto", "responses"} and is_response_file(path):
        return "responses"
    if spec.format == "responses":
        raise DataError(f"{path}: is not a response file of itembank; make one with itembank import.")
    if spec.format != "auto":
        return spec.format
    found = source_of_record(first_record(path)) if kind == "json" else by_name
    return found or "auto"


def _is_table(path: Path) -> bool:
    """Whether the suffix of a file is one of those that tables have, so that a look inside tells more."""
    return any(suffix.lower() in SUFFIXES for suffix in path.suffixes)


def _add_folder(path: Path, spec: ReadingSpec, found: Found) -> None:
    """Give a folder to the reader of the format that was asked for."""
    source = SOURCES.get(spec.format)
    if source is None or not source.files:
        as_logs = remedy("format='lm-eval'", "--as lm-eval")
        raise DataError(f"{path}: is a folder; name its files, or read it as harness logs ({as_logs}).")
    found.add(spec.format, path, sum(map(source.holds, files_below(path, spec))))


def _look_below(folder: Path, spec: ReadingSpec, found: Found) -> None:
    """Tell what the files below a folder hold; a reader that walks folders is given the folder.

    Raises
    ------
    DataError
        When none of them holds results.
    """
    n_before, files = sum(found.n_files.values()), []
    for path in files_below(folder, spec):
        files.append(path)
        if is_companion(path):
            continue
        name = source_of_name(path) or _format_inside(path, spec)
        if name is None:
            found.unknown.append(path)
        else:
            is_walked = name in SOURCES and (SOURCES[name].holds(path) or (name == "lm-eval" and "jsonl" in path.name))
            found.add(name, folder if is_walked else path)
    if sum(found.n_files.values()) == n_before:
        name = _source_of_companions(files, spec)
        if name is None:
            raise DataError(_no_results(folder, files))
        found.add(name, folder, 0)  # its reader says what is missing


def _format_inside(path: Path, spec: ReadingSpec) -> Format | None:
    """Tell a file by its content; None where it is no result of a known program, and no table of responses."""
    try:
        kind = file_kind(path)
        if kind == "parquet" and is_response_file(path):
            return "responses"
        of_program = source_of_record(first_record(path)) if kind == "json" else None
        return of_program or ("auto" if holds_responses(path, kind, spec) else None)
    except (DataError, OSError):
        return None


def _source_of_companions(files: Sequence[Path], spec: ReadingSpec) -> Format | None:
    """Name of the program that wrote most of these files beside its results; None where there is none."""
    companions = [path for path in files if is_companion(path)]
    if 2 * len(companions) < len(files):
        return None
    told = (name for path in companions for name, one in SOURCES.items() if matches(path, one.beside))
    name = next(told, None)
    if name == "lm-eval" and not any(_format_inside(path, spec) == name for path in companions):
        return None  # others write results_*.json, too
    return name


def _no_results(folder: Path, files: Sequence[Path]) -> str:
    """Say that no file below a folder can be read as it is, what can be, and how to read other tables and JSON."""
    if not files:
        return f"{folder}: there must be files of results, got none (hidden ones are passed by)."
    lines = [
        f"{folder}: holds {len(files)} files, and none with results that itembank knows: {shown(_names(files))}. "
        f"It knows tables with the columns model_id, item_id and response, and {', '.join(_titles())}."
    ]
    kinds = [(path, SUFFIXES[suffix]) for path in files if (suffix := _table_suffix(path)) in SUFFIXES]
    table = next((path for path, kind in kinds if kind != "json"), None)
    record = next((path for path, kind in kinds if kind == "json"), None)
    if table is not None:
        ours = " ".join(f"--column {name}=..." for name in ("model_id", "item_id", "response"))
        python = f"read_table({str(table)!r}, columns={{'model_id': '...', 'item_id': '...', 'response': '...'}})"
        how = remedy(python, f"itembank import {shlex.quote(str(table))} {ours} -o responses.parquet")
        lines.append(f"To read a table that calls its columns otherwise: {how}")
    if record is not None:
        rows, keys = _rows_inside(record)
        at = f"--column {shlex.quote(f'rows={rows}')} " if rows else ""
        paths = f"{at}--column model_id=@file --column item_id=..."
        python = f"read_json_results({str(record)!r}, JsonMapping({{'item_id': '...', 'response': '...'}}, {rows!r}))"
        asked = f"--as json {paths} --column response=..."
        command = f"itembank import {shlex.quote(str(record))} {asked} -o responses.parquet"
        known = f" (a row has {shown(keys, 12)})" if keys else ""
        lines.append(f"To read JSON of any shape, by paths into it{known}: {remedy(python, command)}")
    return "\n".join(lines)


def _rows_inside(path: Path) -> tuple[str, list[str]]:
    """Key of a list of objects in the first record of a file, empty where it has none, and the keys of a row."""
    try:
        records = next((block for block in read_records(path) if block), [])
    except (DataError, OSError):
        return "", []
    if len(records) != 1:
        return "", list(records[0]) if records else []
    record = records[0]
    lists = ((key, value) for key, value in record.items() if isinstance(value, list) and value)
    name, row = next(((key, value[0]) for key, value in lists if isinstance(value[0], dict)), ("", record))
    return name, list(row)


def _names(files: Sequence[Path]) -> list[str]:
    return list(dict.fromkeys(path.name for path in files))


def _titles() -> list[str]:
    return [source.title for source in SOURCES.values()]


def _table_suffix(path: Path) -> str:
    """Suffix that tells the kind of a file, whether or not it is packed."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return suffixes[-1] if suffixes else ""
