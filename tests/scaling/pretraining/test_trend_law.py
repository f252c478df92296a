import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit, logit

from itembank.data.compute import training_compute
from itembank.scaling.pretraining.law_spec import TrendLaw
from itembank.scaling.pretraining.pretraining_law import pretraining_law
from itembank.scaling.pretraining.specs import PretrainingSettings
from itembank.scaling.pretraining.trend_kernel import (
    TrendPoints,
    above_floor,
    covariance_parts,
    integrated_wiener,
    prior_variances,
    score_of,
)
from itembank.scaling.pretraining.trend_law import (
    FLOOR_SHARES,
    NO_FLOORS,
    TrendPosterior,
    fewer_models,
    fit_trends,
)
from itembank.scaling.pretraining.trend_likelihood import (
    LIVELINESS,
    NOISINESS,
    TrendComponents,
    TrendScores,
    TrendSpreads,
    cholesky,
    inverted,
    log_posterior,
)
from tests.scaling.simulated_suite import simulated_suite


def points_of(x):
    """Points of (n_scenarios, n_recipes, n_sizes), all known."""
    n_scenarios, n_recipes, n_sizes = x.shape
    recipe = np.tile(np.repeat(np.arange(n_recipes), n_sizes), (n_scenarios, 1))
    return TrendPoints(x.reshape(n_scenarios, -1), recipe, np.ones((n_scenarios, x[0].size), dtype=bool))


def test_the_covariance_is_the_double_integral_of_that_of_brownian_motion():
    step = 0.005
    first, second = np.arange(0.5 * step, 1.3, step), np.arange(0.5 * step, 2.1, step)
    expected = np.minimum(first[:, None], second[None, :]).sum() * step**2
    assert integrated_wiener(np.array(1.3), np.array(2.1)) == pytest.approx(expected, rel=1e-4)


def test_the_scale_above_a_floor_is_undone_and_its_derivative_is_that_of_differences():
    p = np.array([0.1, 0.24, 0.3, 0.6, 0.95])
    z, slope = above_floor(p, np.array(0.25))
    differences = (above_floor(p + 1e-6, np.array(0.25))[0] - above_floor(p - 1e-6, np.array(0.25))[0]) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=1e-6)
    np.testing.assert_allclose(score_of(z[3:], 0.25), p[3:], atol=1e-4)
    np.testing.assert_allclose(above_floor(p, np.array(0.0))[0], logit(p))


def test_derivatives_of_the_posterior_are_those_of_differences(rng):
    points = points_of(np.tile(np.linspace(0.5, 5.0, 4), (3, 2, 1)))
    points.is_known[1, 5:] = False
    y = rng.uniform(0.2, 0.9, points.x.shape)
    scores = TrendScores.of(points, y, np.array([0.2, 0.3, 0.25]), FLOOR_SHARES)
    parts = covariance_parts(points, points)
    at = np.array([-2.0, -2.5, -1.5, -2.2, -2.8, -2.0, 0.15, 0.2, -0.5])
    error = check_grad(
        lambda v: log_posterior(v, scores, parts)[0], lambda v: log_posterior(v, scores, parts)[1], at, epsilon=1e-6
    )
    assert error < 1e-3 * np.linalg.norm(log_posterior(at, scores, parts)[1])


def test_variances_are_the_diagonal_of_the_covariance(rng):
    points = points_of(rng.uniform(0.5, 4.0, (2, 3, 2)))
    np.testing.assert_allclose(
        prior_variances(points), np.einsum("ksnn->ksn", covariance_parts(points, points)), rtol=1e-12
    )


def test_a_trend_without_wandering_is_the_line_of_generalised_least_squares():
    x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    points = points_of(x)
    z = np.array([-1.0, -0.4, 0.3, 0.7])
    # wide slope of the scenario, nothing of recipes, noise of variance s^2 v
    spreads = TrendSpreads(np.log([50.0, 1e-6, 1e-6, 1e-6, 1e-6]), float(np.log(0.3)), 0.0, 0.0, 0.0)
    inner = np.tensordot(np.exp(2.0 * spreads.log_spreads), covariance_parts(points, points)[:, 0], axes=1)
    inverse = np.linalg.inv(100.0 + inner + 0.3**2 * np.eye(4))
    one = np.ones(1)
    posterior = TrendPosterior(points, one, 0.0 * one, one, one, inverse[None], (inverse @ z)[None], spreads)
    mean, variance = posterior.predict(points_of(np.array([[[6.0]]])))
    slope, height = np.polyfit(x.ravel(), z, 1)
    assert mean[0, 0] == pytest.approx(height + slope * 6.0, abs=0.01)
    design = np.stack([np.ones(4), x.ravel()], axis=1)
    ahead = np.array([1.0, 6.0])
    assert variance[0, 0] == pytest.approx(0.09 * ahead @ np.linalg.inv(design.T @ design) @ ahead, rel=0.02)


def test_trends_that_made_the_scores_are_forecast_within_their_intervals(rng):
    x = np.tile(np.arange(0.5, 7.5), (12, 5, 1))
    slope = 0.3 + 0.1 * rng.standard_normal((12, 1, 1)) + 0.05 * rng.standard_normal((12, 5, 1))
    start = rng.uniform(-2.0, 0.0, (12, 1, 1)) + 0.2 * rng.standard_normal((12, 5, 1))
    p = expit(start + slope * x)
    y = np.clip(p + 0.03 * rng.standard_normal(p.shape), 0.01, 0.99)
    points = points_of(x[:, :, :5])
    found = fit_trends(points, y[:, :, :5].reshape(12, -1), y[:, :, :5].mean(axis=1).min(axis=1))
    held, errors, last = [], [], []
    for number, posterior in enumerate(found):
        mean, variance = posterior.predict(points_of(x[number : number + 1, :, 6:]))
        low, high = posterior.interval(mean, variance, 0.9)
        actual = y[number, :, 6]
        held.append((low <= actual) & (actual <= high))
        errors.append(np.abs(posterior.mean_scores(mean, variance) - p[number, :, 6]))
        last.append(np.abs(y[number, :, 4] - p[number, :, 6]))
    assert np.mean(held) > 0.65  # 0.82 in the mean of six draws: floors are weighed where there is none
    assert np.mean(errors) < 0.06
    assert np.mean(errors) < 0.6 * np.mean(last)


def test_spreads_are_learned_from_whole_recipes_where_models_are_many(rng):
    points = points_of(rng.uniform(0.5, 4.0, (2, 6, 3)))
    points.is_known[0, :3] = False  # the first recipe has no model in the first scenario
    scores = rng.uniform(0.2, 0.9, points.x.shape)
    assert fewer_models(points, scores, 18)[0] is points
    fewer, kept = fewer_models(points, scores, 9)
    assert kept.shape == (2, 9)
    assert [sorted(set(row[known].tolist())) for row, known in zip(fewer.recipe, fewer.is_known, strict=True)] == [
        [2, 5],
        [0, 2, 5],
    ]
    for row in range(2):
        whole = {(r, x): y for r, x, y in zip(points.recipe[row], points.x[row], scores[row], strict=True)}
        of_kept = zip(fewer.recipe[row], fewer.x[row], kept[row], fewer.is_known[row], strict=True)
        assert all(whole[r, x] == y for r, x, y, known in of_kept if known)
    one_recipe = points_of(rng.uniform(0.5, 4.0, (1, 1, 30)))
    assert fewer_models(one_recipe, scores[:1, :1] * np.ones((1, 30)), 10)[1].shape == (1, 10)


def test_without_floors_a_single_component_of_floors_is_weighed(rng):
    """Scores at chance that scatter: a floor just below them takes scatter for the beginning of growth."""
    points = points_of(np.tile(np.arange(0.5, 5.5), (6, 4, 1)))
    scores = np.clip(0.25 + 0.02 * rng.standard_normal(points.x.shape), 0.01, 0.99)
    lowest = scores.reshape(6, 4, 5).mean(axis=1).min(axis=1)
    ahead = points_of(np.full((1, 4, 1), 9.0))
    raised = []
    for shares in (FLOOR_SHARES, NO_FLOORS):
        found = fit_trends(points, scores, lowest, shares)
        raised.append(np.mean([one.mean_scores(*one.predict(ahead)) for one in found]) - 0.25)
    assert np.all(found[0].floors == 0.0)
    assert raised[0] > 2.0 * abs(raised[1])


@pytest.mark.parametrize("floors", [True, False])
def test_the_spec_says_whether_floors_are_weighed(floors):
    suite = simulated_suite(np.random.default_rng(3), n_recipes=2, n_items=8, n_sizes=4, n_checkpoints=1)
    settings = PretrainingSettings(laws=(TrendLaw(floors=floors),), n_checked=0)
    law = pretraining_law(suite.probability, training_compute(suite.models), settings=settings)
    found = np.concatenate([one.fitted["trend"].posterior.floors for one in law.scenarios])
    assert bool((found > 0.0).any()) is floors


def test_covariances_that_rounding_left_no_noise_are_factored():
    ones = np.ones((1, 3, 3))
    factor = cholesky(ones * 1e3)
    np.testing.assert_allclose(factor @ factor.transpose(0, 2, 1), ones * 1e3, rtol=1e-6)
