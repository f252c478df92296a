import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp

from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml import posterior as posteriors
from itembank.numerics.stable import softplus
from tests.calibration.simulated import simulate

BOUNDS = (-6.0, 6.0)


def case(*size, **options):
    """What was simulated, and the items that it was drawn from."""
    truth = simulate(*size, **options)
    return truth, np.column_stack([truth.loadings, truth.intercept])


def by_hand(data, items, grid):
    """Posterior of each model, one at a time, in plain probabilities of single responses."""
    chances = expit(grid.nodes @ items[:, :-1].T + items[:, -1])
    chances = data.lower_asymptote + (1.0 - data.lower_asymptote) * chances  # (n_quadrature, n_items)
    totals, means, covariances = [], [], []
    for model, responses in enumerate(data.responses):
        kept = np.ones(len(responses), dtype=bool) if data.observed is None else data.observed[model]
        cells = np.where(responses == 1.0, np.log(chances), np.log1p(-chances))[:, kept]
        log_joint = grid.log_weights + cells.sum(axis=1)
        totals.append(logsumexp(log_joint))
        weights = np.exp(log_joint - totals[-1])
        means.append(weights @ grid.nodes)
        covariances.append((grid.nodes - means[-1]).T @ (weights[:, None] * (grid.nodes - means[-1])))
    return np.array(totals), np.array(means), np.array(covariances)


@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.3, 0.2)])
def test_posterior_is_bayes_rule_model_by_model(missing, guessing):
    truth, items = case(9, 23, missing=missing, guessing=guessing)
    grid = posteriors.ability_grid(61, 61, bounds=(-5.0, 5.0))
    posterior = posteriors.ability_posterior(truth.data, items, grid)
    totals, means, covariances = by_hand(truth.data, items, grid)
    assert_allclose(posterior.log_likelihood, totals, rtol=1e-12)
    assert_allclose(posterior.mean, means, atol=1e-12)
    assert_allclose(posterior.covariance, covariances, atol=1e-12)
    assert_allclose(posterior.curve_weights.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2)])
def test_coarse_curves_give_the_posterior_of_fine_ones(missing, guessing):
    truth, items = case(20, 400, missing=missing, guessing=guessing)
    exact, coarse = (
        posteriors.ability_posterior(truth.data, items, posteriors.ability_grid(301, n, bounds=BOUNDS))
        for n in (301, 61)
    )
    assert_allclose(coarse.log_likelihood, exact.log_likelihood, atol=1e-5)
    assert_allclose(coarse.mean, exact.mean, atol=1e-6)
    assert_allclose(coarse.covariance, exact.covariance, rtol=1e-4)


def test_many_items_do_not_underflow_and_single_precision_responses_give_the_same():
    truth, items = case(60, 3000)
    posterior = posteriors.ability_posterior(truth.data, items, posteriors.ability_grid(801, 801, bounds=BOUNDS))
    assert np.all(posterior.log_likelihood < -800.0)  # exp of it is zero in double precision
    assert np.abs(posterior.mean[:, 0] - truth.theta[:, 0]).max() < 5.0 * np.sqrt(posterior.covariance.max())
    x = np.array([[-800.0, -1.0, 0.0, 2.0, 800.0]]).repeat(512, axis=0)
    assert_allclose(posteriors.softplus_sum(x), 512.0 * np.logaddexp(0.0, x[0]), rtol=1e-12)
    truth, items = case(10, 200)
    single = FitData(truth.data.responses.astype(np.float32), None, truth.data.lower_asymptote)
    grid = posteriors.ability_grid(121, 121, bounds=BOUNDS)
    one, other = (posteriors.ability_posterior(data, items, grid) for data in (truth.data, single))
    assert_allclose(other.log_likelihood, one.log_likelihood, rtol=1e-6)
    assert_allclose(other.mean, one.mean, atol=1e-5)


@pytest.mark.parametrize(("product", "error"), [(0.75, 3e-6), (posteriors.WIDEST_SLOPE_TIMES_SPACING, 5e-5)])
def test_interpolated_curves_err_as_stated(product, error):
    grid = posteriors.ability_grid(1201, 121, bounds=BOUNDS)
    for difficulty in np.linspace(-2.0, 2.05, 9):
        curve, exact = (
            softplus(product / 0.1 * (nodes[:, 0] - difficulty)) for nodes in (grid.curve_nodes, grid.nodes)
        )
        assert np.abs(grid.refine(curve[None])[0] - exact).max() < error


def test_grids_are_as_fine_as_needed_and_gathered_weights_keep_the_sum_of_every_curve():
    rng = np.random.default_rng(0)
    grid = posteriors.ability_grid(41, 21, bounds=BOUNDS)
    weights, curves = rng.random((3, 41)), rng.normal(size=(3, 21))
    expected = np.sum(weights * grid.refine(curves), axis=1)
    assert_allclose(np.sum(grid.gather(weights) * curves, axis=1), expected, rtol=1e-12)
    grid = posteriors.ability_grid(61, 100, bounds=BOUNDS)
    assert grid.interpolation is None
    values = np.arange(122.0).reshape(2, 61)
    assert grid.refine(values) is grid.gather(values) is values
    grid = posteriors.adaptive_grid(0.03, 4.0, bounds=BOUNDS)
    needs = ((0.03, 4.0), (0.02, 4.0), (0.03, 8.0))
    assert [posteriors.is_fine_enough(grid, *one) for one in needs] == [True, False, False]
    assert posteriors.nodes_for_spacing(0.1, BOUNDS) == 121


def test_sharpest_sd_is_that_of_the_test_information():
    rng = np.random.default_rng(1)
    items = np.column_stack([rng.lognormal(size=50), rng.normal(size=50)])
    abilities = rng.normal(size=(7, 1))
    share = expit(abilities @ items[:, :1].T + items[:, 1])
    information = (share * (1.0 - share)) @ items[:, 0] ** 2
    assert posteriors.sharpest_sd(items, abilities) == pytest.approx(1.0 / np.sqrt(1.0 + information.max()), rel=1e-12)
