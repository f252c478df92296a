from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.model_abilities import answered_responses, estimate_abilities
from itembank.estimation.response_summary import summarise_responses
from itembank.irt.ability_specs import METHODS, ExpectedAPosteriori
from itembank.irt.newton import map_abilities
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank, with_family


def new_models(bank, rng, columns, n_models=4):
    """Responses of new models to some of the bank's items, in the given order."""
    ids = [bank.item_ids[column] for column in columns]
    values = (rng.random((n_models, len(ids))) < 0.6).astype(float)
    return ResponseMatrix.create(values, model_ids=[f"new-{row}" for row in range(n_models)], item_ids=ids)


def test_items_are_matched_by_id(rng):
    bank, columns = make_bank(), np.array([20, 3, 11, 7, 29, 1])
    responses = new_models(bank, rng, columns)
    found = estimate_abilities(bank, responses)
    kernel = map_abilities(bank.parameters.take(columns), responses.responses, bank.calibration.prior)
    np.testing.assert_allclose(found.theta, kernel.theta, atol=1e-12)
    np.testing.assert_allclose(found.standard_errors, kernel.standard_errors, atol=1e-12)
    assert found.model_ids == ("new-0", "new-1", "new-2", "new-3")
    assert found.bank_id == bank.bank_id
    assert found.method == "map"


@pytest.mark.parametrize("method", METHODS.kinds)
def test_every_method_has_its_short_name(rng, method):
    bank = make_bank(n_dims=1)
    found = estimate_abilities(bank, new_models(bank, rng, np.arange(30)), method)
    assert found.method == method
    assert found.theta.shape == (4, 1)
    assert found.converged.all()


def test_a_spec_carries_its_choices(rng):
    bank = make_bank(n_dims=1)
    responses = new_models(bank, rng, np.arange(30))
    coarse = estimate_abilities(bank, responses, ExpectedAPosteriori(n_quadrature=3))
    assert not coarse.converged.any()


def test_unknown_items_and_methods_are_named(rng):
    bank = make_bank()
    responses = ResponseMatrix.create(np.ones((1, 3)), item_ids=["math/0", "maths/3", "art/1"])
    with pytest.raises(DataError, match=r"2 of 3 are not: 'maths/3', 'art/1'"):
        estimate_abilities(bank, responses)
    with pytest.raises(ParameterError, match="scoring method"):
        estimate_abilities(bank, new_models(bank, rng, np.arange(3)), "mean")


def test_responses_are_made_binary_where_the_calibrations_were(rng):
    bank = make_bank()  # threshold 0.5 in 'math', none elsewhere
    ids = ["math/0", "code/1", "math/3", "law/2"]
    responses = ResponseMatrix.create(np.array([[0.7, 0.7, 0.2, 0.2]]), item_ids=ids)
    columns, values = answered_responses(bank, responses)
    np.testing.assert_array_equal(columns, [0, 1, 3, 2])
    np.testing.assert_array_equal(values, [[1.0, 0.7, 0.0, 0.2]])
    binary = ResponseMatrix.create(np.array([[1.0, 0.7, 0.0, 0.2]]), item_ids=ids)
    np.testing.assert_array_equal(estimate_abilities(bank, responses).theta, estimate_abilities(bank, binary).theta)


def test_unanswered_items_are_left_out_and_a_model_without_answers_has_the_prior(rng):
    bank = make_bank()
    responses = new_models(bank, rng, np.array([2, 4, 6, 8]))
    responses.responses[:, 2] = responses.responses[0, 0] = responses.responses[1] = np.nan
    columns, _ = answered_responses(bank, responses)
    np.testing.assert_array_equal(columns, [2, 4, 8])
    found = estimate_abilities(bank, responses)
    np.testing.assert_array_equal(found.n_answered, [2, 0, 3, 3])
    np.testing.assert_array_equal(found.theta[1], bank.calibration.prior.mean)
    np.testing.assert_allclose(found.covariance[1], bank.calibration.prior.covariance)
    assert not found.at_bound.any()


def new_responses(bank, *, n_models=5, seed=4):
    """Pass rates of new models on some items, with trials and missing cells, and the items out of order."""
    rng = np.random.default_rng(seed)
    items = list(rng.permutation(bank.item_ids)[:18])
    trials = rng.integers(1, 15, (n_models, 18))
    values = rng.binomial(trials, 0.6) / trials
    values[rng.random(values.shape) < 0.2] = np.nan
    scenarios = bank.responses.items.select("item_id", "scenario")
    table = pl.DataFrame({"item_id": items}).join(scenarios, on="item_id", how="left", maintain_order="left")
    return ResponseMatrix.create(values, items=table, n_trials=np.where(np.isnan(values), 0, trials))


@pytest.mark.parametrize("family", ["bernoulli", "binomial", "beta", "beta-binomial"])
def test_ability_behind_estimates_is_that_of_scoring(family):
    bank = make_bank() if family == "bernoulli" else with_family(make_bank(), family)
    responses = new_responses(bank)
    found = estimate(bank, responses, method="p-irt", interval="model-based")
    np.testing.assert_allclose(found.abilities, estimate_abilities(bank, responses).theta, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("family", ["binomial", "beta-binomial"])
def test_calibration_models_bring_their_own_trials(family):
    bank = with_family(make_bank(), family)
    laid = Asked.of(bank, new_responses(bank), None).observations
    same = laid.answered_by_calibration_models(bank)
    np.testing.assert_array_equal(same.n_trials, bank.responses.n_trials[:, laid.positions])
    some = laid.answered_by_calibration_models(bank, np.array([3, 1]))
    np.testing.assert_array_equal(some.n_trials, same.n_trials[[3, 1]])
    np.testing.assert_array_equal(some.responses, same.responses[[3, 1]])
    two = same.take(models=np.array([1, 2]), columns=np.array([0, 4]))
    np.testing.assert_array_equal(two.n_trials, same.n_trials[np.ix_([1, 2], [0, 4])])
    whole = summarise_responses(bank, same).abilities
    np.testing.assert_allclose(summarise_responses(bank, some).abilities, whole[[3, 1]], rtol=1e-10)


def test_models_that_attempted_items_less_often_change_nothing_for_others():
    """Errors of past models are those of as few attempts; both answered the same items."""
    bank = with_family(make_bank(n_models=12, n_dims=1), "binomial")
    trials = np.stack([np.ones(bank.n_items, int), np.full(bank.n_items, 12)])
    values = np.random.default_rng(3).binomial(trials, 0.6) / trials
    values[:, 20:] = np.nan
    responses = ResponseMatrix.create(
        values, items=bank.responses.items, n_trials=np.where(np.isnan(values), 0, trials)
    )
    together = estimate(bank, responses, method="p-irt")
    assert together.interval_kind == "calibrated"
    for row in range(2):
        alone = estimate(bank, responses.take(models=np.array([row])), method="p-irt")
        for name in ("value", "low", "high"):
            np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[row], atol=1e-12)


def test_trials_of_other_families_are_let_be():
    for bank in (make_bank(), with_family(make_bank(), "beta")):
        assert Asked.of(bank, new_responses(bank), None).observations.n_trials is None


@pytest.mark.parametrize("family", ["binomial", "beta"])
def test_design_based_estimates_count_trials_where_the_family_does(family):
    bank = with_family(make_bank(n_items=60), family)
    selection = select(bank, 30, method="random", rng=1)
    rng = np.random.default_rng(2)
    trials = rng.integers(1, 30, (4, 60))
    values = rng.binomial(trials, 0.6) / trials
    columns = bank.responses.item_indices(selection.item_ids)
    found = []
    for counts in (trials[:, columns], None):
        table = bank.responses.items[columns].select("item_id", "scenario")
        responses = ResponseMatrix.create(values[:, columns], items=table, n_trials=counts)
        is_assumed = counts is None and family == "binomial"
        with pytest.warns(DataWarning, match="as those of past models do") if is_assumed else nullcontext():
            found.append(estimate(bank, responses, selection=selection, interval="design"))
    is_same = np.allclose(found[0].value, found[1].value, rtol=1e-12)
    assert is_same == (family == "beta")
    # with a 60th of the items' noise left, both estimate the same score
    np.testing.assert_allclose(found[0].value, found[1].value, atol=0.05)
