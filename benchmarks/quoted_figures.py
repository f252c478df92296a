"""Compare figures that prose quotes with the tables they come from, as ``benchmarks/tables/quoted.toml`` lists them."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.result_manifests import DOCUMENT, ROOT, tables_of

LIST = ROOT / "benchmarks" / "tables" / "quoted.toml"
NUMBER = r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
FIGURE = rf"({NUMBER}(?: ± {NUMBER})?)"
"""A figure, with its standard error where one is given."""
PLACE = re.compile(r"\{(%?)\}")
SLACK = 1e-9
"""Of a comparison with half a unit of the last digit printed, in binary fractions."""


def wrong_figures(quoted: Path = LIST, root: Path = ROOT) -> list[str]:
    """Return a line for every figure that is not its table's at the precision printed, or cannot be compared."""
    found = []
    for page, phrases in tomllib.loads(quoted.read_text(encoding="utf-8")).items():
        text = _plain((root / page).read_text(encoding="utf-8"))
        for phrase, sources in phrases.items():
            try:
                found += [f"{page}: {line}" for line in _compared(text, phrase, sources, root)]
            except LookupError as error:
                found.append(f"{page}: {phrase!r}: {error.args[0]}")
    return found


def _compared(text: str, phrase: str, sources: str | list[str], root: Path) -> Iterator[str]:
    """Compare the figures of one phrase with their cells, in order."""
    words = PLACE.split(_plain(phrase))  # text, kind, text, kind, ..., text
    pattern = "".join(re.escape(word) if number % 2 == 0 else FIGURE for number, word in enumerate(words))
    matches = re.findall(rf"(?<![\w.]){pattern}", text) if words[0] == "" else re.findall(pattern, text)
    if len(matches) != 1:
        raise LookupError(f"stands {len(matches)} times on the page, and must stand there once")
    printed = [matches[0]] if isinstance(matches[0], str) else list(matches[0])
    cells = [cell for source in ([sources] if isinstance(sources, str) else sources) for cell in _cells(source, root)]
    if len(cells) != len(printed):
        raise LookupError(f"has {len(printed)} figures and {len(cells)} cells")
    for figure, kind, (where, cell) in zip(printed, words[1::2], cells, strict=True):
        known = re.findall(NUMBER, cell)
        parts = re.findall(NUMBER, figure)
        if len(known) < len(parts) or not all(_agree(*pair, 0.01 if kind else 1.0) for pair in zip(parts, known)):  # noqa: B905
            yield f"{phrase!r} says {figure}; {where} has {cell}"


def _agree(printed: str, cell: str, unit: float) -> bool:
    """Whether a figure is a cell's number, rounded to as many digits; a difference may be told without its sign."""
    digits = len(printed.partition(".")[2])
    wanted = float(cell.replace(",", ""))
    value = float(printed.replace(",", "")) * unit
    if printed[0] not in "+-":
        wanted = abs(wanted)
    return abs(value - wanted) <= (0.5 * 10.0**-digits) * unit + SLACK


def _cells(source: str, root: Path) -> Iterator[tuple[str, str]]:
    """Give the cells that a source names, with their names; `benchmarks/tables/quoted.toml` says how it is written."""
    name, *begin, columns = (part.strip() for part in source.split(" | "))
    text = _section(name, root)
    if not begin:
        _, *after = _plain(text).split(f"{columns} ")
        yield source, _only(after, f"places {columns!r} in {name}")
        return
    for place in columns.split("; "):
        name_of_column, _, number = place.partition(" #")
        column, _, nth = name_of_column.partition(" @")
        found = [(row, [k for k, one in enumerate(head) if one == column]) for head, row in _rows(text)]
        rows = [
            row[at[int(nth or 1) - 1]] for row, at in found if len(at) >= int(nth or 1) and row[: len(begin)] == begin
        ]
        where = " | ".join((name, *begin, place))
        cell = _only(rows, f"cells {where}")
        yield where, " ".join(re.findall(NUMBER, cell)[int(number) - 1 :]) if number else cell


def _only(found: list[str], what: str) -> str:
    """Return the one that is found, or the same in several tables."""
    if len(set(found)) != 1:
        raise LookupError(f"there must be one of the {what}, and there are {len(found)}")
    return found[0]


def _section(name: str, root: Path) -> str:
    """Return the text of a named table, of a page, or of the part of a page below a heading."""
    page, _, anchor = name.partition("#")
    if not page.endswith(".md"):
        tables = tables_of((root / DOCUMENT.relative_to(ROOT)).read_text(encoding="utf-8"))
        if name not in tables:
            raise LookupError(f"there is no table {name}")
        return tables[name][0]
    beside = root / DOCUMENT.relative_to(ROOT).with_name(page)
    text = (beside if beside.exists() else root / "docs" / page).read_text(encoding="utf-8")
    parts = re.split(r"^#+ +(.*)$", text, flags=re.MULTILINE)
    if not anchor:
        return text
    slugs = [re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in parts[1::2]]
    return _only([part for slug, part in zip(slugs, parts[2::2], strict=True) if slug == anchor], f"sections {name}")


def _rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Give every row of every Markdown table with its table's head; an empty first cell is that of the row above."""
    head: list[str] = []
    first = ""
    for line in text.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        row = [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
        if not head:
            head = row
        elif set(line) > set("|-") or any(character.isalnum() for character in line):
            first = row[0] or first
            yield head, [first, *row[1:]]


def _plain(text: str) -> str:
    """Put text on one line: where lines break says nothing."""
    return " ".join(text.split())
