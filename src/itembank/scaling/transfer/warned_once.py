"""Many fits of one call may warn of the same: it is said once."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from itembank.errors import ItembankWarning, warn

_NUMBERS = re.compile(r"\d[\d.,]*(e[+-]?\d+)?")


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
        warn(text if more == 0 else f"{text} (The same in {more} other fits.)", key[0])
