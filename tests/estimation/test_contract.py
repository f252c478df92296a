"""What every method of estimation keeps to, whatever is missing and however the items were chosen."""

import dataclasses
import warnings

import numpy as np
import pytest

from itembank.errors import DataWarning
from itembank.estimation.estimate import MOST_KEPT, estimate
from itembank.estimation.estimator_specs import METHODS
from itembank.estimation.folds import folds
from itembank.selection.select import select
from tests.estimation.simulated import full_scores, new_models, possible_range, select_cells, small_bank, with_gaps

SPECS = {name: kind() for name, kind in METHODS.kinds.items()}
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
    selection = selections[chosen]
    wanted = () if selection is None else selection.item_ids
    responses = with_gaps(new_models(bank, n_models=3), pattern, item_ids=wanted)
    found = estimated(bank, responses, selection=selection, method=method)
    used = responses if selection is None else select_cells(responses, selection)
    of_scenario = used.items["scenario"].to_numpy()[:, None] == np.array(bank.targets.scenarios)
    observed = used.observed.astype(int) @ of_scenario
    assert found.targets == ("math", "code", "law", "overall")
    np.testing.assert_array_equal(found.n_items, np.column_stack([observed, used.observed.sum(axis=1)]))
    np.testing.assert_array_equal(found.n_total, [10, 10, 10, 30])
    np.testing.assert_array_equal(
        found.n_missing, 0 if selection is None else selection.n_items - used.observed.sum(axis=1)
    )
    by_draw = chosen == "random" and METHODS.name_of(method) == "auto" and pattern != "one item"
    assert found.interval_kind == ("design" if by_draw else "calibrated")
    check_values(found, observed, METHODS.name_of(method))
    check_range(found, bank, used)


def check_values(found, observed, name):
    """There is an estimate, with an error and an interval, wherever there is something to go by."""
    if name in NEEDS_EVERY_SCENARIO:
        told = np.column_stack([observed > 0, (observed > 0).all(axis=1)])
    else:
        told = np.repeat(observed.any(axis=1)[:, None], found.value.shape[1], axis=1)
    for array in (found.value, found.standard_error, found.low, found.high):
        np.testing.assert_array_equal(~np.isnan(array), told)
    assert np.all(found.standard_error[told] >= 0.0)
    if name in ADDED_UP:
        np.testing.assert_allclose(found.value[:, -1], found.value[:, :-1].mean(axis=1), atol=0.05)


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
    values = responses.responses.copy()
    is_math = responses.items["scenario"].to_numpy() == "math"
    values[:, ~is_math & (np.arange(30) > 10)] = np.nan
    found = estimate(bank, dataclasses.replace(responses, responses=values), method=method)
    np.testing.assert_allclose(found.value[:, 0], exact[:, 0], atol=1e-14)
    np.testing.assert_allclose(found.standard_error[:, 0], 0.0, atol=1e-12)
    assert np.all(found.standard_error[:, 1:] > 0.0)


@ALL_METHODS
def test_other_models_in_the_file_change_nothing(bank, selections, method):
    selection = selections["v-optimal"]
    responses = with_gaps(new_models(bank, n_models=3), "uneven", item_ids=selection.item_ids)
    choices = {"method": method, "selection": selection}
    whole = estimated(bank, responses, **choices)
    for row in range(3):
        alone = estimated(bank, responses.take(models=np.array([row])), **choices)
        for name in ("value", "standard_error", "low", "high"):
            np.testing.assert_allclose(getattr(alone, name)[0], getattr(whole, name)[row], atol=1e-9, err_msg=name)


def test_neither_order_nor_other_models_matter_where_each_was_asked_other_items(bank):
    n_models = MOST_KEPT + 4
    responses = with_gaps(new_models(bank, n_models=n_models), "scattered")
    assert len({tuple(row) for row in responses.observed.tolist()}) == n_models
    rng = np.random.default_rng(0)
    models, items = rng.permutation(n_models), rng.permutation(30)
    together = estimate(bank, responses, method="stacked")
    turned = estimate(bank, responses.take(models=models, items=items), method="stacked")
    alone = [estimate(bank, responses.take(models=np.array([row])), method="stacked") for row in range(n_models)]
    for name in ("value", "standard_error", "low", "high"):
        whole = getattr(together, name)
        np.testing.assert_allclose(getattr(turned, name), whole[models], atol=1e-12, err_msg=name)
        np.testing.assert_allclose(np.concatenate([getattr(one, name) for one in alone]), whole, atol=1e-12)
    check_range(together, bank, responses)


@pytest.mark.parametrize("pattern", ["complete", "scattered"])
def test_design_based_estimates_keep_it_too(bank, pattern):
    selection = select(bank, 15, method="random", rng=0)
    responses = with_gaps(new_models(bank, n_models=3), "complete")
    if pattern == "scattered":
        values = responses.responses.copy()
        values[0, responses.item_indices(selection.item_ids[:3])] = np.nan
        responses = dataclasses.replace(responses, responses=values)
    found = estimated(bank, responses, selection=selection, interval="design")
    assert (found.interval_kind, found.method, found.explanation) == ("design", "design-based", "")
    assert not np.isnan(found.value).any()
    check_range(found, bank, select_cells(responses, selection))
