import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from itembank.calibration.pooled_regression import FeatureValues, pooled_regression


def test_balanced_groups_have_the_closed_form_of_one_way_random_effects():
    """Maximum likelihood: ``s^2 = SSW / (a (n - 1) + 1)`` and ``n s_a^2 + s^2 = SSB / (a - 1)``.

    The mean of all has the variance ``s^2 / (a n)`` here, since features are centred, hence the one.
    """
    n_groups, size = 8, 12
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_groups, 1)) + 0.8 * rng.normal(size=(n_groups, size))
    features = FeatureValues(np.repeat(np.eye(n_groups), size, axis=0), np.zeros(n_groups, dtype=int))
    found = pooled_regression(values.ravel(), np.zeros(values.size), features)
    means = values.mean(axis=1)
    residual = np.sum((values - means[:, None]) ** 2) / (n_groups * (size - 1) + 1)
    between = (size * np.sum((means - means.mean()) ** 2) / (n_groups - 1) - residual) / size
    assert found.residual_variance == pytest.approx(residual, rel=1e-4)
    shrunk = between / (between + residual / size)
    np.testing.assert_allclose(found.weights - found.weights.mean(), shrunk * (means - means.mean()), rtol=1e-3)


def test_precisions_are_those_of_the_most_likely_marginal_distribution():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 7))
    features -= features.mean(axis=0)
    column = np.array([0, 1, 1, 1, 2, 2, 2])
    values = features @ np.array([0.8, 0.3, -0.4, 0.2, 0.0, 0.0, 0.0]) + rng.normal(0.4, 0.7, 60)
    found = pooled_regression(values, np.zeros(60), FeatureValues(features, column))

    def minus_log_likelihood(logs):
        covariance = np.exp(logs[0]) * np.eye(60) + (features * np.exp(logs[1:])[column]) @ features.T
        return -multivariate_normal.logpdf(values, np.full(60, values.mean()), covariance)

    best = minimize(minus_log_likelihood, np.zeros(4), bounds=[(-12.0, 5.0)] * 4)
    assert found.residual_variance == pytest.approx(np.exp(best.x[0]), rel=1e-3)
    assert best.x[3] < -6.0  # the third column says nothing
    assert np.abs(found.weights[4:]).max() < 0.02
    precision = np.diag(np.exp(-best.x[1:])[column])
    weights = np.linalg.solve(features.T @ features / np.exp(best.x[0]) + precision, features.T @ values)
    np.testing.assert_allclose(found.weights[:4], weights[:4] / np.exp(best.x[0]), atol=2e-3)


def test_errors_of_the_values_count_as_residual_variance():
    rng = np.random.default_rng(2)
    features = FeatureValues(rng.normal(size=(200, 1)), np.zeros(1, dtype=int))
    values = features.values[:, 0] + rng.normal(size=200)
    sure, unsure = (pooled_regression(values, np.full(200, size), features) for size in (0.0, 0.5))
    assert unsure.residual_variance == pytest.approx(sure.residual_variance + 0.5, rel=1e-2)
