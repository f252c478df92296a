"""How often calibrated intervals hold the truth for new models of the same population, simulated with known truth."""

import dataclasses
import functools
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import METHODS
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.estimation.simulated import full_scores, select_cells

N_PAST, N_NEW, N_ITEMS, N_BANKS = 120, 200, 180, 12
"""A bank's intervals are as wide as its 120 models happened to ask for: its coverage has a standard deviation of 0.02,
the mean over twelve banks of 0.006."""
LEAST, MOST, LEAST_OF_OTHERS = 0.93, 0.98, 0.925
"""Of 95 % intervals of the default, three standard deviations from that; and the least of other methods, of whose some
hundred coverages the smallest is further away."""
SPECS = {name: kind() for name, kind in METHODS.kinds.items()}
WORLDS = {
    "ordinary": {},
    "low scores": {"level": -3.5},
    "high scores": {"level": 3.5},
    "two abilities": {"n_dims": 2},
    "few models": {"n_past": 14},
    "some dozens of models": {"n_past": 40},
}
PARTS = np.array(["math", "code", "law"])


@functools.cache
def made(world, seed):
    """A bank calibrated with one ability, and new models of the same population."""
    rng = np.random.default_rng([seed, 5])
    choices = {"level": 0.0, "n_dims": 1, "n_past": N_PAST, **WORLDS[world]}
    n_past = choices["n_past"]
    scenario = np.arange(N_ITEMS) % 3
    loadings = rng.lognormal(0.0, 0.4, (N_ITEMS, choices["n_dims"]))
    if choices["n_dims"] == 2:  # one scenario asks for one ability, one for the other, and one for both
        loadings = 1.5 * loadings * np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])[scenario]
    intercept = choices["level"] + rng.normal(0.0, 1.2, N_ITEMS)
    theta = rng.normal(size=(n_past + N_NEW, choices["n_dims"]))
    p = 1.0 / (1.0 + np.exp(-(theta @ loadings.T + intercept)))
    responses = (rng.random(p.shape) < p).astype(float)
    items = pl.DataFrame({"item_id": [f"{i}" for i in range(N_ITEMS)], "scenario": PARTS[scenario]})
    past, new = (
        ResponseMatrix.create(rows, model_ids=[f"{kind} {row}" for row in range(len(rows))], items=items)
        for kind, rows in (("past", responses[:n_past]), ("new", responses[n_past:]))
    )
    return calibrate(past, Variational(item_model="2pl", n_dims=1), rng=0), new


@functools.cache
def chosen(world, seed, method, n_items):
    return select(made(world, seed)[0], n_items, method=method, rng=seed)


def coverage(
    world, spec, *, select_by, n_items, interval="calibrated", missing=0.0, each_its_own=False, n_banks=N_BANKS
):
    """Share of new models whose score lies in its 95 % interval, (n_targets,), over banks."""
    found = []
    for seed in range(n_banks):
        bank, new = made(world, seed)
        selection = chosen(world, seed, select_by, n_items)
        answered = select_cells(new, selection)
        if missing:
            answered = with_missing(answered, missing, seed, each_its_own=each_its_own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            estimates = estimate(bank, answered, selection=selection, method=spec, interval=interval)
        assert estimates.interval_kind == interval
        truth = full_scores(bank, new)
        found.append(np.mean((estimates.low - 1e-12 <= truth) & (truth <= estimates.high + 1e-12), axis=0))
    return np.mean(found, axis=0)


def with_missing(responses, share, seed, *, each_its_own):
    """Leave out a share of the responses: the same items for all models, or others for each."""
    values, rng = responses.responses.copy(), np.random.default_rng(seed)
    n_rows = values.shape[0] if each_its_own else 1
    lost = rng.permuted(np.tile(np.arange(values.shape[1]), (n_rows, 1)), axis=1) < share * values.shape[1]
    values[np.broadcast_to(lost, values.shape)] = np.nan
    return dataclasses.replace(responses, responses=values)


def outside(coverages, least=LEAST):
    """Coverages of those methods for which a target's is not in the range."""
    is_default = {"auto", "stacked"}
    return {
        name: found
        for name, found in coverages.items()
        if np.any(found < (least if name in is_default else min(least, LEAST_OF_OTHERS)))
        or (name in is_default and np.any(found > MOST))
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "select_by", "n_items", "missing"),
    [
        *(
            ("ordinary", method, n_items, 0.0)
            for method in ("random", "anchor-irt", "v-optimal")
            for n_items in (5, 30)
        ),
        *((world, "anchor-irt", 30, 0.0) for world in ("low scores", "high scores")),
        *(("ordinary", method, 30, 0.3) for method in ("anchor-irt", "v-optimal")),
    ],
)
def test_calibrated_intervals_cover_new_models_by_every_method(world, select_by, n_items, missing):
    choices = {"select_by": select_by, "n_items": n_items, "missing": missing}
    assert not outside({name: coverage(world, spec, **choices) for name, spec in SPECS.items()})


@pytest.mark.slow
@pytest.mark.parametrize("select_by", ["anchor-irt", "v-optimal"])
@pytest.mark.parametrize("method", ["auto", "p-irt", "gp-irt", "factor"])
def test_they_cover_where_other_items_are_missing_for_each_model(method, select_by):
    """More sets of items than get errors of their own: the rest goes by those of all items and its own scale."""
    found = coverage("ordinary", SPECS[method], select_by=select_by, n_items=30, missing=0.3, each_its_own=True)
    assert not outside({method: found})


@pytest.mark.slow
@pytest.mark.parametrize(("world", "n_banks"), [("few models", 60), ("some dozens of models", 30)])
def test_they_cover_with_few_calibration_models(world, n_banks):
    found = {
        name: coverage(world, SPECS[name], select_by="v-optimal", n_items=12, n_banks=n_banks)
        for name in ("auto", "p-irt", "factor", "weighted", "ridge")
    }
    assert not outside(found)


@pytest.mark.slow
def test_they_cover_where_the_item_model_is_wrong_and_model_based_ones_do_not():
    """Scenarios ask for two abilities, and the bank knows one."""
    choices = {"select_by": "anchor-irt", "n_items": 30}
    found = {name: coverage("two abilities", spec, **choices) for name, spec in SPECS.items()}
    assert not outside(found, least=0.92)
    model_based = coverage("two abilities", SPECS["p-irt"], interval="model-based", **choices)
    assert np.all(model_based[:2] < 0.75)
    assert np.all(coverage("two abilities", SPECS["task-mean"], interval="model-based", **choices)[:2] < 0.9)
