"""Residuals by closed forms against conditioning of dense normal distributions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.estimation.regressions import predict_factor
from itembank.irt.linear_gaussian import FactorModel, group_residuals, item_residuals, successive_residuals


@pytest.fixture
def model(rng):
    return FactorModel(rng.random(12), rng.normal(size=(12, 3)), rng.uniform(0.1, 1.0, 12))


ITEMS = np.array([7, 1, 11, 4, 0])


@pytest.fixture
def answers(rng):
    return rng.random((4, ITEMS.size))


def given(model, wanted, known, values):
    """Mean and covariance of some items given the values (n_models, n_known) of others, by the dense matrix."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    gain = covariance[np.ix_(wanted, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    mean = model.mean[wanted] + (values - model.mean[known]) @ gain.T
    return mean, covariance[np.ix_(wanted, wanted)] - gain @ covariance[np.ix_(known, wanted)]


def test_an_items_residual_is_what_leaving_its_answer_out_gives(model, answers):
    residual, variance = item_residuals(model, ITEMS, answers)
    for column in range(ITEMS.size):
        others = np.delete(np.arange(ITEMS.size), column)
        mean, covariance = given(model, ITEMS[[column]], ITEMS[others], answers[:, others])
        assert_allclose(residual[:, column], answers[:, column] - mean[:, 0], atol=1e-12)
        assert_allclose(variance[column], covariance[0, 0])


def test_a_groups_residual_is_the_mean_given_the_reference_alone(model, answers):
    group, reference = np.array([0, 3]), np.array([1, 4])
    residual, variance = group_residuals(model, ITEMS, answers, group, reference)
    mean, covariance = given(model, ITEMS[group], ITEMS[reference], answers[:, reference])
    assert_allclose(residual, answers[:, group].mean(axis=1) - mean.mean(axis=1), atol=1e-12)
    assert_allclose(variance, covariance.mean())


def test_successive_residuals_are_those_given_all_answers_before_and_make_up_the_misfit(model, answers):
    found = successive_residuals(model, ITEMS, answers)
    for t in range(1, ITEMS.size):
        mean, covariance = given(model, ITEMS[[t]], ITEMS[:t], answers[:, :t])
        assert_allclose(found[:, t], (answers[:, t] - mean[:, 0]) / np.sqrt(covariance[0, 0]), atol=1e-12)
    misfit = predict_factor(model, ITEMS, np.ones((12, 1)), answers).misfit
    assert_allclose(np.mean(found**2, axis=1), misfit)


def test_without_factors_every_residual_is_the_distance_from_the_mean(answers):
    model = FactorModel(np.full(12, 0.5), np.zeros((12, 0)), np.full(12, 0.25))
    residual, variance = item_residuals(model, ITEMS, answers)
    assert_allclose(residual, answers - 0.5)
    assert_allclose(variance, 0.25)
    assert_allclose(successive_residuals(model, ITEMS, answers), (answers - 0.5) / 0.5)
