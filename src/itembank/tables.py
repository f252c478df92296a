"""Tables that fit a line: no number is ever wrapped or cut, whatever the width.

What gives way, in this order: the width of headings (they wrap) and of long words (they lose their middle), then the
columns that a table calls least needed, then the table itself, whose records are then upright, one value a line.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from itembank.errors import visible
from itembank.output_keys import POINTS, SHARE, unit_of

MARGIN = 2
GAP = 3
ROOMY, NARROW = 24, 12
"""Characters that a long word keeps as long as columns can give way, and when none can any more."""

_NUMBER = re.compile(r"[<>=~±(\[+-]*\d[\d.,:/]*(?:e[+-]?\d+)?[)\],;%x]*")
_UNITS = {"%", "x"}
_BETWEEN = {"-", "to", "±", *_UNITS}
"""Words that belong to the numbers beside them: '0.71 to 0.83', '10 x'."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    cells: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether cells are at the right, as single numbers do."""
        return all(is_numeric(cell) and _UNITS.issuperset(cell.split()[1:]) for cell in self.cells)


def columns_of(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, schema: str = "", word: str = ""
) -> list[Column]:
    """Make columns of records, as people read them.

    Scores are in points, each with a `word` behind it. Both ends of an interval, and a number of items and that of all
    items, are in one column each.
    """
    ends = {name: partner for name in names if (partner := _partner(name)) in names}
    columns = []
    for name in names:
        if name in ends.values() or (name == "level" and "low" in ends):
            continue
        values = [[plain(row.get(one)) for row in rows] for one in (name, *([ends[name]] if name in ends else []))]
        texts = _texts(values, unit_of(name, schema), word)
        if len(texts) == 1:
            columns.append(Column(visible(name), texts[0]))
        elif name == "n_items":
            columns.append(Column("items", tuple(map("/".join, zip(*texts, strict=True)))))
        else:
            is_known = [None not in pair for pair in zip(*values, strict=True)]
            cells = [
                f"{low.removesuffix(word)} to {high}" if known else "-"
                for known, low, high in zip(is_known, *texts, strict=True)
            ]
            columns.append(Column(_interval(name, rows), tuple(cells)))
    return columns


def has_points(names: Sequence[str], schema: str) -> bool:
    """Whether any of these columns is in points."""
    return any(unit_of(name, schema) in POINTS for name in names)


def _partner(name: str) -> str:
    """Name of what is written behind a value in the same column; empty for none."""
    if name == "n_items":
        return "n_total"
    return "high" if name == "low" else f"{name.removesuffix('lower')}upper" if name.endswith("lower") else ""


def _interval(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    level = rows[0].get("level") if rows else None
    if level is not None:
        return f"{100 * level:g} % interval"
    return visible(f"{name.removesuffix('lower').removesuffix('low')}interval")


def _texts(values: Sequence[Sequence[Any]], unit: str, word: str) -> list[tuple[str, ...]]:
    """Cells of columns of one unit.

    Points and percent have one decimal, or two where all are below one and not all are zero; percent that are whole in
    all rows have none.
    """
    if unit not in POINTS and unit != SHARE:
        return [tuple(map(cell_text, column)) for column in values]
    numbers = [abs(one) for column in values for one in column if _is_number(one)]
    decimals = decimals_of(numbers)
    if unit == SHARE:
        word, decimals = " %", decimals * any(abs(100.0 * one - round(100.0 * one)) > 1e-9 for one in numbers)
    form = f"{POINTS.get(unit, 'z')}.{decimals}f"
    return [
        tuple(f"{100.0 * one:{form}}{word}" if _is_number(one) else cell_text(one) for one in column)
        for column in values
    ]


def decimals_of(numbers: Sequence[float]) -> int:
    """Return how many decimals of a point numbers from 0 to 1 have in one cell, or in a sentence beside the table."""
    return 2 if 5e-5 <= max(map(abs, numbers), default=0.0) < 0.01 else 1


def points_of(number: float) -> str:
    """Write a number from 0 to 1 in points for a sentence, as a cell of a table has it: '7.6', '0.45'."""
    return f"{100.0 * number:z.{decimals_of([number])}f}"


def detectable(difference: float) -> float | str:
    """Return the smallest difference that shows; 'none' where none between scores from 0 to 1 does."""
    return "none" if difference >= 1.0 else difference


ALONE = {"are": "is", "do": "does", "have": "has", "were": "was"}


def plural(number: int, noun: str, verb: str = "") -> str:
    """Write a number with its noun and verb: '1 item', '14,042 items', '1 row has', '3 rows have'."""
    if number == 1:
        return f"1 {noun}" + (f" {ALONE.get(verb, f'{verb}s')}" if verb else "")
    return f"{number:,} {noun}s" + (f" {verb}" if verb else "")


def all_of(number: int, noun: str, verb: str = "") -> str:
    """Write that all are meant: 'all 400 items', or of one 'the only item'."""
    words = plural(number, noun, verb)
    return f"the only {words.removeprefix('1 ')}" if number == 1 else f"all {words}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def column_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """All columns that any record has, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def plain(value: Any) -> Any:
    """Turn arrays, tables, numpy numbers and NaN into what JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "to_dicts"):
        value = value.to_dicts()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell_text(value: Any) -> str:
    """Text of a value in a table; control characters, which could drive a terminal, as escapes."""
    value = plain(value)
    if value is None or value in ([], ""):
        return "-"
    if isinstance(value, list):
        return ", ".join(map(cell_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{visible(name)} {cell_text(item)}" for name, item in value.items())
    return _decimal(value) if isinstance(value, float) else visible(str(value))


def amount(value: float) -> str:
    """Write an amount of a cost."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


def _decimal(value: float) -> str:
    """Write a number with four decimals; costs and FLOP may be far larger or smaller, which zeros would fill."""
    size = abs(value)
    if 0.0 < size < 1e-3:
        return f"{value:.3g}"
    if size < 1000.0:
        return f"{value:.4f}"
    return f"{value:.1f}" if size < 1e9 else f"{value:.4g}"


def table_lines(columns: Sequence[Column], width: int, least: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Lay out a table in so many characters.

    A number that is longer than the width goes beyond it. `least` names columns that may be left out, the least
    needed first, and before them those of them that are alike in all rows; those that were come beside the lines.
    """
    if len(columns[0].cells) == 1:
        return upright_lines(columns, width), []
    n_values = {column.name: len(set(column.cells)) for column in columns}
    stated = sorted((name for name in least if name in n_values), key=lambda name: n_values[name] > 1)
    shown = list(columns)
    for n_left_out in range(len(stated) + 1):
        shown = [column for column in columns if column.name not in stated[:n_left_out]]
        widths = _widths(shown, width, ROOMY)
        if widths is not None:
            return _lines(shown, widths), stated[:n_left_out]
    widths = _widths(shown, width, NARROW)
    return (upright_lines(columns, width), []) if widths is None else (_lines(shown, widths), stated)


def fits(columns: Sequence[Column], width: int) -> bool:
    """Say whether a table of all these columns has room in so many characters."""
    return _widths(columns, width, ROOMY) is not None


def upright_lines(columns: Sequence[Column], width: int) -> list[str]:
    """Lay out records one below the other, a line for each value."""
    names = max(cell_len(column.name) for column in columns)
    room = max(width - MARGIN - names - GAP, NARROW)
    lines: list[str] = []
    for k in range(len(columns[0].cells)):
        lines += [""] if k else []
        for column in columns:
            cell = column.cells[k]
            first, *rest = wrapped(cell, max(room, least_width(cell, NARROW)))
            lines.append(_joined([column.name, first], [names, 0], [False, False]))
            lines += [" " * (MARGIN + names + GAP) + line for line in rest]
    return lines


def title_lines(title: str, width: int) -> list[str]:
    """Break a title between words."""
    return _filled(title.split(), width, " ") if title else []


def is_numeric(text: str) -> bool:
    """Say whether a text is one number, or numbers that belong together: '12/317', '0.71 to 0.83', '2.6e-06'."""
    return ", " not in text and all(word in _BETWEEN or _NUMBER.fullmatch(word) for word in text.split())


def least_width(text: str, room: int) -> int:
    """Characters that a text needs in a line of its own: its numbers whole, of other long words as many as `room`."""
    if is_numeric(text):
        return cell_len(text)
    return max(cell_len(word) if is_numeric(word) else min(cell_len(word), room) for word in text.split())


def wrapped(text: str, width: int) -> list[str]:
    """Break a text between words; a word that is longer than a line loses its middle."""
    return _filled([_cut(word, width) for word in text.split()] if cell_len(text) > width else [text], width, " ")


def _wrapped_apart(cells: Sequence[str], width: int) -> list[list[str]]:
    """Break the texts of a column; words that lost their middle are whole where two texts would else look the same."""
    found = [wrapped(cell, width) for cell in cells]
    looks: dict[tuple[str, ...], set[str]] = {}
    for cell, lines in zip(cells, found, strict=True):
        looks.setdefault(tuple(lines), set()).add(cell)
    return [
        lines
        if len(looks[tuple(lines)]) == 1
        else _filled([piece for word in cell.split() for piece in _broken(word, width)], width, " ")
        for cell, lines in zip(cells, found, strict=True)
    ]


def _broken(word: str, width: int) -> list[str]:
    """Break a word that is too long anywhere."""
    pieces = [""]
    for letter in word:
        if cell_len(pieces[-1] + letter) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def cell_len(text: str) -> int:
    """Places that a text takes in a line: letters of East Asia and pictures two, marks on letters none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def _cut(word: str, width: int) -> str:
    """Cut the middle out of a word that is too long; both ends stay."""
    if cell_len(word) <= width:
        return word
    n_last = (width - 1) // 2
    head, tail = word, word
    while cell_len(head) > width - 1 - n_last:
        head = head[:-1]
    while cell_len(tail) > n_last:
        tail = tail[1:]
    return f"{head}…{tail}"


def _filled(pieces: Sequence[str], width: int, between: str) -> list[str]:
    """Put as many pieces in each line as there is room for."""
    lines = [pieces[0]] if pieces else [""]
    for piece in pieces[1:]:
        longer = f"{lines[-1]}{between}{piece}"
        if cell_len(longer.rstrip()) <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return [line.rstrip() for line in lines]


def _pieces(name: str) -> list[str]:
    """Parts of a heading between which it may be broken: after spaces and underscores."""
    return re.findall(r"[^ _]*[ _]?", name)[:-1] or [""]


def _widths(columns: Sequence[Column], width: int, room: int) -> list[int] | None:
    """Share out a line among columns; None when there is not room for all of them."""
    heading = [max(cell_len(piece.rstrip()) for piece in _pieces(column.name)) for column in columns]
    least = [
        max(head, *(least_width(cell, room) for cell in column.cells))
        for head, column in zip(heading, columns, strict=True)
    ]
    spare = width - MARGIN - 1 - GAP * (len(columns) - 1) - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    # Cells before headings: an id that is whole is worth more than a heading in one line.
    spare = _widened(widths, [max(map(cell_len, column.cells)) for column in columns], spare)
    for j, column in enumerate(columns):
        missing = cell_len(column.name) - widths[j]
        if 0 < missing <= spare:
            widths[j] += missing
            spare -= missing
    return widths


def _widened(widths: list[int], wanted: Sequence[int], spare: int) -> int:
    """Widen columns in turn, a character each, to what they want; return what is left."""
    while spare and (narrow := [j for j, most in enumerate(wanted) if widths[j] < most]):
        for j in narrow[:spare]:
            widths[j] += 1
        spare -= min(spare, len(narrow))
    return spare


def _lines(columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    """Headings, a rule, and the rows."""
    right = [column.is_right for column in columns]
    heads = [_filled(_pieces(column.name), width, "") for column, width in zip(columns, widths, strict=True)]
    tallest = max(map(len, heads))
    rule = " " + "─" * (sum(widths) + GAP * (len(widths) - 1) + MARGIN)
    lines = [*_block([[""] * (tallest - len(head)) + head for head in heads], widths, right), rule]
    wrapped_cells = (_wrapped_apart(column.cells, width) for column, width in zip(columns, widths, strict=True))
    for cells in zip(*wrapped_cells, strict=True):
        lines += _block(cells, widths, right)
    return lines


def _block(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """Lines of one row, whose cells may have several."""
    return [
        _joined([cell[k] if k < len(cell) else "" for cell in cells], widths, right)
        for k in range(max(map(len, cells)))
    ]


def _joined(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    return " " * MARGIN + (" " * GAP).join(map(_placed, texts, widths, right)).rstrip()


def _placed(text: str, width: int, at_right: bool) -> str:
    spaces = " " * (width - cell_len(text))
    return spaces + text if at_right else text + spaces
