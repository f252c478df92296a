"""`read_json_results`: results in JSON, JSON Lines or Parquet of any shape, by paths that say where things are.

A path is keys with dots between them: ``doc.id``. A key that holds a dot is in quotes: ``metrics."acc,none"``,
``"a.b".c``. A whole number is a place in a list, from 0 (``scores.0``; ``-1`` is the last).

Where the rows of a file are (``--column rows=PATH``), ``*`` stands for every key of an object or every place of a list
(``eval.*``), and a list at the end gives a row for each of its values. A column's path begins at the row. Others:

========== ===========================================================
``/path``  from the record: the line, or the file's object or array element, that the row is in
``.``      the row itself, where it is no object
``@key``   the key (or place) that the last ``*`` of the rows' path stood for
``@index`` the place of the row in its list, from 0
``@file``  the name of the file, without its folder and its ending
``@folder`` the name of the file's folder
``=text``  this text, in every row
``a+b``    the values of several paths with " + " between them (of an item or scenario "/"): ``agent.name+model.name``
``a==b``   1 where the values of two paths are the same, else 0: ``pred==answer``; nothing where a row lacks one of them
========== ===========================================================
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from itembank.errors import DataError, DataWarning, ParameterError, did_you_mean, quoted, remedy, shown, warn
from itembank.progress import ProgressCallback, silent
from itembank.readers.chosen_rows import PLUS, SEPARATORS
from itembank.readers.collecting import read_each
from itembank.readers.json_files import Record, read_records, table_of_records
from itembank.readers.logged import content_digest
from itembank.readers.long_table import check_columns, rows_of_long, text_columns
from itembank.readers.matrix import warn_of_lost
from itembank.readers.promptfoo import ERROR
from itembank.readers.read import Paths, matrix_of_rows, paths_of
from itembank.readers.reading_specs import LONG_COLUMNS, ReadingSpec
from itembank.readers.rows import CONTENT, CONTENT_FIELDS, ResponseRows, rename_model
from itembank.readers.telling_apart import kind_of
from itembank.responses.error_kinds import error_kind, is_error_word
from itembank.responses.opening import file_kind, name_without_ending, read_parquet, read_parquet_schema, translated
from itembank.responses.responses import ResponseMatrix

STEP = r'(?:"[^"]+"|[^."]+)'
PATH = re.compile(rf"{STEP}(?:\.{STEP})*")
Origin = Literal["row", "record", "key", "index", "file", "folder", "constant", "equality"]
NAMES: tuple[Origin, ...] = ("key", "index", "file", "folder")
ABSENT = object()
"""In place of a value that a path does not find."""


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """Where the values of a column come from."""

    text: str  # The path as it was given, for messages
    origin: Origin  # where it begins, or what gives the value by itself
    steps: tuple[str, ...] = ()  # Keys and places; for a constant the text itself, for an equality both paths


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One row of a record: its value, the key that the last ``*`` stood for, and its place in its list."""

    value: Any
    key: str | None = None
    index: int | None = None


def column_path(text: str) -> ColumnPath:
    """Read a column's path."""
    if text.startswith("="):
        return ColumnPath(text, "constant", (text[1:],))
    if "==" in text:
        both = text.split("==", 1)
        return ColumnPath(text, "equality", tuple(column_path(one).text for one in both))
    if text.startswith("@"):
        if text[1:] not in NAMES:
            raise ParameterError(f"a path that begins with @ must be one of @{', @'.join(NAMES)}, got {text!r}.")
        return ColumnPath(text, next(name for name in NAMES if name == text[1:]))
    if text == ".":
        return ColumnPath(text, "row")
    origin: Origin = "record" if text.startswith("/") else "row"
    steps = _steps(text.removeprefix("/"))
    if "*" in steps:
        raise ParameterError(
            f"* may be in the path of the rows only (--column rows=PATH), got the column path {text!r}."
        )
    return ColumnPath(text, origin, steps)


def rows_path(text: str) -> tuple[str, ...]:
    """Read the path of the rows; an empty one, or ``.``, means that each record is a row."""
    return () if text in {"", "."} else _steps(text)


def _steps(text: str) -> tuple[str, ...]:
    if not PATH.fullmatch(text):
        raise ParameterError(
            f"a path must be keys with dots between them, such as doc.id, and a key that holds a dot must be in "
            f'double quotes ("a.b".c): got {text!r}.'
        )
    return tuple(step.strip('"') for step in re.findall(STEP, text))


def value_at(value: Any, steps: tuple[str, ...]) -> Any:
    """Return what the keys and places lead to, or `ABSENT`; beyond a null there is a null."""
    for step in steps:
        if value is None:
            return None
        if isinstance(value, dict):
            value = value.get(step, ABSENT)
        elif isinstance(value, list) and re.fullmatch(r"-?\d+", step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def deepest(value: Any, steps: tuple[str, ...]) -> tuple[Any, str]:
    """Return what the steps lead to before the first that leads nowhere, and that step."""
    for done, step in enumerate(steps):
        if value_at(value, steps[: done + 1]) is ABSENT:
            return value_at(value, steps[:done]), step
    return value, ""


def rows_at(record: Any, steps: tuple[str, ...], key: str | None = None) -> Iterator[FoundRow]:
    """Give the rows of a record."""
    if "*" in steps:
        place = steps.index("*")
        found = value_at(record, steps[:place])
        if isinstance(found, dict | list):
            pairs = found.items() if isinstance(found, dict) else enumerate(found)
            for name, value in pairs:
                yield from rows_at(value, steps[place + 1 :], str(name))
        return
    found = value_at(record, steps)
    if isinstance(found, list):
        yield from (FoundRow(value, key, index) for index, value in enumerate(found))
    elif found is not ABSENT and found is not None:
        yield FoundRow(found, key)


ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class JsonMapping:
    """Where a long table's columns are in JSON."""

    columns: Mapping[str, str]  # See `itembank.readers.json_import`
    rows: str = ""  # Path of the rows in each record; empty when each record is a row
    # Paths of what an item asks and what is right: a digest of them is kept (`content_hash`), with the last key of each
    # path (`content_fields`), by which a harness's documents are compared
    content: tuple[str, ...] = ()
    paths: Mapping[str, ColumnPath] = field(init=False)
    row_steps: tuple[str, ...] = field(init=False)
    content_paths: tuple[ColumnPath, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Read the paths."""
        unknown = [name for name in self.columns if name not in LONG_COLUMNS]
        if unknown:
            raise ParameterError(
                f"columns must name some of {', '.join(LONG_COLUMNS)}, got {shown(unknown)}."
                f"{did_you_mean(unknown, LONG_COLUMNS)}"
            )
        object.__setattr__(self, "paths", {name: column_path(text) for name, text in self.columns.items()})
        object.__setattr__(self, "row_steps", rows_path(self.rows))
        object.__setattr__(self, "content_paths", tuple(map(column_path, self.content)))
        bad = [one.text for one in self.content_paths if one.origin not in {"row", "record"} or not one.steps]
        if bad:
            raise ParameterError(f"content must be paths of keys, such as question, got {shown(bad)}.")


def read_json_results(
    paths: Paths,
    mapping: JsonMapping,
    *,
    models: str | Path | None = None,
    items: str | Path | None = None,
    spec: ReadingSpec | None = None,
    progress: ProgressCallback = silent,
) -> ResponseMatrix:
    """Read per-item results from JSON, JSON Lines or nested Parquet whose shape `mapping` tells.

    What the paths find is read as a long table is: the same checks, words for right and wrong, repeats and counts.

    Parameters
    ----------
    paths : path or paths
    mapping : JsonMapping
    models, items : path or None
        As for `read_responses`.
    spec : ReadingSpec, or None
        `scenario`, `model_id`, `true_value`, `max_response`, `repeats`, `missing`, `empty`, `skip_unusable`,
        `exclude_files` and `max_memory` count.

    Raises
    ------
    DataError
        With every problem of every file, or when a path finds nothing in a file.

    Examples
    --------
    >>> mapping = JsonMapping({"item_id": "doc.id", "response": "metrics.acc"}, rows="samples")
    >>> responses = read_json_results("run.json", mapping, spec=ReadingSpec(model_id="a"))  # doctest: +SKIP
    """
    spec = replace(spec or ReadingSpec(), columns={}, response_column="response")
    sources = [path for path in paths_of(paths) if not spec.leaves_out(path)]
    if not sources:
        raise DataError(f"there must be a file to read, got none but those of {shown(spec.exclude_files)}.")
    folders = [path for path in sources if path.is_dir()]
    if folders:
        raise DataError(f"{folders[0]}: is a folder; JSON of any shape is read from files: {folders[0] / '*.json'}")
    if spec.metric and "metric" not in mapping.columns:
        asked, how = remedy("metric", "--metric"), remedy("columns={'metric': '...'}", "--column metric=PATH")
        raise DataError(f"{asked} takes the rows of one metric, and nothing says where a row's metric is: {how}.")
    seen = _Seen()

    def read(_item_ids: Sequence[str] | None) -> list[ResponseRows]:
        rows = read_each(sources, lambda path: _json_rows(path, mapping, spec, seen), progress, spec)
        seen.check(mapping, list(mapping.columns))
        _warn_of_errors(seen.errors)
        return rows

    matrix = matrix_of_rows(read, spec, models=models, items=items)
    warn_of_lost(matrix)
    return matrix


LIKELY_ERRORS = ("error", "errors", "exception", "exception_info", "error_message")
"""Keys of a row that tell an error in files of many programs."""


def _warn_of_errors(n_rows: Mapping[str, int]) -> None:
    """Warn of rows that seem to have ended in an error, where no column says what an error is."""
    if n_rows:
        key, n = max(n_rows.items(), key=lambda one: one[1])
        if "failureReason" in n_rows:
            how = "Results of promptfoo are read as they are: leave --as json and its columns out"
        else:
            how = f"If their answers were lost, say so: {remedy(_ERRORS.format(key), f'--column error={key}')}"
        warn(f"{n} rows have {quoted(key)} filled in, and their responses count all the same. {how}.", DataWarning)


_ERRORS = "columns={{'error': {!r}, ...}}"


def _json_rows(path: Path, mapping: JsonMapping, spec: ReadingSpec, seen: "_Seen") -> ResponseRows:
    check_columns(str(path), list(mapping.columns), spec)
    flattened = _Flattened(path, mapping, seen)
    table = table_of_records(path, flattened.blocks(), keep=lambda keys: keys, text=text_columns(spec))
    rows = rows_of_long(table, spec)
    if rows.others is not None:
        rows = replace(rows, others=replace(rows.others, ours=mapping.columns))
    if mapping.content:
        fields = json.dumps([where.steps[-1] for where in mapping.content_paths], ensure_ascii=False)
        rows = replace(rows, item_table=rows.item_table.with_columns(pl.lit(fields).alias(CONTENT_FIELDS)))
    return rows if spec.model_id is None else rename_model(rows, spec.model_id)


def _blocks(path: Path, mapping: JsonMapping) -> Iterator[list[Record]]:
    """Give the records of a file, some at a time."""
    kind = file_kind(path)
    if kind == "csv":
        table = remedy("read_responses", "itembank import")
        raise DataError(f"{path}: must be JSON, JSON Lines or Parquet, got a CSV file. Read that with {table}.")
    if kind == "json":
        yield from read_records(path)
        return
    with translated(path, "Parquet file"):
        columns = list(read_parquet_schema(path))
        wanted = _top_level(mapping)
        places = [place for place, name in enumerate(columns) if wanted is None or name in wanted]
        if not places:
            raise DataError(f"{path}: has none of the columns {shown(sorted(wanted or ()))}; it has {shown(columns)}.")
        frame = read_parquet(path, columns=places, glob=False)
    for part in frame.iter_slices(ROWS_AT_ONCE):
        yield part.to_dicts()


def _top_level(mapping: JsonMapping) -> set[str] | None:
    """Columns of a Parquet file that the paths begin with; None when all are needed."""
    every = [*mapping.paths.values(), *mapping.content_paths]
    every += [column_path(text) for path in every if path.origin == "equality" for text in path.steps]
    every += [part for path in every if PLUS in path.text and path.steps for part in _parts(path)]
    starts = [path.steps for path in every if path.origin == "record"]
    in_rows = [path.steps for path in every if path.origin == "row"]
    starts += [mapping.row_steps] if mapping.row_steps else in_rows
    if any(not steps or steps[0] == "*" for steps in starts):
        return None
    return {steps[0] for steps in starts}


@dataclass(slots=True)
class _Seen:
    """Which paths have found something so far, and the first row, to show where one finds nothing."""

    found: set[str] = field(default_factory=set)
    first: tuple[Path, Record, FoundRow] | None = None
    errors: Counter[str] = field(default_factory=Counter)  # Rows that seem to tell an error nobody asked about, by key

    def check(self, mapping: JsonMapping, names: Sequence[str]) -> None:
        """Raise `DataError` when the paths of some of these columns have found nothing."""
        nowhere = [name for name in names if name in mapping.columns and name not in self.found]
        if nowhere and self.first is not None:
            raise DataError(_not_found(*self.first, mapping, nowhere))


@dataclass(slots=True)
class _Flattened:
    """The rows of a file as flat records; `here` is what was seen in this file, `seen` in all."""

    path: Path
    mapping: JsonMapping
    seen: _Seen
    here: _Seen = field(default_factory=_Seen)

    def blocks(self) -> Iterator[list[Record]]:
        """Give the flat records in blocks; `DataError` at the end when there were none, or no ids in them."""
        for records in _blocks(self.path, self.mapping):
            yield [self._flat(record, row) for record in records for row in rows_at(record, self.mapping.row_steps)]
        if self.here.first is None:
            raise DataError(_no_rows(self.path, self.mapping))
        self.here.check(self.mapping, ("model_id", "item_id"))
        self.seen.first = self.seen.first or self.here.first
        self.seen.found |= self.here.found

    def _flat(self, record: Record, row: FoundRow) -> Record:
        """Values of one row by our names."""
        self.here.first = self.here.first or (self.path, record, row)
        values: Record = {}
        for name, where in self.mapping.paths.items():
            value = _value(self.path, record, row, where)
            if value is ABSENT and PLUS in where.text:
                value = _joined([_value(self.path, record, row, part) for part in _parts(where)], name)
            if isinstance(value, dict | list) and name != "error":
                inside = f"an object with {shown(list(value), 8)}" if isinstance(value, dict) else "a list"
                raise DataError(
                    f"{self.path}: {name} must be one value, but {where.text!r} leads to {inside}. Make the path "
                    "longer."
                )
            values[name] = None if value is ABSENT else value
            if value is not ABSENT:
                self.here.found.add(name)
        is_counted = values.get("response") is not None and "error" not in values
        if is_counted and isinstance(row.value, dict):
            self.seen.errors.update(key for key in LIKELY_ERRORS if error_kind(row.value.get(key)))
            self.seen.errors.update(["status"] * is_error_word(str(row.value.get("status"))))
            self.seen.errors.update(["failureReason"] * (row.value.get("failureReason") == ERROR))
        values |= {path: value for path, value in _named(row.value) if path not in self.mapping.columns.values()}
        asked = [_value(self.path, record, row, where) for where in self.mapping.content_paths]
        absent = [where.text for where, value in zip(self.mapping.content_paths, asked, strict=True) if value is ABSENT]
        if absent:
            raise DataError(
                f"{self.path}: every row must hold what an item asks, got one without {shown(absent)}, of item "
                f"{quoted(values.get('item_id'))}. Name other fields (content, --content), or none."
            )
        return values | ({CONTENT: content_digest(*asked)} if asked else {})


def _parts(where: ColumnPath) -> list[ColumnPath]:
    """Paths that a path with a plus is of, where no key has that name."""
    return [column_path(part.strip()) for part in where.text.split(PLUS) if part.strip()]


def _joined(values: Sequence[Any], name: str) -> Any:
    """One value of several, missing where one of them is."""
    gone = next((value for value in values if value is None or value is ABSENT), "")
    return gone if gone != "" else SEPARATORS.get(name, f" {PLUS} ").join(map(str, values))


OF_ROWS = {*LONG_COLUMNS} - {"metric", "judge"}
"""Keys that are read only where a path leads to them."""


def _named(row: Any) -> Iterator[tuple[str, Any]]:
    """Values of a row that may say which task, judge, agent or attempt it is of, by their paths."""
    for key, value in row.items() if isinstance(row, dict) else ():
        if kind_of(key) == "unknown" or key in OF_ROWS:
            continue
        inside = isinstance(value, dict) and "name" in value
        one = value["name"] if inside else value
        if isinstance(one, str | int):
            yield (f"{key}.name" if inside else key), one


def _value(path: Path, record: Record, row: FoundRow, where: ColumnPath) -> Any:
    """Return one value, `ABSENT` where there is none."""
    if where.origin in {"row", "record"}:
        return value_at(row.value if where.origin == "row" else record, where.steps)
    if where.origin == "constant":
        return where.steps[0]
    if where.origin == "equality":
        one, other = (_value(path, record, row, column_path(text)) for text in where.steps)
        return ABSENT if ABSENT in (one, other) else int(one == other)
    if where.origin in {"file", "folder"}:
        return name_without_ending(path) if where.origin == "file" else path.absolute().parent.name
    told = row.key if where.origin == "key" else row.index
    return ABSENT if told is None else told


def _no_rows(path: Path, mapping: JsonMapping) -> str:
    record = next((block[0] for block in _blocks(path, replace(mapping, columns={}, rows="")) if block), None)
    inside = f" The first record has the keys {shown(list(record), 12)}." if record else ""
    near = did_you_mean(mapping.row_steps[0], record) if record and mapping.row_steps else ""
    option = remedy("rows", "--column rows=PATH")
    return f"{path}: {option} must lead to the rows, but {mapping.rows!r} finds none.{inside}{near}"


def _not_found(path: Path, record: Record, row: FoundRow, mapping: JsonMapping, nowhere: Sequence[str]) -> str:
    """Say which paths find nothing, and what there is where the first of them ends."""
    listed = ", ".join(f"{name}={mapping.columns[name]}" for name in nowhere)
    where = mapping.paths[nowhere[0]]
    if where.origin == "equality":
        both = map(column_path, where.steps)
        where = next((one for one in both if _value(path, record, row, one) is ABSENT), where)
    if where.origin not in {"row", "record"}:
        what = "the path of the rows has no *" if where.origin == "key" else "the rows are in no list"
        return f"{path}: {listed} cannot be known, since {what}."
    reached, step = deepest(row.value if where.origin == "row" else record, where.steps)
    has = f"has the keys {shown(list(reached), 12)}" if isinstance(reached, dict) else f"is {quoted(reached)}"
    near = did_you_mean(step, reached) if isinstance(reached, dict) else ""
    return (
        f"{path}: a column's path must be found in one row at least, got nothing for {listed}. In the first row, what "
        f"{step!r} should be in {has}.{near}"
    )
