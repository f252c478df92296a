"""The data sets of the study, and what is particular to each."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataWarning
from itembank.numerics.arrays import FloatArray
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class DataSet:
    """Responses and how they are studied.

    Attributes
    ----------
    name : str
    responses : ResponseMatrix
    spec : Variational
        With the dimensions of `DIMS`.
    splits : tuple of names
        'random' (three quarters train), 'folds' (four folds), 'date' (the newest quarter tested), 'organisation'.
    dates : (n_models,) or None
        Text that sorts by date.
    """

    name: str
    responses: ResponseMatrix
    spec: Variational
    splits: tuple[str, ...]
    dates: FloatArray | None = None


NAMES = ("openllm1_core", "mmlu-pro", "alpacaeval2", "swebench_verified", "leaderboard2_factors")
DIMS = {  # what `choose_n_dims` gives on the calibration models of the first split, fixed to keep the run short
    "openllm1_core": 10,
    "mmlu-pro": 1,
    "alpacaeval2": 1,
    "swebench_verified": 1,
    "leaderboard2_factors": 10,
}


def load(name: str, folder: Path) -> DataSet:
    """Read one data set from the folder that holds them all."""
    n_dims = DIMS[name]
    spec = Variational("mirt", n_dims=n_dims) if n_dims > 1 else Variational()
    if name == "leaderboard2_factors":
        return DataSet(name, _simulated(folder / name), spec, ("random",))
    column = "response_l3" if name == "mmlu-pro" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # alpacaeval2's item table has another name for the scenario
        responses = read_responses(
            [folder / name / "responses.parquet"],
            models=folder / name / "models.csv",
            items=folder / name / "items.csv",
            response_column=column,
        )
    if name == "openllm1_core":
        return DataSet(
            name, responses, spec, ("random", "date", "organisation"), _texts(responses, "first_seen_in_scrape")
        )
    if name == "mmlu-pro":
        responses = responses.take(items=np.flatnonzero(responses.items["in_common_core"].to_numpy()))
        return DataSet(name, responses, spec, ("folds",))
    if name == "alpacaeval2":
        responses = responses.take(models=np.flatnonzero(~responses.models["adversarial_or_degenerate"].to_numpy()))
        return DataSet(name, responses, spec, ("folds", "date"), _texts(responses, "date_added_to_repo"))
    return DataSet(name, responses, spec, ("random", "date"), _texts(responses, "submission_date"))


def _texts(responses: ResponseMatrix, column: str) -> FloatArray:
    return responses.models[column].cast(pl.String).to_numpy()


def _simulated(folder: Path) -> ResponseMatrix:
    """Responses drawn once from the fitted probabilities of a real leaderboard."""
    factors = np.load(folder / "factors.npz")
    logit = factors["model_factors"].astype(np.float32) @ factors["item_factors"].astype(np.float32).T
    rng = np.random.default_rng(0)
    drawn = rng.random(logit.shape, dtype=np.float32) < 1.0 / (1.0 + np.exp(-logit))
    return ResponseMatrix.create(drawn)
