"""py-irt's JSON Lines: one line a model, ``{"subject_id": ..., "responses": {item: 0 or 1}}``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.readers.checks import row_problems
from itembank.readers.collecting import read_each
from itembank.readers.columns import numbers
from itembank.readers.json_files import Record, as_float, read_records
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows, join_rows, rename_model
from itembank.responses.labels import IdKind, Labels
from itembank.responses.opening import file_kind

SUBJECT, RESPONSES = "subject_id", "responses"


def is_py_irt(record: Record) -> bool:
    """Whether an object is a line of py-irt's format."""
    return SUBJECT in record and isinstance(record.get(RESPONSES), dict)


def py_irt_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read files in py-irt's format.

    Raises
    ------
    DataError
        When a line has no subject or responses, an item twice, or responses that are no numbers.
    """
    return join_rows(read_each(paths, lambda path: _file_rows(path, spec), progress, spec))


def _file_rows(path: Path, spec: ReadingSpec) -> ResponseRows:
    """Read one file."""
    if file_kind(path) != "json":
        raise DataError(f"{path}: py-irt's format is JSON Lines; the name must end in .jsonl.")
    records = [record for block in read_records(path, pairs_hook=_unique_keys) for record in block]
    problems = _shape_problems(records)
    if problems:
        raise DataError(f"{path}: " + " ".join(problems))
    subjects = [record[SUBJECT] for record in records]
    kind, problem = _subject_kind(subjects)
    item_names = [pl.Series("name", list(record[RESPONSES]), dtype=pl.String) for record in records]
    names = pl.concat(item_names).unique(maintain_order=True)
    category = pl.Enum(names)
    index = [item.cast(category).to_physical().cast(pl.Int64).to_numpy() for item in item_names]
    sizes = np.array([len(part) for part in index], dtype=np.int64)
    models = Labels.of(pl.Series("name", [str(subject) for subject in subjects], dtype=pl.String), kind)
    labels = Labels(models.names, np.repeat(models.index, sizes), kind)
    values, bad = _values(records)
    if problem:
        problems.append(problem)
    if bad.size:
        items = np.concatenate(index)
        where = [
            f"{labels.at(bad[k : k + 1])[0]!r} item {names[int(items[bad[k]])]!r}" for k in range(min(5, bad.size))
        ]
        problems.append(f"responses must be numbers, got {bad.size} values that are none: {', '.join(where)}.")
    rows = ResponseRows(
        str(path),
        labels,
        Labels(names, np.concatenate(index), "text"),
        values / spec.max_response,
        item_table=pl.DataFrame({"item_id": names}),
    )
    problems.extend(row_problems(rows, max_response=spec.max_response))
    if problems:
        raise DataError(f"{path}: " + " ".join(problems))
    return rows if spec.model_id is None else rename_model(rows, spec.model_id)


def _unique_keys(pairs: list[tuple[str, Any]]) -> Record:
    """Make an object, refusing one with a key twice (JSON would keep the last value in silence)."""
    record = dict(pairs)
    if len(record) < len(pairs):
        seen: set[str] = set()
        repeated = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        raise DataError(f"an object must have each key once, got {len(repeated)} more than once: {shown(repeated)}.")
    return record


def _shape_problems(records: list[Record]) -> list[str]:
    """Say which lines are not of the format."""
    if not records:
        return ["the file is empty."]
    bad = [number for number, record in enumerate(records, start=1) if not is_py_irt(record)]
    if bad:
        return [
            f'every object must have "{SUBJECT}" and an object "{RESPONSES}", got {len(bad)} without: objects '
            f"{shown(bad)}; the first has {shown(list(records[bad[0] - 1]))}."
        ]
    if not any(record[RESPONSES] for record in records):
        return ["there must be at least one response, got none."]
    return []


def _subject_kind(subjects: list[Any]) -> tuple[IdKind | None, str | None]:
    """Type of the subject ids, or what is wrong with it."""
    kinds = set(map(type, subjects))
    if kinds == {str}:
        return "text", None if all(subjects) else f"{SUBJECT} must not be empty."
    if kinds == {int}:
        return "whole numbers", None
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    return None, f"{SUBJECT} must have one type, text or whole numbers, got {names}. Write the ids as text."


def _values(records: list[Record]) -> tuple[FloatArray, IntArray]:
    """All responses in a row, and the places of those that are no numbers."""
    values = [value for record in records for value in record[RESPONSES].values()]
    if set(map(type, values)) <= {int, float, bool}:
        return np.array([as_float(value) for value in values]), np.zeros(0, dtype=np.int64)
    as_text = pl.Series("response", [None if value is None else str(value) for value in values], dtype=pl.String)
    array, bad = numbers(as_text.to_frame())
    places = bad["response"].arg_true().to_numpy().astype(np.int64) if bad else np.zeros(0, dtype=np.int64)
    return array[:, 0], places
