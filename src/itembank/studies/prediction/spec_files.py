"""`load_prediction`: a prediction study written as a TOML file."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from itembank.errors import ParameterError
from itembank.studies.prediction.specs import Assessor, PredictionSpec
from itembank.studies.study_files import as_table, calibration_choice, checked_table, data_spec, read_toml

LISTED = ("predictor", "paradigm", "selector", "per_cost")
"""Choices of an assessor that may be lists: the table then stands for all combinations."""


def load_prediction(path: str | Path) -> PredictionSpec:
    """Read a prediction study from a TOML file.

    Parameters
    ----------
    path : str or Path
        With the fields of `PredictionSpec` as keys: tables ``[data]``, ``[item_models.NAME]`` and ``[[assessors]]``,
        see ``docs/studies.md``. Paths in it start at its own folder.

    Raises
    ------
    DataError
        When it is not a TOML file.
    ParameterError
        For a key that does not exist or a value that cannot be, with what can.
    """
    path = Path(path)
    content = read_toml(path)
    try:
        return _prediction(content, path.parent)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def _prediction(content: dict[str, Any], folder: Path) -> PredictionSpec:
    if "data" not in content:
        raise ParameterError("a study file needs a table [data]: builtin = a name, or responses = files.")
    content["data"] = data_spec(content["data"], folder)
    models = as_table(content.get("item_models", {}), "[item_models]")
    content["item_models"] = {name: calibration_choice(one) for name, one in models.items()}
    assessors = content.get("assessors", [])
    if not isinstance(assessors, list):
        raise ParameterError("assessors must be a list of tables: [[assessors]].")
    content["assessors"] = tuple(one for table in assessors for one in _assessors(table))
    return PredictionSpec(**checked_table(content, PredictionSpec, "a prediction study"))


def _assessors(content: Any) -> Iterator[Assessor]:
    """Yield the assessors of a table: one for each combination where choices are lists."""
    table = as_table(content, "[[assessors]]")
    lists = [name for name in LISTED if isinstance(table.get(name), list)]
    for values in itertools.product(*(table[name] for name in lists)):
        one = checked_table({**table, **dict(zip(lists, values, strict=True))}, Assessor, "[[assessors]]")
        options: Any = one.get("options", {})
        if not isinstance(options, Mapping):
            raise ParameterError(f"options of an assessor must be a table, got {options!r}.")
        yield Assessor(**one)
