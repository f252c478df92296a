"""Small parts of the built-in data as files, for the calls of the snapshot."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank import ResponseMatrix, load_builtin, write_responses
from itembank.selection.criteria import CRITERIA
from itembank_scaling import builtin_bits_per_byte

NEW = 4
"""Of the classifiers, every so many-th is a new model."""

N_SAMPLES = 25
LATE = 6
"""Of few items, every so many-th is new to a bank that grows."""

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

_MODEL_BASED = 'interval = "model-based"\n'
RARE = {
    "quick": _MODEL_BASED,
    "fisher": f'{_MODEL_BASED}criterion = "fisher"',
    "drawn": f'{_MODEL_BASED}criterion = "d-optimal"\nconstraints = {{at_least = 1, randomesque = 3}}',
    "sure": f"{_MODEL_BASED}stopping.decision = {{threshold = 0.6, confidence = 0.9}}",
    "better": f'{_MODEL_BASED}stopping.decision = {{model = "lda/shrinkage=0.01/share=0.3"}}',
    "ability": f"{_MODEL_BASED}stopping.ability_error = 0.3",
    **{f"design-{name}": f'criterion = "{name}"' for name in CRITERIA.builtin_names},
    "design-min-cost": 'criterion = "min-cost"\ncost = "seconds"',
    "one-size": "n_checked = 1",
    "no-size": "n_checked = 0",
    "forced": "is_forced = true",
    "model-based": 'interval = "model-based"',
    "alone": "n_checked = 0\n"
    '[[laws]]\nname = "irsl"\nitem_model = "1pl"\npooling = "none"\nshape = "line"\ngap = "none"',
    "positive": "positive_discrimination = true",
    "known-guessing": "known_guessing = true",
    "by-task": "by_task = true",
    "majority": 'degenerate = "majority"',
}
"""Rare choices, for `--session` and `--spec`."""


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
    part = language.take(models=models, items=items)
    write_responses(part, folder / "language.parquet")
    write_responses(_part(load_builtin("bytelms"), 3, 30), folder / "language-correct.parquet")
    are_few = language.models.select(
        (pl.col("share_of_run") == 1) & pl.col("mixture").is_in(language.models["mixture"].unique().sort()[:4])
    )
    few = {"models": np.flatnonzero(are_few), "items": items[:12]}
    write_responses(language.take(**few), folder / "whole-runs.parquet")
    bits = builtin_bits_per_byte()[np.ix_(models, items)]
    pl.DataFrame({**_ids(part), "bits_per_byte": bits.ravel()}).write_csv(folder / "losses.csv")
    samples = load_builtin("bytelms-samples")
    for name, models, items in (("samples", 12, 9), ("few-samples", 24, 45)):
        write_responses(_fewer_samples(_part(samples, models, items)), folder / f"{name}.parquet")
    _more_of_classifiers(past, new, folder)
    for name, content in RARE.items():
        (folder / f"{name}.toml").write_text(content, encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "prediction.toml").write_text(PREDICTION, encoding="utf-8")


def _more_of_classifiers(past: ResponseMatrix, new: ResponseMatrix, folder: Path) -> None:
    """Write parts of the models and items, and what is known of models, items and answers."""
    few = past.take(items=np.arange(0, past.n_items, 8))
    is_late = np.arange(few.n_items) % LATE == 1
    old = few.take(items=np.flatnonzero(~is_late))
    write_responses(old, folder / "old.parquet")
    for name, known in (("new-old", old), ("new-few", few)):
        write_responses(new.take(items=new.item_indices(known.item_ids)), folder / f"{name}.parquet")
    write_responses(new.take(models=np.arange(1)), folder / "one-new.parquet")
    write_responses(new.take(models=np.arange(1, 2)), folder / "another-new.parquet")
    scores = pl.DataFrame({"model_id": past.model_ids, "final": np.sqrt(np.nanmean(past.responses, axis=1))})
    scores.write_csv(folder / "scores.csv")
    for name, known in (("items", past), ("few-items", few)):
        prior = 0.1 * (np.arange(known.n_items) % 21 - 10)
        known.items.select("item_id", "scenario", difficulty_prior=prior).write_csv(folder / f"{name}.csv")
    (folder / "some-ids.txt").write_text("\n".join(few.item_ids[::3]) + "\n", encoding="utf-8")
    is_b = np.add.outer(np.arange(few.n_models), np.arange(few.n_items)) % 2 == 0
    choices = np.where(few.responses == 1, "A", np.where(is_b, "B", "C"))
    pl.DataFrame({**_ids(few), "choice": choices.ravel()}).write_csv(folder / "choices.csv")


def _ids(responses: ResponseMatrix) -> dict:
    """Columns that name the cells, row by row."""
    models, items = responses.model_ids, responses.item_ids
    return {"model_id": np.repeat(models, len(items)), "item_id": np.tile(items, len(models))}


def _part(responses: ResponseMatrix, models: int, items: int) -> ResponseMatrix:
    """Every so many-th model and item."""
    return responses.take(models=np.arange(0, responses.n_models, models), items=np.arange(0, responses.n_items, items))


def _fewer_samples(samples: ResponseMatrix) -> ResponseMatrix:
    """The share of right ones rounded to `N_SAMPLES` samples."""
    trials = np.full(samples.responses.shape, N_SAMPLES)
    return ResponseMatrix.create(
        np.rint(samples.responses * N_SAMPLES) / N_SAMPLES, models=samples.models, items=samples.items, n_trials=trials
    )
