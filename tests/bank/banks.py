"""A small made-up bank, for tests of everything that stands on banks."""

import dataclasses

import numpy as np
import polars as pl

from itembank.bank.banks import Bank, Calibration, bank_fingerprint
from itembank.irt.bernoulli import probability
from itembank.irt.family_names import COUNTS, WITH_PRECISION
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

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


def with_family(bank, family, *, precision=12.0, seed=0):
    """Return the same bank with responses of another family, drawn from its item model."""
    rng = np.random.default_rng([seed, 7])
    parameters = bank.parameters
    has_precision = family in WITH_PRECISION
    parameters = ItemParameters.create(
        parameters.loadings,
        parameters.intercept,
        parameters.lower_asymptote,
        parameters.upper_asymptote,
        family=family,
        precision=precision if has_precision else None,
    )
    p = probability(parameters, bank.calibration.abilities)
    if has_precision:
        p = rng.beta(p * precision, (1.0 - p) * precision)
    n_trials = rng.integers(2, 9, p.shape) if family in COUNTS else None
    if family == "beta":
        responses = np.clip(p, 1e-6, 1.0 - 1e-6)
    else:
        responses = rng.binomial(1 if n_trials is None else n_trials, p) / (1 if n_trials is None else n_trials)
    matrix = dataclasses.replace(bank.responses, responses=responses, n_trials=n_trials)
    calibration = dataclasses.replace(bank.calibration, parameters=parameters, thresholds={})
    bank_id = bank_fingerprint(matrix, parameters, bank.targets)
    return dataclasses.replace(bank, bank_id=bank_id, responses=matrix, calibration=calibration)
