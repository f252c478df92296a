"""Answer options in samples of lm-evaluation-harness: their log-likelihoods, their lengths, and which are right."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.errors import shown
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.readers.json_files import Record, as_float
from itembank.responses.choice_scores import choice_accuracy

LARGEST_LOG_LIKELIHOOD = 1e-3
"""A little above zero, where models that compute in low precision may end."""
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
    found = [_log_likelihood(response) for response in _list(record.get("resps"))]
    values = [value for value in found if value is not None]
    arguments = _arguments(record.get("arguments"))
    if not values or len(values) != len(found) or len(arguments) != len(values):
        return RowOptions()
    half = len(arguments) // 2
    if len(arguments) == 2 * half and _are_unconditional(arguments[:half], arguments[half:]):
        values, arguments = values[:half], arguments[:half]
    texts = tuple(text.removeprefix(delimiter) for _, text in arguments)
    target = record.get("target")
    return RowOptions(tuple(values), texts, _by_index(target, len(texts)), _by_text(target, texts))


def file_options(rows: Sequence[RowOptions], logged: Logged) -> Options:
    """Put the options of a file's samples together, and find out which are right.

    A `target` may be the index of the right option or its text, and options may be numbers: that reading is taken
    which agrees with the logged accuracy. Where the target names none (tasks whose options stand in the context), the
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


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


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


def _arguments(arguments: Any) -> list[tuple[str, str]]:
    """Context and continuation of each request, as releases since 0.4.3 and those before write them."""
    requests = list(arguments.values()) if isinstance(arguments, dict) else _list(arguments)
    pairs = [tuple(one.values()) if isinstance(one, dict) else tuple(_list(one)) for one in requests]
    is_text = all(len(pair) >= 2 and isinstance(pair[0], str) and isinstance(pair[1], str) for pair in pairs)
    return [(pair[0], pair[1]) for pair in pairs] if is_text else []


def _are_unconditional(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> bool:
    """Whether the second half repeats the options without context, as `acc_mutual_info` needs them."""
    same = [text for _, text in first] == [text for _, text in second]
    return same and all(context == "" for context, _ in second) and any(context for context, _ in first)


def _by_index(target: Any, n_options: int) -> tuple[int, ...]:
    """Options that a target names by number: 2, "2", or "[0, 2]" where several are right."""
    if isinstance(target, str):
        try:
            target = json.loads(target)
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
    with np.errstate(invalid="ignore"):
        n_high = np.count_nonzero(log_likelihood > LARGEST_LOG_LIKELIHOOD)
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
    return _from_accuracy(log_likelihood, flags, logged[0])


def _from_accuracy(log_likelihood: FloatArray, is_right: BoolArray, accuracy: FloatArray) -> BoolArray:
    """Fill in, where no option is known to be right, the chosen one if it was right, the other of two if it was not."""
    unknown = np.count_nonzero(is_right, axis=-1) == 0
    if not unknown.any():
        return is_right
    chosen = np.argmax(np.where(np.isnan(log_likelihood), -np.inf, log_likelihood), axis=-1)
    is_chosen = np.arange(log_likelihood.shape[1]) == chosen[:, np.newaxis]
    exists = ~np.isnan(log_likelihood)
    is_pair = np.count_nonzero(exists, axis=-1) == 2
    filled = np.equal(accuracy, 1.0)[:, np.newaxis] & is_chosen
    filled |= (np.equal(accuracy, 0.0) & is_pair)[:, np.newaxis] & exists & ~is_chosen
    result: BoolArray = np.where(unknown[:, np.newaxis], filled, is_right)
    return result


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
            f"needs the right option of every sample, which target does not tell for {unknown.size} of "
            f"{len(is_right)}: lines {shown((unknown + 1).tolist())}"
        )
    wrong = np.flatnonzero(_differs(log_likelihood, n_characters, is_right, logged))
    if wrong.size:
        return (
            f"needs the accuracy in the log to be that of the option target names, which differs for {wrong.size} of "
            f"{len(is_right)} samples (the task scores its options otherwise): lines {shown((wrong + 1).tolist())}"
        )
    return ""


def logged_accuracy(column: Sequence[Any] | None, n_rows: int) -> FloatArray:
    """Return a logged accuracy as numbers, (n_rows,); NaN where it is none."""
    values: Sequence[Any] = [None] * n_rows if column is None else column
    return np.array([as_float(value) if type(value) in {int, float, bool} else math.nan for value in values])
