import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar
from scipy.special import logit

from itembank.irt.bernoulli import information_weights, probability
from itembank.irt.likelihood_abilities import ml_abilities, wle_abilities
from itembank.irt.parameters import ItemParameters
from tests.irt.scores import item_information, log_likelihood, score_function


def is_separated(loadings, responses):
    """Whether some direction raises every answer's likelihood and lowers none (a linear programme)."""
    signed = loadings * np.where(responses == 1.0, 1.0, -1.0)[:, None]
    best = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=[(-1, 1)] * loadings.shape[1])
    return -best.fun > 1e-7


@pytest.mark.parametrize(("n_dims", "n_items"), [(1, 4), (2, 8), (3, 12), (6, 20)])
def test_bound_is_found_exactly_where_a_plane_separates_the_answers(rng, n_dims, n_items):
    parameters = ItemParameters.create(rng.normal(size=(n_items, n_dims)), 2.0 * rng.normal(size=n_items))
    theta = 1.5 * rng.normal(size=(150, n_dims))
    responses = (rng.random((150, n_items)) < probability(parameters, theta)).astype(float)
    expected = np.array([is_separated(parameters.loadings, row) for row in responses])
    assert 0 < expected.sum() < 150
    found = ml_abilities(parameters, responses)
    np.testing.assert_array_equal(found.at_bound, expected)
    np.testing.assert_array_equal(np.isinf(found.theta).any(axis=1), expected)
    assert found.converged.all()
    inside = ~expected
    gradient = score_function(parameters, found.theta[inside], responses[inside])
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


def test_only_the_dimensions_that_grow_are_infinite(rng):
    # Items of the first dimension all right; the second has its own items, and its own maximum.
    loadings = np.zeros((20, 2))
    loadings[:10, 0], loadings[10:, 1] = 1.0, rng.lognormal(size=10)
    intercept = rng.normal(size=20)
    responses = np.concatenate([np.ones(10), np.tile([0.0, 1.0], 5)])[None]
    found = ml_abilities(ItemParameters.create(loadings, intercept), responses)
    alone = ml_abilities(ItemParameters.create(loadings[10:, 1:], intercept[10:]), responses[:, 10:])
    assert found.theta[0, 0] == np.inf
    assert found.theta[0, 1] == pytest.approx(alone.theta[0, 0], abs=1e-7)
    assert found.at_bound[0]


@pytest.mark.parametrize("slope", [1.0, -1.0, 1e-3])
def test_all_right_and_all_wrong_go_the_way_of_the_slope(slope):
    found = ml_abilities(
        ItemParameters.create(np.full((5, 1), slope), np.arange(5.0)), np.array([[1.0] * 5, [0.0] * 5])
    )
    np.testing.assert_array_equal(found.theta[:, 0], np.array([np.inf, -np.inf]) * np.sign(slope))
    assert np.isnan(found.standard_errors).all()


@pytest.mark.parametrize("share", [1e-6, 0.3, 1.0 - 1e-6])
def test_near_extreme_fractions_are_finite(share):
    # Probabilities clipped at 1e-6 (IRSL) are not at the bound: the maximum is their logit.
    found = ml_abilities(ItemParameters.create(np.ones((4, 1)), np.zeros(4)), np.full((1, 4), share))
    assert not found.at_bound[0]
    assert found.theta[0, 0] == pytest.approx(logit(share), abs=1e-6)


def test_with_guessing_the_likelihood_may_be_highest_at_minus_infinity():
    # Right on the hardest items only: more likely from guessing all than from any ability.
    parameters = ItemParameters.create(np.full((8, 1), 1.5), np.linspace(4.0, -4.0, 8), 0.3)
    responses = (np.arange(8) >= 5).astype(float)[None]
    grid = np.linspace(-30.0, 10.0, 4001)[:, None]
    values = log_likelihood(parameters, grid, np.repeat(responses, len(grid), axis=0))
    assert np.argmax(values) == 0  # the premise
    found = ml_abilities(parameters, responses)
    assert found.theta[0, 0] == -np.inf
    assert found.at_bound[0]


@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_maximum_likelihood_is_the_global_maximum(rng, lower):
    parameters = ItemParameters.create(rng.lognormal(0.3, 0.5, (15, 1)), 1.5 * rng.normal(size=15), lower)
    responses = (rng.random((60, 15)) < 0.5).astype(float)
    found = ml_abilities(parameters, responses)
    grid = np.linspace(-40.0, 40.0, 8001)[:, None]
    best = np.array(
        [log_likelihood(parameters, grid, np.repeat(row[None], len(grid), axis=0)).max() for row in responses]
    )
    finite = ~found.at_bound
    assert finite.sum() > 20
    assert np.all(log_likelihood(parameters, found.theta[finite], responses[finite]) >= best[finite] - 1e-12)


def test_weighted_likelihood_of_equal_items_adds_half_an_answer_to_each_side():
    # For n copies of one item, the Jeffreys penalty is that of (k + 1/2) / (n + 1) (Firth 1993).
    n_items = 12
    parameters = ItemParameters.create(np.full((n_items, 1), 2.0), np.full(n_items, 0.7))
    responses = (np.arange(n_items) < np.arange(n_items + 1)[:, None]).astype(float)
    found = wle_abilities(parameters, responses)
    share = (np.arange(n_items + 1) + 0.5) / (n_items + 1)
    np.testing.assert_allclose(found.theta[:, 0], (logit(share) - 0.7) / 2.0, atol=1e-10)
    assert not found.at_bound.any()


@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_weighted_likelihood_maximises_its_objective(rng, lower):
    parameters = ItemParameters.create(rng.lognormal(0.0, 0.4, (20, 1)), rng.normal(size=20), lower)
    responses = (rng.random((12, 20)) < 0.6).astype(float)
    responses[0], responses[1] = 1.0, 0.0
    found = wle_abilities(parameters, responses)

    def objective(theta, row):
        at = np.array([[theta]])
        information = item_information(parameters, at).sum()
        return log_likelihood(parameters, at, responses[row : row + 1])[0] + 0.5 * np.log(information)

    grid = np.linspace(-8.0, 8.0, 400)
    for row in range(12):
        coarse = grid[np.argmax([objective(point, row) for point in grid])]
        best = minimize_scalar(
            lambda theta, row=row: -objective(theta, row),
            bounds=(coarse - 0.1, coarse + 0.1),
            method="bounded",
            options={"xatol": 1e-10},
        )
        # A bounded search on values finds a maximum to about the root of the rounding error.
        assert found.theta[row, 0] == pytest.approx(best.x, abs=1e-6)


def test_weighted_likelihood_solves_warms_equation_without_asymptotes(rng):
    # Warm (1989): score + J / (2 I) = 0 with J = sum p' p'' / (p q) = sum a^3 w (1 - 2 p).
    slope = rng.lognormal(0.0, 0.4, 25)
    parameters = ItemParameters.create(slope[:, None], rng.normal(size=25))
    responses = (rng.random((10, 25)) < 0.6).astype(float)
    theta = wle_abilities(parameters, responses).theta
    weights, p = information_weights(parameters, theta), probability(parameters, theta)
    correction = np.sum(slope**3 * weights * (1.0 - 2.0 * p), axis=1) / (2.0 * np.sum(slope**2 * weights, axis=1))
    np.testing.assert_allclose(score_function(parameters, theta, responses)[:, 0], -correction, atol=1e-9)


def test_fewer_answers_than_dimensions_measure_nothing(rng):
    parameters = ItemParameters.create(rng.normal(size=(9, 3)), np.zeros(9))
    responses = np.tile(np.tile([0.0, 1.0, 0.5], 3), (2, 1))
    responses[1, 2:] = np.nan
    for found in (ml_abilities(parameters, responses), wle_abilities(parameters, responses)):
        np.testing.assert_array_equal(found.at_bound, [False, True])
        assert np.isfinite(found.theta[0]).all()
        assert np.isnan(found.theta[1]).all()


@pytest.mark.slow
def test_weighted_likelihood_is_less_biased_than_maximum_likelihood(rng):
    parameters = ItemParameters.create(np.ones((15, 1)), np.linspace(-1.5, 1.5, 15))
    theta = np.full((20000, 1), 1.0)
    responses = (rng.random((20000, 15)) < probability(parameters, theta)).astype(float)
    weighted, plain = wle_abilities(parameters, responses).theta, ml_abilities(parameters, responses)
    bias = plain.theta[~plain.at_bound].mean() - 1.0
    # Monte Carlo error of each mean is about .005; ML here drops its infinities, which flatters it.
    assert abs(weighted.mean() - 1.0) < 0.02 < bias
