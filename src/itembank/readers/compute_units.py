"""Numbers of operations, parameters and tokens as tables write them: plain, with a prefix, or as a named multiple."""

import math
import re
from collections.abc import Callable

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.columns import MISSING_WORDS

PREFIXES = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12, "p": 15, "e": 18, "z": 21, "y": 24}
"""Powers of ten of the SI prefixes of FLOP, by their lower-case letter."""
COUNT_SUFFIXES = {"": 0, "k": 3, "m": 6, "b": 9, "t": 12}
"""Powers of ten of the letters after a number of parameters or tokens: 70M, 1.4B, 15T."""
PETAFLOP_DAY = 1e15 * 86_400.0
SCALED_COLUMN = re.compile(r"flops?_e(?P<power>\d+)", re.IGNORECASE)
"""Names of columns that count a power of ten of FLOP: flops_e18."""

_NUMBER = r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_FLOP = re.compile(rf"{_NUMBER}\s*(?:(?P<prefix>[kmgtpezy]?)flops?)?", re.IGNORECASE)
_DAYS = re.compile(rf"{_NUMBER}\s*(?:pf|petaflops?|pflops?)(?:/s|ps)?[- ]?days?", re.IGNORECASE)
_COUNT = re.compile(rf"{_NUMBER}\s*(?P<suffix>[kmbt]?)", re.IGNORECASE)


def operations(column: pl.Series) -> tuple[FloatArray, IntArray]:
    """Floating-point operations of a column, and the rows that hold something else.

    Text may carry a unit: ``2.1 EFLOP``, ``3e20 FLOP``, ``25 PF-days``. A rate (``FLOP/s``) is none.

    Returns
    -------
    values : (n_rows,)
        FLOP; NaN where missing.
    bad : (n_bad,)
        Rows whose text is no number of operations.
    """
    return _parsed(column, _flop)


def counts(column: pl.Series) -> tuple[FloatArray, IntArray]:
    """Parameters or tokens of a column (text may end in K, M, B or T), and the rows that hold something else."""
    return _parsed(column, _count)


def _parsed(column: pl.Series, read: Callable[[str], float | None]) -> tuple[FloatArray, IntArray]:
    """Numbers of a column, its text by `read`."""
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return column.cast(pl.Float64).fill_null(np.nan).to_numpy().copy(), np.zeros(0, dtype=np.int64)
    texts = [None if text is None else text.strip() for text in column.cast(pl.String, strict=False).to_list()]
    values = [math.nan if text is None or text.lower() in MISSING_WORDS else read(text) for text in texts]
    bad = np.array([row for row, value in enumerate(values) if value is None], dtype=np.int64)
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64), bad


def _flop(text: str) -> float | None:
    """FLOP that a text names, None when it names none."""
    days = _DAYS.fullmatch(text)
    if days:
        return float(days["number"]) * PETAFLOP_DAY
    found = _FLOP.fullmatch(text)
    return float(found["number"]) * 10.0 ** PREFIXES[(found["prefix"] or "").lower()] if found else None


def _count(text: str) -> float | None:
    """Count that a text names, None when it names none."""
    found = _COUNT.fullmatch(text)
    return float(found["number"]) * 10.0 ** COUNT_SUFFIXES[found["suffix"].lower()] if found else None
