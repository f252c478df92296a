"""Graded responses: against enumeration of the levels and finite differences."""

import numpy as np
import pytest
from scipy.special import expit

from itembank.errors import ParameterError
from itembank.irt import graded
from itembank.irt.bernoulli import probability
from itembank.irt.families import ResponseModel, information_weights
from itembank.irt.parameters import ItemParameters, Steps

LEVELS = np.array([0.0, 0.25, 0.5, 1.0])
PLACES = np.array([[-1.0, 0.2, 0.8], [-0.3, -0.3, 0.6], [-0.5, 0.5, np.inf], [-np.inf, -1.0, 1.0]])
"""All levels; none between the first two steps; never the highest; always above the lowest."""
STEPS = Steps(LEVELS, PLACES)
X = np.linspace(-5.0, 5.0, 9)[:, None] + np.zeros(4)
STEP = 1e-4


def level_probabilities(x=X):
    reached = expit(x[..., None] - PLACES)
    ends = np.ones((*x.shape, 1))
    return -np.diff(np.concatenate([ends, reached, 0.0 * ends], axis=-1), axis=-1)


def derivative(function):
    return (function(X + STEP) - function(X - STEP)) / (2.0 * STEP)


@pytest.mark.parametrize("level", range(4))
def test_the_likelihood_is_the_probability_of_the_level(level):
    p = level_probabilities()[..., level]
    terms = graded.likelihood_terms(X, np.full(X.shape, LEVELS[level]), STEPS)
    has = p[0] > 1e-12
    np.testing.assert_allclose(np.exp(terms.log_likelihood[:, has]), p[:, has], rtol=1e-9)
    np.testing.assert_array_equal(
        terms.log_likelihood, graded.log_likelihood_terms(X, np.full(X.shape, LEVELS[level]), STEPS)
    )


@pytest.mark.parametrize("level", range(4))
def test_derivatives_are_differences(level):
    y = np.full(X.shape, LEVELS[level])
    terms = graded.likelihood_terms(X, y, STEPS)
    slope = derivative(lambda x: graded.log_likelihood_terms(x, y, STEPS))
    np.testing.assert_allclose(terms.slope, slope, atol=1e-7)
    curvature = -derivative(lambda x: graded.likelihood_terms(x, y, STEPS).slope)
    np.testing.assert_allclose(terms.curvature, curvature, atol=1e-7)
    change = derivative(lambda x: graded.likelihood_terms(x, y, STEPS).curvature)
    np.testing.assert_allclose(graded.curvature_slopes(X, y, STEPS), change, atol=1e-7)
    assert np.all(terms.curvature >= 0.0)


def test_information_is_the_expected_curvature_and_its_slopes_are_differences():
    p = level_probabilities()
    curvature = [graded.likelihood_terms(X, np.full(X.shape, v), STEPS).curvature for v in LEVELS]
    information, first, second = graded.information_slopes(X, STEPS)
    np.testing.assert_allclose(information, np.sum(p * np.stack(curvature, axis=-1), axis=-1), rtol=1e-9)
    np.testing.assert_allclose(first, derivative(lambda x: graded.information_slopes(x, STEPS)[0]), atol=1e-7)
    np.testing.assert_allclose(second, derivative(lambda x: graded.information_slopes(x, STEPS)[1]), atol=1e-7)


def test_mean_slope_and_variance_are_those_of_the_levels():
    p = level_probabilities()
    found = graded.mean_terms(X, STEPS)
    np.testing.assert_allclose(found.mean, p @ LEVELS, atol=1e-12)
    np.testing.assert_allclose(found.variance, p @ LEVELS**2 - (p @ LEVELS) ** 2, atol=1e-12)
    np.testing.assert_allclose(found.slope, derivative(lambda x: graded.mean_terms(x, STEPS).mean), atol=1e-7)


def test_two_levels_are_right_and_wrong():
    steps = Steps(np.array([0.0, 1.0]), np.zeros((2, 1)))
    loadings, intercept, theta = np.array([[0.8], [1.7]]), np.array([0.3, -1.0]), np.linspace(-3, 3, 7)[:, None]
    ours = ItemParameters.create(loadings, intercept, family="graded", steps=steps)
    plain = ItemParameters.create(loadings, intercept)
    np.testing.assert_allclose(probability(ours, theta), probability(plain, theta), rtol=1e-12)
    x = theta @ loadings.T + intercept
    np.testing.assert_allclose(information_weights(ours, x), information_weights(plain, x), rtol=1e-12)
    y = np.array([[0.0, 1.0]])
    for one, other in zip(
        ResponseModel.of(ours).likelihood_terms(x, y), ResponseModel.of(plain).likelihood_terms(x, y), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_response_counts_as_the_nearest_level_that_its_item_has():
    y = np.array([[0.3, 0.3, 1.0, 0.0], [np.nan, 0.9, 0.6, 0.26]])
    np.testing.assert_array_equal(STEPS.nearest(y), [[1, 2, 2, 1], [0, 3, 2, 1]])


def test_the_information_of_many_levels_is_that_of_a_logistic_variable():
    n = 2000
    steps = Steps(np.linspace(0.0, 1.0, n + 1), np.log(np.arange(1, n + 1) / np.arange(n, 0, -1))[None])
    assert graded.information_slopes(np.zeros((1, 1)), steps)[0][0, 0] == pytest.approx(1.0 / 3.0, abs=1e-3)


@pytest.mark.parametrize(
    ("levels", "places", "message"),
    [
        ([0.0, 0.5, 0.5], [[0.0, 1.0]], "levels of responses must rise"),
        ([0.0, 1.5], [[0.0]], "levels of responses must rise"),
        ([0.0, 0.5, 1.0], [[0.0]], "3 levels have 2 steps"),
        ([0.0, 0.5, 1.0], [[1.0, 0.0]], "must not fall"),
        ([0.0, 0.5, 1.0], [[-np.inf, np.inf]], "must have a finite step"),
    ],
)
def test_steps_that_cannot_be(levels, places, message):
    with pytest.raises(ParameterError, match=message):
        Steps(np.array(levels), np.array(places))


def test_steps_belong_to_graded_items_without_guessing():
    with pytest.raises(ParameterError, match="has steps and no other, got none"):
        ItemParameters.create(np.ones((1, 1)), np.zeros(1), family="graded")
    with pytest.raises(ParameterError, match="has steps and no other, got some"):
        ItemParameters.create(np.ones((4, 1)), np.zeros(4), steps=STEPS)
    with pytest.raises(ParameterError, match="has no asymptotes"):
        ItemParameters.create(np.ones((4, 1)), np.zeros(4), 0.2, family="graded", steps=STEPS)
    with pytest.raises(ParameterError, match="steps must be of 2 items, got 4"):
        ItemParameters.create(np.ones((2, 1)), np.zeros(2), family="graded", steps=STEPS)
