"""The responses a study is about."""

import os
import re
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, ParameterError, shown, warn
from itembank.numerics.arrays import IntArray
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix, column_of
from itembank.studies.study_specs import FILTERS, DataSpec, Filter

VARIABLE = re.compile(r"\$\{(\w+)\}")


def load_data(spec: DataSpec) -> ResponseMatrix:
    """Read the responses of a study and take the models and items it is about.

    Raises
    ------
    DataError
        As `read_responses`; when a file is not there, or a filter's column does not exist or leaves nothing. A
        `DataWarning` names values of a filter that its column does not have.
    ParameterError
        When an environment variable in a path is not set.
    """
    responses = _read(spec)
    for name in FILTERS:
        one: Filter | None = getattr(spec, name)
        if one is not None:
            is_about_models = name.endswith("models")
            table = responses.models if is_about_models else responses.items
            rows = _rows_left(table, one, name)
            responses = responses.take(models=rows) if is_about_models else responses.take(items=rows)
    return responses


def _read(spec: DataSpec) -> ResponseMatrix:
    if spec.builtin:
        return load_builtin(spec.builtin, response=spec.response)  # type: ignore[arg-type]
    paths = {one: _path(one, spec.folder) for one in (*spec.responses, spec.models, spec.items) if one}
    try:
        return read_responses(
            [paths[one] for one in spec.responses],
            models=paths[spec.models] if spec.models else None,
            items=paths[spec.items] if spec.items else None,
            response_column=spec.response_column,
            spec=ReadingSpec(columns=spec.columns, prefix_scenario=spec.prefix_scenario),
        )
    except (DataError, OSError) as error:
        text = str(error)
        for written, path in paths.items():  # what stands in the environment is nobody's business
            text = text.replace(str(path), written)
        raise DataError(text) from error


def _path(text: str, folder: Path) -> Path:
    """Put environment variables in, and start at the study's folder."""
    absent = [name for name in VARIABLE.findall(text) if name not in os.environ]
    if absent:
        raise ParameterError(f"the path {text!r} needs the environment variable {shown(absent)}, which is not set.")
    path = folder / VARIABLE.sub(lambda found: os.environ[found[1]], text)
    if not path.exists():
        raise DataError(
            f"the data of a study must be there, but {text} is not. Paths start at the study file's folder."
        )
    return path


def _rows_left(table: pl.DataFrame, one: Filter, name: str) -> IntArray:
    """Rows that a filter leaves."""
    column = column_of(table, one["column"], name)
    values = one["value"] if isinstance(one["value"], list | tuple) else [one["value"]]
    there = column.to_list()
    matches = np.array([value in values for value in there], dtype=bool)
    rows = np.flatnonzero(matches if name.startswith("keep") else ~matches)
    if rows.size == 0:
        raise DataError(
            f"{name} leaves nothing: {one['column']!r} with value {one['value']!r}; the values are "
            f"{shown(column.unique(maintain_order=True).to_list())}."
        )
    absent = [value for value in values if value not in there]
    if absent:
        known = shown(column.unique(maintain_order=True).to_list())
        warn(
            f"{name} names values that column {one['column']!r} (of type {column.dtype}) does not have: "
            f"{shown(absent)}; it has {known}. Check the spelling and the type.",
            DataWarning,
        )
    return rows
