"""From rows to a `ResponseMatrix`: one response a cell, tables joined, emptiness judged."""

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, remedy, shown, warn
from itembank.files.memory import check_matrix_fits
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.known import add_known
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.repeats import Cells, settle_repeats
from itembank.readers.rows import ResponseRows
from itembank.responses.responses import (
    DEFAULT_SCENARIO,
    ResponseMatrix,
    check_complete,
    check_models_and_items_have_responses,
)

_DROP = "empty='drop'"
_DROP_IN_FILE = "empty = 'drop' in the file of itembank import --spec"


def to_matrix(
    rows: ResponseRows,
    spec: ReadingSpec,
    *,
    models: pl.DataFrame | None = None,
    items: pl.DataFrame | None = None,
) -> ResponseMatrix:
    """Make the response matrix of these rows.

    Parameters
    ----------
    rows : ResponseRows
    spec : ReadingSpec
    models, items : tables, or None
        What else is known, keyed by `model_id` and `item_id`.

    Raises
    ------
    DataError
        When rows contradict each other, or cells, models or items are empty where `spec` forbids it.
    """
    shape = (rows.models.n_names, rows.items.n_names)
    if 0 in shape:
        raise DataError(f"{rows.source}: there must be at least one response, got none.")
    n_arrays = 1 + (rows.n_trials is not None) + len(rows.costs)
    check_matrix_fits(rows.source, *shape, n_responses=rows.n_rows, n_arrays=n_arrays)
    cell = rows.models.index * shape[1] + rows.items.index
    cells = settle_repeats(rows, cell, shape[0] * shape[1], spec.repeats)
    matrix = ResponseMatrix.create(
        _scatter(cells.index, cells.response, shape),
        models=table_of_models(rows, models),
        items=table_of_items(rows, items, spec),
        n_trials=_scatter_trials(cells, shape),
        costs={unit: _scatter(cells.index, cost, shape) for unit, cost in cells.costs.items()},
    )
    return _judge_emptiness(matrix, spec, rows.source)


def _scatter(cell: IntArray, values: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Put values into their cells, NaN elsewhere."""
    flat = np.full(shape[0] * shape[1], np.nan)
    flat[cell] = values
    return flat.reshape(shape)


def _scatter_trials(cells: Cells, shape: tuple[int, int]) -> IntArray | None:
    """Put trials into their cells, 0 elsewhere."""
    if cells.n_trials is None:
        return None
    flat = np.zeros(shape[0] * shape[1], dtype=np.int64)
    flat[cells.index] = cells.n_trials
    return flat.reshape(shape)


def table_of_models(rows: ResponseRows, known: pl.DataFrame | None) -> pl.DataFrame:
    """Everything known of the models, in order of the matrix."""
    table = pl.DataFrame({"model_id": rows.models.names})
    table = table.join(rows.model_table, on="model_id", how="left", maintain_order="left")
    return table if known is None else add_known(table, known, "model_id", rows.source)


def table_of_items(rows: ResponseRows, known: pl.DataFrame | None, spec: ReadingSpec) -> pl.DataFrame:
    """Everything known of the items, in order of the matrix; every item gets a scenario."""
    table = pl.DataFrame({"item_id": rows.items.names})
    table = table.join(rows.item_table, on="item_id", how="left", maintain_order="left")
    if known is not None:
        table = add_known(table, known, "item_id", rows.source)
    if "scenario" not in table.columns:
        return table.with_columns(pl.lit(spec.scenario or DEFAULT_SCENARIO).alias("scenario"))
    unnamed = table.filter(pl.col("scenario").is_null())["item_id"].to_list()
    name = spec.scenario or DEFAULT_SCENARIO
    if unnamed and (table["scenario"] != name).any() and spec.scenario is None:
        warn(
            f"{len(unnamed)} of {table.height} items have no scenario and are put into {name!r}: {shown(unnamed)}.",
            DataWarning,
        )
    return table.with_columns(pl.col("scenario").fill_null(name))


def _judge_emptiness(matrix: ResponseMatrix, spec: ReadingSpec, source: str) -> ResponseMatrix:
    """Refuse, drop or keep missing cells and empty models and items."""
    try:
        if spec.missing == "forbid":
            check_complete(matrix.responses, matrix.model_ids, matrix.item_ids)
        if spec.empty == "error":
            check_models_and_items_have_responses(matrix.responses, matrix.model_ids, matrix.item_ids)
    except DataError as error:
        advice = "" if spec.missing == "forbid" else f" {remedy(_DROP, _DROP_IN_FILE)} does so."
        raise DataError(f"{source}: {error}{advice}") from error
    return _without_empty(matrix, source) if spec.empty == "drop" else matrix


def _without_empty(matrix: ResponseMatrix, source: str) -> ResponseMatrix:
    """Leave out models and items without any response; only models are worth a warning."""
    has_model, has_item = matrix.observed.any(axis=1), matrix.observed.any(axis=0)
    if has_model.all() and has_item.all():
        return matrix
    if not has_model.any():
        raise DataError(f"{source}: there must be at least one response, got none.")
    names = [matrix.model_ids[row] for row in np.flatnonzero(~has_model).tolist()]
    if names:
        message = f"{source}: {len(names)} models without any response are left out: {shown(names)}."
        warn(message, DataWarning)
    return matrix.take(models=np.flatnonzero(has_model), items=np.flatnonzero(has_item))
