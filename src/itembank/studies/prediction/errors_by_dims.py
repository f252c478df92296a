"""How the error of a prediction study changes with the number of abilities, against that with one (WILD Figure 8)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from itembank.errors import ParameterError, shown
from itembank.studies.prediction.error_curves import differences
from itembank.studies.results import PredictionResult


def assessors_by_dims(result: PredictionResult, names: Sequence[str] = ()) -> dict[str, int]:
    """Return the number of abilities of each assessor that is compared, rising from one.

    Raises
    ------
    ParameterError
        When none has one ability, or two have as many.
    """
    item_models: Mapping[str, Mapping[str, Any]] = result.manifest.study["item_models"]
    found = {}
    for one in result.assessors:
        choice = item_models.get(one.predictor)
        is_plain = choice is not None and (choice["item_model"] in {"mirt", ""} or choice["n_dims"] == 1)
        if one.name in names or (not names and one.paradigm == "prediction" and is_plain):
            found[one.name] = 0 if choice is None else int(choice["n_dims"])
    ordered = dict(sorted(found.items(), key=lambda pair: pair[1]))
    values = list(ordered.values())
    if not values or values[0] != 1 or len(set(values)) < max(len(values), 2):
        raise ParameterError(
            "assessors must have item models of one, and of other numbers of abilities, each its own, got "
            f"{shown([f'{name} ({n})' for name, n in ordered.items()])}. Name them (--assessor), one of each."
        )
    return ordered


def percent_of_one(result: PredictionResult, dims: Mapping[str, int]) -> pl.DataFrame:
    """Return the change of each assessor's error against that with one ability, in percent.

    Parameters
    ----------
    result : PredictionResult
    dims : mapping of assessor to its number of abilities
        The first has one.

    Returns
    -------
    table
        `n_calibration_tasks`, `set`, `budget`, `n_dims`, `percent`, `percent_se`.
    """
    reference = next(iter(dims))
    table = differences(result.errors, reference).filter(pl.col("assessor").is_in(list(dims)))
    return table.select(
        "n_calibration_tasks",
        "set",
        "budget",
        n_dims=pl.col("assessor").replace_strict(dict(dims), return_dtype=pl.Int64),
        percent=100.0 * (pl.col("ratio") - 1.0),
        percent_se=100.0 * pl.col("ratio_se"),
    ).sort("n_calibration_tasks", "set", "budget", "n_dims")
