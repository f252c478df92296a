"""Every exception and warning of the package, under one root."""

import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

N_SHOWN = 5
MOST_SHOWN = 100
"""Characters of an id or value that a message shows."""

_NUMBERS = re.compile(r"\d[\d.,]*(e[+-]?\d+)?")


class ItembankError(Exception):
    """Root of every error that itembank raises on purpose."""


class DataError(ItembankError, ValueError):
    """Responses, tables or files that do not say what they must."""


class ParameterError(ItembankError, ValueError):
    """An option or argument outside what it may be."""


class BankError(ItembankError):
    """A bank folder that is absent, damaged, of another schema, or that does not match the data."""


class IntegrityError(BankError):
    """Files of a bank that are missing or are not the ones that were written; a damaged journal."""


class JournalError(ItembankError):
    """A session's journal that another process has open, or that cannot be written."""


class MissingDependencyError(ItembankError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class ItembankWarning(UserWarning):
    """Root of every warning that itembank gives."""


class ConvergenceWarning(ItembankWarning):
    """An iterative fit stopped before it met its tolerance."""


class DataWarning(ItembankWarning):
    """Data that can be used but is probably not what was meant."""


def shown(names: Sequence[object], limit: int = N_SHOWN) -> str:
    """List the first few names for a message, quoted, with how many more there are."""
    text = ", ".join(map(quoted, names[:limit]))
    more = len(names) - limit
    return f"{text} and {more} more" if more > 0 else text


def quoted(name: object) -> str:
    """Quote an id or value that came from outside, cut to a length that a message can bear."""
    text = str(name)
    return repr(text) if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]!r}... ({len(text):,} characters)"


def visible(text: str) -> str:
    """Replace control characters, which could drive the terminal, by their escapes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def warn(message: str, category: type[ItembankWarning]) -> None:
    """Give a warning that points at the line outside this package that led to it."""
    frame, level = inspect.currentframe(), 1
    # contextlib stands between a decorated function and its caller
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in {"itembank", "contextlib"}:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def warned_once() -> Iterator[None]:
    """Give each of the package's warnings once when the work is over, however it ends.

    Warnings that differ in their numbers only are the same; the first of them is given, with how many there were.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ItembankWarning)
            yield
    finally:  # they may explain an error that ends the work
        _give(caught)


def _give(caught: list[warnings.WarningMessage]) -> None:
    counts: dict[tuple[type, str], int] = {}
    first: dict[tuple[type, str], str] = {}
    for one in caught:
        text = str(one.message)
        if not issubclass(one.category, ItembankWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
            continue
        key = (one.category, _NUMBERS.sub("0", text))
        first.setdefault(key, text)
        counts[key] = counts.get(key, 0) + 1
    for key, text in first.items():
        more = counts[key] - 1
        warn(text if more == 0 else f"{text} (And {more} more like it.)", key[0])
