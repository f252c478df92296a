"""Responses as one packed Parquet column, model after model: small on disk and quick to read."""

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.numerics.arrays import FloatArray
from itembank.responses.code_array import CodeArray
from itembank.responses.coded_responses import CodedResponses, are_many
from itembank.responses.item_codes import MISSING
from itembank.responses.responses import ResponseMatrix

COST = "cost:"


def pack_responses(responses: ResponseMatrix) -> pl.DataFrame:
    """Return a table of n_models * n_items rows: `response`, `n_trials` and `cost:...` where known; null is missing.

    Binary responses are stored as Boolean, others as they are (Float64 or Float32), so that unpacking gives the same
    numbers back.
    """
    is_binary = responses.is_binary
    parts = [_packed(part.responses, is_binary=is_binary) for part in responses.parts()]
    columns = {"response": pl.concat(parts, rechunk=True)}
    if responses.n_trials is not None:
        columns["n_trials"] = pl.Series(np.ascontiguousarray(responses.n_trials).ravel())
    for name, cost in responses.costs.items():
        columns[f"{COST}{name}"] = _packed(cost, is_binary=False)
    return pl.DataFrame(columns)


def unpack_responses(packed: pl.DataFrame, models: pl.DataFrame, items: pl.DataFrame) -> ResponseMatrix:
    """Return the response matrix of a packed table."""
    shape = (models.height, items.height)
    if packed.height != shape[0] * shape[1]:
        raise DataError(f"packed responses must have {shape[0]} x {shape[1]} rows, got {packed.height}.")
    costs = {
        name.removeprefix(COST): _unpacked(packed[name], shape) for name in packed.columns if name.startswith(COST)
    }
    is_alone = packed.columns == ["response"] and packed.schema["response"] == pl.Boolean
    if is_alone and are_many(*shape):
        codes = packed["response"].cast(pl.UInt8).fill_null(MISSING).to_numpy().reshape(shape)
        return CodedResponses(CodeArray.of_cells(codes, np.array([0.0, 1.0])), models, items)
    n_trials = packed["n_trials"].to_numpy().reshape(shape) if "n_trials" in packed.columns else None
    return ResponseMatrix(_unpacked(packed["response"], shape), models, items, n_trials, costs)


def _packed(values: FloatArray, *, is_binary: bool) -> pl.Series:
    """One column; NaN becomes null."""
    flat = np.ascontiguousarray(values).ravel()
    series = pl.Series(flat, nan_to_null=True)
    return series.cast(pl.Boolean) if is_binary else series


def _unpacked(series: pl.Series, shape: tuple[int, int]) -> FloatArray:
    """Return the column as an array of float32 where it is one, else of float64; null becomes NaN."""
    kind = pl.Float32 if series.dtype == pl.Float32 else pl.Float64
    values: FloatArray = series.cast(kind).fill_null(np.nan).to_numpy(writable=True)
    return values.reshape(shape)
