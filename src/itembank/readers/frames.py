"""`responses_from_frame`: tables that are in memory already, of whatever library."""

from pathlib import Path
from typing import Any

import polars as pl

from itembank.errors import DataError, ParameterError, missing_package
from itembank.files.memory import allowing
from itembank.readers.known import check_kinds, known_table, read_known
from itembank.readers.matrix import to_matrix
from itembank.readers.reading_specs import LONG_COLUMNS, ReadingSpec
from itembank.readers.rows import rename_model
from itembank.readers.table import rows_of_table
from itembank.responses.labels import Labels
from itembank.responses.opening import Table
from itembank.responses.responses import ResponseMatrix

NAME = "the table"


def responses_from_frame(
    table: Any, *, models: Any = None, items: Any = None, spec: ReadingSpec | None = None
) -> ResponseMatrix:
    """Make a response matrix of a table in memory, long or wide.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or anything that speaks the Arrow interface
        Long (`model_id`, `item_id`, `response`, ...), or wide. A named pandas index is a column like any other.
    models, items : tables or paths, or None
        What else is known of each model (`model_id`) and item (`item_id`).
    spec : ReadingSpec, or None
        `format` may be 'auto', 'long', 'wide-models' or 'wide-items'.

    Raises
    ------
    DataError
        With every problem of the table.
    MissingDependencyError
        When polars needs pyarrow to read the table.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"model_id": ["a", "a"], "item_id": ["x", "y"], "response": [1, 0]})
    >>> responses_from_frame(table).responses
    array([[1., 0.]])
    """
    spec = spec or ReadingSpec()
    if spec.format not in {"auto", "long", "wide-models", "wide-items"}:
        raise ParameterError(
            f"format of a table in memory must be auto, long, wide-models or wide-items: {spec.format!r}."
        )
    frame = to_polars(table)
    if frame.height == 0:
        raise DataError(f"{NAME} is empty: it has no rows.")
    rows = rows_of_table(Table(NAME, frame), spec)
    if spec.model_id is not None:
        rows = rename_model(rows, spec.model_id)
    known = {
        key: known_things(given, key) for key, given in (("model_id", models), ("item_id", items)) if given is not None
    }
    for key, labels in (("model_id", rows.models), ("item_id", rows.items)):
        if key in known:
            check_kinds(key, labels, known[key][1], NAME)
    frames = {key: frame for key, (frame, _) in known.items()}
    with allowing(spec.max_memory):
        return to_matrix(rows, spec, models=frames.get("model_id"), items=frames.get("item_id"))


def to_polars(table: Any) -> pl.DataFrame:
    """Turn a table of another library into a polars one; that library is never imported here."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    library = type(table).__module__.partition(".")[0]
    try:
        if library == "pandas":
            return pl.DataFrame(pl.from_pandas(_with_named_index(table)))
        if hasattr(table, "__arrow_c_stream__"):
            return pl.DataFrame(table)
    except ImportError as error:
        raise missing_package(f"to be read a {library} table needs pyarrow", "pyarrow", error) from error
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{NAME} cannot be read, a column probably holds values of several types (numbers and text): {error}"
        ) from error
    raise ParameterError(f"table must be a pandas, polars or pyarrow table, got {type(table).__name__}.")


def _with_named_index(table: Any) -> Any:
    """Make columns of a pandas index whose names are ours."""
    names = [name for name in table.index.names if name is not None]
    return table.reset_index() if any(name in LONG_COLUMNS for name in names) else table


def known_things(given: Any, key: str) -> tuple[pl.DataFrame, Labels]:
    """Return a table of models (key `model_id`) or items (`item_id`), from a file or from memory, checked."""
    if isinstance(given, str | Path):
        return read_known(Path(given), key)
    return known_table(Table(f"the table of {key.removesuffix('_id')}s", to_polars(given)), key)
