import numpy as np
import pytest
from scipy.special import expit

from itembank.living.fixed_parameters import ability_nodes
from itembank.living.recalibrate import update_intercepts, updated_covariance
from tests.living.answers import linking_data


def covariance_of(rng, n_items):
    roots = 0.3 * rng.normal(size=(n_items, 2, 2))
    return roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(2)


def test_the_mode_has_no_slope(rng):
    data, _, _ = linking_data(rng, n_models=15, n_old=20)
    answers = np.where(rng.random(data.old_responses.shape) < 0.3, np.nan, data.old_responses)
    answers[:, 0] = np.nan
    covariance = covariance_of(rng, 20)
    found = update_intercepts(data.old, covariance, answers, data.prior)
    assert found.intercept[0] == data.old.intercept[0]
    nodes = ability_nodes(data.old, answers, data.prior, n_quadrature=3)
    variance = covariance[:, 1, 1] - covariance[:, 0, 1] ** 2 / covariance[:, 0, 0]

    def objective(intercept):
        x = nodes.theta[..., 0, None] * data.old.loadings[:, 0] + intercept  # (n_models, n_quadrature, n_items)
        p, y = expit(x), answers[:, None, :]
        terms = np.where(np.isnan(y), 0.0, np.where(y > 0.5, np.log(p), np.log1p(-p)))
        fit = np.einsum("mq,mqi->i", nodes.weights, terms)
        return fit - 0.5 * (intercept - data.old.intercept) ** 2 / variance

    step = 1e-5
    slope = (objective(found.intercept + step) - objective(found.intercept - step)) / (2.0 * step)
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)


def test_information_about_intercepts_is_added_to_the_precision(rng):
    covariance, information = covariance_of(rng, 4), np.array([0.0, 1.0, 5.0, 100.0])
    expected = np.linalg.inv(covariance)
    expected[:, 1, 1] += information
    np.testing.assert_allclose(updated_covariance(covariance, information), np.linalg.inv(expected))


def test_what_is_known_well_hardly_moves(rng):
    data, _, _ = linking_data(rng, n_models=10, n_old=20)
    found = update_intercepts(data.old, np.tile(1e-8 * np.eye(2), (20, 1, 1)), data.old_responses, data.prior)
    assert found.intercept == pytest.approx(data.old.intercept, abs=1e-5)
