"""Paths into JSON values, for results that no reader of their own exists for.

A path is keys with dots between them: ``doc.id``. A key that holds a dot stands in quotes: ``metrics."acc,none"``,
``"a.b".c``. A whole number is a place in a list, from 0 (``scores.0``; ``-1`` is the last).

Where the rows of a file are (``--column rows=PATH``), ``*`` stands for every key of an object or every place of a list
(``eval.*``), and a list at the end gives a row for each of its values. A column's path begins at the row. Others:

========== ===========================================================
``/path``  from the record: the line, or the file's object or array element, that the row is in
``.``      the row itself, where it is no object
``@key``   the key (or place) that the last ``*`` of the rows' path stood for
``@index`` the place of the row in its list, from 0
``@file``  the name of the file, without its folder and suffix
``@folder`` the name of the file's folder
``=text``  this text, in every row
========== ===========================================================
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from itembank.errors import ParameterError

STEP = r'(?:"[^"]+"|[^."]+)'
PATH = re.compile(rf"{STEP}(?:\.{STEP})*")
Origin = Literal["row", "record", "key", "index", "file", "folder", "constant"]
NAMES: tuple[Origin, ...] = ("key", "index", "file", "folder")
ABSENT = object()
"""What stands for a value that a path does not find."""


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """Where the values of a column come from."""

    text: str  # The path as it was given, for messages
    origin: Origin  # where it begins, or what gives the value by itself
    steps: tuple[str, ...] = ()  # Keys and places; for a constant the text itself


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One row of a record: its value, the key that the last ``*`` stood for, and its place in its list."""

    value: Any
    key: str | None = None
    index: int | None = None


def column_path(text: str) -> ColumnPath:
    """Read a column's path.

    Raises
    ------
    ParameterError
        When it is none.
    """
    if text.startswith("="):
        return ColumnPath(text, "constant", (text[1:],))
    if text.startswith("@"):
        if text[1:] not in NAMES:
            raise ParameterError(f"a path that begins with @ must be one of @{', @'.join(NAMES)}, got {text!r}.")
        return ColumnPath(text, next(name for name in NAMES if name == text[1:]))
    if text == ".":
        return ColumnPath(text, "row")
    origin: Origin = "record" if text.startswith("/") else "row"
    steps = _steps(text.removeprefix("/"))
    if "*" in steps:
        raise ParameterError(
            f"* may stand in the path of the rows only (--column rows=PATH), got the column path {text!r}."
        )
    return ColumnPath(text, origin, steps)


def rows_path(text: str) -> tuple[str, ...]:
    """Read the path of the rows; an empty one, or ``.``, means that each record is a row."""
    return () if text in {"", "."} else _steps(text)


def _steps(text: str) -> tuple[str, ...]:
    """Keys and places of a path."""
    if not PATH.fullmatch(text):
        raise ParameterError(
            f"a path must be keys with dots between them, such as doc.id, and a key that holds a dot must stand in "
            f'double quotes ("a.b".c): got {text!r}.'
        )
    return tuple(step.strip('"') for step in re.findall(STEP, text))


def value_at(value: Any, steps: tuple[str, ...]) -> Any:
    """Return what the keys and places lead to, or `ABSENT`; beyond a null there is a null."""
    for step in steps:
        if value is None:
            return None
        if isinstance(value, dict):
            value = value.get(step, ABSENT)
        elif isinstance(value, list) and re.fullmatch(r"-?\d+", step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def deepest(value: Any, steps: tuple[str, ...]) -> tuple[Any, str]:
    """Return what the steps lead to before the first that leads nowhere, and that step."""
    for done, step in enumerate(steps):
        if value_at(value, steps[: done + 1]) is ABSENT:
            return value_at(value, steps[:done]), step
    return value, ""


def rows_at(record: Any, steps: tuple[str, ...], key: str | None = None) -> Iterator[FoundRow]:
    """Give the rows of a record."""
    if "*" in steps:
        place = steps.index("*")
        found = value_at(record, steps[:place])
        if isinstance(found, dict | list):
            pairs = found.items() if isinstance(found, dict) else enumerate(found)
            for name, value in pairs:
                yield from rows_at(value, steps[place + 1 :], str(name))
        return
    found = value_at(record, steps)
    if isinstance(found, list):
        yield from (FoundRow(value, key, index) for index, value in enumerate(found))
    elif found is not ABSENT and found is not None:
        yield FoundRow(found, key)
