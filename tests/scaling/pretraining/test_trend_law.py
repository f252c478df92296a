import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit, logit, ndtri
from scipy.stats import multivariate_normal, norm

from itembank_scaling.pretraining import trend_law as kernel


def points_of(x):
    """Points of (n_scenarios, n_recipes, n_sizes), all known."""
    n_scenarios, n_recipes, n_sizes = x.shape
    recipe = np.tile(np.repeat(np.arange(n_recipes), n_sizes), (n_scenarios, 1))
    return kernel.TrendPoints(x.reshape(n_scenarios, -1), recipe, np.ones((n_scenarios, x[0].size), dtype=bool))


def test_covariances_are_double_integrals_of_that_of_brownian_motion_and_can_be_factored(rng):
    step = 0.005
    first, second = np.arange(0.5 * step, 1.3, step), np.arange(0.5 * step, 2.1, step)
    expected = np.minimum(first[:, None], second[None, :]).sum() * step**2
    assert kernel.integrated_wiener(np.array(1.3), np.array(2.1)) == pytest.approx(expected, rel=1e-4)
    points = points_of(rng.uniform(0.5, 4.0, (2, 3, 2)))
    variances = np.einsum("ksnn->ksn", kernel.covariance_parts(points, points))
    np.testing.assert_allclose(kernel.prior_variances(points), variances, rtol=1e-12)
    ones = np.ones((1, 3, 3))
    factor = kernel.cholesky(ones * 1e3)
    np.testing.assert_allclose(factor @ factor.transpose(0, 2, 1), ones * 1e3, rtol=1e-6)


def test_the_scale_above_a_floor_is_undone_and_derivatives_are_those_of_differences(rng):
    p = np.array([0.1, 0.24, 0.3, 0.6, 0.95])
    z, slope = kernel.above_floor(p, np.array(0.25))
    differences = (
        kernel.above_floor(p + 1e-6, np.array(0.25))[0] - kernel.above_floor(p - 1e-6, np.array(0.25))[0]
    ) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=1e-6)
    np.testing.assert_allclose(kernel.score_of(z[3:], 0.25), p[3:], atol=1e-4)
    np.testing.assert_allclose(kernel.above_floor(p, np.array(0.0))[0], logit(p))
    points = points_of(np.tile(np.linspace(0.5, 5.0, 4), (3, 2, 1)))
    points.is_known[1, 5:] = False
    y = rng.uniform(0.2, 0.9, points.x.shape)
    scores = kernel.TrendScores.of(points, y, np.array([0.2, 0.3, 0.25]), kernel.FLOOR_SHARES)
    parts = kernel.covariance_parts(points, points)
    at = np.array([-2.0, -2.5, -1.5, -2.2, -2.8, -2.0, 0.15, 0.2, -0.5])
    value, gradient = (lambda v, part=part: kernel.log_posterior(v, scores, parts)[part] for part in (0, 1))
    error = check_grad(value, gradient, at, epsilon=1e-6)
    assert error < 1e-3 * np.linalg.norm(kernel.log_posterior(at, scores, parts)[1])


def test_trends_without_wandering_are_lines_and_certain_ones_have_the_noise_of_their_scenario():
    x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    points = points_of(x)
    z = np.array([-1.0, -0.4, 0.3, 0.7])
    # wide slope of the scenario, nothing of recipes, noise of variance s^2 v
    spreads = kernel.TrendSpreads(np.log([50.0, 1e-6, 1e-6, 1e-6, 1e-6]), float(np.log(0.3)), 0.0, 0.0, 0.0)
    inner = np.tensordot(np.exp(2.0 * spreads.log_spreads), kernel.covariance_parts(points, points)[:, 0], axes=1)
    inverse = np.linalg.inv(100.0 + inner + 0.3**2 * np.eye(4))
    one = np.ones(1)
    posterior = kernel.TrendPosterior(points, one, 0.0 * one, one, one, inverse[None], (inverse @ z)[None], spreads)
    mean, variance = posterior.predict(points_of(np.array([[[6.0]]])))
    slope, height = np.polyfit(x.ravel(), z, 1)
    assert mean[0, 0] == pytest.approx(height + slope * 6.0, abs=0.01)
    design = np.stack([np.ones(4), x.ravel()], axis=1)
    ahead = np.array([1.0, 6.0])
    assert variance[0, 0] == pytest.approx(0.09 * ahead @ np.linalg.inv(design.T @ design) @ ahead, rel=0.02)
    points, one = points_of(np.array([[[1.0]]])), np.ones(1)
    spreads = kernel.TrendSpreads(np.zeros(5), float(np.log(0.05)), 0.0, 0.0, 0.0)
    posterior = kernel.TrendPosterior(
        points, one, 0.0 * one, one, 2.0 * one, np.ones((1, 1, 1)), np.ones((1, 1)), spreads
    )
    low, high = posterior.interval(logit(np.array([[0.3]])), np.zeros((1, 1)), 0.95)
    half = ndtri(0.975) * np.sqrt((2.0 * 0.05) ** 2 * 0.3 * 0.7 + kernel.SMALLEST_SCORE**2)
    np.testing.assert_allclose([low[0], high[0]], [0.3 - half, 0.3 + half], atol=1e-6)
    of_normal = norm(0.5, 2.0).expect(expit)
    assert posterior.mean_scores(np.array([[0.5]]), np.array([[4.0]])) == pytest.approx(of_normal, abs=1e-4)


def test_trends_that_made_the_scores_are_forecast_within_their_intervals(rng):
    x = np.tile(np.arange(0.5, 7.5), (6, 3, 1))
    slope = 0.3 + 0.1 * rng.standard_normal((6, 1, 1)) + 0.05 * rng.standard_normal((6, 3, 1))
    start = rng.uniform(-2.0, 0.0, (6, 1, 1)) + 0.2 * rng.standard_normal((6, 3, 1))
    p = expit(start + slope * x)
    y = np.clip(p + 0.03 * rng.standard_normal(p.shape), 0.01, 0.99)
    points = points_of(x[:, :, :5])
    found = kernel.fit_trends(points, y[:, :, :5].reshape(6, -1), y[:, :, :5].mean(axis=1).min(axis=1))
    held, errors, last = [], [], []
    for number, posterior in enumerate(found):
        mean, variance = posterior.predict(points_of(x[number : number + 1, :, 6:]))
        low, high = posterior.interval(mean, variance, 0.9)
        actual = y[number, :, 6]
        held.append((low <= actual) & (actual <= high))
        errors.append(np.abs(posterior.mean_scores(mean, variance) - p[number, :, 6]))
        last.append(np.abs(y[number, :, 4] - p[number, :, 6]))
    assert np.mean(held) > 0.65  # 0.83 in the mean of ten draws: floors are weighed where there is none
    assert np.mean(errors) < 0.06
    assert np.mean(errors) < 0.6 * np.mean(last)


def test_spreads_are_learned_from_whole_recipes_where_models_are_many(rng):
    points = points_of(rng.uniform(0.5, 4.0, (2, 6, 3)))
    points.is_known[0, :3] = False  # the first recipe has no model in the first scenario
    scores = rng.uniform(0.2, 0.9, points.x.shape)
    assert kernel.fewer_models(points, scores, 18)[0] is points
    fewer, kept = kernel.fewer_models(points, scores, 9)
    assert kept.shape == (2, 9)
    recipes = [set(row[known].tolist()) for row, known in zip(fewer.recipe, fewer.is_known, strict=True)]
    assert recipes == [{2, 5}, {0, 2, 5}]
    for row in range(2):
        whole = {(r, x): y for r, x, y in zip(points.recipe[row], points.x[row], scores[row], strict=True)}
        of_kept = zip(fewer.recipe[row], fewer.x[row], kept[row], fewer.is_known[row], strict=True)
        assert all(whole[r, x] == y for r, x, y, known in of_kept if known)
    one_recipe = points_of(rng.uniform(0.5, 4.0, (1, 1, 30)))
    assert kernel.fewer_models(one_recipe, scores[:1, :1] * np.ones((1, 30)), 10)[1].shape == (1, 10)


def test_weights_of_components_are_normal_densities_times_priors(rng):
    points = points_of(np.tile(np.array([0.5, 1.5, 3.0]), (2, 2, 1)))
    points.is_known[1, 4:] = False
    y = rng.uniform(0.3, 0.8, points.x.shape)
    scores = kernel.TrendScores.of(points, y, np.array([0.25, 0.3]), kernel.FLOOR_SHARES)
    spreads = kernel.TrendSpreads(np.log([0.2, 0.1, 0.3, 0.1, 0.05]), float(np.log(0.1)), 0.2, -0.3, -0.6)
    parts = kernel.covariance_parts(points, points)
    components = kernel.TrendComponents.of(scores, spreads, parts)
    found = components.likelihoods()
    known = points.is_known[1]
    assert np.unique(np.stack([components.floor, components.lively, components.noisy]), axis=1).shape[1] == len(found)
    for floor, lively, noisy in ((0, 0, 0), (3, 2, 4), (1, 4, 1)):
        place = np.flatnonzero(
            (components.floor == floor) & (components.lively == lively) & (components.noisy == noisy)
        ).item()
        p, x = y[1, known], points.x[1, known]
        z, slope = kernel.above_floor(p, kernel.FLOOR_SHARES[floor] * np.array(0.3))
        noise = (0.1 * kernel.NOISINESS[noisy]) ** 2 * p * (1.0 - p) + kernel.SMALLEST_SCORE**2
        inner = np.tensordot(np.exp(2.0 * spreads.log_spreads), parts[:, 1][:, known][:, :, known], axes=1)
        covariance = 100.0 + kernel.LIVELINESS[lively] ** 2 * inner + np.diag(slope**2 * noise)
        density = multivariate_normal(0.2 * x, covariance).logpdf(z) + 0.5 * x.size * np.log(2.0 * np.pi)
        shares = [
            norm(scale=np.exp(sd)).pdf(np.log(grid))
            for grid, sd in ((kernel.LIVELINESS, -0.3), (kernel.NOISINESS, -0.6))
        ]
        prior = shares[0][lively] / shares[0].sum() * shares[1][noisy] / shares[1].sum() / kernel.FLOOR_SHARES.size
        assert found[place, 1] == pytest.approx(density + np.log(slope).sum() + np.log(prior), rel=1e-9)
        inverse, lean = components.solved(place, np.array([1]))
        np.testing.assert_allclose(inverse[0][np.ix_(known, known)] @ covariance, np.eye(x.size), atol=1e-8)
        np.testing.assert_allclose(lean[0, known], np.linalg.solve(covariance, z - 0.2 * x), rtol=1e-7)


def test_scatter_of_a_scenario_of_few_items_is_taken_for_noise_and_not_for_growth(rng):
    """Half of the scenarios have 25 items, the others 2,500; none of them grows."""
    points = points_of(np.tile(np.arange(0.5, 4.5), (6, 2, 1)))
    n_items = np.repeat([25, 2500], 3)
    y = rng.binomial(n_items[:, None], 0.5, points.x.shape) / n_items[:, None]
    found = kernel.fit_trends(points, y, y.reshape(6, 2, 4).mean(axis=1).min(axis=1))
    noise = np.array([one.weights @ one.noisiness for one in found]) * np.exp(found[0].spreads.log_noise)
    assert noise[:3].min() > 3.0 * noise[3:].max()
    # of a share of n answers, over sqrt(p (1 - p)): 1 / sqrt(n)
    assert np.mean(noise[:3]) == pytest.approx(0.2, rel=0.5)
    ahead = points_of(np.full((1, 2, 1), 6.0))
    trends = [one.predict(ahead) for one in found]
    widths = [np.mean(np.subtract(*one.interval(*trend, 0.95)[::-1])) for one, trend in zip(found, trends, strict=True)]
    assert min(widths[:3]) > 2.0 * max(widths[3:])
