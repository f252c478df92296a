import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.calibration_specs import ItemPrior
from itembank.calibration.marginal_ml.items import LARGEST_SLOPE, improve_items, item_derivatives
from itembank.calibration.marginal_ml.posterior import ability_grid, ability_posterior
from tests.calibration.simulated import simulate

GRID = ability_grid(61, 61, bounds=(-5.0, 5.0))


def expected_log_likelihood(data, items, posterior, grid):
    """``sum_l sum_k w_lk log P(y_l | theta_k)`` of each item, from its definition."""
    chances = expit(grid.nodes @ items[:, :-1].T + items[:, -1])
    chances = data.lower_asymptote + (1.0 - data.lower_asymptote) * chances  # (n_quadrature, n_items)
    observed = np.ones(data.responses.shape) if data.observed is None else data.observed
    right, wrong = data.responses * observed, (1.0 - data.responses) * observed
    weights = posterior.curve_weights.T
    return np.sum((weights @ right) * np.log(chances) + (weights @ wrong) * np.log1p(-chances), axis=0)


@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.3, 0.2)])
def test_derivatives_are_those_of_the_expected_log_likelihood(missing, guessing):
    simulated = simulate(30, 8, missing=missing, guessing=guessing)
    data, items = simulated.data, np.column_stack([simulated.loadings, simulated.intercept])
    posterior = ability_posterior(data, items, GRID)
    away = items + 0.1
    derivatives = item_derivatives(data, away, posterior, GRID, observed=True)
    step = 1e-4
    for one in range(2):
        ahead, behind = away.copy(), away.copy()
        ahead[:, one] += step
        behind[:, one] -= step
        rise = expected_log_likelihood(data, ahead, posterior, GRID)
        rise -= expected_log_likelihood(data, behind, posterior, GRID)
        np.testing.assert_allclose(derivatives.gradient[:, one], rise / (2.0 * step), atol=1e-6)
        change = item_derivatives(data, ahead, posterior, GRID).gradient
        change -= item_derivatives(data, behind, posterior, GRID).gradient
        np.testing.assert_allclose(derivatives.precision[:, one], -change / (2.0 * step), atol=1e-5)


def test_gradient_at_the_current_items_is_that_of_the_marginal_likelihood():
    # Fisher's identity: what makes an EM step climb the marginal likelihood
    simulated = simulate(25, 6, missing=0.2, guessing=0.1)
    data, items = simulated.data, np.column_stack([simulated.loadings, simulated.intercept])
    gradient = item_derivatives(data, items, ability_posterior(data, items, GRID), GRID).gradient
    for index in np.ndindex(items.shape):
        step = np.zeros_like(items)
        step[index] = 1e-5
        ahead, behind = (ability_posterior(data, items + sign * step, GRID) for sign in (1.0, -1.0))
        rise = ahead.log_likelihood.sum() - behind.log_likelihood.sum()
        assert gradient[index] == pytest.approx(rise / 2e-5, abs=1e-5)


@pytest.mark.parametrize("prior", [None, ItemPrior()])
@pytest.mark.parametrize("has_common_slope", [False, True])
def test_repeated_steps_reach_a_stationary_point(prior, has_common_slope):
    simulated = simulate(60, 10)
    data, items = simulated.data, np.column_stack([np.ones(10), np.zeros(10)])
    posterior = ability_posterior(data, np.column_stack([simulated.loadings, simulated.intercept]), GRID)
    for _ in range(40):
        derivatives = item_derivatives(data, items, posterior, GRID)
        items = improve_items(items, derivatives, prior, has_common_slope=has_common_slope)
    moved = improve_items(
        items, item_derivatives(data, items, posterior, GRID), prior, has_common_slope=has_common_slope
    )
    np.testing.assert_allclose(moved, items, atol=1e-8)
    if prior is None:
        gradient = item_derivatives(data, items, posterior, GRID).gradient
        free = np.array([gradient[:, 0].sum(), *gradient[:, 1]]) if has_common_slope else gradient
        np.testing.assert_allclose(free, 0.0, atol=1e-7)
    if has_common_slope:
        assert np.ptp(items[:, 0]) == 0.0


def test_an_item_without_a_maximum_stops_at_the_bound_and_keeps_improving_its_intercept():
    abilities = np.linspace(-2.0, 2.0, 20)
    simulated = simulate(20, 5)
    responses = simulated.data.responses.copy()
    responses[:, 0] = abilities > 0.9  # told apart without error
    data = type(simulated.data)(responses, None, np.zeros(5))
    fine = ability_grid(401, 401, bounds=(-6.0, 6.0))
    weights = np.exp(-0.5 * ((abilities[:, None] - fine.nodes[:, 0]) / 0.02) ** 2)
    posterior = ability_posterior(data, np.column_stack([np.ones(5), np.zeros(5)]), fine)
    sharp = type(posterior)(
        posterior.log_likelihood, weights / weights.sum(axis=1, keepdims=True), abilities[:, None], posterior.covariance
    )
    items = np.column_stack([np.ones(5), np.zeros(5)])
    for _ in range(100):
        items = improve_items(items, item_derivatives(data, items, sharp, fine), None)
    assert items[0, 0] == pytest.approx(LARGEST_SLOPE, rel=1e-6)
    gradient = item_derivatives(data, items, sharp, fine).gradient[0]
    assert gradient[0] > 0.0  # it would go on
    assert gradient[1] == pytest.approx(0.0, abs=1e-6)
