"""Small parts of the built-in data as files, for the calls of the snapshot."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.data.builtin import load_builtin
from itembank.data.language_models import builtin_bits_per_byte
from itembank.data.response_files import write_responses
from itembank.data.responses import ResponseMatrix

NEW = 4
"""Of the classifiers, every so many-th is a new model."""

N_SAMPLES = 25

STUDY = """
name = "small"
selectors = ["random", "anchor-irt", "v-optimal"]
estimators = ["weighted", "gp-irt", "factor"]
n_items = [20]
repeats = 2
[data]
responses = "past.parquet"
[calibration]
method = "variational"
n_dims = 2
[[splits]]
kind = "random"
[[splits]]
kind = "training-share"
n_models = [24]

"""

PREDICTION = """
name = "small"
task = "scenario"
n_partitions = 2
n_test = 8
n_calibration_tasks = [1]
n_items = [1, 8]
smallest_task = 12
[data]
responses = "past.parquet"
[item_models.nested]
method = "map"
item_model = "nested"
n_dims = 3
[item_models.2pl]
method = "map"
item_model = "2pl"
n_dims = 1
[[assessors]]
predictor = ["nested", "2pl", "ridge", "task-mean-eb"]
[[assessors]]
predictor = "nested"
paradigm = ["selection", "adaptation"]
selector = "v-optimal"
"""


def make_world(folder: Path) -> None:
    """Write all files."""
    classifiers = _part(load_builtin("classifiers"), models=4, items=12)
    is_new = np.arange(classifiers.n_models) % NEW == 0
    past, new = (classifiers.take(models=np.flatnonzero(flag)) for flag in (~is_new, is_new))
    write_responses(past, folder / "past.parquet")
    write_responses(past.take(items=np.arange(0, past.n_items, 8)), folder / "few.parquet")
    write_responses(new, folder / "new.parquet")
    write_responses(new.take(models=np.arange(2)), folder / "two-new.parquet")
    write_responses(_part(load_builtin("classifiers", response="probability"), 8, 60), folder / "probabilities.parquet")
    language = load_builtin("bytelms", response="probability")
    models, items = np.arange(0, language.n_models, 3), np.arange(0, language.n_items, 30)
    write_responses(language.take(models=models, items=items), folder / "language.parquet")
    write_responses(_part(load_builtin("bytelms"), 3, 30), folder / "language-correct.parquet")
    bits = builtin_bits_per_byte()[np.ix_(models, items)]
    ids = language.take(models=models, items=items)
    pl.DataFrame(
        {
            "model_id": np.repeat(ids.model_ids, len(items)),
            "item_id": np.tile(ids.item_ids, len(models)),
            "bits_per_byte": bits.ravel(),
        }
    ).write_csv(folder / "losses.csv")
    samples = load_builtin("bytelms-samples")
    for name, models, items in (("samples", 12, 9), ("few-samples", 24, 45)):
        write_responses(_fewer_samples(_part(samples, models, items)), folder / f"{name}.parquet")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "prediction.toml").write_text(PREDICTION, encoding="utf-8")


def _part(responses: ResponseMatrix, models: int, items: int) -> ResponseMatrix:
    """Every so many-th model and item."""
    return responses.take(models=np.arange(0, responses.n_models, models), items=np.arange(0, responses.n_items, items))


def _fewer_samples(samples: ResponseMatrix) -> ResponseMatrix:
    """The share of right ones rounded to `N_SAMPLES` samples."""
    trials = np.full(samples.responses.shape, N_SAMPLES)
    return ResponseMatrix.create(
        np.rint(samples.responses * N_SAMPLES) / N_SAMPLES, models=samples.models, items=samples.items, n_trials=trials
    )
