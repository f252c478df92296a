"""Wide tables: one row a model and one column an item, or the other way round."""

import shlex
from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.errors import DataError, first_few, remedy, shown
from itembank.numerics.arrays import FloatArray
from itembank.readers.checks import row_problems
from itembank.readers.columns import examples, id_labels, optional_labels
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows
from itembank.readers.truth_words import ResponseNumbers, response_numbers
from itembank.responses.labels import Labels
from itembank.responses.opening import Table


def rows_of_wide_models(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a table with one row a model and one column an item."""
    models, item_names, values = _ids_and_values(table, spec, "model_id", [])
    items = _labels(item_names)
    rows = ResponseRows(
        table.source,
        Labels(models.names, np.repeat(models.index, len(item_names)), models.kind),
        Labels(items, np.tile(np.arange(len(item_names), dtype=np.int64), models.index.size)),
        np.ascontiguousarray(values).ravel() / spec.max_response,
        item_table=pl.DataFrame({"item_id": items}),
    )
    return _checked(rows, spec)


def rows_of_wide_items(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a table with one row an item and one column a model."""
    about = [spec.column("scenario"), spec.column("subscenario")]
    items, model_names, values = _ids_and_values(table, spec, "item_id", about)
    if items.n_names < items.index.size:
        repeated = table.frame[spec.column("item_id")]
        names = repeated.filter(repeated.is_duplicated()).unique(maintain_order=True).to_list()
        raise DataError(
            f"{table.source}: item_id must be unique in a table of one row an item, got {len(names)} ids more than "
            f"once: {shown(names)}."
        )
    columns = {"item_id": items.names}
    for name, column in zip(("scenario", "subscenario"), about, strict=True):
        labels = optional_labels(table, column)
        if labels is not None:
            known = pl.concat([labels.names, pl.Series("name", [None], dtype=pl.String)])
            columns[name] = known.gather(np.where(labels.index < 0, labels.n_names, labels.index))
    rows = ResponseRows(
        table.source,
        Labels(_labels(model_names), np.repeat(np.arange(len(model_names), dtype=np.int64), items.index.size)),
        Labels(items.names, np.tile(items.index, len(model_names)), items.kind),
        np.ascontiguousarray(values.T).ravel() / spec.max_response,
        item_table=pl.DataFrame(columns),
    )
    return _checked(rows, spec)


def _ids_and_values(
    table: Table, spec: ReadingSpec, key: str, about: Sequence[str]
) -> tuple[Labels, list[str], FloatArray]:
    """Ids of the rows, names of the response columns, and the responses (n_rows, n_columns)."""
    column = spec.column(key)
    if column not in table.frame.columns:
        python = f"columns={{'{key}': '...'}}"
        raise DataError(
            f"{table.source}: there must be a column {column!r}; there are {shown(table.frame.columns, 12)}. "
            f"Say what the file calls it: {remedy(python, f'--column {key}=...')}."
        )
    problems: list[str] = []
    ids = id_labels(table, column, problems, name=key)
    others = [name for name in table.frame.columns if name not in {column, *about}]
    if not others:
        problems.append(f"there must be one column of responses at least, got only {shown(table.frame.columns)}.")
        raise DataError(f"{table.source}: " + " ".join(problems))
    responses = response_numbers(table.frame[others], spec, table.source)
    if responses.bad:
        found = [
            f"{name!r} ({', '.join(map(repr, examples(table.frame[name], _rows(mask))))})"
            for name, mask in responses.bad.items()
        ]
        word = "an item" if key == "model_id" else "a model"
        tables = remedy("models=..., items=...", "--models, --items")
        signs = " Percent signs are read where all responses have one." if any("%" in text for text in found) else ""
        problems.append(
            f"every column but {', '.join([column, *about])} must hold the responses of {word}, got {len(found)} that "
            f"hold something else: {first_few(found)}.{signs}{_scenario_advice(table, responses, about)} "
            f"What is known of models and items belongs into tables of their own ({tables})."
        )
    if problems or ids is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    return ids, others, responses.values


def _scenario_advice(table: Table, responses: ResponseNumbers, about: Sequence[str]) -> str:
    """Name a column of words that come again and again, which may be the items' scenario where none is told."""
    if not about or about[0] in table.frame.columns:
        return ""
    n_rows = table.frame.height
    alike = [name for name in responses.bad if 2 * table.frame[name].n_unique() <= n_rows]
    if not alike:
        return ""
    how = remedy(f"columns={{'scenario': {alike[0]!r}}}", f"--column scenario={shlex.quote(alike[0])}")
    return f" If {alike[0]!r} tells the scenario of an item, say so: {how}."


def _rows(mask: pl.Series) -> "np.typing.NDArray[np.int64]":
    return mask.arg_true().to_numpy().astype(np.int64)


def _labels(names: Sequence[str]) -> pl.Series:
    """Names of columns (a table's are unique)."""
    return pl.Series("name", names, dtype=pl.String)


def _checked(rows: ResponseRows, spec: ReadingSpec) -> ResponseRows:
    """Return the rows when their numbers are sound."""
    problems = row_problems(rows, max_response=spec.max_response)
    if problems:
        raise DataError(f"{rows.source}: " + " ".join(problems))
    return rows
