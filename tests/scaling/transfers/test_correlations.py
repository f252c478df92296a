import numpy as np
import pytest
from scipy import stats

from itembank_scaling.transfers import correlations as kernel


def with_holes(rng, shape=(40, 4)):
    values = rng.normal(size=shape) + rng.normal(size=(shape[0], 1))
    values[rng.random(shape) < 0.1] = np.nan
    return values


def test_correlations_are_scipys_over_the_models_that_have_both(rng):
    values = with_holes(rng)
    found = kernel.correlations(values)
    for place, (i, j) in enumerate(zip(*kernel.pairs(4), strict=True)):
        both = ~np.isnan(values[:, i]) & ~np.isnan(values[:, j])
        assert found[place] == pytest.approx(stats.pearsonr(values[both, i], values[both, j]).statistic, abs=1e-12)
        assert kernel.pair_counts(values)[place] == both.sum()


def test_a_weight_is_how_often_a_model_counts(rng):
    values = with_holes(rng)
    times = rng.integers(0, 4, size=40)
    repeated = np.repeat(values, times, axis=0)
    np.testing.assert_allclose(
        kernel.weighted_correlations(values, times[None].astype(float))[0], kernel.correlations(repeated), atol=1e-12
    )


def test_a_far_mean_costs_no_digits(rng):
    values = rng.normal(size=(30, 2))
    np.testing.assert_allclose(kernel.correlations(values + 1e6), kernel.correlations(values), rtol=1e-6)


def test_a_column_that_does_not_vary_has_no_correlation():
    values = np.column_stack([np.arange(5.0), np.full(5, 2.0)])
    assert np.isnan(kernel.correlations(values)).all()


def test_fisher_interval_is_scipys(rng):
    x, y = rng.normal(size=(2, 25))
    y = y + x
    interval = stats.pearsonr(x, y).confidence_interval(0.9)
    low, high = kernel.fisher_interval(kernel.correlations(np.column_stack([x, y])), np.array([25]), 0.9)
    assert (low[0], high[0]) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_three_models_have_no_fisher_interval():
    low, high = kernel.fisher_interval(np.array([0.5]), np.array([3]), 0.95)
    assert np.isnan(low[0])
    assert np.isnan(high[0])


def test_residual_correlation_is_the_partial_one(rng):
    x, y, covariate = rng.normal(size=(3, 60))
    x, y = x + 2.0 * covariate, y + 0.3 * x - covariate
    found = kernel.correlations(kernel.residuals(np.column_stack([x, y]), covariate))[0]
    r = np.corrcoef([x, y, covariate])
    partial = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert found == pytest.approx(partial, abs=1e-12)


def test_relatives_are_drawn_together(rng):
    groups = np.array([0, 0, 1, 2, 2, 2])
    weights = kernel.resampling_weights(groups, 200, rng)
    assert np.array_equal(weights[:, 0], weights[:, 1])
    assert np.array_equal(weights[:, 3], weights[:, 5])
    assert np.all(weights[:, [0, 2, 3]].sum(axis=1) == 3.0)
    np.testing.assert_allclose(weights.mean(axis=0), 1.0, atol=0.25)


def test_bootstrap_agrees_with_fisher_on_normal_data(rng):
    values = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=400)
    weights = kernel.resampling_weights(np.arange(400), 2000, rng)
    low, high = kernel.quantile_interval(kernel.weighted_correlations(values, weights), 0.95)
    fisher = kernel.fisher_interval(kernel.correlations(values), np.array([400]), 0.95)
    assert low[0] == pytest.approx(fisher[0][0], abs=0.02)
    assert high[0] == pytest.approx(fisher[1][0], abs=0.02)


def test_reliability_of_posterior_means_is_the_share_of_variance_they_show(rng):
    truth = rng.normal(size=200_000)
    noise_variance = 0.5
    observed = truth + np.sqrt(noise_variance) * rng.normal(size=truth.size)
    mean, error = observed / (1 + noise_variance), np.sqrt(noise_variance / (1 + noise_variance))
    found = kernel.reliabilities(mean[:, None], np.full((truth.size, 1), error))
    assert found[0] == pytest.approx(np.corrcoef(truth, mean)[0, 1] ** 2, abs=0.01)
    assert found[0] == pytest.approx(1 / (1 + noise_variance), abs=0.01)


def test_disattenuation_finds_the_correlation_of_the_truth(rng):
    truth = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=100_000)
    variance = np.array([0.5, 1.0])
    mean = (truth + np.sqrt(variance) * rng.normal(size=truth.shape)) / (1 + variance)
    errors = np.broadcast_to(np.sqrt(variance / (1 + variance)), truth.shape)
    factor = kernel.attenuation(kernel.reliabilities(mean, errors))
    assert kernel.correlations(mean)[0] < 0.6
    assert kernel.correlations(mean)[0] / factor[0] == pytest.approx(0.8, abs=0.01)


def test_next_to_no_reliability_disattenuates_nothing():
    assert np.isnan(kernel.attenuation(np.array([0.9, 0.1]))).all()
    np.testing.assert_allclose(kernel.attenuation(np.array([0.9, 0.4])), [0.6])


def test_square_is_symmetric():
    found = kernel.square(np.array([1.0, 2.0, 3.0]), 3, diagonal=0.0)
    np.testing.assert_array_equal(found, [[0, 1, 2], [1, 0, 3], [2, 3, 0]])
