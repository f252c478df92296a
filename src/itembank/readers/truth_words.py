"""Words for right and wrong in place of numbers: `correct` and `incorrect`, `C` and `I`, `pass` and `fail`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, did_you_mean, first_few, remedy, warn
from itembank.numerics.arrays import FloatArray
from itembank.readers.columns import MISSING_WORDS, numbers
from itembank.readers.reading_specs import ReadingSpec

PAIRS = (
    ("true", "false"),
    ("t", "f"),
    ("yes", "no"),
    ("y", "n"),
    ("correct", "incorrect"),
    ("correct", "wrong"),
    ("right", "wrong"),
    ("c", "i"),
    ("pass", "fail"),
    ("passed", "failed"),
    ("success", "failure"),
    ("success", "fail"),
    ("solved", "unsolved"),
    ("resolved", "unresolved"),
)
"""What is right and what is wrong, in lower case; read unasked when a table of responses holds nothing else."""


PERCENTAGE = r"^([+-]?\d+(?:\.\d+)?)\s*%$"


def response_of(word: str) -> float | None:
    """Return 1 for a word for right and 0 for one for wrong; None for others, and for letters, which name options."""
    word = word.strip().casefold()
    if len(word) > 1:
        for place, response in ((0, 1.0), (1, 0.0)):
            if word in {pair[place] for pair in PAIRS}:
                return response
    return None


@dataclass(frozen=True, slots=True)
class ResponseNumbers:
    """Responses as numbers."""

    values: FloatArray  # (n_rows, n_columns): NaN where missing or not a number
    bad: dict[str, pl.Series]  # Rows of each column that hold something else
    advice: str = ""  # What may be done about these, to add to a message; empty when nothing is known


def response_numbers(frame: pl.DataFrame, spec: ReadingSpec, source: str) -> ResponseNumbers:
    """Return columns of responses as numbers; words for right and wrong are 1 and 0.

    They are read so when the spec says what is right, or when all columns together hold one known pair and nothing
    else, with a `DataWarning` that says what was read as right.

    Raises
    ------
    DataError
        When the spec says what is right, and it is not clear what is wrong.
    """
    if spec.true_value is not None:
        return _by_true_value(frame, spec.true_value, source)
    values, bad = numbers(frame)
    if not bad:
        return ResponseNumbers(values, bad)
    words = _words(frame)
    shares = _shares(words, source)
    if shares is not None:
        return ResponseNumbers(shares * spec.max_response, {})
    if spec.max_response != 1.0:
        return ResponseNumbers(values, bad)
    counts = _counts(words.values())
    pair = next((pair for pair in PAIRS if {word.casefold() for word in counts} <= {*pair}), None)
    if pair is None:
        return ResponseNumbers(values, bad, _advice(_counts([words[name].filter(mask) for name, mask in bad.items()])))
    _tell(source, counts, pair[0])
    return ResponseNumbers(_flags(words, pair[0]), {})


def _shares(words: Mapping[str, pl.Series], source: str) -> FloatArray | None:
    """Percentages as numbers in [0, 1], (n_rows, n_columns); None unless every response is one."""
    found = {name: column.str.extract(PERCENTAGE, 1).cast(pl.Float64, strict=False) for name, column in words.items()}
    if any(found[name].null_count() > words[name].null_count() for name in words):
        return None
    warn(f"{source}: read percentages (such as {_first(words)!r}) as shares of 1.", DataWarning)
    return np.asfortranarray(np.column_stack([one.fill_null(np.nan).to_numpy() / 100.0 for one in found.values()]))


def _first(words: Mapping[str, pl.Series]) -> str:
    return next(str(one) for column in words.values() for one in column.drop_nulls())


def _by_true_value(frame: pl.DataFrame, true_value: str, source: str) -> ResponseNumbers:
    """Read one value as right and another as wrong: its known partner, or the only other one."""
    words = _words(frame)
    counts = _counts(words.values())
    right = true_value.strip().casefold()
    others = {word: n for word, n in counts.items() if word.casefold() != right}
    kinds = {word.casefold() for word in others}
    partners = {wrong for first, wrong in PAIRS if first == right} & kinds
    wrong = partners if len(partners) == 1 else kinds
    if len(wrong) > 1:
        near = did_you_mean(true_value, counts) if len(others) == len(counts) else ""
        _refuse(source, f"{true_value!r}, which is right, or one other value", others, near)
    beside = {word: n for word, n in others.items() if word.casefold() not in wrong}
    if beside:
        _refuse(source, f"{true_value!r}, which is right, or {wrong.pop()!r}, which is wrong", beside, "")
    _tell(source, counts, right)
    return ResponseNumbers(_flags(words, right), {})


def _words(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Return each column as text without blanks around it, null where missing."""
    columns = {}
    for column in frame:  # by hand, as names of columns may be empty, or patterns to polars
        text = _as_text(column).str.strip_chars()
        is_missing = text.str.to_lowercase().is_in(MISSING_WORDS).fill_null(value=True)
        columns[column.name] = text.set(is_missing, None)
    return columns


def _as_text(column: pl.Series) -> pl.Series:
    """Write values as people do: 1 for 1.0."""
    if column.dtype.is_nested():
        return pl.Series(column.name, [None if value is None else str(value) for value in column], dtype=pl.String)
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(pl.Float64) == column).fill_null(value=False)
        return whole.cast(pl.String).zip_with(is_whole, column.cast(pl.String))
    return column.cast(pl.String, strict=False)


def _counts(columns: Iterable[pl.Series]) -> dict[str, int]:
    """How often each value occurs in all columns, the commonest first."""
    found: Counter[str] = Counter()
    for column in columns:
        found.update(dict(column.drop_nulls().value_counts().iter_rows()))
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _flags(words: Mapping[str, pl.Series], right: str) -> FloatArray:
    """1 where a value is the right one, 0 for others, NaN where missing, (n_rows, n_columns)."""
    flags = [(column.str.to_lowercase() == right).cast(pl.Float64).fill_null(np.nan) for column in words.values()]
    return np.asfortranarray(np.column_stack([flag.to_numpy() for flag in flags]))


def _tell(source: str, counts: Iterable[str], right: str) -> None:
    """Say what was read as right and what as wrong."""
    kinds = {"right": [word for word in counts if word.casefold() == right]}
    kinds["wrong"] = [word for word in counts if word.casefold() != right]
    parts = [f"{' and '.join(map(repr, words))} as {what}" for what, words in kinds.items() if words]
    warn(f"{source}: read {' and '.join(parts)}.", DataWarning)


def _times(counts: Mapping[str, int]) -> str:
    return first_few([f"{word[:40]!r} {n} times" for word, n in counts.items()])


def _advice(counts: Mapping[str, int]) -> str:
    """Say how often each word occurs, and how to say which one is right."""
    how = remedy("true_value='...'", "--true-value VALUE")
    percent = " Write all responses with a percent sign, or none." if any("%" in word for word in counts) else ""
    return f" They are {_times(counts)}.{percent} If one value stands for a right answer, say which: {how}."


def _refuse(source: str, expected: str, others: Mapping[str, int], near: str) -> None:
    raise DataError(
        f"{source}: response must be {expected}, got {_times(others)}.{near} Write these as right or wrong, or leave "
        "them empty where there is no response."
    )
