"""New models of a made-up bank, their gaps, and what can be said of their scores for certain."""

import dataclasses
import functools

import numpy as np
import polars as pl

from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank


def small_bank(n_models=12, n_items=30, seed=0):
    """Make a bank with binary responses throughout, a measured bias in every scenario, and folds of loose fits."""
    made = make_bank(n_models=n_models, n_items=n_items, seed=seed)
    calibration = dataclasses.replace(made.calibration, thresholds={}, tolerance=1e-3)
    return dataclasses.replace(made, calibration=calibration, item_model_bias=np.array([0.02, 0.03, 0.05]))


@functools.cache
def shared_bank(n_models=12, n_items=30):
    """Return one small bank for all tests: what is derived from it is made once."""
    return small_bank(n_models, n_items)


def new_models(bank, n_models=6, seed=1):
    """Responses of new models to every item, drawn from the bank's item model."""
    rng = np.random.default_rng(seed)
    p = probability(bank.parameters, rng.normal(size=(n_models, bank.parameters.n_dims)))
    responses = (rng.random(p.shape) < p).astype(float)
    models = pl.DataFrame({"model_id": [f"new-{index}" for index in range(n_models)]})
    return ResponseMatrix.create(responses, models=models, items=bank.responses.items)


def having(given, places, value=np.nan):
    """The same bank or responses, but for the answers at these places."""
    if not isinstance(given, ResponseMatrix):
        return dataclasses.replace(given, responses=having(given.responses, places, value))
    values = given.responses.copy()
    values[places] = value
    return dataclasses.replace(given, responses=values)


def held(found, truth, slack=0.0):
    """Which intervals hold the true scores, of the same shape."""
    return (found.low - slack <= truth) & (truth <= found.high + slack)


def with_a_small_scenario():
    """Answers of 70 models to 60 items and to 6, of which every selection of 20 has the six; and the scenarios."""
    rng = np.random.default_rng(4)
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=66) - rng.normal(size=(70, 1))))
    return (rng.random(chance.shape) < chance).astype(float), ["large"] * 60 + ["small"] * 6


def with_gaps(responses, pattern, seed=2, item_ids=()):
    """Responses with cells left out in one of several ways; `item_ids` are those that will be used."""
    values, rng = responses.responses.copy(), np.random.default_rng(seed)
    scenario = responses.items["scenario"].to_numpy()
    if pattern == "scattered":
        values[rng.random(values.shape) < 0.5] = np.nan
    elif pattern == "no law":
        values[:, scenario == "law"] = np.nan
    elif pattern == "uneven":
        used = np.isin(responses.item_ids, item_ids) if item_ids else np.ones(values.shape[1], dtype=bool)
        values[0, np.flatnonzero(used)[3:]] = np.nan
        values[1, scenario != "law"] = np.nan
    elif pattern == "one item":
        only = responses.item_indices(item_ids[:1] or responses.item_ids[:1])[0]
        values[:, np.arange(values.shape[1]) != only] = np.nan
    elif pattern == "a silent model":
        values[1] = np.nan
    return dataclasses.replace(responses, responses=values)


def full_scores(bank, responses):
    """Scores of models that answered everything, scenarios and overall."""
    return bank.targets.with_overall(bank.targets.scenario_means(responses.responses))


def select_cells(responses, selection):
    """Responses to the items of a selection alone."""
    return responses.take(items=responses.item_indices(selection.item_ids))


def possible_range(bank, responses):
    """Scores with every unseen item failed, and with every one solved, each (n_models, n_targets)."""
    columns = bank.responses.item_indices(responses.item_ids)
    whole = np.full((responses.n_models, bank.n_items), np.nan)
    whole[:, columns] = responses.responses
    return tuple(
        bank.targets.with_overall(bank.targets.scenario_means(np.where(np.isnan(whole), unseen, whole)))
        for unseen in (0.0, 1.0)
    )
