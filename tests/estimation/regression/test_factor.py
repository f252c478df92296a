"""The factor model's prediction against conditioning the dense Gaussian of all items, and against simulated truth."""

import numpy as np
import pytest

from itembank.estimation.regressions import predict_factor
from itembank.irt.linear_gaussian import FactorModel, fit_factor_model


def some_model(rng, n_items=14, n_factors=3):
    return FactorModel(
        rng.uniform(0.3, 0.7, n_items), rng.normal(0.0, 0.05, (n_items, n_factors)), rng.uniform(0.01, 0.05, n_items)
    )


def dense_conditional(model, items, responses, weights):
    """Mean and variance of each weighted sum, from the joint normal distribution of all items."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    cross = covariance[:, items]
    gain = cross @ np.linalg.inv(covariance[np.ix_(items, items)])
    mean = model.mean + gain @ (responses - model.mean[items])
    left = covariance - gain @ cross.T
    return weights.T @ mean, np.diag(weights.T @ left @ weights)


@pytest.mark.parametrize("n_factors", [0, 1, 3])
def test_equals_the_conditional_normal_distribution(rng, n_factors):
    model = some_model(rng, n_factors=n_factors)
    weights = rng.dirichlet(np.ones(14), size=3).T
    positions = np.array([9, 2, 5, 11, 0])
    responses = rng.random((6, 5))
    responses[1, 2] = responses[4, 0] = responses[4, 3] = np.nan
    responses[5] = np.nan
    found = predict_factor(model, positions, weights, responses)
    for row in range(6):
        seen = ~np.isnan(responses[row])
        value, variance = dense_conditional(model, positions[seen], responses[row, seen], weights)
        np.testing.assert_allclose(found.value[row], value, atol=1e-12)
        np.testing.assert_allclose(found.variance[row], variance, atol=1e-12)


def test_all_items_observed_gives_the_score_itself(rng):
    model, weights, responses = some_model(rng), np.full((14, 1), 1.0 / 14.0), rng.random((4, 14)).round()
    found = predict_factor(model, np.arange(14), weights, responses)
    np.testing.assert_allclose(found.value[:, 0], responses.mean(axis=1))
    np.testing.assert_allclose(found.variance, 0.0, atol=1e-15)


def test_a_column_that_nobody_answered_is_as_if_absent(rng):
    model, weights, responses = some_model(rng), np.full((14, 1), 1.0 / 14.0), rng.random((4, 6))
    positions = np.array([1, 3, 4, 8, 9, 13])
    responses[:, 2] = np.nan
    found = predict_factor(model, positions, weights, responses)
    kept = np.delete(np.arange(6), 2)
    expected = predict_factor(model, positions[kept], weights, responses[:, kept])
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.variance, expected.variance)


def test_standardised_errors_have_variance_one_where_the_model_is_true(rng):
    model = some_model(rng, n_items=120, n_factors=2)
    factors = rng.normal(size=(4000, 2))
    responses = model.mean + factors @ model.loadings.T + rng.normal(size=(4000, 120)) * np.sqrt(model.noise)
    weights = np.full((120, 1), 1.0 / 120.0)
    found = predict_factor(model, np.arange(30), weights, responses[:, :30])
    z = (found.value - responses @ weights) / np.sqrt(found.variance)
    assert abs(z.mean()) < 4.0 / np.sqrt(4000)
    assert abs(z.var() - 1.0) < 4.0 * np.sqrt(2.0 / 4000)


def test_a_fitted_model_beats_the_plain_mean(rng):
    ability = rng.normal(size=(300, 1))
    difficulty = rng.normal(0.0, 1.5, 150)
    responses = (rng.random((300, 150)) < 1.0 / (1.0 + np.exp(-1.5 * ability + difficulty))).astype(float)
    weights = np.full((150, 1), 1.0 / 150.0)
    model = fit_factor_model(responses[:200])
    positions = np.arange(20)
    truth, new = responses[200:].mean(axis=1), responses[200:, :20]
    error = np.abs(predict_factor(model, positions, weights, new).value[:, 0] - truth).mean()
    assert error < 0.8 * np.abs(new.mean(axis=1) - truth).mean()


def test_misfit_is_the_squared_mahalanobis_distance_by_item(rng):
    model, positions = some_model(rng), np.array([9, 2, 5, 11, 0])
    responses = rng.random((6, 5))
    responses[1, 2] = responses[4, 0] = np.nan
    responses[5] = np.nan
    found = predict_factor(model, positions, np.full((14, 1), 1.0 / 14.0), responses).misfit
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    for row in range(5):
        seen = ~np.isnan(responses[row])
        items = positions[seen]
        distance = responses[row, seen] - model.mean[items]
        dense = distance @ np.linalg.solve(covariance[np.ix_(items, items)], distance) / items.size
        np.testing.assert_allclose(found[row], dense, rtol=1e-10)
    assert np.isnan(found[5])


def test_misfit_is_one_on_average_where_the_model_is_true(rng):
    model, n_models = some_model(rng, n_items=40), 4000
    noise = rng.standard_normal((n_models, 40)) * np.sqrt(model.noise)
    responses = model.mean + rng.standard_normal((n_models, 3)) @ model.loadings.T + noise
    found = predict_factor(model, np.arange(40), np.full((40, 1), 1.0 / 40.0), responses).misfit
    # a chi-square of 40 degrees over 40: standard deviation sqrt(2 / 40), its mean over 4,000 models within 6 errors
    assert abs(found.mean() - 1.0) < 6.0 * np.sqrt(2.0 / 40.0 / n_models)
    np.testing.assert_allclose(found.std(), np.sqrt(2.0 / 40.0), rtol=0.1)
