"""Results in a console, in a notebook and as data frames."""

import html
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from itembank import page_pieces
from itembank.errors import MissingDependencyError, missing_package, visible
from itembank.tables import column_names, columns_of, has_points, table_lines

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

MOST_LINES, WIDTH = 20, 100
"""Of what a console shows of an object."""
MOST_ROWS = 100
"""Of what a notebook shows."""


class Compact:
    """A dataclass whose arrays are shown by their shape."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Say in a line what each field holds."""
        lines = [f"{one.name}: {_said(getattr(self, one.name))}" for one in fields(self) if one.repr]  # type: ignore[arg-type]
        return "\n".join(_few([type(self).__name__, *(f"  {line}" for line in lines)]))

    def _repr_html_(self) -> str:
        """Show in a notebook how the page begins, for what has one, or the same."""
        return _pieces(self) or f"<pre>{html.escape(repr(self))}</pre>"


class Tabular:
    """A result of records, which `rows` gives; consoles and notebooks show scores in points."""

    __slots__ = ()
    schema: ClassVar[str] = ""
    """Of `itembank.output_keys`, where names of columns mean something else than usual."""

    def rows(self) -> list[dict[str, Any]]:
        """One record a line of the table."""
        raise NotImplementedError

    def to_polars(self) -> "pl.DataFrame":
        """Return the records as a polars table."""
        import polars as pl  # noqa: PLC0415 (heavy)

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the records as a pandas table.

        Raises
        ------
        MissingDependencyError
            Without pandas.
        """
        try:
            import pandas as pd  # noqa: PLC0415 (optional)
        except ImportError as error:
            raise missing_package("a pandas table needs pandas", "pandas", error) from error
        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        """Show the first records as a table."""
        rows = self.rows()
        names = column_names(rows)
        title = f"{type(self).__name__} of {len(rows)} {'row' if len(rows) == 1 else 'rows'}{self._in_points(names)}"
        if not rows:
            return title
        made = columns_of(rows[: MOST_LINES - 4], names, schema=self.schema)
        lines, left_out = table_lines(made, WIDTH, [one.name for one in made[:0:-1]])
        title += f"; not shown: {', '.join(map(visible, left_out))}" if left_out else ""
        return "\n".join(_few([title, *lines]))

    def _repr_html_(self) -> str:
        """Show a result in a notebook as its page begins, or its first records as a table; everything is escaped."""
        pieces = _pieces(self)
        if pieces:
            return pieces
        rows = self.rows()
        names = column_names(rows)
        made = columns_of(rows[:MOST_ROWS], names, schema=self.schema)
        head = _html_row("th", [one.name for one in made])
        body = "".join(_html_row("td", cells) for cells in zip(*(one.cells for one in made), strict=True))
        shown = f"{min(len(rows), MOST_ROWS)} of {len(rows)} rows"
        caption = f"{type(self).__name__}: {shown}{self._in_points(names)}"
        return f"<table><caption>{html.escape(caption)}</caption>{head}{body}</table>"

    def _in_points(self, names: Sequence[str]) -> str:
        return "; scores in points" if has_points(names, self.schema) else ""


def _pieces(result: Any) -> str | None:
    """Return the beginning of a result's page, where it has one and the extra 'report' is installed."""
    try:
        return page_pieces.pieces_of(result)
    except MissingDependencyError:
        return None


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(visible(cell))}</{tag}>" for cell in cells) + "</tr>"


def _few(lines: Sequence[str]) -> list[str]:
    """Cut what is too long for a console."""
    shown = list(lines) if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "  ..."]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in shown]


def _said(value: Any) -> str:
    """Say what a value is: of arrays and tables the size, of others as much as there is room for."""
    if hasattr(value, "columns"):
        return visible(f"table of {len(value)} rows: {', '.join(map(str, value.columns))}")
    if hasattr(value, "dtype"):
        return f"array {value.shape} of {value.dtype}"
    if isinstance(value, Mapping):
        return visible(f"{{{', '.join(map(str, value))}}}")
    if isinstance(value, list | tuple) and len(value) > 3:
        return visible(f"{len(value)}: {', '.join(map(str, value[:3]))}, ...")
    if isinstance(value, Compact | Tabular):
        return type(value).__name__
    return reprlib.repr(value).replace("\n", " ")
