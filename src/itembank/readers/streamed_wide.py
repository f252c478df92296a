"""Wide tables read a part at a time into codes: some rows, or some columns, of one file after another."""

import numpy as np
import polars as pl

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.columns import numbers
from itembank.readers.reading_specs import Format, ReadingSpec
from itembank.readers.streamed import NotPlainError, StreamedCells
from itembank.responses.opening import Table

NAMES = ("scenario", "subscenario")
"""What a table of one row an item may tell of it."""
CELLS_AT_ONCE = 1_000_000
"""Cells that are put at a time, each of which takes a hundred bytes meanwhile."""


class WideParts:
    """Puts the parts of one wide table into cells.

    Parameters
    ----------
    cells : StreamedCells
    spec : ReadingSpec
    layout : 'wide-models' or 'wide-items'

    Attributes
    ----------
    about : list of str
        Columns that hold no responses, as the file calls them: that of the ids first.
    """

    def __init__(self, cells: StreamedCells, spec: ReadingSpec, layout: Format) -> None:
        self._cells, self._spec, self._layout = cells, spec, layout
        self._seen: BoolArray = np.empty(0, dtype=bool)
        self.about = [spec.column(name) for name in (("model_id",) if layout == "wide-models" else ("item_id", *NAMES))]
        cells.files[-1].tells_of_missing = False  # an empty cell is how a wide table says so

    def add(self, table: Table, *, is_from_first_row: bool) -> None:
        """Put a part into its cells; `is_from_first_row` says whether no rows of its columns came before.

        Raises
        ------
        NotPlainError
            When the part is not plain.
        """
        cells, about = self._cells, self.about
        others = [name for name in table.frame.columns if name not in about]
        if about[0] not in table.frame.columns or not others:
            raise NotPlainError
        values, bad = numbers(table.frame[others])
        if bad:
            raise NotPlainError
        names = pl.Series(others, dtype=pl.String)
        if self._layout == "wide-models":
            rows, columns = cells.ids(table, self._spec, "model_id", cells.models), cells.items.add(names)
        else:
            rows, columns = cells.ids(table, self._spec, "item_id", cells.items), cells.models.add(names)
            self._refuse_again(rows, is_from_first_row=is_from_first_row)
            for name, column in zip(NAMES, about[1:], strict=True):
                if column in table.frame.columns:
                    cells.add_item_names(name, table.frame[column], rows)
        if np.any(columns < 0):  # a column without a name
            raise NotPlainError
        cells.files[-1].n_rows += values.size
        cells.files[-1].n_missing += int(np.count_nonzero(np.isnan(values)))
        step = max(1, CELLS_AT_ONCE // columns.size)
        for first in range(0, rows.size, step):
            self._put(rows[first : first + step], columns, values[first : first + step])

    def _put(self, rows: IntArray, columns: IntArray, values: FloatArray) -> None:
        """Put the values (n_rows, n_columns) of some rows into their cells."""
        if self._layout == "wide-models":
            model, item, response = np.repeat(rows, columns.size), np.tile(columns, rows.size), values
        else:
            model, item, response = np.repeat(columns, rows.size), np.tile(rows, columns.size), values.T
        self._cells.put(model, item, np.ascontiguousarray(response).ravel() / self._spec.max_response, None, {})

    def _refuse_again(self, rows: IntArray, *, is_from_first_row: bool) -> None:
        """Raise `NotPlainError` when an item has two rows."""
        if is_from_first_row:
            self._seen = np.empty(0, dtype=bool)
        if rows.size and rows.max() >= self._seen.size:
            more = max(int(rows.max()) + 1 - self._seen.size, self._seen.size // 2)
            self._seen = np.concatenate([self._seen, np.zeros(more, dtype=bool)])
        if self._seen[rows].any() or np.unique(rows).size < rows.size:
            raise NotPlainError
        self._seen[rows] = True
