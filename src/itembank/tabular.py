"""Results in a console, in a notebook and as data frames."""

import html
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from itembank import page_pieces
from itembank.errors import MissingDependencyError, missing_package, visible
from itembank.tables import cell_text, column_names, columns_of, table_lines

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
    """A result of records, which `rows` gives."""

    __slots__ = ()

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
        title = f"{type(self).__name__} of {len(rows)} {'row' if len(rows) == 1 else 'rows'}"
        if not rows:
            return title
        lines, left_out = table_lines(columns_of(rows[: MOST_LINES - 4], names), WIDTH, names[:0:-1])
        title += f"; not shown: {', '.join(map(visible, left_out))}" if left_out else ""
        return "\n".join(_few([title, *lines]))

    def _repr_html_(self) -> str:
        """Show a result in a notebook as its page begins, or its first records as a table; everything is escaped."""
        pieces = _pieces(self)
        if pieces:
            return pieces
        rows = self.rows()
        names = column_names(rows)
        head = _html_row("th", names)
        body = "".join(_html_row("td", [cell_text(row.get(name)) for name in names]) for row in rows[:MOST_ROWS])
        caption = f"{type(self).__name__}: {min(len(rows), MOST_ROWS)} of {len(rows)} rows"
        return f"<table><caption>{html.escape(caption)}</caption>{head}{body}</table>"


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
