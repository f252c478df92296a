"""The plain part of YAML that small metadata files are written in: keys, values, lists of values, by indentation."""

from pathlib import Path
from typing import Any

from itembank.files.documents import read_document

Indented = dict[str, Any]


def read_indented(path: Path) -> Indented:
    """Read keys with values, lists of values and further keys; what is more than that is left out.

    Values are text, as they are; ``true`` stays a word. Nothing is executed, expanded or referred to.
    """
    lines = [
        (len(line) - len(line.lstrip(" ")), line.strip())
        for line in read_document(path).splitlines()
        if line.strip() and not line.lstrip().startswith(("#", "---", "%"))
    ]
    lines = [(indent, text) for indent, text in lines if indent <= 60]  # a file of metadata has fewer columns of it
    content, _ = _block(lines, 0, lines[0][0] if lines else 0)
    return content if isinstance(content, dict) else {}


def _block(lines: list[tuple[int, str]], start: int, depth: int) -> tuple[Indented | list[str], int]:
    """Read the lines of one depth from `start` on; return them, and where they end."""
    content: Indented = {}
    values: list[str] = []
    place = start
    while place < len(lines) and lines[place][0] >= depth:
        indent, text = lines[place]
        place += 1
        if indent > depth:  # continues something that was left out
            continue
        if text.startswith("- "):
            values.append(_plain(text[2:]))
            continue
        key, colon, value = text.partition(":")
        if not colon:
            continue
        if value.strip():
            content[_plain(key)] = _plain(value)
        elif place < len(lines) and (lines[place][0] > depth or lines[place][1].startswith("- ")):
            content[_plain(key)], place = _inner(lines, place, depth)
    return (content or values), place


def _inner(lines: list[tuple[int, str]], place: int, depth: int) -> tuple[Indented | list[str], int]:
    """Read what is under a key; a list may be as deep as its key."""
    if lines[place][0] > depth:
        return _block(lines, place, lines[place][0])
    end = place
    while end < len(lines) and lines[end][0] == depth and lines[end][1].startswith("- "):
        end += 1
    return [_plain(text[2:]) for _, text in lines[place:end]], end


def _plain(text: str) -> str:
    """Return a value without the quotes and blanks around it."""
    text = text.strip()
    is_quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text
