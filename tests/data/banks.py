"""A small made-up bank, for tests of everything that stands on banks."""

import numpy as np
import polars as pl

from itembank.data.banks import Bank
from itembank.data.calibrations import Calibration
from itembank.data.fingerprint import bank_fingerprint
from itembank.data.responses import ResponseMatrix
from itembank.data.targets import ScoreTargets
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters

SCENARIOS = ("math", "code", "law")


def make_bank(*, n_models=12, n_items=30, n_dims=2, seed=0, with_extras=False):
    """Make a bank of known parameters, without a calibration; `with_extras` adds missing cells, trials and costs."""
    rng = np.random.default_rng(seed)
    parameters = ItemParameters.create(rng.lognormal(0.0, 0.3, (n_items, n_dims)), rng.normal(size=n_items))
    abilities = rng.normal(size=(n_models, n_dims))
    responses = (rng.random((n_models, n_items)) < probability(parameters, abilities)).astype(float)
    extras = {}
    if with_extras:
        responses[rng.random(responses.shape) < 0.1] = np.nan
        extras["n_trials"] = np.where(np.isnan(responses), 0, 4)
        extras["costs"] = {"output_tokens": np.where(np.isnan(responses), np.nan, rng.integers(1, 99, responses.shape))}
    items = pl.DataFrame(
        {
            "item_id": [f"{SCENARIOS[i % 3]}/{i}" for i in range(n_items)],
            "scenario": [SCENARIOS[i % 3] for i in range(n_items)],
            "subscenario": [None if i % 3 else f"part {i % 2}" for i in range(n_items)],
            "n_options": [4] * n_items,
        }
    )
    models = pl.DataFrame({"model_id": [f"org/model-{i}" for i in range(n_models)], "size": np.arange(n_models) * 1.5})
    matrix = ResponseMatrix.create(responses, models=models, items=items, **extras)
    calibration = Calibration(
        parameters,
        np.broadcast_to(0.01 * np.eye(n_dims + 1), (n_items, n_dims + 1, n_dims + 1)).copy(),
        abilities,
        np.broadcast_to(0.05 * np.eye(n_dims), (n_models, n_dims, n_dims)).copy(),
        AbilityPrior.standard(n_dims),
        np.zeros(n_items, dtype=bool),
        {"math": 0.5},
        "variational",
        "mirt" if n_dims > 1 else "2pl",
        True,
        7,
        "made up",
        np.arange(7.0),
    )
    targets = ScoreTargets.create(items)
    bank_id = bank_fingerprint(matrix, parameters, targets)
    return Bank(bank_id, matrix, calibration, targets, np.array([0.02, 0.03, np.nan]), np.array([0.2, 0.21, 0.19]))
