"""Markdown from words of strangers: nothing in them is markup, a link or HTML."""

import re
from collections.abc import Sequence

from itembank.errors import visible

MOST_CHARACTERS = 80
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#!|~$])|([<>&:/@]|(?<=www)\.)")


def escaped(text: object, most: int = MOST_CHARACTERS) -> str:
    """Return text that Markdown shows as it is: control characters as escapes, text longer than `most` cut."""
    plain = visible(" ".join(str(text).split()))
    cut = plain if len(plain) <= most else f"{plain[: most - 1]}…"
    return _SPECIAL.sub(lambda found: f"\\{found[1]}" if found[1] else f"&#{ord(found[2])};", cut)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; its cells are escaped, numbers as they are."""
    lines = [heads, ["---"] * len(heads), *([_cell(one) for one in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escaped(value)
