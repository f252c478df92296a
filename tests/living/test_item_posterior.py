from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from itembank.irt.parameters import AbilityPrior
from itembank.living.ability_nodes import AbilityNodes, ability_nodes
from itembank.living.item_posterior import (
    item_modes,
    item_moments,
    lost_information,
    places_of,
    standard_points,
)
from tests.living.answers import linking_data

POPULATION = AbilityPrior(np.array([1.0, 0.3]), np.array([[0.3, 0.1], [0.1, 1.2]]))


def certain(theta):
    """Abilities that are known."""
    return AbilityNodes(theta[:, None, :], np.ones((len(theta), 1)), np.zeros(len(theta)))


def test_moments_are_those_of_a_fine_grid(rng):
    data, theta, _ = linking_data(rng, n_models=5, n_new=4)
    places = places_of(certain(theta))
    mode, precision = item_modes(data, places, POPULATION, np.tile(POPULATION.mean, (4, 1)))
    found = item_moments(data, places, POPULATION, mode, precision)
    a, c = np.meshgrid(np.linspace(-3.0, 5.0, 301), np.linspace(-6.0, 7.0, 301), indexing="ij")
    points = np.column_stack([a.ravel(), c.ravel()])
    away = points - POPULATION.mean
    prior = -0.5 * np.einsum("pa,ab,pb->p", away, np.linalg.inv(POPULATION.covariance), away)
    curves = expit(points @ np.column_stack([theta, np.ones(5)]).T)
    for item in range(4):
        right = data.new_responses[:, item]
        values = prior + np.log(np.where(right > 0.5, curves, 1.0 - curves)).sum(axis=1)
        weights = np.exp(values - values.max())
        weights /= weights.sum()
        mean = weights @ points
        np.testing.assert_allclose(found.mean[item], mean, atol=0.01)
        covariance = (points - mean).T @ ((points - mean) * weights[:, None])
        np.testing.assert_allclose(found.covariance[item], covariance, atol=0.02)


def test_many_dimensions_have_points_of_a_standard_normal():
    points, log_weights = standard_points(5)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(5), atol=1e-12)
    assert np.mean(points**4) == pytest.approx(3.0, abs=0.3)
    np.testing.assert_allclose(log_weights, 0.5 * np.sum(points**2, axis=1))


def test_counts_and_missing_answers_weigh_as_single_answers_do(rng):
    data, theta, _ = linking_data(rng, n_models=6, n_new=3)
    twice = np.concatenate([data.new_responses, data.new_responses])
    places = places_of(certain(np.concatenate([theta, theta])))
    start = np.tile(POPULATION.mean, (3, 1))
    single = item_modes(replace(data, new_responses=twice), places, POPULATION, start)
    counted = replace(data, new_trials=np.full((6, 3), 2.0))
    np.testing.assert_allclose(item_modes(counted, places_of(certain(theta)), POPULATION, start)[0], single[0])
    gone = twice.copy()
    gone[6:] = np.nan
    missing = item_modes(replace(data, new_responses=gone), places, POPULATION, start)
    np.testing.assert_allclose(missing[0], item_modes(data, places_of(certain(theta)), POPULATION, start)[0])


@pytest.mark.parametrize("n_dims", [1, 3])
def test_lost_information_is_the_covariance_of_the_score(rng, n_dims):
    data, _, new = linking_data(rng, n_models=8, n_old=400, n_new=3, n_dims=n_dims)
    nodes = ability_nodes(data.old, data.old_responses, data.prior)
    items = np.column_stack([new.loadings, new.intercept])
    found = lost_information(data, nodes, items)
    # scores at each point of each posterior, which is so narrow that their covariance is that of the delta method
    design = np.concatenate([nodes.theta, np.ones((*nodes.theta.shape[:2], 1))], axis=2)
    for item in range(3):
        right = data.new_responses[:, item][:, None]
        scores = (right - expit(design @ items[item]))[..., None] * design
        mean = np.einsum("mq,mqa->ma", nodes.weights, scores)
        away = scores - mean[:, None, :]
        expected = np.einsum("mq,mqa,mqb->ab", nodes.weights, away, away)
        np.testing.assert_allclose(found[item], expected, atol=0.05 * np.abs(expected).max())
