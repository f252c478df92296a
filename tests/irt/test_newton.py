import numpy as np
import pytest
from scipy.special import expit

from itembank.irt.families import ResponseModel
from itembank.irt.likelihood_abilities import ml_abilities
from itembank.irt.newton import can_stand_side_by_side, map_abilities, map_side_by_side
from itembank.irt.parameters import AbilityPrior, ItemParameters
from tests.irt.scores import log_likelihood, score_function, simulate


@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_gradient_of_the_log_posterior_is_zero(rng, lower):
    parameters, responses = simulate(rng, 30, 60, 4, lower)
    prior = AbilityPrior(np.full(4, 0.5), 0.5 * np.eye(4) + 0.3)
    found = map_abilities(parameters, responses, prior)
    pull = (found.theta - prior.mean) @ np.linalg.inv(prior.covariance)
    np.testing.assert_allclose(score_function(parameters, found.theta, responses), pull, atol=1e-10)


def test_a_flat_prior_gives_maximum_likelihood_and_the_start_does_not_matter(rng):
    parameters, responses = simulate(rng, 30, 60, 2)
    flat = AbilityPrior(np.zeros(2), 1e12 * np.eye(2))
    np.testing.assert_allclose(
        map_abilities(parameters, responses, flat).theta, ml_abilities(parameters, responses).theta, atol=1e-9
    )
    parameters, responses = simulate(rng, 10, 40, 3)
    prior = AbilityPrior.standard(3)
    start = 5.0 * rng.normal(size=(10, 3))
    np.testing.assert_allclose(
        map_abilities(parameters, responses, prior, start=start).theta,
        map_abilities(parameters, responses, prior).theta,
        atol=1e-10,
    )


def test_of_two_modes_the_higher_is_found():
    # Easy steep items failed, hard ones with guessing passed: a mode on each side.
    parameters = ItemParameters.create(
        np.full((12, 1), 3.0), np.concatenate([np.full(6, 6.0), np.full(6, -6.0)]), np.repeat([0.0, 0.3], 6)
    )
    grid = np.linspace(-6.0, 6.0, 24001)[:, None]
    prior = AbilityPrior(np.zeros(1), 4.0 * np.eye(1))
    modes = set()
    for n_failed in range(7):
        responses = np.concatenate([np.arange(6) >= n_failed, np.ones(6, dtype=bool)]).astype(float)[None]
        log_posterior = (
            log_likelihood(parameters, grid, np.repeat(responses, len(grid), axis=0)) - grid[:, 0] ** 2 / 8.0
        )
        found = map_abilities(parameters, responses, prior)
        assert found.converged.all()
        assert found.theta[0, 0] == pytest.approx(grid[np.argmax(log_posterior), 0], abs=3e-4)
        modes.add(bool(found.theta[0, 0] > 0.0))
    assert modes == {True, False}


def test_one_item_with_a_closed_form_and_curves_with_a_chance_to_guess():
    # Ten copies of an item answered right k times: sigmoid(theta) = k / 10 but for the prior's pull.
    parameters = ItemParameters.create(np.ones((10, 1)), np.zeros(10))
    responses = (np.arange(10) < 7).astype(float)[None]
    theta = map_abilities(parameters, responses, AbilityPrior.standard(1)).theta[0, 0]
    assert 7.0 - 10.0 * expit(theta) == pytest.approx(theta, abs=1e-12)
    slopes = np.ones((2, 1))
    assert can_stand_side_by_side(ResponseModel.of(ItemParameters.create(slopes, np.zeros(2))))
    assert not can_stand_side_by_side(ResponseModel.of(ItemParameters.create(slopes, np.zeros(2), 0.2)))
    graded = ItemParameters.create(slopes, np.zeros(2), family="beta", precision=np.ones(2))
    assert not can_stand_side_by_side(ResponseModel.of(graded))


@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_a_weight_counts_like_repeated_responses(rng, lower):
    """Three trials of which two are right are two right responses and a wrong one."""
    parameters, responses = simulate(rng, 6, 20, 3, lower)
    trials = rng.integers(0, 5, responses.shape).astype(float)
    correct = rng.binomial(trials.astype(int), 0.6).astype(float)
    means = np.divide(correct, trials, out=np.full(trials.shape, np.nan), where=trials > 0)
    prior = AbilityPrior.standard(3)
    found = map_abilities(parameters, means, prior, weights=trials)
    repeated = parameters.take(np.repeat(np.arange(20), 4))
    order = np.tile(np.arange(4), 20)
    right, asked = np.repeat(correct, 4, axis=1), np.repeat(trials, 4, axis=1)
    one_by_one = np.where(order < asked, (order < right).astype(float), np.nan)
    expected = map_abilities(repeated, one_by_one, prior)
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-8)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-6, atol=1e-10)


def test_weights_of_models_that_answered_few_items_each(rng):
    """With many gaps each model keeps its own list of items, and its own weights."""
    parameters, responses = simulate(rng, 12, 80, 2)
    responses[rng.random(responses.shape) < 0.9] = np.nan
    weights = rng.integers(1, 6, responses.shape).astype(float)
    together = map_abilities(parameters, responses, AbilityPrior.standard(2), weights=weights)
    for row in range(12):
        alone = map_abilities(
            parameters, responses[row : row + 1], AbilityPrior.standard(2), weights=weights[row : row + 1]
        )
        np.testing.assert_allclose(together.theta[row], alone.theta[0], atol=1e-8)


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize("n_answers", [1, 17])
def test_each_model_has_the_ability_that_it_has_alone(rng, n_dims, n_answers):
    parameters = ItemParameters.create(rng.lognormal(size=(60, n_dims)), rng.normal(size=60))
    positions = np.sort([rng.permutation(60)[:n_answers] for _ in range(5)])
    responses = rng.integers(0, 2, (5, n_answers)).astype(float)
    responses[3] = 1.0  # all right: the prior alone keeps the ability finite
    prior = AbilityPrior(rng.normal(size=n_dims), 0.5 * np.eye(n_dims))
    found = map_side_by_side(
        parameters.loadings[positions], parameters.intercept[positions], responses, ResponseModel.of(parameters), prior
    )
    assert found.converged.all()
    for row in range(5):
        alone = map_abilities(parameters.take(positions[row]), responses[row : row + 1], prior)
        one = found.row(row)
        np.testing.assert_allclose(one.theta, alone.theta, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.covariance, alone.covariance, rtol=1e-12)
        assert (one.method, one.n_models) == ("map", 1)
