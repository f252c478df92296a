"""`load_study`: a study written as a TOML file."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from itembank.data import documents
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.studies.specs import CalibrationChoice, CostBudget, DataSpec, StudySpec
from itembank.studies.split_specs import SPLITS, SplitSpec


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
    path = Path(path)
    content = read_toml(path)
    try:
        return _study(content, path.parent)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a study's file; `DataError` when it is not TOML."""
    try:
        return documents.read_toml(path)
    except (OSError, DataError) as error:
        raise DataError(f"{error} It cannot be read as a study, a TOML file.") from error


def _study(content: dict[str, Any], folder: Path) -> StudySpec:
    if "data" not in content:
        raise ParameterError("a study file needs a table [data]: builtin = a name, or responses = files.")
    content["data"] = data_spec(content["data"], folder)
    content["calibration"] = calibration_choice(content.get("calibration", {}))
    splits = content.get("splits", [])
    if not isinstance(splits, list):
        raise ParameterError("splits must be a list of tables: [[splits]].")
    content["splits"] = tuple(_split(one) for one in splits)
    if "budget" in content:
        content["budget"] = CostBudget(**checked_table(content["budget"], CostBudget, "budget"))
    return StudySpec(**checked_table(content, StudySpec, "a study file"))


def data_spec(content: Any, folder: Path) -> DataSpec:
    """Read ``[data]``."""
    table = checked_table(content, DataSpec, "[data]", without=("folder",))
    if isinstance(table.get("responses"), str):
        table["responses"] = (table["responses"],)
    return DataSpec(**table, folder=folder)


def calibration_choice(content: Any) -> CalibrationChoice:
    """Read ``[calibration]``: keys that are not its own are options of the method."""
    own = [one.name for one in fields(CalibrationChoice) if one.name != "options"]
    table = as_table(content, "[calibration]")
    options = {key: value for key, value in table.items() if key not in own}
    return CalibrationChoice(**{key: table[key] for key in own if key in table}, options=options)


def _split(content: Any) -> SplitSpec:
    table = dict(as_table(content, "[[splits]]"))
    kind = table.pop("kind", None)
    if not isinstance(kind, str) or kind not in SPLITS.kinds:
        names = shown(list(SPLITS.kinds), len(SPLITS.kinds))
        raise ParameterError(f"kind of a split must be one of {names}, got {kind!r}.")
    return SPLITS.kinds[kind](**checked_table(table, SPLITS.kinds[kind], f"split {kind!r}"))


def as_table(content: Any, where: str) -> Mapping[str, Any]:
    """Return a table, or raise `ParameterError` for anything else."""
    if not isinstance(content, Mapping):
        raise ParameterError(f"{where} must be a table, got {content!r}.")
    return content


def checked_table(content: Any, kind: Any, where: str, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Check keys and the kinds of values against the fields of a class; lists become tuples."""
    known = {one.name: one for one in fields(kind) if one.init and one.name not in without}
    table = as_table(content, where)
    unknown = [key for key in table if key not in known]
    missing = [name for name, one in known.items() if _is_required(one) and name not in table]
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


def _is_required(one: "Field[Any]") -> bool:
    return one.default is MISSING and one.default_factory is MISSING
