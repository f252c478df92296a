"""The content of one samples file of lm-evaluation-harness."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.json_files import Record, as_float, read_records
from itembank.readers.lm_eval_files import SampleFile
from itembank.readers.lm_eval_lines import short_samples
from itembank.readers.lm_eval_options import (
    Options,
    RowOptions,
    file_options,
    logged_accuracy,
    row_options,
)
from itembank.responses.labels import Labels
from itembank.responses.prompts import hash_numbers

# What a sample tells besides its metrics; releases that do not list the metrics leave the rest to be them.
NOT_METRICS = frozenset(
    [
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task", "task_name", "request_type", "sample_len"),
    ]
)
ESTIMATES = ("est_full", "est_low", "est_high")
"""Metrics that exported tasks add: estimates of the full score, which are no responses."""
NO_FILTER = "none"
DEFAULT_DELIMITER = " "
"""What the harness puts between a question and an option where a task says nothing else."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Values of one metric, one a row."""

    values: FloatArray  # (n_rows,): NaN where missing; for lists of numbers their mean
    lengths: IntArray | None = None  # (n_rows,): How many numbers each list held
    problem: str = ""  # Why the values are no numbers; empty when they are


@dataclass(frozen=True, slots=True)
class Samples:
    """Rows of one file: one an item and filter."""

    file: SampleFile
    documents: Labels
    filters: Labels
    hashes: Labels
    metrics: Mapping[str, Metric]
    n_generated: IntArray  # (n_rows,): Texts that were generated for each row; 0 where log-likelihoods were asked for
    options: Options | None = None  # Answer options; None when nobody asked
    costs: Mapping[str, FloatArray] = field(default_factory=dict)  # mapping of unit to (n_rows,): NaN where unknown
    attempts: Labels | None = None  # Which attempt at the item a row is, where the log counts them
    n_failed: int = 0  # Rows that ended in an error; their metrics are NaN
    prompts: IntArray | None = None  # (n_rows,): Hash of each prompt, as `hash_numbers` has it

    def lower_is_better(self, metric: str) -> bool:
        """Whether the run says that a small value of this metric is good."""
        return self.file.run.higher_is_better.get(self.file.task, {}).get(metric) is False


def read_samples(file: SampleFile, *, with_options: bool = False) -> Samples:
    """Read one samples file; see `samples_of`."""
    blocks = read_records(file.path, shorten=None if with_options else short_samples)
    return samples_of(file, blocks, with_options=with_options)


def samples_of(file: SampleFile, blocks: Iterable[Sequence[Record]], *, with_options: bool = False) -> Samples:
    """Take the samples of one model on one task, wherever they come from.

    Parameters
    ----------
    file : SampleFile
        Says whose they are; its path is for messages only.
    blocks : sequences of records
        As the harness writes them into samples files.
    with_options : bool
        Keep the answer options, for scores made of their log-likelihoods.

    Raises
    ------
    DataError
        When it is cut, or holds something else than samples.
    """
    documents: list[Any] = []
    filters: list[Any] = []
    hashes: list[Any] = []
    options: list[RowOptions] = []
    generated: list[int] = []
    prompts: list[IntArray] = []
    delimiter = file.run.delimiters.get(file.task, DEFAULT_DELIMITER)
    values: dict[str, list[Any]] = {}
    for records in blocks:
        if any("doc_id" not in record for record in records):
            raise DataError(f"{file.path}: every line must be a sample of lm_eval with a doc_id, got one without.")
        start = len(documents)
        documents.extend(record["doc_id"] for record in records)
        filters.extend(record.get("filter") for record in records)
        hashes.extend(record.get("doc_hash") for record in records)
        prompts.append(hash_numbers([record.get("prompt_hash") for record in records]))
        if with_options:
            options.extend(row_options(record, delimiter) for record in records)
        generated.extend(_n_generated(record) for record in records)
        for name in dict.fromkeys(name for record in records for name in _metric_names(record)):
            column = values.setdefault(name, [])
            column.extend([None] * (start - len(column)))
            column.extend(record.get(name) for record in records)
    if not documents:
        raise DataError(f"{file.path}: the file is empty.")
    for column in values.values():
        column.extend([None] * (len(documents) - len(column)))
    labels = _document_labels(file, documents)
    return Samples(
        file,
        labels,
        _filter_labels(file, labels, filters),
        Labels.of(pl.Series("hash", hashes, dtype=pl.String, strict=False)),
        {name: metric_of(column) for name, column in values.items()},
        np.array(generated, dtype=np.int64),
        _options(options, values) if with_options else None,
        prompts=np.concatenate(prompts),
    )


def _options(options: list[RowOptions], values: Mapping[str, list[Any]]) -> Options:
    """Answer options of the rows, with the accuracies that were logged of them."""
    acc, acc_norm = (logged_accuracy(values.get(name), len(options)) for name in ("acc", "acc_norm"))
    return file_options(options, (acc, acc_norm))


def _n_generated(record: Record) -> int:
    """Texts that were generated for one sample: ``resps`` is a list of one request with all its repeats."""
    responses = record.get("resps")
    if not (isinstance(responses, list) and len(responses) == 1 and isinstance(responses[0], list)):
        return 0
    return len(responses[0]) if all(isinstance(text, str) for text in responses[0]) else 0


def _metric_names(record: Record) -> list[str]:
    """Names of the metrics of a sample."""
    listed = record.get("metrics")
    if isinstance(listed, list):
        return [name for name in listed if isinstance(name, str) and name in record and name not in ESTIMATES]
    return [name for name in record if name not in NOT_METRICS and name not in ESTIMATES]


def _document_labels(file: SampleFile, documents: list[Any]) -> Labels:
    """Documents by number."""
    foreign = sorted({type(document).__name__ for document in documents if type(document) is not int})
    if foreign:
        raise DataError(
            f"{file.path}: doc_id must be a whole number, as lm_eval counts them, got {', '.join(foreign)}."
        )
    return Labels.of(pl.Series("document", [str(document) for document in documents], dtype=pl.String))


def _filter_labels(file: SampleFile, documents: Labels, filters: list[Any]) -> Labels:
    """Filter of each row. Releases before 0.4.6 write no names, but one row a document for each, in order."""
    if any(name is not None for name in filters):
        return Labels.of(pl.Series("filter", [NO_FILTER if name is None else str(name) for name in filters]))
    occurrence = pl.Series(documents.index).to_frame("document").select(pl.int_range(pl.len()).over("document"))
    number = occurrence.to_series().to_numpy().astype(np.int64)
    n_filters = int(number.max()) + 1
    names = file.run.filters.get(file.task, ())
    if len(names) != n_filters:
        names = (NO_FILTER,) if n_filters == 1 else tuple(f"unnamed-{k + 1}" for k in range(n_filters))
    return Labels(pl.Series("name", names, dtype=pl.String), number)


def metric_of(column: list[Any]) -> Metric:
    """Values of a metric as numbers, or why they are none."""
    kinds = set(map(type, column)) - {type(None)}
    if kinds and kinds <= {bool, int, float}:
        return Metric(np.array([math.nan if value is None else as_float(value) for value in column]))
    absent = np.full(len(column), np.nan)
    if kinds == {list} and all(_is_numbers(value) for value in column if value):
        lengths = np.array([len(value or ()) for value in column], dtype=np.int64)
        means = [sum(map(as_float, value)) / len(value) if value else math.nan for value in column]
        return Metric(np.array(means, dtype=np.float64), lengths, "holds lists of numbers")
    names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
    return Metric(absent, None, f"holds {names}, not numbers")


def _is_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, bool | int | float) for value in values)
