"""Simulated responses for studies: models with dates and groups, and model x prompt-template rows."""

import numpy as np
import polars as pl

from itembank.responses.responses import ResponseMatrix
from itembank_studies.split_specs import RandomShare
from itembank_studies.study_specs import CalibrationChoice, StudySpec

ONE_DIMENSION = CalibrationChoice("map", n_dims=1)  # the quickest


def make_responses(*, n_models=40, n_items=60, n_scenarios=2, seed=0, missing=0.0):
    """One ability a model, items of one common slope; dates rise with the row, five organisations, token costs."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=n_models), rng.normal(size=n_items)
    logit = 1.5 * (ability[:, None] - difficulty)
    responses = (rng.random(logit.shape) < 1.0 / (1.0 + np.exp(-logit))).astype(float)
    responses[rng.random(logit.shape) < missing] = np.nan
    models = pl.DataFrame(
        {
            "model_id": [f"model-{i}" for i in range(n_models)],
            "date": [f"2024-{1 + i % 12:02d}-{1 + i // 12:02d}" for i in range(n_models)],
            "org": [f"org-{i % 5}" for i in range(n_models)],
            "is_odd": [i % 2 == 1 for i in range(n_models)],
            "accuracy": responses.mean(axis=1),  # what leaderboards' tables hold, and no method may see
        }
    )
    parts = [f"part-{j % n_scenarios}" for j in range(n_items)]
    ids = {"item_id": [f"item-{j}" for j in range(n_items)], "scenario": parts}
    items = pl.DataFrame({**ids, "mean_response": responses.mean(axis=0)})
    costs = {"output_tokens": np.broadcast_to(1.0 + np.arange(n_items), responses.shape) + ability[:, None] ** 2}
    return ResponseMatrix.create(responses, models=models, items=items, costs=costs)


def make_prompt_responses(*, n_sizes=3, n_per_size=4, n_templates=6, n_items=60, seed=0):
    """Rows model x prompt template (tinyBenchmarks 5.2): ability, an effect of the template, and of both on items."""
    rng = np.random.default_rng(seed)
    size = np.repeat(np.arange(n_sizes), n_per_size)
    ability = 0.8 * (size - size.mean()) + 0.3 * rng.normal(size=size.size)
    template_effect, template_style = 0.5 * rng.normal(size=(2, n_templates))
    difficulty, style = rng.normal(size=(2, n_items))
    of_template = template_effect[:, None] - difficulty + template_style[:, None] * style
    logit = (ability[:, None, None] + of_template).reshape(-1, n_items)
    rows = [
        (f"model-{m}/template-{t}", f"template-{t}", f"{1 + size[m]}B")
        for m in range(size.size)
        for t in range(n_templates)
    ]
    models = pl.DataFrame(rows, schema=["model_id", "template", "model_size"], orient="row")
    responses = (rng.random(logit.shape) < 1.0 / (1.0 + np.exp(-logit))).astype(float)
    return ResponseMatrix.create(responses, models=models, item_ids=[f"item-{j}" for j in range(n_items)])


def make_spec(**changes):
    """A study that takes a fraction of a second."""
    methods = {"selectors": ("random", "anchor-irt"), "estimators": ("weighted", "gp-irt")}
    choices = {"splits": (RandomShare(0.25),), "n_items": (6, 12), "repeats": 2, "seed": 3}
    return StudySpec("simulated", **{"calibration": ONE_DIMENSION, **methods, **choices, **changes})


def numbers(table):
    """The columns of estimates that must not depend on how they were computed."""
    return table.select(name for name in table.columns if not name.startswith("seconds"))
