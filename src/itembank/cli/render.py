"""Printing results on standard output, and progress and notes on standard error."""

import csv
import io
import json
import math
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from itembank.errors import DataError, ItembankWarning, shown, visible
from itembank.output_keys import output_of
from itembank.progress import ProgressCallback, silent
from itembank.spreadsheets import guarded
from itembank.tables import column_names, columns_of, has_points, plain, table_lines, title_lines, upright_lines

if TYPE_CHECKING:
    from rich.progress import Progress

Row = Mapping[str, Any]


class Printer:
    """Prints results on standard output: as a table, as JSON or as CSV."""

    def __init__(self, form: str) -> None:
        self.is_table, self.is_json, self.is_csv = (form == one for one in ("table", "json", "csv"))

    def rows(
        self,
        rows: Sequence[Row],
        schema: str,
        *,
        title: str = "",
        columns: Sequence[str] = (),
        least: Sequence[str] = (),
        is_read_back: bool = False,
    ) -> None:
        """Print rows as JSON or CSV with every column, or as a table of `columns` (all when empty).

        The schema (`itembank.output_keys`) knows which columns a table shows in points. Where a terminal is too narrow
        for a table, the columns in `least` are left out, the least needed first. In CSV, texts that a spreadsheet would
        take for formulas have an apostrophe before them, unless programs read the rows back.
        """
        if self.is_json:
            print_object({"rows": list(rows)}, schema)
        elif self.is_table:
            _print_table(rows, title, list(columns) or column_names(rows), schema, least=least)
        else:
            print_exactly(_as_csv(rows, (lambda value: value) if is_read_back else guarded))

    def record(
        self,
        record: Row,
        name: str,
        rows: Sequence[Row],
        schema: str,
        *,
        title: str = "",
        facts: Sequence[str] = (),
        heading: str = "",
        columns: Sequence[str] = (),
        least: Sequence[str] = (),
    ) -> None:
        """Print facts and the rows that belong to them: one JSON object, two tables, or the rows alone as CSV.

        The first table has the `facts` that are known (all when empty, and with --verbose). That of rows has a
        `heading` (`name` when empty) and is laid out as `rows` does.
        """
        if self.is_json:
            print_object({**record, name: list(rows)}, schema)
        elif self.is_table:
            shown = (
                list(record) if is_verbose() else [one for one in facts if record.get(one) not in (None, "", [], {})]
            )
            _print_table([record], title, shown if facts else list(record), schema, are_facts=True)
            if rows or columns:
                _print_table(rows, heading or name, list(columns) or column_names(rows), schema, least=least)
        else:
            self.rows(rows, schema)


TABLE = Printer("table")


def refuse_empty(rows: Sequence[Row], column: str, owners: Sequence[str], other: str = "") -> None:
    """Raise `DataError` when a number is missing from rows that have been printed: nobody must take that for success.

    The message names a row by its columns `owners`, and `other` ways to a number.
    """
    empty = [" on ".join(str(row[name]) for name in owners) for row in rows if not math.isfinite(row[column])]
    if empty:
        raise DataError(
            f"every {column} must be known, got {len(empty)} of {len(rows)} that are not: {shown(empty)}. Too few "
            f"items were answered for them: run more of these scenarios, or leave these models out{other}."
        )


def print_object(content: Row, schema: str) -> None:
    """Print one JSON object, which begins with its schema's version."""
    click.echo(json.dumps(versioned(content, schema), ensure_ascii=False, indent=1))


def versioned(content: Row, schema: str) -> dict[str, Any]:
    """Return what is printed as one JSON object of a schema."""
    found: dict[str, Any] = plain({"schema_version": output_of(schema).version, **content})
    return found


def print_exactly(text: str) -> None:
    """Print text that programs read, byte for byte: `click.echo` takes escape sequences out, which changes ids.

    A terminal is shown escapes in place of control characters, so that no id can drive it.
    """
    if sys.stdout.isatty():
        click.echo("\n".join(visible(line) for line in text.split("\n")), nl=False)
    else:
        click.echo(text.encode("utf-8"), nl=False)


def print_ids(ids: Sequence[str]) -> None:
    """Print item ids one a line.

    Raises `DataError` when an id has a line break.
    """
    broken = [one for one in ids if "\n" in one or "\r" in one]
    if broken:
        raise DataError(
            f"an item's id must have no line break to be printed on a line of its own, got {shown(broken)}. Take "
            "--format json."
        )
    if ids:
        print_exactly("\n".join(ids) + "\n")


def note(message: str) -> None:
    """Print a note on standard error, unless the user asked for quiet."""
    if not is_quiet():
        click.echo(wrapped(message), err=True)


def _no_command(line: str) -> str:
    """Put a backslash before what GitHub would take for a command: the name of a stranger that begins a line.

    It stands where a blank was, if any, so that columns stay below each other.
    """
    return re.sub(r"^(\s*?)\s?(?=::|##\[)", r"\1\\", line)


def wrapped(message: str, *, indent: int = 0) -> str:
    """Break a note between words where the width of the terminal is known.

    A command that a line ends with stays whole, in a line of its own; one that a sentence goes on after does not. The
    first characters of a line, as many as `indent`, stay as they are, and what comes below them is indented.
    Control characters, which paths may have, are shown as escapes.
    """
    width, lines = shutil.get_terminal_size((0, 0)).columns, []
    for line in map(_no_command, map(visible, message.split("\n"))):
        if not width or len(line) <= width or line.startswith(" "):
            lines.append(line)
            continue
        words, begun, command = (line, "", "") if line.endswith((".", ")")) else line.partition(" itembank ")
        first, *rest = title_lines(words[indent:], width - indent)
        lines += [f"{words[:indent]}{first}", *(f"{'':{indent}}{one}" for one in rest)]
        lines += [f"  itembank {command}"] * bool(begun)
    return "\n".join(lines)


def detail(message: str) -> None:
    """Print a note that only those want who asked for everything (`--verbose`)."""
    if is_verbose():
        note(message)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print the package's warnings as one line on standard error instead of with a source line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ItembankWarning)
        try:
            yield
        finally:  # they may explain the error that ends the work
            for warning in caught:
                click.echo(wrapped(f"Warning: {visible(str(warning.message))}"), err=True)


@contextmanager
def progress(label: str) -> Iterator[ProgressCallback]:
    """Show a progress bar on standard error; plain lines when it is not a terminal, nothing when quiet."""
    if is_quiet():
        yield silent
        return
    if not sys.stderr.isatty():
        yield _PlainProgress(label)
        return
    bar = _Bar(label)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def working(label: str) -> Iterator[ProgressCallback]:
    """Show how far work is, and say afterwards what the package warned of."""
    with warnings_as_notes(), progress(label) as report:
        yield report


class _Bar:
    """A progress bar, which appears when work first tells how far it is: most commands have nothing to tell."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: Progress | None = None

    def __call__(self, message: str, share: float) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            text = TextColumn("{task.description}", markup=False)
            columns = (text, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(self._label, total=1.0)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=share, description=f"{self._label}: {visible(message)}")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


class _PlainProgress:
    """One line of text for every new piece of work, and for every quarter of the whole; none says the same twice."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._said: tuple[str, int] = ("", -1)
        self._last = ""

    def __call__(self, message: str, share: float) -> None:
        """Print a line when another piece begins (numbers and brackets are its parts) or another quarter is done."""
        piece = re.sub(r"\(.*\)|\d", "", message)
        if (piece, int(4 * share)) != self._said:
            self._said = (piece, int(4 * share))
            if message != self._last:
                click.echo(f"{self._label}: {visible(message)}", err=True)
            self._last = message


def is_quiet() -> bool:
    """Whether the user asked for no progress and no notes."""
    return _is_on("quiet")


def is_verbose() -> bool:
    """Whether the user asked for all facts and notes."""
    return _is_on("verbose")


def _is_on(flag: str) -> bool:
    context = click.get_current_context(silent=True)
    return bool(context is not None and context.find_root().obj and context.find_root().obj.get(flag))


def _as_csv(rows: Sequence[Row], written: Callable[[Any], Any]) -> str:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writerow({name: written(name) for name in rows[0]})
        writer.writerows(
            {
                name: written(json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value)
                for name, value in plain(row).items()
            }
            for row in rows
        )
    return text.getvalue()


def _print_table(
    rows: Sequence[Row],
    title: str,
    columns: Sequence[str],
    schema: str,
    *,
    least: Sequence[str] = (),
    are_facts: bool = False,
) -> None:
    """Print a table that fits the terminal; where columns had to give way, say which.

    Where the title does not say that scores are in points, each of a single record says so itself, or the title is made
    to.
    """
    width = max(shutil.get_terminal_size((160, 24)).columns, 40)  # 160 in a pipe or a file
    unsaid = has_points(columns, schema) and "points" not in title
    if unsaid and len(rows) > 1:
        title = f"{title}; scores in points" if title else "Scores in points"
    for line in title_lines(visible(title), width):
        click.secho(line, bold=True)
    made = columns_of(rows, columns, schema=schema, word=" points" if unsaid and len(rows) == 1 else "")
    if not made:
        return
    lines, left_out = (upright_lines(made, width), []) if are_facts else table_lines(made, width, least)
    click.echo("\n".join([*map(_no_command, lines), ""]))
    if left_out:
        note(f"No room for {', '.join(left_out)}: widen the terminal, or take --format csv.")
