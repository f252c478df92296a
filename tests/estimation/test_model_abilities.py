import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.estimation.model_abilities import answered_responses, estimate_abilities
from itembank.irt.ability_specs import METHODS, ExpectedAPosteriori
from itembank.irt.newton import map_abilities
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank


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


def test_unknown_items_are_named(rng):
    bank = make_bank()
    responses = ResponseMatrix.create(np.ones((1, 3)), item_ids=["math/0", "maths/3", "art/1"])
    with pytest.raises(DataError, match=r"2 of 3 are not: 'maths/3', 'art/1'"):
        estimate_abilities(bank, responses)


def test_an_unknown_method_is_refused(rng):
    bank = make_bank()
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


def test_unanswered_items_are_left_out(rng):
    bank = make_bank()
    responses = new_models(bank, rng, np.array([2, 4, 6, 8]))
    responses.responses[:, 2] = np.nan
    responses.responses[0, 0] = np.nan
    columns, _ = answered_responses(bank, responses)
    np.testing.assert_array_equal(columns, [2, 4, 8])
    np.testing.assert_array_equal(estimate_abilities(bank, responses).n_answered, [2, 3, 3, 3])


def test_a_model_without_answers_has_the_prior(rng):
    bank = make_bank()
    responses = new_models(bank, rng, np.arange(6))
    responses.responses[1] = np.nan
    found = estimate_abilities(bank, responses)
    np.testing.assert_array_equal(found.theta[1], bank.calibration.prior.mean)
    np.testing.assert_allclose(found.covariance[1], bank.calibration.prior.covariance)
    assert found.n_answered[1] == 0
    assert not found.at_bound.any()
