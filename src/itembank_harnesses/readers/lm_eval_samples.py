"""The content of one samples file of lm-evaluation-harness."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError, shown
from itembank.files.documents import parse_json
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.json_files import Record, as_float, listed, read_records
from itembank.responses.choice_scores import choice_accuracy
from itembank.responses.error_kinds import ERROR, error_kind
from itembank.responses.labels import names_of
from itembank.responses.prompts import hash_numbers
from itembank_harnesses.readers.runs import SampleFile

_FIRST = re.compile(r'\{"doc_id": (\d{1,18}), ')
_RESPONSES, _FILTERED, _FILTER = ', "resps": ', ', "filtered_resps": ', ', "filter": "'
_OF_TEXTS = ('[["', "[[null")
"""How responses begin that are generated texts, or none; log-likelihoods are not looked at."""


def short_samples(lines: Sequence[str]) -> list[Record] | None:
    """Read what responses need of samples; None where lines are not as the harness writes them since 0.4.6.

    The harness writes ``doc_id`` first, then long fields that no response needs, and after ``filter`` what is wanted.
    What is from the last ``filter`` to the end of a line, with a brace before it, is JSON only where that key
    belongs to the outermost object: every brace that is open there would be closed once too often. So nothing is taken
    from a place where it does not belong; a line that is otherwise has the whole of its block read.
    """
    shortened = []
    for line in lines:
        first, tail = _FIRST.match(line), line.rfind(_FILTER)
        end = line.rfind(_FILTERED, 0, tail)
        start = line.rfind(_RESPONSES, 0, end)
        if first is None or tail < 0 or end < 0 or start < 0:
            return None
        start += len(_RESPONSES)
        responses = line[start:end] if line.startswith(_OF_TEXTS, start) else "[]"
        shortened.append(f'{{"doc_id": {first[1]}, "resps": {responses}{line[tail:]}')
    text = "[" + ",".join(shortened) + "]"
    try:
        records = parse_json(text)
    except ValueError:
        return None
    is_whole = len(records) == len(lines) and all(map(_is_whole, records))
    return records if is_whole else None


def _is_whole(record: Record) -> bool:
    """Whether a sample holds all the metrics that it names, and the digest of its document."""
    names = record.get("metrics")
    if "doc_hash" not in record or not isinstance(names, list):
        return False
    return all(isinstance(name, str) and name in record for name in names)


Logged = tuple[FloatArray, FloatArray]
"""`acc` and `acc_norm` of each row, NaN where not logged."""


@dataclass(frozen=True, slots=True)
class RowOptions:
    """Options of one sample."""

    log_likelihoods: tuple[float, ...] = ()  # Empty where the sample holds generated text
    texts: tuple[str, ...] = ()  # What was continued with, without the delimiter before it
    by_index: tuple[int, ...] = ()  # Options that `target` names, read as a number and read as a text
    by_text: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the samples of one file, padded with NaN."""

    log_likelihood: FloatArray  # (n_rows, n_options): All NaN where the log has no number for one of a sample's options
    n_characters: FloatArray  # (n_rows, n_options)
    n_bytes: FloatArray  # (n_rows, n_options)
    is_right: BoolArray  # (n_rows, n_options)
    problem: str = ""  # Why they cannot be used; empty when they can

    @property
    def has_alternatives(self) -> bool:
        """Whether every sample has two options at least."""
        return bool((np.count_nonzero(~np.isnan(self.n_characters), axis=-1) >= 2).all())


def row_options(record: Record, delimiter: str) -> RowOptions:
    """Take the options of one sample; none when it holds no log-likelihoods of texts."""
    found = [_log_likelihood(response) for response in listed(record.get("resps"))]
    values = [value for value in found if value is not None]
    logged = record.get("arguments")  # as releases since 0.4.3 and those before write them
    requests = list(logged.values()) if isinstance(logged, dict) else listed(logged)
    pairs = [tuple(one.values()) if isinstance(one, dict) else tuple(listed(one)) for one in requests]
    is_text = all(len(pair) >= 2 and isinstance(pair[0], str) and isinstance(pair[1], str) for pair in pairs)
    arguments = [(pair[0], pair[1]) for pair in pairs] if is_text else []
    if not values or len(values) != len(found) or len(arguments) != len(values):
        return RowOptions()
    half = len(arguments) // 2
    first, second = arguments[:half], arguments[half:]
    is_repeated = [text for _, text in first] == [text for _, text in second]
    if is_repeated and all(context == "" for context, _ in second) and any(context for context, _ in first):
        values, arguments = values[:half], first  # `acc_mutual_info` needs the options without context, too
    texts = tuple(text.removeprefix(delimiter) for _, text in arguments)
    target = record.get("target")
    return RowOptions(tuple(values), texts, _by_index(target, len(texts)), _by_text(target, texts))


def file_options(rows: Sequence[RowOptions], logged: Logged) -> Options:
    """Put the options of a file's samples together, and find out which are right.

    A `target` may be the index of the right option or its text, and options may be numbers: that reading is taken
    which agrees with the logged accuracy. Where the target names none (tasks whose options are in the context), the
    accuracy tells the right one of two.
    """
    n_options = max((len(row.texts) for row in rows), default=0)
    shape = (len(rows), n_options)
    log_likelihood, n_characters, n_bytes = (np.full(shape, np.nan) for _ in range(3))
    by_index, by_text = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for number, row in enumerate(rows):
        log_likelihood[number, : len(row.texts)] = row.log_likelihoods
        n_characters[number, : len(row.texts)] = [len(text) for text in row.texts]
        n_bytes[number, : len(row.texts)] = [len(text.encode()) for text in row.texts]
        by_index[number, list(row.by_index)] = True
        by_text[number, list(row.by_text)] = True
    problem = _problem(log_likelihood, n_characters)
    if problem:
        return Options(log_likelihood, n_characters, n_bytes, by_index, problem)
    is_broken = (np.isnan(log_likelihood) & ~np.isnan(n_characters)).any(axis=-1, keepdims=True)
    log_likelihood = np.where(is_broken, np.nan, np.minimum(log_likelihood, 0.0))
    is_right = _right(log_likelihood, n_characters, (by_index, by_text), logged)
    problem = _disagreement(log_likelihood, n_characters, is_right, logged)
    return Options(log_likelihood, n_characters, n_bytes, is_right, problem)


def _log_likelihood(response: Any) -> float | None:
    """Log-likelihood in one response, ``[[value, is_greedy], ...]`` with one pair a repeat; None when it is none."""
    while isinstance(response, list) and response and isinstance(response[0], list):
        response = response[0]
    if not (isinstance(response, list) and len(response) == 2):
        return None
    value, greedy = response
    if not (isinstance(greedy, bool) or greedy in {"True", "False"}):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _by_index(target: Any, n_options: int) -> tuple[int, ...]:
    """Options that a target names by number: 2, "2", or "[0, 2]" where several are right."""
    if isinstance(target, str):
        try:
            target = parse_json(target)
        except ValueError:
            return ()
    numbers = target if isinstance(target, list) else [target]
    is_index = all(type(number) is int and 0 <= number < n_options for number in numbers)
    return tuple(dict.fromkeys(numbers)) if is_index else ()


def _by_text(target: Any, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return the option whose text the target is, the only one when it is the only one; none where all are alike."""
    if len(texts) == 1:
        return (0,)
    if len(set(texts)) == 1:
        return ()
    wanted = str(target).strip()
    return next(((index,) for index, text in enumerate(texts) if text.strip() == wanted), ())


def _problem(log_likelihood: FloatArray, n_characters: FloatArray) -> str:
    """Why log-likelihoods cannot be used; empty when they can."""
    without = np.count_nonzero(np.isnan(n_characters).all(axis=-1)) if n_characters.shape[1] else len(n_characters)
    if without:
        return (
            f"needs log-likelihoods of answer options, which {without} of {len(n_characters)} samples do not hold "
            "(generated text, or a whole document)"
        )
    if (n_characters == 0.0).any():
        return "needs the text of every option, and some are empty"
    with np.errstate(invalid="ignore"):  # models that compute in low precision may end a little above zero
        n_high = np.count_nonzero(log_likelihood > 1e-3)
    if n_high:
        return f"needs log-likelihoods of at most 0, got {n_high} above, up to {np.nanmax(log_likelihood):g}"
    return ""


def _right(
    log_likelihood: FloatArray, n_characters: FloatArray, named: tuple[BoolArray, BoolArray], logged: Logged
) -> BoolArray:
    """Flag of each right option, (n_rows, n_options)."""
    by_index, by_text = named
    index_first = np.where(by_index.any(axis=-1, keepdims=True), by_index, by_text)
    text_first = np.where(by_text.any(axis=-1, keepdims=True), by_text, by_index)
    n_wrong = [
        np.count_nonzero(_differs(log_likelihood, n_characters, flags, logged)) for flags in (index_first, text_first)
    ]
    flags = text_first if n_wrong[1] < n_wrong[0] else index_first
    # where no option is known to be right, it is the chosen one if that was right, the other of two if it was not
    accuracy = logged[0]
    unknown = np.count_nonzero(flags, axis=-1) == 0
    if not unknown.any():
        return flags
    chosen = np.argmax(np.where(np.isnan(log_likelihood), -np.inf, log_likelihood), axis=-1)
    is_chosen = np.arange(log_likelihood.shape[1]) == chosen[:, np.newaxis]
    exists = ~np.isnan(log_likelihood)
    is_pair = np.count_nonzero(exists, axis=-1) == 2
    filled = np.equal(accuracy, 1.0)[:, np.newaxis] & is_chosen
    filled |= (np.equal(accuracy, 0.0) & is_pair)[:, np.newaxis] & exists & ~is_chosen
    return np.where(unknown[:, np.newaxis], filled, flags)


def _differs(log_likelihood: FloatArray, n_characters: FloatArray, is_right: BoolArray, logged: Logged) -> BoolArray:
    """Flag of each row whose logged accuracy is not that of these right options, (n_rows,)."""
    accuracy, normalised = logged
    is_alone = np.count_nonzero(~np.isnan(n_characters), axis=-1) < 2
    plain = choice_accuracy(log_likelihood, is_right)
    scaled = choice_accuracy(log_likelihood, is_right, n_characters)
    expected = np.where(np.isnan(accuracy), normalised, accuracy)
    found = np.where(np.isnan(accuracy), scaled, plain)
    result: BoolArray = ~is_alone & ~np.isnan(expected) & ~np.isnan(found) & (np.abs(expected - found) > 1e-9)
    return result


def _disagreement(log_likelihood: FloatArray, n_characters: FloatArray, is_right: BoolArray, logged: Logged) -> str:
    """Say that the right options are not known, or not those of the logged accuracy; empty when all is well."""
    unknown = np.flatnonzero(~is_right.any(axis=-1))
    if unknown.size:
        return (
            f"needs the right option of every sample, which target does not name for {unknown.size} of "
            f"{len(is_right)}: lines {shown((unknown + 1).tolist())}"
        )
    wrong = np.flatnonzero(_differs(log_likelihood, n_characters, is_right, logged))
    if wrong.size:
        return (
            f"needs the accuracy in the log to be that of the option target names, which differs for {wrong.size} of "
            f"{len(is_right)} samples (the task scores its options differently): lines {shown((wrong + 1).tolist())}"
        )
    return ""


def logged_accuracy(column: Sequence[Any] | None, n_rows: int) -> FloatArray:
    """Return a logged accuracy as numbers, (n_rows,); NaN where it is none."""
    values: Sequence[Any] = [None] * n_rows if column is None else column
    return np.array([as_float(value) if type(value) in {int, float, bool} else math.nan for value in values])


# What a sample tells besides its metrics; releases that do not list the metrics leave the rest to be them.
NOT_METRICS = frozenset(
    [
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task", "task_name", "request_type", "sample_len", "error"),
    ]
)
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
    """What one file tells: a row an item, filter and attempt.

    The columns of `frame` are `document`, `filter` and `content` (a hash, null where unknown), and as far as they are
    told `attempt` (its name), `error` (code of its kind, 0 for none), `n_generated` (texts that were generated; 0 where
    log-likelihoods were asked for), `prompt` (`hash_numbers` of it), and costs by unit (NaN where unknown).
    """

    file: SampleFile
    frame: pl.DataFrame
    metrics: Mapping[str, Metric]
    options: Options | None = None  # Answer options; None when nobody asked
    n_empty: int = 0  # Generated texts that are empty, and may be what an interface gave in place of an error

    @property
    def filters(self) -> list[str]:
        """Names of the filters, in order."""
        return names_of(self.frame["filter"]).to_list()

    @property
    def most_generated(self) -> int:
        """Most texts that were generated for one row."""
        return int(self.frame["n_generated"].max() or 0) if "n_generated" in self.frame else 0  # type: ignore[arg-type]

    def lower_is_better(self, metric: str) -> bool:
        """Whether the run says that a small value of this metric is good."""
        return self.file.run.higher_is_better.get(self.file.task, {}).get(metric) is False


def read_samples(file: SampleFile, *, with_options: bool = False) -> Samples:
    """Read one samples file; see `samples_of`."""
    blocks = read_records(file.path, shorten=None if with_options else short_samples)
    return samples_of(file, blocks, with_options=with_options)


def samples_of(file: SampleFile, blocks: Iterable[Sequence[Record]], *, with_options: bool = False) -> Samples:
    """Take the samples of one model on one task, wherever they come from.

    The path of `file` is for messages only. With `with_options` the answer options are kept, for scores made of them.
    """
    frames: list[pl.DataFrame] = []
    logged: list[dict[str, Any]] = []
    options: list[RowOptions] = []
    kinds: set[str] = set()
    n_empty = 0
    delimiter = file.run.delimiters.get(file.task, DEFAULT_DELIMITER)
    for records in filter(None, blocks):
        if any("doc_id" not in record for record in records):
            raise DataError(f"{file.path}: every line must be a sample of lm_eval with a doc_id, got one without.")
        kinds |= {type(record["doc_id"]).__name__ for record in records}
        columns: dict[str, list[Any]] = {
            "document": [str(record["doc_id"]) for record in records],
            "filter": [record.get("filter") for record in records],
            "content": [record.get("doc_hash") for record in records],
        }
        frames.append(
            pl.DataFrame([pl.Series(name, one, pl.String, strict=False) for name, one in columns.items()]).with_columns(
                n_generated=pl.Series([_n_generated(record) for record in records], dtype=pl.Int64),
                error=pl.Series([_error(record) for record in records], dtype=pl.Int64),
                prompt=pl.Series(hash_numbers([record.get("prompt_hash") for record in records])),
            )
        )
        names = dict.fromkeys(name for record in records for name in _metric_names(record))
        logged.extend({name: record.get(name) for name in names} for record in records)
        n_empty += sum(record.get("resps") == [[""]] for record in records)
        options.extend(row_options(record, delimiter) for record in records if with_options)
    if not frames:
        raise DataError(f"{file.path}: the file is empty.")
    foreign = sorted(kinds - {"int"})
    if foreign:
        raise DataError(
            f"{file.path}: doc_id must be a whole number, as lm_eval counts them, got {', '.join(foreign)}."
        )
    frame = pl.concat(frames)
    values = {name: [row.get(name) for row in logged] for name in dict.fromkeys(name for row in logged for name in row)}
    acc, acc_norm = (logged_accuracy(values.get(name), len(options)) for name in ("acc", "acc_norm"))
    return Samples(
        file,
        frame.with_columns(_filter_names(file, frame)).cast({pl.String: pl.Categorical}),
        {name: metric_of(column) for name, column in values.items()},
        file_options(options, (acc, acc_norm)) if with_options else None,
        n_empty,
    )


def _error(record: Record) -> int:
    """Kind of error of one sample: of a text that the interface did not return, or as a field says; 0 for none."""
    responses = record.get("resps")
    is_none = isinstance(responses, list) and bool(responses) and responses[0] in (None, [None])
    return error_kind(record.get("error")) or (ERROR if is_none else 0)


def _n_generated(record: Record) -> int:
    """Texts that were generated for one sample: ``resps`` is a list of one request with all its repeats."""
    responses = record.get("resps")
    if not (isinstance(responses, list) and len(responses) == 1 and isinstance(responses[0], list)):
        return 0
    return len(responses[0]) if all(isinstance(text, str) for text in responses[0]) else 0


def _metric_names(record: Record) -> list[str]:
    names = record.get("metrics")
    if isinstance(names, list):
        return [name for name in names if isinstance(name, str) and name in record]
    return [name for name in record if name not in NOT_METRICS]


def _filter_names(file: SampleFile, frame: pl.DataFrame) -> pl.Series:
    """Filter of each row. Releases before 0.4.6 write no names, but one row a document for each, in order."""
    if frame["filter"].null_count() < frame.height:
        return frame["filter"].fill_null(NO_FILTER)
    number = frame.select(pl.int_range(pl.len()).over("document")).to_series()
    n_filters = int(number.max()) + 1  # type: ignore[arg-type]
    names = file.run.filters.get(file.task, ())
    if len(names) != n_filters:
        names = (NO_FILTER,) if n_filters == 1 else tuple(f"unnamed-{k + 1}" for k in range(n_filters))
    return pl.Series("filter", names, dtype=pl.String).gather(number)


def metric_of(column: list[Any]) -> Metric:
    """Values of a metric as numbers, or why they are none."""
    kinds = set(map(type, column)) - {type(None)}
    if kinds and kinds <= {bool, int, float}:
        return Metric(np.array([math.nan if value is None else as_float(value) for value in column]))
    absent = np.full(len(column), np.nan)
    if kinds == {list} and all(isinstance(one, bool | int | float) for value in column for one in value or ()):
        lengths = np.array([len(value or ()) for value in column], dtype=np.int64)
        means = [sum(map(as_float, value)) / len(value) if value else math.nan for value in column]
        return Metric(np.array(means, dtype=np.float64), lengths, "holds lists of numbers")
    names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
    return Metric(absent, None, f"holds {names}, not numbers")
