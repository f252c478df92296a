from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import normal_expectation
from itembank.calibration.variational.passes import cells, item_statistics
from itembank.calibration.variational.scale import best_centre, general_axes, principal_axes, rescale, transform
from itembank.calibration.variational.updates import divergence, update_item_prior
from tests.calibration.simulated import random_posterior, simulate


@pytest.fixture
def blocks():
    return make_blocks(simulate(20, 30, n_dims=3, seed=1).data, single_precision=False)


@pytest.fixture
def posterior():
    return random_posterior(20, 30, 3)


def test_no_logit_changes_and_log_determinants_stay_those_of_the_covariances(blocks, posterior):
    moved = transform(posterior, np.random.default_rng(2).normal(size=(3, 3)), np.array([0.5, -1.0, 2.0]))
    before, after = (next(cells(blocks, state, normal_expectation)) for state in (posterior, moved))
    assert_allclose(after.mean, before.mean, rtol=1e-9, atol=1e-9)
    assert_allclose(after.curvature, before.curvature, rtol=1e-7, atol=1e-10)
    for spread in (moved.items_spread, moved.abilities_spread):
        assert_allclose(spread.log_determinant, np.linalg.slogdet(spread.matrices)[1], rtol=1e-10)


def test_abilities_become_white_the_bound_rises_and_a_rescaled_posterior_stays(blocks, posterior):
    moved = rescale(posterior)
    likelihoods = [item_statistics(blocks, state, normal_expectation).likelihood.sum() for state in (posterior, moved)]
    assert likelihoods[1] == pytest.approx(likelihoods[0], rel=1e-9)
    assert divergence(moved) < divergence(posterior)
    second = moved.ability_covariance.mean(axis=0) + moved.ability_mean.T @ moved.ability_mean / 20
    assert_allclose(second, np.eye(3), atol=1e-9)
    thrice = rescale(rescale(moved))
    assert_allclose(thrice.ability_mean, rescale(thrice).ability_mean, atol=1e-6)


@pytest.mark.parametrize("is_nested", [False, True])
def test_no_other_centre_or_axes_would_be_better(is_nested):
    """With many items their priors' own priors count for nothing, and the closed form is the best."""
    posterior = replace(random_posterior(30, 4000, 3), is_nested=is_nested)
    best = divergence(rescale(rescale(posterior)))
    moved = rescale(posterior)
    rng = np.random.default_rng(3)
    for size in (1e-1, 1e-2):
        for _ in range(20):
            matrix, centre = np.eye(3) + size * rng.normal(size=(3, 3)), size * rng.normal(size=3)
            assert divergence(update_item_prior(transform(moved, matrix, centre))) > best - 0.05

    if is_nested:
        assert_array_equal(moved.item_prior.mean[1:-1], 0.0)
        assert_allclose(moved.item_mean[:, 1:-1].mean(axis=0), 0.0, atol=1e-9)
        assert abs(moved.item_prior.mean[0]) > 0.01


def covariance(size, seed):
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T / size + 0.1 * np.eye(size)


@pytest.mark.parametrize(("n_items", "n_models"), [(2000, 50), (100, 600), (300, 300)])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_the_centre_is_where_a_general_optimiser_finds_it(n_items, n_models, n_dims):
    items, spread, centre = (
        covariance(n_dims + 1, 1),
        covariance(n_dims, 2),
        np.random.default_rng(3).normal(size=n_dims),
    )

    def objective(shift):
        extended, away = np.append(shift, 1.0), shift - centre
        log_determinant = np.linalg.slogdet(spread + np.outer(away, away))[1]
        return n_items * np.log(extended @ items @ extended) + n_models * log_determinant

    found = best_centre(items, spread, centre, n_items=n_items, n_models=n_models)
    starts = [centre, found + 0.5, np.zeros(n_dims)]
    best = min((minimize(objective, start, tol=1e-12) for start in starts), key=lambda result: result.fun)
    assert objective(found) < objective(centre)
    assert objective(found) == pytest.approx(best.fun, abs=1e-3 * n_items)
    assert_allclose(found, best.x, atol=0.02)


def test_axes_make_ability_white_and_loadings_uncorrelated_and_stay_where_they_are_right():
    moment, loadings = covariance(4, 4), covariance(4, 5)
    onto = principal_axes(moment, loadings)
    assert_allclose(onto @ moment @ onto.T, np.eye(4), atol=1e-12)
    moved = np.linalg.inv(onto).T @ loadings @ np.linalg.inv(onto)
    assert_allclose(moved, np.diag(np.diag(moved)), atol=1e-12)
    moment, loadings, mean = covariance(4, 6), covariance(4, 7), np.array([0.3, -1.0, 0.4, 0.2])
    onto = general_axes(moment, loadings, mean)
    back = np.linalg.inv(onto)
    moved_mean, moved = back.T @ mean, back.T @ loadings @ back
    assert moved_mean[0] > 0.0
    assert_allclose(moved_mean[1:], 0.0, atol=1e-12)
    assert_allclose(moved, np.diag(np.diag(moved)), atol=1e-12)
    abilities = onto @ moment @ onto.T
    assert_allclose(np.diag(abilities), 1.0)
    assert_allclose(abilities[1:, 1:], np.eye(3), atol=1e-12)
    # otherwise the momentum of an ascent would point nowhere; also with their signs turned
    loadings, mean = np.diag([2.0, 0.3, 1.1]), np.array([1.5, 0.0, 0.0])
    for onto in (principal_axes(np.eye(3), loadings), general_axes(np.eye(3), loadings, mean)):
        assert_allclose(onto, np.eye(3), atol=1e-12)
