"""CSV files that people open: no text in them is taken for a formula.

Spreadsheets run what begins with one of six characters as a formula, and item texts, answers and ids come from
strangers (OWASP, CSV injection). A leading apostrophe makes it text. Files that programs read back keep
every text to the letter.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What begins a formula (OWASP)."""
APOSTROPHE = "'"


def guarded(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run; numbers, also in text, stay.

    Examples
    --------
    >>> guarded("=1+1"), guarded("-0.5"), guarded("plain")
    ("'=1+1", '-0.5', 'plain')
    """
    if not isinstance(value, str) or not value.startswith(FORMULA) or is_number(value):
        return value
    return APOSTROPHE + value


def unguarded(text: str) -> str:
    """Take away the apostrophe that `guarded` put there.

    Examples
    --------
    >>> unguarded(guarded("=1+1")), unguarded("'tis")
    ('=1+1', "'tis")
    """
    rest = text.removeprefix(APOSTROPHE)
    return rest if rest != text and guarded(rest) == text else text


def write_guarded_csv(table: "pl.DataFrame", path: Path) -> None:
    """Write a table for people: names of columns and texts are guarded."""
    import polars as pl  # noqa: PLC0415 (the command line loads this module before it needs polars)

    texts = [
        pl.Series(name, [guarded(one) for one in table[name]], dtype=pl.String)
        for name, kind in table.schema.items()
        if kind == pl.String
    ]
    table.with_columns(texts).rename(guarded).write_csv(path)


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
