import numpy as np
import pytest

from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.living.fixed_parameters import FixedParameters, calibrate_fixed, expected_curves, item_population
from tests.living.answers import items_of, linking_data

QUICK = FixedParameters(tolerance=0.05, max_steps=30)


def test_the_population_of_new_items_is_theirs_not_the_old_ones(rng):
    """New items twice as hard as all old ones: a prior around the old ones, or zero, would pull them back."""
    hard = items_of(rng, 60, centre=-2.5)
    theta = np.linspace(-1.5, 1.5, 6)[:, None]
    data, _, _ = linking_data(rng, theta=theta, new=hard, n_old=60)
    fit = calibrate_fixed(data, QUICK)
    assert fit.population.mean[1] == pytest.approx(-2.5, abs=0.6)
    assert item_population(data.old).mean[1] > -0.5
    found = expected_curves(data, fit)
    curve = probability(ItemParameters.create(found[:, :-1], found[:, -1]), theta).mean(axis=1)
    np.testing.assert_allclose(curve, probability(hard, theta).mean(axis=1), atol=0.05)


def test_expected_curves_keep_the_mean_of_what_was_answered(rng):
    """The mean of the items' expected curves at the linking models is their mean response, whatever is known."""
    data, _, _ = linking_data(rng, n_models=4, n_old=60, n_new=100)
    fit = calibrate_fixed(data, QUICK)
    found = expected_curves(data, fit)
    curve = probability(ItemParameters.create(found[:, :-1], found[:, -1]), fit.nodes.mean).mean()
    assert curve == pytest.approx(data.new_responses.mean(), abs=0.01)


def test_many_linking_models_find_the_items(rng):
    data, theta, new = linking_data(rng, n_models=200, n_old=30, n_new=8)
    fit = calibrate_fixed(data, QUICK)
    errors = np.sqrt(np.einsum("ijj->ij", fit.covariance))
    z = (fit.posterior.mean - np.column_stack([new.loadings, new.intercept])) / errors
    assert np.abs(z).max() < 4.0
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.6
    assert theta.std() == pytest.approx(np.sqrt(fit.abilities.covariance[0, 0]), abs=0.1)


def test_several_dimensions(rng):
    data, theta, new = linking_data(rng, n_models=40, n_old=100, n_new=6, n_dims=3)
    fit = calibrate_fixed(data, QUICK)
    found = expected_curves(data, fit)
    curves = probability(ItemParameters.create(found[:, :-1], found[:, -1]), theta)
    assert np.sqrt(np.mean((curves - probability(new, theta)) ** 2)) < 0.12
    assert np.corrcoef(curves.ravel(), probability(new, theta).ravel())[0, 1] > 0.9


@pytest.mark.slow
def test_intervals_of_new_items_hold(rng):
    """95 % intervals of loadings and intercepts of items that come from a normal population, from 8 models."""
    covered = []
    for _ in range(6):
        data, _, new = linking_data(rng, n_models=8, n_old=150, n_new=100)
        fit = calibrate_fixed(data, FixedParameters())
        errors = np.sqrt(np.einsum("ijj->ij", fit.covariance))
        covered.append(np.abs(fit.posterior.mean - np.column_stack([new.loadings, new.intercept])) < 1.96 * errors)
    assert 0.92 < np.mean(covered) < 0.98
