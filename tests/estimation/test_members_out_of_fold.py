import dataclasses

import numpy as np
import pytest

from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import METHODS, PIRT, Auto, SampleMean, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import Observations
from itembank.estimation.past_errors import Expectations, MembersOutOfFold
from tests.estimation.simulated import shared_bank

pytestmark = pytest.mark.usefixtures("few_folds")

SEEN = np.arange(12)
"""Items that are answered: four of each scenario."""
SINGLES = {name: kind() for name, kind in METHODS.kinds.items() if kind not in {Stacked, Auto}}
MODEL = 8


@pytest.fixture(scope="module")
def bank():
    return dataclasses.replace(shared_bank())  # with folds of its own, as few as those of `changed`


@pytest.fixture(scope="module")
def changed(bank):
    """The same bank, but what one model did on items that are not seen is put in another order.

    Its mean, which decides the folds, stays.
    """
    responses = bank.responses.responses.copy()
    hidden = responses[MODEL, 12:].copy()
    responses[MODEL, 12:] = np.roll(hidden, 1)
    assert np.sum(responses[MODEL, 12:] != hidden) >= 6
    return dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=responses))


def answered(bank):
    weights = bank.targets.weights[SEEN]
    return Observations.of_items(bank.responses.responses[:, SEEN], SEEN, weights / weights.sum(), is_random=True)


def tried(bank, spec):
    return try_methods(bank, answered(bank), None, spec.members).by(spec)


@pytest.mark.parametrize("spec", SINGLES.values(), ids=SINGLES)
def test_what_a_model_did_on_items_not_seen_does_not_change_its_own_estimate(bank, changed, spec):
    assert [fold.held_out.tolist() for fold in folds(changed)] == [fold.held_out.tolist() for fold in folds(bank)]
    before, after = tried(bank, spec), tried(changed, spec)
    np.testing.assert_allclose(after.value[MODEL], before.value[MODEL], atol=1e-12)
    np.testing.assert_allclose(after.standard_error[MODEL], before.standard_error[MODEL], atol=1e-12)
    assert np.any(np.abs(after.truth[MODEL] - before.truth[MODEL]) > 0.01)


@pytest.mark.parametrize("name", ["p-irt", "factor", "ridge", "task-mean"])
def test_the_check_above_catches_a_leak(bank, changed, name):
    """With fits that saw every model, what one did on the other items does change its estimate."""
    values = []
    for each in (bank, changed):
        leaky = dataclasses.replace(each)
        whole = dataclasses.replace(each)
        if name == "p-irt":  # the made-up bank's parameters do not come from its responses: take those of a fit
            whole = fitted_to(each)
        leaky.cache.memory["folds"] = tuple(
            dataclasses.replace(fold, make_bank=lambda whole=whole: whole) for fold in folds(each)
        )
        values.append(tried(leaky, SINGLES[name]).value[MODEL])
    assert np.max(np.abs(values[1] - values[0])) > 1e-6


def fitted_to(bank):
    """The bank with parameters of a fit that MODEL took part in."""
    other = next(fold for fold in folds(bank) if MODEL not in fold.held_out)
    return dataclasses.replace(bank, calibration=other.bank.calibration)


def test_estimates_are_those_of_banks_that_have_not_seen_the_model(bank):
    found = tried(bank, PIRT())
    for fold in folds(bank):
        new = bank.responses.take(models=fold.held_out, items=SEEN)
        by_hand = estimate(fold.bank, new, method=PIRT(), interval="model-based")
        np.testing.assert_allclose(found.value[fold.held_out], by_hand.value, atol=1e-12)
        np.testing.assert_allclose(found.standard_error[fold.held_out], by_hand.standard_error, atol=1e-12)
    np.testing.assert_allclose(found.truth, bank.targets.with_overall(bank.scenario_scores))
    np.testing.assert_array_equal(found.error, found.value - found.truth)


def test_members_together_are_what_each_is_alone(bank):
    specs = (PIRT(), SampleMean(), Weighted())
    together = try_methods(bank, answered(bank), None, specs)
    for number, spec in enumerate(specs):
        alone = tried(bank, spec)
        np.testing.assert_array_equal(together.single(number).value, alone.value)
        np.testing.assert_array_equal(together.single(number).standard_error, alone.standard_error)
    for number, fold in enumerate(folds(bank)):
        np.testing.assert_array_equal(together.fold[fold.held_out], number)


def made_up(rng, n_models=24):
    """Two methods' errors in four folds."""
    truth = rng.random((n_models, 2))
    values = truth + np.array([0.02, 0.05])[:, None, None] * rng.standard_normal((2, n_models, 2))
    fold = np.arange(n_models) % 4
    certain = np.zeros(truth.shape)  # nothing is moved to agree with the overall score
    expected = Expectations(truth, certain, truth, certain, truth, np.ones(truth.shape))
    return MembersOutOfFold(truth, values, expected, fold, np.ones(1))


def test_stack_weights_of_a_fold_come_from_the_others(rng):
    spec = Stacked((PIRT(), Weighted()))
    found = made_up(rng)
    inside = found.fold == 2
    truth = found.truth.copy()
    truth[inside] += rng.standard_normal(truth[inside].shape)
    other = dataclasses.replace(found, truth=truth)
    np.testing.assert_array_equal(other.stacked(spec).value[inside], found.stacked(spec).value[inside])
    assert np.all(other.stacked(spec).value[~inside] != found.stacked(spec).value[~inside])
    assert not np.allclose(other.weights(spec), found.weights(spec))


def test_stacked_is_between_its_members_and_better_than_the_worse(rng):
    spec = Stacked((PIRT(), Weighted()))
    found = made_up(rng, 400)
    stacked = found.stacked(spec)
    assert np.all(stacked.value >= found.values.min(axis=0) - 1e-12)
    assert np.all(stacked.value <= found.values.max(axis=0) + 1e-12)
    errors = np.mean(found.errors**2, axis=1)
    assert np.all(np.mean(stacked.error**2, axis=0) < errors[0])  # independent errors: the mean is better than the best
    np.testing.assert_allclose(found.weights(spec)[0], 1.0 / (1.0 + (0.02 / 0.05) ** 2), atol=0.04)
