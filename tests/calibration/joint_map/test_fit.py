from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Point
from itembank.calibration.joint_map.fit import Plain, fit_joint_map
from itembank.calibration.joint_map.steps import (
    ability_derivatives,
    ascend,
    best_affine,
    item_derivatives,
    item_step,
    log_prior,
)
from itembank.errors import ParameterError
from tests.calibration.joint_map.starting import leading_point
from tests.calibration.simulated import simulate


def log_likelihood(data, items, abilities):
    share = expit(abilities @ items[:, :-1].T + items[:, -1])
    chances = data.lower_asymptote + (1.0 - data.lower_asymptote) * share
    cells = np.where(data.responses == 1.0, np.log(chances), np.log1p(-chances))
    return np.sum(cells if data.observed is None else cells[data.observed])


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.2)])
def test_gradients_are_the_slopes_of_the_log_likelihood(n_dims, missing, guessing):
    simulated = simulate(12, 9, n_dims=n_dims, missing=missing, guessing=guessing)
    data, abilities = simulated.data, simulated.theta
    items = np.column_stack([simulated.loadings, simulated.intercept])
    of_items, of_abilities = item_derivatives(data, items, abilities), ability_derivatives(data, items, abilities)
    assert of_items.value == pytest.approx(log_likelihood(data, items, abilities), rel=1e-12)
    assert of_abilities.value == pytest.approx(of_items.value, rel=1e-12)
    for index in np.ndindex(items.shape):
        step = np.zeros_like(items)
        step[index] = 1e-5
        rise = log_likelihood(data, items + step, abilities) - log_likelihood(data, items - step, abilities)
        assert of_items.gradient[index] == pytest.approx(rise / 2e-5, abs=1e-6)
    for index in np.ndindex(abilities.shape):
        step = np.zeros_like(abilities)
        step[index] = 1e-5
        rise = log_likelihood(data, items, abilities + step) - log_likelihood(data, items, abilities - step)
        assert of_abilities.gradient[index] == pytest.approx(rise / 2e-5, abs=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_precisions_are_the_curvatures_of_the_log_likelihood(missing):
    simulated = simulate(12, 9, n_dims=2, missing=missing)
    data, abilities = simulated.data, simulated.theta
    items = np.column_stack([simulated.loadings, simulated.intercept])
    of_items, of_abilities = item_derivatives(data, items, abilities), ability_derivatives(data, items, abilities)
    for one in range(3):
        step = np.zeros_like(items)
        step[:, one] = 1e-5
        change = item_derivatives(data, items + step, abilities).gradient
        change -= item_derivatives(data, items - step, abilities).gradient
        np.testing.assert_allclose(of_items.precision[:, one], -change / 2e-5, atol=1e-6)
    for one in range(2):
        step = np.zeros_like(abilities)
        step[:, one] = 1e-5
        change = ability_derivatives(data, items, abilities + step).gradient
        change -= ability_derivatives(data, items, abilities - step).gradient
        np.testing.assert_allclose(of_abilities.precision[:, one], -change / 2e-5, atol=1e-6)


@pytest.mark.parametrize(("item_model", "n_dims"), [("1pl", 1), ("2pl", 1), ("mirt", 3)])
def test_shift_and_scale_raise_the_prior_and_leave_every_logit(item_model, n_dims):
    simulated = simulate(20, 30, n_dims=n_dims, common_slope=1.5 if item_model == "1pl" else None)
    spec = JointMAP(item_model, n_dims=n_dims, l1=0.7)
    items, abilities = np.column_stack([simulated.loadings, simulated.intercept + 1.0]), simulated.theta * 2.0 - 0.4
    moved, moved_abilities = best_affine(items, abilities, spec)
    np.testing.assert_allclose(
        moved_abilities @ moved[:, :-1].T + moved[:, -1], abilities @ items[:, :-1].T + items[:, -1], atol=1e-10
    )
    best = log_prior(moved, moved_abilities, spec)
    assert best > log_prior(items, abilities, spec)
    if n_dims == 1:  # the scale, found last, cannot be bettered
        for scale in (0.99, 1.01):
            other = np.column_stack([moved[:, :-1] * scale, moved[:, -1]])
            assert log_prior(other, moved_abilities / scale, spec) < best


def test_an_item_step_meets_the_conditions_of_the_l1_optimum():
    simulated = simulate(60, 25, n_dims=2)
    data, abilities, spec = simulated.data, simulated.theta, JointMAP("mirt", n_dims=2, l1=6.0)
    items = np.zeros((25, 3))
    for _ in range(60):
        items = items + item_step(items, item_derivatives(data, items, abilities), spec)
    gradient = item_derivatives(data, items, abilities).gradient
    loadings, slopes = items[:, :-1], gradient[:, :-1]
    is_zero = loadings == 0.0
    assert is_zero.any()
    assert not is_zero.all()
    np.testing.assert_allclose(slopes[~is_zero], 6.0 * np.sign(loadings[~is_zero]), atol=1e-6)
    assert np.all(np.abs(slopes[is_zero]) <= 6.0 + 1e-9)
    np.testing.assert_allclose(gradient[:, -1], items[:, -1] / spec.intercept_sd**2, atol=1e-7)


def test_the_optimum_meets_the_conditions_of_the_l1_penalty():
    simulated, zeros = simulate(60, 40), []
    for l1 in (0.1, 3.0):
        problem = Plain(simulated.data, JointMAP(l1=l1, tolerance=1e-13))
        path = ascend(problem, leading_point(*problem))
        items, abilities = path.end
        gradient = item_derivatives(simulated.data, items, abilities).gradient[:, 0]
        is_zero = items[:, 0] == 0.0
        np.testing.assert_allclose(gradient[~is_zero], l1 * np.sign(items[~is_zero, 0]), atol=5e-3)
        assert np.all(np.abs(gradient[is_zero]) <= l1)
        zeros.append(is_zero.sum())
    assert zeros[0] < zeros[1] < 40


def test_a_penalty_that_leaves_no_loading_is_survived():
    fit = fit_joint_map(simulate(30, 20).data, JointMAP(l1=1000.0))
    np.testing.assert_array_equal(fit.loadings, 0.0)
    assert np.all(np.isfinite(fit.item_covariance))


def test_a_jump_along_sweeps_of_one_rate_of_convergence_ends_at_the_top(rng):
    """``x + c r^k`` at k = 0, 1, 2 gives x (Aitken's formula): after two sweeps, of which each goes 0.3 of the way."""
    top = Point(rng.random((4, 3)) + 0.5, rng.normal(size=(5, 2)))

    def derivatives(point):
        return SimpleNamespace(value=1.0 - sum(np.sum((a - b) ** 2) for a, b in zip(point, top, strict=True)))

    problem = SimpleNamespace(
        spec=JointMAP(max_iterations=9, tolerance=1e-10),
        item_derivatives=derivatives,
        ability_derivatives=derivatives,
        item_step=lambda point, _: 0.3 * (top.items - point.items),
        ability_step=lambda point, _: 0.3 * (top.abilities - point.abilities),
        settled=lambda point: point,
        log_prior=lambda _: 0.0,
    )
    start = Point(2.0 * top.items, rng.normal(size=(5, 2)))
    history = ascend(problem, start).history
    assert history[2] < 0.9
    assert history[3] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("item_model", "n_dims"), [("1pl", 1), ("2pl", 1), ("mirt", 3)])
def test_the_density_rises_to_the_end(item_model, n_dims):
    simulated = simulate(50, 80, n_dims=n_dims, missing=0.2)
    fit = fit_joint_map(simulated.data, JointMAP(item_model, n_dims=n_dims))
    assert fit.converged
    assert np.all(np.diff(fit.history) >= -1e-9 * np.abs(fit.history[-1]))
    total = np.cov(fit.abilities.T, bias=True).reshape(n_dims, n_dims) + fit.ability_covariance.mean(axis=0)
    np.testing.assert_allclose(total, np.eye(n_dims), atol=1e-10)


@pytest.mark.parametrize("arguments", [{"l1": 0.0}, {"intercept_sd": 0.0}])
def test_priors_that_leave_no_optimum_are_refused(arguments):
    with pytest.raises(ParameterError, match="must be a finite number > 0"):
        JointMAP(**arguments)
