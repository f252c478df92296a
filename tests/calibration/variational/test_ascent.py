from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from itembank.calibration.start import start_abilities
from itembank.calibration.variational.ascent import Coupling, ascend, coupled_step, has_settled, improve_items
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.passes import ability_statistics, cells, item_statistics
from itembank.calibration.variational.state import LEAST_PRECISION, Covariances, bounded_rate, start_posterior
from itembank.calibration.variational.updates import divergence, item_divergence, update_abilities, update_items
from itembank.numerics.symmetric import unpack
from itembank.progress import silent
from tests.calibration.simulated import simulate
from tests.numerics.compare import alike

CASES = {
    "2pl": {},
    "missing": {"missing": 0.3},
    "guessing": {"guessing": 0.25, "missing": 0.1},
    "1pl": {"common_slope": 1.3},
    "1pl missing": {"common_slope": 0.8, "missing": 0.3},
    "1pl guessing": {"common_slope": 1.5, "guessing": 0.3},
    "3 dims": {"n_dims": 3},
    "3 dims missing guessing": {"n_dims": 3, "missing": 0.2, "guessing": 0.2},
    "nested": {"n_dims": 3},
    "nested missing guessing": {"n_dims": 4, "missing": 0.2, "guessing": 0.2},
}


RULES = pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])


def begin(data, n_dims, *, has_common_slope=False, is_nested=False):
    blocks = make_blocks(data, single_precision=False)
    abilities = start_abilities(data.responses, data.observed, n_dims=n_dims)
    covariance = np.tile(0.1 * np.eye(n_dims), (len(abilities), 1, 1))
    kind = {"has_common_slope": has_common_slope, "is_nested": is_nested}
    return blocks, start_posterior(abilities, covariance, blocks.n_items, **kind)


def bound_of(blocks, posterior, rule):
    return item_statistics(blocks, posterior, rule).likelihood.sum() - divergence(posterior)


@RULES
@pytest.mark.parametrize("case", CASES)
def test_the_bound_never_falls(case, rule):
    options = CASES[case]
    kind = {"has_common_slope": "common_slope" in options, "is_nested": case.startswith("nested")}
    blocks, start = begin(simulate(25, 40, seed=1, **options).data, options.get("n_dims", 1), **kind)
    found = ascend(blocks, start, rule, tolerance=1e-11, max_sweeps=50, progress=silent)
    history = np.array(found.history)
    assert len(history) > 8
    assert np.diff(history).min() >= 0.0
    assert bound_of(blocks, found.end.posterior, rule) == pytest.approx(history[-1], rel=1e-10)


@pytest.mark.parametrize("case", ["2pl", "guessing", "1pl", "3 dims"])
def test_the_expected_likelihood_carries_on_above_the_bound(case):
    options = CASES[case]
    blocks, start = begin(simulate(40, 60, seed=2, **options).data, options.get("n_dims", 1))
    rough = ascend(blocks, start, jaakkola_jordan, tolerance=1e-3, max_sweeps=50, progress=silent)
    assert bound_of(blocks, rough.end.posterior, normal_expectation) > rough.history[-1]


def test_items_that_fell_are_put_back():
    blocks, start = begin(simulate(30, 40, missing=0.2, seed=3).data, 1)
    posterior = ascend(blocks, start, normal_expectation, tolerance=1e-6, max_sweeps=50, progress=silent).end.posterior
    before = item_statistics(blocks, posterior, normal_expectation)
    spoiled = before.linear.copy()
    spoiled[:7] += 50.0  # the update of these items now goes astray
    wrong = type(before)(before.precision, spoiled, before.likelihood)
    swept, found, steps = improve_items(blocks, posterior, wrong, np.ones(40), rule=normal_expectation, with_cross=True)
    assert_array_equal(swept.item_mean[:7], posterior.item_mean[:7])
    assert_array_equal(steps[:7], 0.5)
    old, new = (item_divergence(one) for one in (posterior, swept))  # which decides with the likelihood
    assert np.all((found.likelihood - new >= before.likelihood - old - 1e-9 * np.abs(before.likelihood))[7:])
    assert not np.array_equal(swept.item_mean[7:], posterior.item_mean[7:])
    expected = ability_statistics(blocks, swept, normal_expectation, with_cross=True)
    alike(found, expected, "linear", rtol=1e-9, atol=1e-9)
    alike(found, expected, "precision likelihood", rtol=1e-9)
    assert_allclose(found.cross[0], expected.cross[0], rtol=1e-9)
    assert_allclose(found.cross[1], expected.cross[1], rtol=1e-9, atol=1e-12)


def log_cosh_by(rule, mean, variance):
    """Expectation of log(2 cosh(x / 2)): its bound, or that of three nodes."""
    if rule is jaakkola_jordan:
        xi = np.sqrt(mean**2 + variance)
        return np.logaddexp(xi / 2, -xi / 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    values = mean[..., None] + nodes * np.sqrt(variance)[..., None]
    return np.logaddexp(values / 2, -values / 2) @ (weights / weights.sum())


@RULES
def test_reaches_the_maximum_that_a_general_optimiser_finds(rule):
    """The same family, written down anew and maximised over all means and Cholesky factors at once."""
    data = simulate(7, 6, seed=4).data
    blocks, start = begin(data, 1)
    found = ascend(blocks, start, rule, tolerance=1e-13, max_sweeps=2000, progress=silent)
    n_models, n_items = data.responses.shape
    prior = found.end.posterior.item_prior
    precision = prior.shape / prior.rate

    def negative(vector):
        theta, log_sd = vector[:n_models], vector[n_models : 2 * n_models]
        slope, intercept, corner, diagonal_a, diagonal_c = vector[2 * n_models :].reshape(5, n_items)
        sd_a, sd_c = np.exp(diagonal_a), np.exp(diagonal_c)  # lower triangle [[sd_a, 0], [corner, sd_c]]
        variance_theta, variance_a, variance_c = np.exp(2 * log_sd), sd_a**2, sd_c**2 + corner**2
        covariance = sd_a * corner
        mean = np.outer(theta, slope) + intercept
        variance = np.outer(theta**2, variance_a) + 2 * np.outer(theta, covariance) + variance_c
        variance += np.outer(variance_theta, slope**2 + variance_a)
        likelihood = np.sum((data.responses - 0.5) * mean - log_cosh_by(rule, mean, variance))
        of_abilities = 0.5 * np.sum(theta**2 + variance_theta - 1.0 - 2 * log_sd)
        squares = (slope - prior.mean[0]) ** 2 + variance_a, (intercept - prior.mean[1]) ** 2 + variance_c
        of_items = 0.5 * (precision[0] * squares[0].sum() + precision[1] * squares[1].sum())
        of_items -= np.sum(diagonal_a + diagonal_c)
        return -(likelihood - of_abilities - of_items)

    ability = np.linspace(-1, 1, n_models)[np.argsort(np.argsort(data.responses.mean(axis=1), kind="stable"))]
    halves, zeros = np.full(n_models, -0.5), np.zeros(n_items)
    begin_at = np.concatenate([ability, halves, zeros + 1.0, zeros, zeros, zeros - 0.5, zeros - 0.5])
    best = minimize(negative, begin_at, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    end = found.end.posterior
    factors = np.linalg.cholesky(end.item_covariance)
    of_abilities = [end.ability_mean[:, 0], 0.5 * np.log(end.ability_covariance[:, 0, 0])]
    of_items = [*end.item_mean.T, factors[:, 1, 0], np.log(factors[:, 0, 0]), np.log(factors[:, 1, 1])]
    ours = np.concatenate([*of_abilities, *of_items])
    assert negative(ours) == pytest.approx(best.fun, abs=1e-6)
    assert_allclose(ours, best.x, atol=5e-3)


def test_parameters_have_settled_once_none_moves_by_its_own_error_and_their_spread_is_bounded():
    _, start = begin(simulate(20, 30, seed=1).data, 1)
    step = np.zeros_like(start.item_mean)
    step[7, 0] = 0.09  # of a standard deviation of 0.1
    assert has_settled(start, replace(start, item_mean=start.item_mean + step))
    assert not has_settled(start, replace(start, item_mean=start.item_mean + 1.3 * step))
    assert_array_equal(bounded_rate(np.array([2.0, 1e9]), np.full(2, 4.0)), [2.0, 4.0 / LEAST_PRECISION])


N_MODELS, N_ITEMS, N_DIMS = 20, 30, 2


@pytest.fixture
def state():
    """Items just updated, not far from the maximum, where the objective bends everywhere."""
    blocks, start = begin(simulate(N_MODELS, N_ITEMS, n_dims=N_DIMS, missing=0.2, seed=1).data, N_DIMS)
    posterior = ascend(blocks, start, jaakkola_jordan, tolerance=1e-3, max_sweeps=20, progress=silent).end.posterior
    posterior = update_items(posterior, item_statistics(blocks, posterior, normal_expectation), np.ones(N_ITEMS))
    return blocks, posterior, ability_statistics(blocks, posterior, normal_expectation, with_cross=True)


def dense_newton_step(blocks, posterior, statistics):
    """Solve the whole system of items and abilities at once, item by item and model by model."""
    block = next(cells(blocks, posterior, normal_expectation))
    residual = block.linear - block.curvature * block.mean
    size, of_items, of_models = N_DIMS + 1, N_ITEMS * (N_DIMS + 1), N_MODELS * N_DIMS
    precision = unpack(statistics.precision, N_DIMS) + np.eye(N_DIMS)
    hessian = np.zeros((of_items + of_models, of_items + of_models))
    for i in range(N_ITEMS):
        hessian[i * size : (i + 1) * size, i * size : (i + 1) * size] = np.linalg.inv(posterior.item_covariance[i])
        for m in range(N_MODELS):
            x = np.append(posterior.ability_mean[m], 1.0)
            cross = block.curvature[i, m] * np.outer(x, posterior.item_mean[i, :N_DIMS])
            cross[:N_DIMS] -= residual[i, m] * np.eye(N_DIMS)
            rows = slice(i * size, (i + 1) * size)
            columns = slice(of_items + m * N_DIMS, of_items + (m + 1) * N_DIMS)
            hessian[rows, columns], hessian[columns, rows] = cross, cross.T
            hessian[columns, columns] = precision[m]
    gradient = statistics.linear - np.einsum("ljk,lk->lj", precision, posterior.ability_mean)
    right = np.concatenate([np.zeros(of_items), gradient.ravel()])
    assert np.linalg.eigvalsh(hessian).min() > 0.0
    step = np.linalg.solve(hessian, right)
    return step[:of_items].reshape(N_ITEMS, size), step[of_items:].reshape(N_MODELS, N_DIMS)


def test_step_solves_the_coupled_system(state):
    blocks, posterior, statistics = state
    items, abilities = dense_newton_step(blocks, posterior, statistics)
    spread = update_abilities(posterior, statistics, 1.0).abilities_spread
    moved = coupled_step(posterior, statistics, statistics.cross, spread, max_iterations=200, relative_residual=1e-10)
    assert_allclose(moved.ability_mean - posterior.ability_mean, abilities, rtol=1e-6, atol=1e-9)
    assert_allclose(moved.item_mean - posterior.item_mean, items, rtol=1e-6, atol=1e-9)


def test_cross_derivatives_are_those_of_the_objective(state):
    """The residual part of the cross derivatives, by finite differences of the items' gradient."""
    blocks, posterior, _ = state
    items_spread = Covariances.of(1e-7 * np.tile(np.eye(N_DIMS + 1), (N_ITEMS, 1, 1)))
    abilities_spread = Covariances.of(1e-7 * np.tile(np.eye(N_DIMS), (N_MODELS, 1, 1)))
    flat = replace(posterior, items_spread=items_spread, abilities_spread=abilities_spread)
    direction = np.random.default_rng(3).normal(size=(N_MODELS, N_DIMS))

    def gradient(state):
        block = next(cells(blocks, state, normal_expectation))
        x = np.column_stack([state.ability_mean, np.ones(N_MODELS)])
        return (block.linear - block.curvature * block.mean) @ x

    ahead, behind = (
        gradient(replace(flat, ability_mean=flat.ability_mean + step * direction)) for step in (1e-5, -1e-5)
    )
    cross = ability_statistics(blocks, flat, normal_expectation, with_cross=True).cross
    coupling = replace(Coupling.at(flat, cross), item_covariance=np.tile(np.eye(3), (N_ITEMS, 1, 1)))
    assert_allclose(-(ahead - behind) / 2e-5, coupling.items_follow(direction), rtol=1e-4, atol=1e-5)
