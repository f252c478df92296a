"""Data sets that come with the package."""

import importlib.resources
from typing import Literal, get_args

import numpy as np
import polars as pl

from itembank.data.responses import ResponseMatrix
from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import FloatArray

BUILTIN_NAMES = ("classifiers",)
BuiltinResponse = Literal["correct", "probability"]

_PROBABILITY_STEPS = 1000.0  # the files keep probabilities as whole thousandths


def load_builtin(name: str = "classifiers", *, response: BuiltinResponse = "correct") -> ResponseMatrix:
    """Load a built-in data set: for trying things out, for examples and for tests.

    `classifiers` holds the answers of 242 scikit-learn classifiers to 3,497 test items of four scenarios
    (digits with subscenarios clean, noise, rotation and occlusion; breast cancer; wine; iris).
    ``docs/classifiers.md`` says how it was made.

    Parameters
    ----------
    name : {'classifiers'}
    response : {'correct', 'probability'}
        Whether the predicted class was right (0 or 1), or the probability the classifier gave the right
        class (in thousandths).

    Returns
    -------
    ResponseMatrix
        Complete. `costs['seconds']` is the CPU time of one prediction; the model table tells family,
        hyperparameters, training share and, for each scenario, training examples and CPU seconds.

    Raises
    ------
    ParameterError
        For another name or response.

    Examples
    --------
    >>> responses = load_builtin("classifiers")
    >>> responses.n_models, responses.n_items
    (242, 3497)
    """
    if name not in BUILTIN_NAMES:
        raise ParameterError(f"built-in data must be one of {shown(BUILTIN_NAMES)}, got {name!r}.")
    if response not in get_args(BuiltinResponse):
        raise ParameterError(f"response must be one of {shown(get_args(BuiltinResponse))}, got {response!r}.")
    items, models, answers = (_read(name, part) for part in ("items", "models", response))
    values = answers.select(models["model_id"].to_list()).cast(pl.Float64).to_numpy().T  # (n_models, n_items)
    if response == "probability":
        values = values / _PROBABILITY_STEPS
    costs = {"seconds": _prediction_seconds(models, items)}
    return ResponseMatrix.create(np.ascontiguousarray(values), models=models, items=items, costs=costs)


def _read(name: str, part: str) -> pl.DataFrame:
    """Read one Parquet file of a data set."""
    source = importlib.resources.files("itembank.data").joinpath("builtin_files", f"{name}_{part}.parquet")
    return pl.read_parquet(source.read_bytes())


def _prediction_seconds(models: pl.DataFrame, items: pl.DataFrame) -> FloatArray:
    """CPU seconds of one prediction, (n_models, n_items): the same for all items of a scenario."""
    scenarios = items["scenario"].unique(maintain_order=True)
    by_scenario = models.select(f"{scenario}_prediction_seconds" for scenario in scenarios).to_numpy()
    index = items["scenario"].cast(pl.Enum(scenarios)).to_physical().to_numpy()
    result: FloatArray = by_scenario[:, index]
    return result
