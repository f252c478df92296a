"""Item parameters that others fitted: tables, R's mirt, and layouts of other packages, told by content.

Whatever their names, they become ours: ``logit = loadings . theta + intercept``, so that ``a (theta - b)`` has the
intercept ``-a b``.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from itembank.errors import DataError, ParameterError, shown
from itembank.irt.parameters import ItemParameters
from itembank.methods import entry_points_of
from itembank.numerics.arrays import FloatArray
from itembank.readers.columns import numbers
from itembank.readers.matrix import known_table
from itembank.readers.read import to_polars
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.table import with_usual_names
from itembank.readers.table_files import probable_header, read_table_file
from itembank.responses.opening import Table, file_kind

LAMBDA = "gp_irt_lambda"
"""Column: gp-IRT's lambda of the item's scenario where all items to run are answered, as it was published."""
NAMES = {
    "difficulty": ("difficulty", "b", "diff"),
    "discrimination": ("discrimination", "a", "disc", "slope"),
    "intercept": ("intercept", "d"),
    "lower": ("lower", "lower_asymptote", "c", "g", "guessing", "guess"),
    "upper": ("upper", "upper_asymptote", "u", "feasibility"),
}
"""What tables call each parameter; d beside a difficulty is the upper asymptote of a, b, c and d."""
LOADING = re.compile(r"(?:loading_|a)([1-9][0-9]?)", re.IGNORECASE)
ACCEPTED = (
    "Columns of a table of items that are right or wrong may be: difficulty (b) and discrimination (a, 1 where there "
    "is none); or loading_1, loading_2, ... and intercept (a1, a2, ... and d of R's mirt); and lower (c, g, guessing) "
    "and upper (u) asymptotes"
)
ROW_NAMES = ("", "Unnamed: 0", "rownames")
"""What a column of row names is called that R or pandas wrote."""


class KnownItems(NamedTuple):
    """Items with parameters that others fitted."""

    items: pl.DataFrame  # Without the columns that held the parameters
    parameters: ItemParameters  # In the order of the items


def read_known_parameters(given: Any, benchmark: str = "") -> KnownItems:
    """Read items with their parameters from a table in memory, or from a file of any layout that is known here.

    Given is a table (CSV, Parquet, JSON Lines) whose columns have usual names (`NAMES`), with ids in `item_id` or in a
    column of row names; or a file that an entry point of `itembank.parameters` reads, a function of a path and the name
    of a benchmark that returns `KnownItems`, a table, or None. Of several benchmarks `benchmark` is the one to take.

    Raises `DataError` when the layout is not known, or parameters are no numbers or impossible; `ParameterError` when a
    file holds several benchmarks and none of this name, or only one and a name is given.
    """
    if not isinstance(given, str | Path):
        return _of_table(Table("the table of items", to_polars(given)), benchmark)
    path = Path(given)
    for layout in entry_points_of("itembank.parameters").values():
        found = layout.load()(path, benchmark)
        if found is not None:
            return found if isinstance(found, KnownItems) else _of_table(found, benchmark)
    ids = _id_column(probable_header(path)) if file_kind(path) == "csv" else "item_id"
    return _of_table(read_table_file(path, text=(ids, "scenario", "subscenario"), infer=True), benchmark)


def _id_column(columns: Sequence[str]) -> str:
    name = with_usual_names(columns, ReadingSpec()).column("item_id")
    return next((one for one in (name, *ROW_NAMES) if one in columns), name)


def _of_table(table: Table, benchmark: str) -> KnownItems:
    """Make sense of the columns of a table."""
    if benchmark:
        raise ParameterError(f"{table.source} holds one benchmark, got the name {benchmark!r} of one. Leave it out.")
    frame = table.frame.rename({_id_column(table.frame.columns): "item_id"}, strict=False)
    items, _ = known_table(Table(table.source, frame, table.is_typed, table.found), "item_id")
    if not items.height:
        raise DataError(f"{table.source}: the table of items must have at least one row, got none.")
    columns = _parameter_columns(table.source, items.columns)
    values = {role: _finite(table.source, items, name) for role, name in columns.items()}
    lower, upper = values.pop("lower", np.zeros(items.height)), values.pop("upper", np.ones(items.height))
    wrong = items["item_id"].filter(pl.Series(~((lower >= 0.0) & (lower < upper) & (upper <= 1.0)))).to_list()
    if wrong:
        raise DataError(f"{table.source}: asymptotes must keep 0 <= lower < upper <= 1, and do not for {shown(wrong)}.")
    if "difficulty" in values:
        slope = values.get("discrimination", np.ones(items.height))
        loadings, intercept = slope[:, None], np.negative(slope) * values["difficulty"]
    else:
        intercept = values.pop("intercept")
        loadings = np.column_stack([*values.values()])
    return KnownItems(items.drop(columns.values()), ItemParameters.create(loadings, intercept, lower, upper))


def _parameter_columns(source: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each parameter that a table has; loadings by their numbers, in order."""
    by_name = {name.lower(): name for name in columns}
    # of several names of one role the first counts
    found = {role: by_name[one] for role, names in NAMES.items() for one in reversed(names) if one in by_name}
    asymptotes = {role: found[role] for role in ("lower", "upper") if role in found}
    loadings = {int(match[1]): name for name in columns if (match := LOADING.fullmatch(name))}
    is_ours = "intercept" in found and bool(loadings)  # a difficulty beside them says the same again
    if not loadings and "discrimination" in found:
        loadings = {1: found["discrimination"]}
    is_numbered = sorted(loadings) == [*range(1, len(loadings) + 1)]
    if "difficulty" in found and not is_ours and is_numbered and len(loadings) <= 1:
        slope = {"discrimination": loadings[1]} if loadings else {}
        upper = {"upper": by_name["d"]} if "d" in by_name else {}
        return {"difficulty": found["difficulty"]} | slope | upper | asymptotes
    if not loadings or not is_numbered or "intercept" not in found:
        raise DataError(f"{source}: item parameters must be named, got the columns {shown(columns, 12)}. {ACCEPTED}.")
    return {str(k): loadings[k] for k in sorted(loadings)} | {"intercept": found["intercept"]} | asymptotes


def _finite(source: str, items: pl.DataFrame, name: str) -> FloatArray:
    """Return a column as finite numbers, (n_items,)."""
    found = numbers(items.select(name))[0].ravel()
    wrong = items.filter(~np.isfinite(found))
    if wrong.height:
        ids = shown(wrong["item_id"].to_list())
        raise DataError(f"{source}: {name} must be a finite number for every item, and is not for {ids}.")
    return found
