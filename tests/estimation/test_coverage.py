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
from itembank.estimation.estimate import MOST_KEPT, estimate
from itembank.estimation.estimator_specs import METHODS
from itembank.estimation.folds import folds
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.estimation.simulated import (
    full_scores,
    having,
    held,
    new_models,
    possible_range,
    select_cells,
    small_bank,
    with_gaps,
)

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
    rng, choices = np.random.default_rng([seed, 5]), {"level": 0.0, "n_dims": 1, "n_past": N_PAST, **WORLDS[world]}
    n_past, scenario = choices["n_past"], np.arange(N_ITEMS) % 3
    loadings = rng.lognormal(0.0, 0.4, (N_ITEMS, choices["n_dims"]))
    if choices["n_dims"] == 2:  # one scenario asks for one ability, one for the other, and one for both
        loadings = 1.5 * loadings * np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])[scenario]
    intercept = choices["level"] + rng.normal(0.0, 1.2, N_ITEMS)
    p = 1.0 / (1.0 + np.exp(-(rng.normal(size=(n_past + N_NEW, choices["n_dims"])) @ loadings.T + intercept)))
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


def coverage(world, spec, *, select_by, n_items, interval="calibrated", missing=0.0, each_own=False, n_banks=N_BANKS):
    """Share of new models whose score lies in its 95 % interval, (n_targets,), over banks."""
    found = []
    for seed in range(n_banks):
        (bank, new), selection = made(world, seed), chosen(world, seed, select_by, n_items)
        answered = with_missing(select_cells(new, selection), missing, seed, each_own=each_own)
        estimates = estimated(bank, answered, selection=selection, method=spec, interval=interval)
        assert estimates.interval_kind == interval
        found.append(held(estimates, full_scores(bank, new), 1e-12).mean(axis=0))
    return np.mean(found, axis=0)


def with_missing(responses, share, seed, *, each_own):
    """Leave out a share of the responses: the same items for all models, or others for each."""
    values, rng = responses.responses.copy(), np.random.default_rng(seed)
    n_rows = values.shape[0] if each_own else 1
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


CASES = [("ordinary", method, n, 0.0) for method in ("random", "anchor-irt", "v-optimal") for n in (5, 30)]
CASES += [(world, "anchor-irt", 30, 0.0) for world in ("low scores", "high scores")]
CASES += [("ordinary", method, 30, 0.3) for method in ("anchor-irt", "v-optimal")]


@pytest.mark.slow
@pytest.mark.parametrize(("world", "select_by", "n_items", "missing"), CASES)
def test_calibrated_intervals_cover_new_models_by_every_method(world, select_by, n_items, missing):
    choices = {"select_by": select_by, "n_items": n_items, "missing": missing}
    assert not outside({name: coverage(world, spec, **choices) for name, spec in SPECS.items()})


@pytest.mark.slow
@pytest.mark.parametrize("select_by", ["anchor-irt", "v-optimal"])
@pytest.mark.parametrize("method", ["auto", "p-irt", "gp-irt", "factor"])
def test_they_cover_where_other_items_are_missing_for_each_model(method, select_by):
    """More sets of items than get errors of their own: the rest goes by those of all items and its own scale."""
    found = coverage("ordinary", SPECS[method], select_by=select_by, n_items=30, missing=0.3, each_own=True)
    assert not outside({method: found})


@pytest.mark.slow
@pytest.mark.parametrize(("world", "n_banks"), [("few models", 60), ("some dozens of models", 30)])
def test_they_cover_with_few_calibration_models(world, n_banks):
    methods, choices = ("auto", "p-irt", "factor", "weighted", "ridge"), {"select_by": "v-optimal", "n_items": 12}
    assert not outside({name: coverage(world, SPECS[name], n_banks=n_banks, **choices) for name in methods})


@pytest.mark.slow
def test_they_cover_where_the_item_model_is_wrong_and_model_based_ones_do_not():
    """Scenarios ask for two abilities, and the bank knows one."""
    choices = {"select_by": "anchor-irt", "n_items": 30}
    found = {name: coverage("two abilities", spec, **choices) for name, spec in SPECS.items()}
    assert not outside(found, least=0.92)
    assert np.all(coverage("two abilities", SPECS["p-irt"], interval="model-based", **choices)[:2] < 0.75)
    assert np.all(coverage("two abilities", SPECS["task-mean"], interval="model-based", **choices)[:2] < 0.9)


ALL_METHODS = pytest.mark.parametrize("method", SPECS.values(), ids=SPECS)
ADDED_UP = {"mean", "weighted", "p-irt"}
"""Methods whose overall score is the mean of the scenarios'; gp-irt's is, too, where nothing is cut."""
NEEDS_EVERY_SCENARIO = {"mean", "weighted"}
FAST = {
    "no selection": {"scattered", "no law", "uneven"},
    "random": {"complete", "scattered", "one item"},
    "anchor-irt": {"no law", "uneven", "a silent model"},
    "v-optimal": {"complete", "one item", "a silent model"},
}
"""Every way of choosing with three kinds of gaps, and each kind with two ways of choosing; other pairs are slow."""
CHOSEN_AND_GAPS = [
    pytest.param(chosen, pattern, marks=[] if pattern in fast else [pytest.mark.slow])
    for chosen, fast in FAST.items()
    for pattern in ("complete", "scattered", "no law", "uneven", "one item", "a silent model")
]


@pytest.fixture(scope="module")
def bank():
    """Return a bank of four folds, which are fitted here: no rule of the contract turns on their number."""
    made = small_bank()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 4)
        assert len(folds(made)) == 4
    return made


@pytest.fixture(scope="module")
def selections(bank):
    chosen = {name: select(bank, 12, method=name, rng=0) for name in ("random", "anchor-irt", "v-optimal")}
    return {"no selection": None, **chosen}


def estimated(bank, responses, **choices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return estimate(bank, responses, **choices)


@pytest.mark.parametrize(("chosen", "pattern"), CHOSEN_AND_GAPS)
@ALL_METHODS
def test_every_method_keeps_the_contract(bank, selections, method, chosen, pattern):
    selection, name = selections[chosen], METHODS.name_of(method)
    wanted = () if selection is None else selection.item_ids
    responses = with_gaps(new_models(bank, n_models=3), pattern, item_ids=wanted)
    found = estimated(bank, responses, selection=selection, method=method)
    used = responses if selection is None else select_cells(responses, selection)
    of_scenario = used.items["scenario"].to_numpy()[:, None] == np.array(bank.targets.scenarios)
    observed, n_used = used.observed.astype(int) @ of_scenario, used.observed.sum(axis=1)
    assert found.targets == ("math", "code", "law", "overall")
    np.testing.assert_array_equal(found.n_items, np.column_stack([observed, n_used]))
    np.testing.assert_array_equal(found.n_total, [10, 10, 10, 30])
    np.testing.assert_array_equal(found.n_missing, 0 if selection is None else selection.n_items - n_used)
    by_draw = chosen == "random" and name == "auto" and pattern != "one item"
    assert found.interval_kind == ("design" if by_draw else "calibrated")
    # an estimate, with an error and an interval, wherever there is something to go by
    told = np.repeat(observed.any(axis=1)[:, None], 4, axis=1)
    if name in NEEDS_EVERY_SCENARIO:
        told = np.column_stack([observed > 0, (observed > 0).all(axis=1)])
    np.testing.assert_array_equal(~np.isnan(found.scores), [told] * 4)
    assert np.all(found.standard_error[told] >= 0.0)
    if name in ADDED_UP:
        np.testing.assert_allclose(found.value[:, -1], found.value[:, :-1].mean(axis=1), atol=0.05)
    check_range(found, bank, used)


def check_range(found, bank, used):
    """Low <= value <= high, in [0, 1], and no score that the answered items rule out."""
    there = ~np.isnan(found.value)
    assert np.all((found.low <= found.value)[there] & (found.value <= found.high)[there])
    assert np.all((found.low >= 0.0)[there] & (found.high <= 1.0)[there])
    least, most = possible_range(bank, used)
    assert np.all((found.low >= least - 1e-12)[there] & (found.high <= most + 1e-12)[there])


@ALL_METHODS
def test_what_was_answered_in_full_has_its_exact_score_without_error(bank, method):
    responses = new_models(bank)
    exact = full_scores(bank, responses)
    for interval in ("calibrated", "model-based"):
        found = estimate(bank, responses, method=method, interval=interval)
        np.testing.assert_allclose(found.value, exact, atol=1e-14)
        np.testing.assert_allclose(found.standard_error, 0.0, atol=1e-12)
        np.testing.assert_array_equal(found.low, found.high)
    is_math = responses.items["scenario"].to_numpy() == "math"
    found = estimate(bank, having(responses, (slice(None), ~is_math & (np.arange(30) > 10))), method=method)
    np.testing.assert_allclose(found.value[:, 0], exact[:, 0], atol=1e-14)
    np.testing.assert_allclose(found.standard_error[:, 0], 0.0, atol=1e-12)
    assert np.all(found.standard_error[:, 1:] > 0.0)


@ALL_METHODS
def test_other_models_in_the_file_change_nothing(bank, selections, method):
    choices = {"method": method, "selection": selections["v-optimal"]}
    responses = with_gaps(new_models(bank, n_models=3), "uneven", item_ids=selections["v-optimal"].item_ids)
    whole = np.array(estimated(bank, responses, **choices).scores)
    for row in range(3):
        alone = estimated(bank, responses.take(models=np.array([row])), **choices).scores
        np.testing.assert_allclose(np.array(alone)[:, 0], whole[:, row], atol=1e-9)


def test_neither_order_nor_other_models_matter_where_each_was_asked_other_items(bank):
    n_models = MOST_KEPT + 4
    responses = with_gaps(new_models(bank, n_models=n_models), "scattered")
    assert len({tuple(row) for row in responses.observed.tolist()}) == n_models
    rng = np.random.default_rng(0)
    models, items = rng.permutation(n_models), rng.permutation(30)
    together = estimate(bank, responses, method="stacked")
    turned = estimate(bank, responses.take(models=models, items=items), method="stacked").scores
    alone = [estimate(bank, responses.take(models=[row]), method="stacked").scores for row in range(n_models)]
    whole = np.array(together.scores)
    np.testing.assert_allclose(turned, whole[:, models], atol=1e-12)
    np.testing.assert_allclose(np.concatenate(alone, axis=1), whole, atol=1e-12)
    check_range(together, bank, responses)
