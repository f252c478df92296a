import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from itembank.calibration.calibration_specs import ItemPrior, RelativeItemPrior
from itembank.calibration.marginal_ml import em
from itembank.calibration.marginal_ml.posterior import ability_grid, ability_posterior
from tests.calibration.simulated import simulate
from tests.numerics.compare import slopes, slopes_by_column

GRID = ability_grid(61, 61, bounds=(-5.0, 5.0))
COMMON_SLOPE = pytest.mark.parametrize("has_common_slope", [False, True])


def case(*size, **options):
    """Data and the items that they were drawn from."""
    truth = simulate(*size, **options)
    return truth.data, np.column_stack([truth.loadings, truth.intercept])


def test_provisional_posteriors_are_normal_around_the_given_abilities():
    grid = ability_grid(41, 41, bounds=(-6.0, 6.0))
    abilities = np.array([[-0.7], [1.2]])
    found = em._provisional(abilities, grid, sd=0.4)
    density = stats.norm.pdf(grid.curve_nodes[:, 0], abilities, 0.4)
    assert_allclose(found.curve_weights, density / density.sum(axis=1, keepdims=True), atol=1e-12)
    assert found.curve_weights @ grid.curve_nodes[:, 0] == pytest.approx(abilities[:, 0], abs=1e-3)
    assert_allclose(found.covariance[:, 0, 0], 0.4**2)


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
    data, items = case(30, 8, missing=missing, guessing=guessing)
    posterior, away = ability_posterior(data, items, GRID), items + 0.1
    found = em.item_derivatives(data, away, posterior, GRID, observed=True)
    rise = slopes_by_column(lambda at: expected_log_likelihood(data, at, posterior, GRID), away, 1e-4)
    assert_allclose(found.gradient, rise, atol=1e-6)
    bend = slopes_by_column(lambda at: em.item_derivatives(data, at, posterior, GRID).gradient, away, 1e-4)
    assert_allclose(found.precision, -bend, atol=1e-5)


def test_gradient_at_the_current_items_is_that_of_the_marginal_likelihood():
    # Fisher's identity: what makes an EM step climb the marginal likelihood
    data, items = case(25, 6, missing=0.2, guessing=0.1)
    gradient = em.item_derivatives(data, items, ability_posterior(data, items, GRID), GRID).gradient
    expected = slopes(lambda at: ability_posterior(data, at, GRID).log_likelihood.sum(), items)
    assert_allclose(gradient, expected, atol=1e-5)


@pytest.mark.parametrize("prior", [None, ItemPrior()])
@COMMON_SLOPE
def test_repeated_steps_reach_a_stationary_point(prior, has_common_slope):
    data, true_items = case(60, 10)
    posterior, items = ability_posterior(data, true_items, GRID), np.column_stack([np.ones(10), np.zeros(10)])
    for _ in range(41):
        before, derivatives = items, em.item_derivatives(data, items, posterior, GRID)
        items = em.improve_items(items, derivatives, prior, has_common_slope=has_common_slope)
    assert_allclose(items, before, atol=1e-8)
    if prior is None:
        gradient = em.item_derivatives(data, items, posterior, GRID).gradient
        free = np.array([gradient[:, 0].sum(), *gradient[:, 1]]) if has_common_slope else gradient
        assert_allclose(free, 0.0, atol=1e-7)
    if has_common_slope:
        assert np.ptp(items[:, 0]) == 0.0


def test_an_item_without_a_maximum_stops_at_the_bound_and_keeps_improving_its_intercept():
    abilities, items = np.linspace(-2.0, 2.0, 20), np.column_stack([np.ones(5), np.zeros(5)])
    data = simulate(20, 5).data
    data.responses[:, 0] = abilities > 0.9  # told apart without error
    fine = ability_grid(401, 401, bounds=(-6.0, 6.0))
    weights = np.exp(-0.5 * ((abilities[:, None] - fine.nodes[:, 0]) / 0.02) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    posterior = ability_posterior(data, items, fine)
    sharp = type(posterior)(posterior.log_likelihood, weights, abilities[:, None], posterior.covariance)
    for _ in range(100):
        items = em.improve_items(items, em.item_derivatives(data, items, sharp, fine), None)
    assert items[0, 0] == pytest.approx(em.LIMITS[0], rel=1e-6)
    gradient = em.item_derivatives(data, items, sharp, fine).gradient[0]
    assert gradient[0] > 0.0  # it would go on
    assert gradient[1] == pytest.approx(0.0, abs=1e-6)


FIXED = ItemPrior(0.1, 0.4, 1.7)
PRIORS = pytest.mark.parametrize("prior", [FIXED, em.LinePrior(0.4, 1.5, 0.3)])


def positive_items(n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.lognormal(0.0, 0.4, n_items), rng.normal(size=n_items)])


def test_fixed_prior_is_the_lognormal_and_normal_density_and_a_common_slope_counts_once():
    items = positive_items()
    expected = stats.lognorm.logpdf(items[:, 0], 0.4, scale=np.exp(0.1)).sum()
    expected += stats.norm.logpdf(items[:, 1], 0.0, 1.7).sum()
    assert em.log_prior(items, FIXED) == pytest.approx(expected, rel=1e-13)
    items[:, 0] = 1.3
    expected = stats.lognorm.logpdf(1.3, 0.5) + stats.norm.logpdf(items[:, 1], 0.0, 2.0).sum()
    assert em.log_prior(items, ItemPrior(), has_common_slope=True) == pytest.approx(expected, rel=1e-13)


@PRIORS
@COMMON_SLOPE
def test_gradient_is_the_slope_of_the_density(prior, has_common_slope):
    items = positive_items()
    if has_common_slope:  # only the slope of all items together may move
        items[:, 0] = 1.3
    gradient = em.prior_terms(items, prior, has_common_slope=has_common_slope).gradient

    def density(slope, intercept):
        return em.log_prior(np.column_stack([slope, intercept]), prior, has_common_slope=has_common_slope)

    if has_common_slope:
        rise = (density(items[:, 0] + 1e-6, items[:, 1]) - density(items[:, 0] - 1e-6, items[:, 1])) / 2e-6
        assert gradient[:, 0].sum() == pytest.approx(rise, abs=1e-6)
    else:
        assert_allclose(gradient[:, 0], slopes(lambda at: density(at, items[:, 1]), items[:, 0], 1e-6), atol=1e-6)
    assert_allclose(gradient[:, 1], slopes(lambda at: density(items[:, 0], at), items[:, 1], 1e-6), atol=1e-6)


def test_precision_of_the_fixed_prior_is_minus_its_curvature():
    items = positive_items(n_items=1)
    bend = slopes_by_column(lambda at: em.prior_terms(at, FIXED).gradient, items, 1e-4)
    assert_allclose(em.prior_terms(items, FIXED).precision, -bend, rtol=1e-6, atol=1e-8)


def test_a_relative_prior_does_not_hold_the_scale_of_ability_and_a_fixed_one_does():
    items = positive_items()
    # c' = c + a m moves an item along the line's direction, and the line with it when it is fitted anew
    for shift, scale in [(0.0, 3.0), (1.5, 1.0), (-0.7, 0.2)]:
        moved = np.column_stack([scale * items[:, 0], items[:, 1] + shift * items[:, 0]])
        before = em.log_prior(items, em.with_line(RelativeItemPrior(), items))
        assert em.log_prior(moved, em.with_line(RelativeItemPrior(), moved)) == pytest.approx(before, rel=1e-12)
    assert em.log_prior(items * [3.0, 1.0], ItemPrior()) < em.log_prior(items, ItemPrior()) - 10.0


@PRIORS
def test_best_scale_with_a_prior_against_a_derivative_free_optimiser(prior):
    rng = np.random.default_rng(2)
    mean, covariance = rng.normal(0.2, 1.1, (20, 1)), np.full((20, 1, 1), 0.05)
    items = positive_items(n_items=30)

    def negative(packed):  # E log N(theta; m, s^2) of all models plus the prior of the moved items
        shift, size = packed[0], np.exp(packed[1])
        expected = stats.norm.logpdf(mean[:, 0], shift, size).sum() - 0.5 * 20 * 0.05 / size**2
        moved = np.column_stack([items[:, 0] * size, items[:, 1] + items[:, 0] * shift])
        return -expected - em.log_prior(moved, prior)

    found = minimize(negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    scale = em.best_scale(mean, covariance, items, prior)
    assert scale == pytest.approx((found[0], np.exp(found[1])), abs=1e-4)


def test_best_scale_without_a_prior_is_the_mean_and_variance_of_the_posteriors_and_rescaled_items_predict_the_same():
    rng, items = np.random.default_rng(1), positive_items()
    mean, theta = rng.normal(0.4, 1.3, (50, 1)), rng.normal(size=(9, 1))
    shift, size = em.best_scale(mean, np.full((50, 1, 1), 0.1), items, None)
    assert (shift, size) == pytest.approx((mean.mean(), np.sqrt(mean.var() + 0.1)), rel=1e-12)
    moved, original = em.rescale(items, shift, size), shift + size * theta
    expected = original @ items[:, :1].T + items[:, 1]
    assert_allclose(theta @ moved[:, :1].T + moved[:, 1], expected, atol=1e-12)
