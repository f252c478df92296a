import numpy as np
import pytest
from scipy.special import expit

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.scaling.pretraining.scenario_abilities import (
    item_variance,
    mean_probability,
    score_gap,
    without_prior,
)


@pytest.fixture
def parameters(rng):
    return ItemParameters.create(rng.lognormal(0.0, 0.4, 30), rng.normal(0.0, 1.0, 30), lower_asymptote=0.2)


def test_taking_the_prior_out_undoes_bayes():
    prior = AbilityPrior(np.array([0.4]), np.array([[2.0]]))
    mean, variance = np.array([1.5, -3.0]), np.array([0.3, 0.9])
    posterior = 1.0 / (1.0 / variance + 0.5)
    shrunk = posterior * (mean / variance + 0.4 / 2.0)
    back, back_variance = without_prior(shrunk, posterior, prior)
    np.testing.assert_allclose(back, mean)
    np.testing.assert_allclose(back_variance, variance)


def test_a_posterior_that_is_the_prior_tells_nothing():
    prior = AbilityPrior(np.zeros(1), np.eye(1))
    mean, variance = without_prior(np.zeros(1), np.ones(1), prior)
    assert mean[0] == 0.0
    assert variance[0] == 100.0


def test_mean_probability_is_that_of_the_items(parameters):
    theta = np.array([-1.0, 0.5])
    expected = [np.mean(0.2 + 0.8 * expit(parameters.loadings[:, 0] * at + parameters.intercept)) for at in theta]
    np.testing.assert_allclose(mean_probability(parameters, theta), expected)


def test_item_variance_is_that_of_drawn_items(parameters, rng):
    covariance = np.tile(np.array([[0.02, 0.005], [0.005, 0.03]]), (30, 1, 1)) * 0.1
    theta = np.array([-1.0, 2.0])
    drawn = []
    for _ in range(4000):
        noise = rng.multivariate_normal(np.zeros(2), covariance[0], size=30)
        items = ItemParameters.create(
            parameters.loadings[:, 0] + noise[:, 0], parameters.intercept + noise[:, 1], lower_asymptote=0.2
        )
        drawn.append(mean_probability(items, theta))
    np.testing.assert_allclose(item_variance(parameters, covariance, theta), np.var(drawn, axis=0), rtol=0.08)


def test_gap_counts_answered_items_as_the_whole(parameters, rng):
    theta = np.array([0.3, -0.2])
    p = 0.2 + 0.8 * expit(theta[:, None] * parameters.loadings[:, 0] + parameters.intercept)
    responses = np.clip(p + 0.05, 0.0, 1.0)
    np.testing.assert_allclose(score_gap(parameters, responses, theta), np.mean(responses - p, axis=1))
    responses[:, 10:] = np.nan
    few = np.mean((responses - p)[:, :10], axis=1) * np.sqrt(10 / 30)
    np.testing.assert_allclose(score_gap(parameters, responses, theta), few)
    responses[1] = np.nan
    assert np.isnan(score_gap(parameters, responses, theta)[1])
