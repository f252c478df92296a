"""Rows of JSON of any shape, made by a program of jq (`ReadingSpec.jq`) and then read as a long table.

The program is run on each value of a file: each line of JSON Lines, each row of a Parquet or CSV table, or the one
value that the file is. All that CSV holds is text, so that ids keep their zeros and an answer equals its key. It makes
an object a row, under the names of a long table's columns. It knows ``$file`` (the path as it was given), ``$stem``
(the file's name without its ending), ``$folder`` (the name of the file's folder) and ``$first`` (the file's first
value, such as the header of an event log).

A bank does not keep the program that its results were read with: jq has no bounds of time and memory, so that only a
program that the user names is run.
"""

import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from itembank.errors import (
    DataError,
    DataWarning,
    ParameterError,
    first_few,
    missing_package,
    quoted,
    remedy,
    shown,
    speaks_command_line,
    warn,
)
from itembank.files.documents import read_document
from itembank.files.memory import GIBIBYTE, HOW_TO_ALLOW, most_memory
from itembank.progress import interrupts_to
from itembank.readers.chosen_rows import with_joined_names
from itembank.readers.json_files import Record, read_values, table_of_records
from itembank.readers.long_table import check_columns, text_columns
from itembank.readers.reading_specs import LONG_COLUMNS, ReadingSpec
from itembank.readers.rows import CONTENT_FIELDS, ResponseRows, content_digest
from itembank.readers.table import rows_of_table, with_usual_names
from itembank.readers.table_files import read_table_file
from itembank.readers.telling_apart import kind_of
from itembank.responses.error_kinds import error_kind
from itembank.responses.how_read import CONTENT
from itembank.responses.opening import file_kind, name_without_ending
from itembank.tables import plural

VARIABLES = ("file", "stem", "folder", "first")
REFUSED = ("env", "input", "inputs", "halt", "halt_error", "halt_error($code)", "input_filename", "modulemeta")
"""Functions of jq that would show what is not in the file, or end the program in silence."""
PRELUDE = "".join(f'def {one}: error("{one.partition("(")[0]} is not for programs of rows"); ' for one in REFUSED)
MODULES = re.compile(r"(?:\s|#[^\r\n]*)*(?:import|include|module)\b")
"""Beginning of a program that would read other files."""
WITH_A_NUMBER = re.compile(r"""\.[\w."\[\]]+\s*(?:==|!=|[<>]=?)\s*-?\d[\d.]*|-?\d[\d.]*\s*(?:==|!=|[<>]=?)\s*\.\w+""")
"""A comparison of a value with a number."""
LIKELY_ERRORS = ("error", "errors", "exception", "exception_info", "error_message")
"""Keys of a record that tell an error in files of many programs."""
OF_ROWS = tuple(name for name in LONG_COLUMNS if name not in {"metric", "judge"})
"""Keys of a record that are read only where the program takes them."""


@dataclass(slots=True)
class JqReader:
    """Reads files with one program, and notes what it found in all of them."""

    spec: ReadingSpec
    text: str = field(init=False)
    code: str = field(init=False)  # The text without comments
    program: Any = field(init=False)
    are_filled: dict[str, bool] = field(default_factory=dict)  # Columns: whether a row of a file has a value there
    n_errors: Counter[str] = field(default_factory=Counter)  # Records that seem to tell an error nobody asked about
    example: str = ""  # What the first record has, for messages
    without: list[str] = field(default_factory=list)  # Files that gave no rows

    def __post_init__(self) -> None:
        """Compile the program."""
        self.text = self.spec.jq or ""
        if self.text.endswith(".jq"):  # it is in a file
            try:
                self.text = read_document(Path(self.text))
            except OSError as error:
                raise ParameterError(f"{self.text}: the program of jq cannot be read: {error}") from error
        self.program = _compiled(self.text)
        self.code = re.sub("#.*", "", self.text)
        self.spec = replace(self.spec, jq=None)

    def rows(self, path: Path, frame: pl.DataFrame | None = None) -> ResponseRows | None:
        """Read one file, or a table in memory that is called so, None without rows.

        A `DataError` names the record that the program cannot take.
        """
        if frame is None and file_kind(path) == "csv" and (found := WITH_A_NUMBER.search(self.code)):
            warn(
                f"{path}: jq is given values of CSV as text, which equals no number and is larger than all, and the "
                f"program has {found[0]!r}. Write (.COLUMN | tonumber) if this is a column.",
                DataWarning,
            )
        blocks = self._blocks(path, frame)
        first = next(blocks, [])
        if not first:
            self.without.append(str(path))
            return None
        columns = list(dict.fromkeys(key for row in first for key in row))
        known = with_joined_names(columns, self.spec)
        spec = with_usual_names(known, self.spec)
        try:
            check_columns(str(path), known, spec)
        except DataError as error:
            stem = "" if "model_id" in known else " In the program, model_id: $stem is the name of the file."
            raise DataError(f"{error}{stem} The first row of the program is {_short(first[0])}") from error
        text = [*text_columns(spec), CONTENT, CONTENT_FIELDS]
        table = table_of_records(path, chain([first], blocks), keep=list, text=text)
        own = [name for name in LONG_COLUMNS if name in table.frame.columns]
        are_filled = {name: table.frame[name].null_count() < table.frame.height for name in own}
        absent = [name for name in ("model_id", "item_id") if are_filled.get(name) is False]
        if absent:
            raise DataError(f"{path}: {_empty(absent, self.example)}")
        for name, is_filled in are_filled.items():
            self.are_filled[name] = is_filled or self.are_filled.get(name, False)
        told = [name for name in text if name != spec.column("error")]
        nested = [name for name in told if not {dict, list}.isdisjoint(table.found[name])]
        if nested:
            raise DataError(f"{path}: {shown(nested)} must be text or numbers in every row, got a list or an object.")
        frame = table.frame.with_columns(pl.col(pl.Float64).replace([LARGEST, -LARGEST], [INFINITE, -INFINITE]))
        rows = rows_of_table(replace(table, frame=frame), self.spec)
        if CONTENT_FIELDS not in frame.columns:
            return rows
        fields = frame[CONTENT_FIELDS].unique(maintain_order=True).to_list()
        if len(fields) > 1:
            raise DataError(f"{path}: content must have the same fields in all rows, got {shown(fields)}.")
        return replace(rows, items=rows.items.with_columns(pl.lit(fields[0]).alias(CONTENT_FIELDS)))

    def check(self) -> None:
        """Look at what all files together have; `DataError` when no row has a response."""
        n_without = len(self.without)
        if n_without and not self.are_filled:
            files = first_few(self.without)
            raise DataError(f"{files}: the program of jq must make a row of a file at least, got none. {self.example}")
        if n_without:
            files = f"{plural(n_without, 'file')}, which are left out: {shown(self.without)}."
            warn(f"the program of jq makes no rows of {files}", DataWarning)
        empty = [name for name, is_filled in self.are_filled.items() if not is_filled]
        has_counts = self.are_filled.get("n_correct") or self.are_filled.get("error")
        if "response" in empty and not has_counts:
            raise DataError(_empty(["response"], self.example))
        others = [name for name in empty if name not in {"response", "error", "n_errors"}]
        if others:
            warn(_empty(others, self.example), DataWarning)
        if self.n_errors:
            key, n = max(self.n_errors.items(), key=lambda one: one[1])
            warn(
                f"{plural(n, 'record', 'have')} {quoted(key)} filled in, and count all the same. If their answers were "
                f"lost, say so in the program: error: .{key}",
                DataWarning,
            )

    def _blocks(self, path: Path, frame: pl.DataFrame | None) -> Iterator[list[Record]]:
        """Give the rows of a file, some at a time."""
        names = [str(path), name_without_ending(path), path.absolute().parent.name]
        variables: list[Any] = [one.encode(errors="replace").decode() for one in names]
        head, n_before = "", 0
        for values in _values(path, frame):
            if values and not head:
                first = values[0] if "$first" in self.text else None
                head = json.dumps([*variables, first], default=str)[:-1]
            self.example = self.example or _example(values)
            of_each = self._rows_of_each(path, head, values, n_before)
            for value, rows in zip(values, of_each, strict=True):
                for record, row in zip(_records(value, len(rows)), rows, strict=False):
                    self._look_at(record, row)
            block = [self._row(path, one) for rows in of_each for one in rows]
            n_before += len(values)
            if block:
                yield block

    def _rows_of_each(self, path: Path, head: str, values: Sequence[Any], n_before: int) -> list[list[Any]]:
        """Rows that the program makes of each value."""
        texts = [f"{head},{json.dumps(value, default=str)}]" for value in values]
        # bytes that a list or object, another value, and a letter take in jq at most, with what Python has of them
        of_list, of_value, of_letter = 400, 50, 4
        n_bytes = sum(
            of_list * (text.count("[") + text.count("{")) + of_value * text.count(",") + of_letter * len(text)
            for text in texts
        )
        if n_bytes > most_memory():
            raise DataError(
                f"{path}: jq asks for {n_bytes / GIBIBYTE:,.3g} GiB of memory, of which "
                f"{most_memory() / GIBIBYTE:,.3g} may be taken. {HOW_TO_ALLOW}"
            )
        # a program that loops never comes back to Python: in a shell Ctrl-C must end the whole at once
        with interrupts_to(signal.SIG_DFL) if speaks_command_line() else nullcontext():
            try:
                found: list[list[Any]] = json.loads(f"[{','.join(self.program.input_text(chr(10).join(texts)))}]")
            except (ValueError, RecursionError):
                places = enumerate(texts, start=n_before + 1)
                found = [self._rows_of_one(path, text, n, is_only=n == len(texts) == 1) for n, text in places]
        for number, (text, rows) in enumerate(zip(texts, found, strict=True), start=n_before + 1):
            other = next((one for one in rows if not isinstance(one, dict)), None)
            if other is not None or None in rows:
                apart = " End the program with .[] if it makes a list of rows." if isinstance(other, list) else ""
                raise DataError(
                    f"{path}: the program of jq must make objects, one a row, got {_short(other)} of record {number}."
                    f"{apart}"
                )
            large = (one for row in rows for one in row.values() if type(one) is int and abs(one) > 2**53)
            rounded = next((one for one in large if str(abs(one)) not in text and str(abs(one)) not in self.text), None)
            if rounded is not None:
                raise DataError(
                    f"{path}: whole numbers beyond 2^53 must be left as they are, for jq rounds what it calculates: "
                    f"got {rounded}, which is not in the record."
                )
        return found

    def _rows_of_one(self, path: Path, text: str, number: int, *, is_only: bool) -> list[Any]:
        try:
            rows: list[Any] = json.loads(self.program.input_text(text).first())
        except (ValueError, RecursionError, StopIteration) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).rstrip(".")
            value = _short(json.loads(text)[len(VARIABLES)])
            is_of_kind = reason.startswith("Cannot") and not is_only
            how = ' To leave out records that are no answers, begin with: select(.type == "...") |' * is_of_kind
            raise DataError(
                f"{path}: the program of jq fails at record {number}: {reason}. The record is {value}{how}"
            ) from error
        return rows

    def _row(self, path: Path, row: Record) -> Record:
        """Put a digest in the place of what an item asks."""
        if "content" not in row:
            return row
        content = row.pop("content")
        if not isinstance(content, dict) or not content or None in content.values():
            raise DataError(
                f"{path}: content must be an object of what an item asks, such as {{question, answer}}, and have no "
                f"null, got {_short(content)} of item {quoted(row.get('item_id'))}."
            )
        fields = json.dumps([*content], ensure_ascii=False)
        return row | {CONTENT: content_digest(*content.values()), CONTENT_FIELDS: fields}

    def _look_at(self, record: Mapping[str, Any], row: Record) -> None:
        """Look at what the program leaves out: errors, which are counted, and what may tell repeated rows apart."""
        for key, value in record.items():
            if value and key in LIKELY_ERRORS and key not in self.code and "error" not in row:
                self.n_errors[key] += row.get("response") is not None and error_kind(value) > 0
            if key not in OF_ROWS and kind_of(key) != "unknown":
                is_inside = isinstance(value, dict) and "name" in value
                name, one = (f"{key}.name", value["name"]) if is_inside else (key, value)
                if isinstance(one, str | int) and name not in self.code:
                    row.setdefault(name, one)


LARGEST, INFINITE = sys.float_info.max, float("inf")
"""What jq writes for an infinite number, and what is refused where numbers must be finite."""


def _compiled(text: str) -> Any:
    """Compile a program so that it sees the file and its names only, and makes one list of rows of each value."""
    if MODULES.match(text):
        raise ParameterError("the program of jq cannot be run: it must be whole, without import, include or module.")
    try:
        import jq  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise missing_package("a program of jq needs the extra jq of itembank", "jq", error) from error
    names = "".join(f".[{place}] as ${name} | " for place, name in enumerate(VARIABLES))
    try:
        jq.compile(text, args=dict.fromkeys((*VARIABLES, "ENV"), ""))  # the whole as it stands, for its own places
        rows, why = f"[({text}\n)]", "error($__why)"
        # what fails on a list, and not on its objects, is a program of the rows of a table
        inner = f"(. as $__in | try ($__all[0] | {rows} | $__in) catch $__why | error)"  # of rows, if the first is one
        each = f'if ($__all | type) == "array" then try [$__all[] | {rows}[]] catch {inner} else {why} end'
        whole = f".[{len(VARIABLES)}] as $__all | $__all | try {rows} catch (. as $__why | {each})"
        return jq.compile(f"{PRELUDE}{names}{{}} as $ENV | {whole} | tojson")
    except ValueError as error:
        reasons = "; ".join(re.findall(r"^jq: error: (.+?):?$", str(error), re.MULTILINE)) or str(error)
        reasons = reasons.replace(" at <top-level>", "")
        known = ", ".join(f"${name}" for name in VARIABLES)
        how = remedy("jq='rows.jq'", "--jq rows.jq")
        raise ParameterError(
            f"the program of jq cannot be run: {reasons}. In a shell it goes between single quotes, or into a file: "
            f"{how}. Beside jq's own names it knows {known}."
        ) from error


def _values(path: Path, frame: pl.DataFrame | None) -> Iterator[list[Any]]:
    """Values of JSON, or rows of a table, some at a time."""
    if frame is None and file_kind(path) == "json":
        yield from read_values(path)
        return
    frame = read_table_file(path).frame if frame is None else frame
    for part in frame.iter_slices(10_000):
        yield part.to_dicts()


def _records(value: Any, n_rows: int) -> list[Mapping[str, Any]]:
    """Return the objects that rows were probably made of, one each; none where that cannot be told."""
    same = [one for one in _lists(value, 2) if len(one) == n_rows] if n_rows > 1 else [[value]]
    return same[0] if len(same) == 1 and all(isinstance(one, dict) for one in same[0]) else []


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    """Give the lists in objects, down to a depth."""
    if isinstance(value, list):
        yield value
    elif isinstance(value, dict) and depth:
        for one in value.values():
            yield from _lists(one, depth - 1)


def _empty(names: Sequence[str], example: str) -> str:
    return f"the program of jq makes rows without {shown(names)}: it is null in all of them. {example}"


def _example(values: Sequence[Any]) -> str:
    """Say what the first value holds."""
    value, where = next(iter(values), None), "first record"
    if isinstance(value, list) and value:
        value, where = value[0], "first record begins with one that"
    return f"The {where} has {shown([*value], 12)}." if isinstance(value, dict) else f"The {where} is {_short(value)}"


def _short(value: Any) -> str:
    """Show a value, shortened."""
    text, most = json.dumps(value, ensure_ascii=False), 160
    return text if len(text) <= most else f"{text[:most]}..."
