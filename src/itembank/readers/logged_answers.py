"""Answers as the logs of most harnesses hold them, one at a time, put together to the `Samples` of a file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.files.documents import digest_of
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback
from itembank.readers.collecting import own_files
from itembank.readers.lm_eval_files import SampleFile, oldest_first, renamed
from itembank.readers.lm_eval_samples import NO_FILTER, Samples, metric_of
from itembank.readers.logged import LogKind, Logs, logged_rows, read_each_log
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.refusals import refuse
from itembank.readers.rows import ResponseRows
from itembank.readers.wanted import wanted
from itembank.responses.labels import Labels


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One answer of a model to an item."""

    document: str  # Id of the item in its task
    metrics: Mapping[str, Any]  # What the log says of the answer; of no use where it failed
    content: str | None = None  # Digest of the question and what is right
    attempt: str = "0"  # Which attempt at the item it is
    costs: Mapping[str, Any] = field(default_factory=dict)
    has_failed: bool = False  # Whether there is no answer because of an error


def samples_of(file: SampleFile, answers: Sequence[LoggedAnswer]) -> Samples:
    """Put the answers of one file together.

    Raises
    ------
    DataError
        When there are none.
    """
    if not answers:
        raise DataError(f"{file.path}: there must be at least one answer, got none.")
    names = dict.fromkeys(name for one in answers if not one.has_failed for name in one.metrics)
    documents = Labels.of(pl.Series("name", [one.document for one in answers], dtype=pl.String))
    attempts = Labels.of(pl.Series("name", [one.attempt for one in answers], dtype=pl.String))
    units = [unit for unit in COST_COLUMNS if any(unit in one.costs for one in answers)]
    return Samples(
        file,
        documents,
        Labels(pl.Series("name", [NO_FILTER]), np.zeros(len(answers), dtype=np.int64)),
        Labels.of(pl.Series("name", [one.content for one in answers], dtype=pl.String)),
        {name: metric_of([None if one.has_failed else one.metrics.get(name) for one in answers]) for name in names},
        np.zeros(len(answers), dtype=np.int64),
        costs={unit: _amounts([one.costs.get(unit) for one in answers]) for unit in units},
        attempts=attempts if documents.n_names < len(answers) else None,
        n_failed=sum(one.has_failed for one in answers),
    )


def _amounts(values: Sequence[Any]) -> FloatArray:
    """Amounts as numbers, (n_rows,); NaN where there is none, or none that can be a cost."""
    is_amount = [isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 2**63 for one in values]
    return np.array([one if good else np.nan for one, good in zip(values, is_amount, strict=True)], dtype=np.float64)


def content_digest(*parts: Any) -> str:
    """Digest of whatever tells the content of an item."""
    return digest_of(json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str).encode())


@dataclass(frozen=True, slots=True)
class Harness:
    """How the results of one program are read, a file at a time."""

    source: str  # Its name in `SOURCES`
    kind: LogKind
    hint: str  # Where its files are, for a folder without any
    tell: Callable[[Path, ReadingSpec], SampleFile]  # Task and model of a file, by its name and place
    read: Callable[[SampleFile], Samples]  # The answers of a file


def harness_rows(
    harness: Harness, paths: Sequence[Path], spec: ReadingSpec, progress: ProgressCallback
) -> ResponseRows:
    """Read the files of one program among these files and below these folders.

    Raises
    ------
    DataError
        As `logged_rows`.
    """
    found, problems = [], []
    for path in own_files(paths, harness.source, spec, harness.hint):
        try:
            found.append(renamed(harness.tell(path, spec), spec.task_names))
        except DataError as error:
            problems.append(str(error))
    files = oldest_first(wanted(found, spec))
    if not files:
        refuse(problems)
    samples, unread = read_each_log(files, harness.read, progress)
    return logged_rows(Logs(harness.kind, samples, [*problems, *unread]), spec)


def mapping(value: Any) -> dict[str, Any]:
    """Return an object of JSON, an empty one where there is something else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list of JSON, an empty one where there is something else."""
    return value if isinstance(value, list) else []
