import numpy as np
import pytest
from scipy.optimize import minimize

from itembank.calibration.variational.scale import best_centre, general_axes, principal_axes


def covariance(size, seed):
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T / size + 0.1 * np.eye(size)


@pytest.mark.parametrize(("n_items", "n_models"), [(2000, 50), (100, 600), (300, 300)])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_the_centre_is_where_a_general_optimiser_finds_it(n_items, n_models, n_dims):
    items, spread = covariance(n_dims + 1, 1), covariance(n_dims, 2)
    centre = np.random.default_rng(3).normal(size=n_dims)

    def objective(shift):
        extended, away = np.append(shift, 1.0), shift - centre
        log_determinant = np.linalg.slogdet(spread + np.outer(away, away))[1]
        return n_items * np.log(extended @ items @ extended) + n_models * log_determinant

    found = best_centre(items, spread, centre, n_items=n_items, n_models=n_models)
    starts = [centre, found + 0.5, np.zeros(n_dims)]
    best = min((minimize(objective, start, tol=1e-12) for start in starts), key=lambda result: result.fun)
    assert objective(found) < objective(centre)
    assert objective(found) == pytest.approx(best.fun, abs=1e-3 * n_items)
    np.testing.assert_allclose(found, best.x, atol=0.02)


def test_principal_axes_make_ability_white_and_loadings_uncorrelated():
    moment, loadings = covariance(4, 4), covariance(4, 5)
    onto = principal_axes(moment, loadings)
    np.testing.assert_allclose(onto @ moment @ onto.T, np.eye(4), atol=1e-12)
    back = np.linalg.inv(onto)
    moved = back.T @ loadings @ back
    np.testing.assert_allclose(moved, np.diag(np.diag(moved)), atol=1e-12)


def test_general_axes_leave_specific_loadings_without_mean():
    moment, loadings, mean = covariance(4, 6), covariance(4, 7), np.array([0.3, -1.0, 0.4, 0.2])
    onto = general_axes(moment, loadings, mean)
    back = np.linalg.inv(onto)
    moved_mean, moved = back.T @ mean, back.T @ loadings @ back
    assert moved_mean[0] > 0.0
    np.testing.assert_allclose(moved_mean[1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(moved, np.diag(np.diag(moved)), atol=1e-12)
    abilities = onto @ moment @ onto.T
    np.testing.assert_allclose(np.diag(abilities), 1.0)
    np.testing.assert_allclose(abilities[1:, 1:], np.eye(3), atol=1e-12)


@pytest.mark.parametrize("kind", ["principal", "general"])
def test_axes_that_are_right_already_stay_in_their_places(kind):
    """Otherwise the momentum of an ascent would point nowhere; also with their signs turned."""
    loadings = np.diag([2.0, 0.3, 1.1])
    mean = np.array([1.5, 0.0, 0.0])
    moment = np.eye(3)
    onto = principal_axes(moment, loadings) if kind == "principal" else general_axes(moment, loadings, mean)
    np.testing.assert_allclose(onto, np.eye(3), atol=1e-12)
