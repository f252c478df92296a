"""`load_study` and `load_prediction`: studies written as TOML files, and the responses they name."""

import itertools
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from itembank.errors import DataError, DataWarning, ParameterError, did_you_mean, shown, warn
from itembank.files.documents import read_toml
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix, column_of
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.split_specs import SPLITS, SplitSpec
from itembank_studies.study_specs import FILTERS, CalibrationChoice, CostBudget, DataSpec, Filter, StudySpec

VARIABLE = re.compile(r"\$\{(\w+)\}")


def load_data(spec: DataSpec) -> ResponseMatrix:
    """Read the responses of a study and take the models and items it is about."""
    responses = _read(spec)
    for name in FILTERS:
        one: Filter | None = getattr(spec, name)
        if one is not None:
            is_about_models = name.endswith("models")
            table = responses.models if is_about_models else responses.items
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
        for written, path in paths.items():  # what is in the environment is nobody's business
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


Spec = TypeVar("Spec")

LISTED = ("predictor", "paradigm", "selector", "per_cost")
"""Choices of an assessor that may be lists: the table then means all combinations."""


def load_study(path: str | Path) -> StudySpec:
    """Read a study from a TOML file.

    Parameters
    ----------
    path : str or Path
        With the fields of `StudySpec` as keys: tables ``[data]``, ``[calibration]`` and ``[[splits]]`` (key
        ``kind``), see ``docs/studies.md``. Paths in it start at its own folder.

    Raises
    ------
    DataError
        When it is not a TOML file.
    ParameterError
        For a key that does not exist, a method without that name, or a value that cannot be, with what can.

    Examples
    --------
    >>> result = run_study(load_study("study.toml"), "study")  # doctest: +SKIP
    """
    return _loaded(Path(path), study_of)


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
    return _loaded(Path(path), prediction_of)


def holds_prediction(path: Path) -> bool:
    """Whether a TOML file is of a prediction study, which names assessors; one that cannot be read is of none."""
    try:
        return "assessors" in read_toml(path)
    except (OSError, DataError):
        return False


def _loaded(path: Path, make: Callable[[dict[str, Any], Path], Spec]) -> Spec:
    """Read a file, and make the spec of its content and folder; errors name the file."""
    try:
        content = read_toml(path)
    except (OSError, DataError) as error:
        raise DataError(f"{error} It cannot be read as a study, a TOML file.") from error
    try:
        return make(content, path.parent)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def study_of(content: dict[str, Any], folder: Path) -> StudySpec:
    """Make the spec of a study file's content; paths in it start at the folder."""
    content["data"] = _data_spec(content, folder)
    content["calibration"] = _calibration_choice(content.get("calibration", {}))
    content["splits"] = tuple(_split(table) for table in _list_of_tables(content, "splits"))
    pairs = content.get("pairs")
    named = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2] if isinstance(pairs, list) else []
    if named and named == pairs and all(isinstance(label, str) for pair in named for label in pair):
        for place, name in enumerate(("selectors", "estimators")):  # tables of choices must be named there
            content.setdefault(name, list(dict.fromkeys(pair[place] for pair in named)))
    if "budget" in content:
        content["budget"] = CostBudget(**_checked_table(content["budget"], CostBudget, "budget"))
    return StudySpec(**_checked_table(content, StudySpec, "a study file"))


def prediction_of(content: dict[str, Any], folder: Path) -> PredictionSpec:
    """Make the spec of a prediction study file's content; paths in it start at the folder."""
    content["data"] = _data_spec(content, folder)
    models = _as_table(content.get("item_models", {}), "[item_models]")
    content["item_models"] = {name: _calibration_choice(table) for name, table in models.items()}
    assessors = []
    for one in _list_of_tables(content, "assessors"):
        table = _as_table(one, "[[assessors]]")
        lists = [name for name in LISTED if isinstance(table.get(name), list)]
        for values in itertools.product(*(table[name] for name in lists)):  # one for each combination of choices
            choices = _checked_table({**table, **dict(zip(lists, values, strict=True))}, Assessor, "[[assessors]]")
            _as_table(choices.get("options", {}), "options of an assessor")
            assessors.append(Assessor(**choices))
    content["assessors"] = tuple(assessors)
    if "split" in content:
        content["split"] = _split(content["split"])
    return PredictionSpec(**_checked_table(content, PredictionSpec, "a prediction study"))


def _data_spec(content: Mapping[str, Any], folder: Path) -> DataSpec:
    if "data" not in content:
        raise ParameterError("a study file needs a table [data]: builtin = a name, or responses = files.")
    table = _checked_table(content["data"], DataSpec, "[data]", without=("folder",))
    if isinstance(table.get("responses"), str):
        table["responses"] = (table["responses"],)
    return DataSpec(**table, folder=folder)


def _calibration_choice(content: Any) -> CalibrationChoice:
    """Read ``[calibration]``: keys that are not its own are options of the method."""
    names = [field.name for field in fields(CalibrationChoice) if field.name != "options"]
    table = _as_table(content, "[calibration]")
    options = {key: value for key, value in table.items() if key not in names}
    return CalibrationChoice(**{key: table[key] for key in names if key in table}, options=options)


def _split(content: Any) -> SplitSpec:
    """Read a split: a table, or its kind alone."""
    table = {"kind": content} if isinstance(content, str) else dict(_as_table(content, "a split"))
    kind = table.pop("kind", None)
    if not isinstance(kind, str) or kind not in SPLITS.kinds:
        names = shown(list(SPLITS.kinds), len(SPLITS.kinds))
        raise ParameterError(f"kind of a split must be one of {names}, got {kind!r}.")
    return SPLITS.kinds[kind](**_checked_table(table, SPLITS.kinds[kind], f"split {kind!r}"))


def _as_table(content: Any, where: str) -> Mapping[str, Any]:
    """Return a table, or raise `ParameterError` for anything else."""
    if not isinstance(content, Mapping):
        raise ParameterError(f"{where} must be a table, got {content!r}.")
    return content


def _list_of_tables(content: Mapping[str, Any], name: str) -> list[Any]:
    tables = content.get(name, [])
    if not isinstance(tables, list):
        raise ParameterError(f"{name} must be a list of tables: [[{name}]].")
    return tables


def _checked_table(content: Any, kind: Any, where: str, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Check keys and the kinds of values against the fields of a class; lists become tuples."""
    known = {field.name: field for field in fields(kind) if field.init and field.name not in without}
    table = _as_table(content, where)
    unknown = [key for key in table if key not in known]
    required = [name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    missing = [name for name in required if name not in table]
    if unknown:
        raise ParameterError(
            f"keys of {where} must be among {shown(list(known), len(known))}, got {shown(unknown)}."
            f"{did_you_mean(unknown, known)}"
        )
    if missing:
        raise ParameterError(f"{where} needs {shown(missing, len(missing))} as well.")
    result = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    for key, value in result.items():
        if known[key].type is str and not isinstance(value, str):
            raise ParameterError(f"{key} of {where} must be a text, got {value!r}.")
    return result
