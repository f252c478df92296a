import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from itembank.calibration.calibration_specs import ItemPrior, RelativeItemPrior
from itembank.calibration.marginal_ml.em import (
    LIMITS,
    LinePrior,
    best_scale,
    improve_items,
    item_derivatives,
    log_prior,
    prior_terms,
    rescale,
    with_line,
)
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
    assert items[0, 0] == pytest.approx(LIMITS[0], rel=1e-6)
    gradient = item_derivatives(data, items, sharp, fine).gradient[0]
    assert gradient[0] > 0.0  # it would go on
    assert gradient[1] == pytest.approx(0.0, abs=1e-6)


PRIORS = [ItemPrior(0.1, 0.4, 1.7), LinePrior(0.4, 1.5, 0.3)]


def positive_items(n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.lognormal(0.0, 0.4, n_items), rng.normal(size=n_items)])


def test_fixed_prior_is_the_lognormal_and_normal_density():
    items, prior = positive_items(), ItemPrior(0.1, 0.4, 1.7)
    expected = stats.lognorm.logpdf(items[:, 0], 0.4, scale=np.exp(0.1)).sum()
    expected += stats.norm.logpdf(items[:, 1], 0.0, 1.7).sum()
    assert log_prior(items, prior) == pytest.approx(expected, rel=1e-13)


def test_a_common_slope_counts_once():
    items = positive_items()
    items[:, 0] = 1.3
    expected = stats.lognorm.logpdf(1.3, 0.5) + stats.norm.logpdf(items[:, 1], 0.0, 2.0).sum()
    assert log_prior(items, ItemPrior(), has_common_slope=True) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("has_common_slope", [False, True])
def test_gradient_is_the_slope_of_the_density(prior, has_common_slope):
    items = positive_items()
    if has_common_slope:
        items[:, 0] = 1.3
    gradient = prior_terms(items, prior, has_common_slope=has_common_slope).gradient
    directions = list(np.ndindex(items.shape))
    if has_common_slope:  # only the slope of all items together may move
        directions = [(item, 1) for item in range(len(items))]
        step = np.zeros_like(items)
        step[:, 0] = 1e-6
        rise = log_prior(items + step, prior, has_common_slope=True)
        rise -= log_prior(items - step, prior, has_common_slope=True)
        assert gradient[:, 0].sum() == pytest.approx(rise / 2e-6, abs=1e-6)
    for index in directions:
        step = np.zeros_like(items)
        step[index] = 1e-6
        rise = log_prior(items + step, prior, has_common_slope=has_common_slope)
        rise -= log_prior(items - step, prior, has_common_slope=has_common_slope)
        assert gradient[index] == pytest.approx(rise / 2e-6, abs=1e-6)


def test_precision_of_the_fixed_prior_is_minus_its_curvature():
    items, prior, step = positive_items(n_items=1), ItemPrior(0.1, 0.4, 1.7), 1e-4
    precision = prior_terms(items, prior).precision[0]
    for one in range(2):
        ahead, behind = items.copy(), items.copy()
        ahead[0, one] += step
        behind[0, one] -= step
        change = (prior_terms(ahead, prior).gradient - prior_terms(behind, prior).gradient)[0] / (2.0 * step)
        np.testing.assert_allclose(precision[one], -change, rtol=1e-6, atol=1e-8)


def test_a_relative_prior_does_not_hold_the_scale_of_ability_and_a_fixed_one_does():
    items = positive_items()
    # c' = c + a m moves an item along the line's direction, and the line with it when it is fitted anew
    for shift, scale in [(0.0, 3.0), (1.5, 1.0), (-0.7, 0.2)]:
        moved = np.column_stack([scale * items[:, 0], items[:, 1] + shift * items[:, 0]])
        before = log_prior(items, with_line(RelativeItemPrior(), items))
        assert log_prior(moved, with_line(RelativeItemPrior(), moved)) == pytest.approx(before, rel=1e-12)
    moved = items * np.array([3.0, 1.0])
    assert log_prior(moved, ItemPrior()) < log_prior(items, ItemPrior()) - 10.0


def test_best_scale_without_a_prior_is_the_mean_and_variance_of_the_posteriors():
    mean = np.random.default_rng(1).normal(0.4, 1.3, (50, 1))
    scale = best_scale(mean, np.full((50, 1, 1), 0.1), positive_items(), None)
    assert scale == pytest.approx((mean.mean(), np.sqrt(mean.var() + 0.1)), rel=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
def test_best_scale_with_a_prior_against_a_derivative_free_optimiser(prior):
    rng = np.random.default_rng(2)
    mean, covariance = rng.normal(0.2, 1.1, (20, 1)), np.full((20, 1, 1), 0.05)
    items = positive_items(n_items=30)

    def negative(packed):  # E log N(theta; m, s^2) of all models plus the prior of the moved items
        shift, size = packed[0], np.exp(packed[1])
        expected = stats.norm.logpdf(mean[:, 0], shift, size).sum() - 0.5 * 20 * 0.05 / size**2
        moved = np.column_stack([items[:, 0] * size, items[:, 1] + items[:, 0] * shift])
        return -expected - log_prior(moved, prior)

    found = minimize(negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    scale = best_scale(mean, covariance, items, prior)
    assert scale == pytest.approx((found[0], np.exp(found[1])), abs=1e-4)


def test_rescaled_items_predict_the_same():
    rng = np.random.default_rng(3)
    items, theta = positive_items(), rng.normal(size=(9, 1))
    shift, size = best_scale(rng.normal(1.0, 2.0, (40, 1)), np.zeros((40, 1, 1)), items, None)
    moved = rescale(items, shift, size)
    original = shift + size * theta
    np.testing.assert_allclose(
        theta @ moved[:, :1].T + moved[:, 1], original @ items[:, :1].T + items[:, 1], atol=1e-12
    )
