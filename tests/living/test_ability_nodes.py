import numpy as np
import pytest
from scipy.special import expit

from itembank.irt.newton import map_abilities
from itembank.living.ability_nodes import ability_nodes
from tests.living.answers import linking_data


def test_likelihood_mean_and_variance_are_those_of_a_fine_grid(rng):
    data, _, _ = linking_data(rng, n_models=4, n_old=12)
    nodes = ability_nodes(data.old, data.old_responses, data.prior, n_quadrature=15)
    grid = np.linspace(-8.0, 8.0, 2001)
    curves = expit(np.outer(grid, data.old.loadings[:, 0]) + data.old.intercept)
    for model in range(4):
        right = data.old_responses[model] > 0.5
        joint = np.where(right, curves, 1.0 - curves).prod(axis=1) * np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi)
        total = joint.sum() * (grid[1] - grid[0])
        weights = joint / joint.sum()
        assert nodes.log_likelihood[model] == pytest.approx(np.log(total), abs=1e-5)
        assert nodes.mean[model, 0] == pytest.approx(weights @ grid, abs=1e-4)
        variance = weights @ grid**2 - (weights @ grid) ** 2
        assert nodes.covariance[model, 0, 0] == pytest.approx(variance, abs=1e-4)


def test_points_in_many_dimensions_have_the_moments_of_the_normal_approximation(rng):
    data, _, _ = linking_data(rng, n_models=3, n_dims=4)
    nodes = ability_nodes(data.old, data.old_responses, data.prior)
    mode = map_abilities(data.old, data.old_responses, data.prior)
    np.testing.assert_allclose(nodes.mean, mode.theta, atol=1e-12)
    np.testing.assert_allclose(nodes.covariance, mode.covariance, atol=1e-12)
