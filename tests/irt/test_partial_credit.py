"""The generalised partial credit model: against enumeration of the levels, finite differences and the 2PL."""

import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.irt import graded
from itembank.irt.bernoulli import probability
from itembank.irt.families import ResponseModel, information_weights
from itembank.irt.parameters import ItemParameters
from itembank.irt.steps import Steps

LEVELS = np.array([0.0, 0.25, 0.5, 1.0])
PLACES = np.array(
    [[0.8, -1.0, 0.2], [-0.3, np.inf, 0.3], [-0.5, 0.5, np.inf], [-np.inf, np.inf, 0.4], [0.5, -np.inf, 1]]
)
"""All levels, by steps that fall; none of 0.5; never the highest; 0.25 and 1 alone; 0.5 and 1 alone."""
STEPS = Steps(LEVELS, PLACES, "adjacent")
OWN = [[0, 1, 2, 3], [0, 1, 3], [0, 1, 2], [1, 3], [2, 3]]
X = np.linspace(-5.0, 5.0, 9)[:, None] + np.zeros(5)
STEP = 1e-4


def level_probabilities(x=X):
    """Muraki 1992, eq. 3, item by item over the levels that it has: exp of the sum of x less each step taken."""
    result = np.zeros((*x.shape, 4))
    for item, own in enumerate(OWN):
        finite = PLACES[item][np.isfinite(PLACES[item])]
        if item == 4:
            finite = finite[1:]  # the step below the lowest level it has leads nowhere
        weights = [np.exp(number * x[:, item] - finite[:number].sum()) for number in range(len(own))]
        result[:, item, own] = np.stack(weights, axis=-1) / np.sum(weights, axis=0)[:, None]
    return result


def derivative(function):
    return (function(X + STEP) - function(X - STEP)) / (2.0 * STEP)


def test_which_levels_an_item_has():
    wanted = np.zeros((5, 4), dtype=bool)
    for item, own in enumerate(OWN):
        wanted[item, own] = True
    np.testing.assert_array_equal(STEPS.has, wanted)
    # a response is read as the nearest level that the item has
    np.testing.assert_array_equal(STEPS.nearest(np.full((1, 5), 0.55)), [[2, 1, 2, 1, 2]])
    np.testing.assert_array_equal(STEPS.take(np.array([3])).has, wanted[3:4])


@pytest.mark.parametrize("level", range(4))
def test_the_likelihood_is_the_probability_of_the_level(level):
    p, y = level_probabilities()[..., level], np.full(X.shape, LEVELS[level])
    terms = graded.likelihood_terms(X, y, STEPS)
    has = STEPS.has[:, level]
    np.testing.assert_allclose(np.exp(terms.log_likelihood[:, has]), p[:, has], rtol=1e-9)
    np.testing.assert_array_equal(terms.log_likelihood, graded.log_likelihood_terms(X, y, STEPS))
    np.testing.assert_allclose(terms.slope, derivative(lambda x: graded.log_likelihood_terms(x, y, STEPS)), atol=1e-7)
    curvature = -derivative(lambda x: graded.likelihood_terms(x, y, STEPS).slope)
    np.testing.assert_allclose(terms.curvature, curvature, atol=1e-7)
    change = derivative(lambda x: graded.likelihood_terms(x, y, STEPS).curvature)
    np.testing.assert_allclose(graded.curvature_slopes(X, y, STEPS), change, atol=1e-7)


def test_information_is_the_expected_squared_slope_and_its_slopes_are_differences():
    p = level_probabilities()
    scores = [graded.likelihood_terms(X, np.full(X.shape, v), STEPS).slope for v in LEVELS]
    information, first, second = graded.information_slopes(X, STEPS)
    np.testing.assert_allclose(information, np.sum(p * np.stack(scores, axis=-1) ** 2, axis=-1), rtol=1e-9)
    np.testing.assert_allclose(first, derivative(lambda x: graded.information_slopes(x, STEPS)[0]), atol=1e-7)
    np.testing.assert_allclose(second, derivative(lambda x: graded.information_slopes(x, STEPS)[1]), atol=1e-7)
    model = ResponseModel("graded", None, None, STEPS)
    np.testing.assert_array_equal(model.relative_information(), [9.0, 4.0, 4.0, 1.0, 4.0])
    assert np.all(information <= 0.25 * model.relative_information() + 1e-12)


def test_mean_slope_variance_and_divergence_are_those_of_the_levels():
    p, q = level_probabilities(), level_probabilities(X + 0.7)
    found = graded.mean_terms(X, STEPS)
    np.testing.assert_allclose(found.mean, p @ LEVELS, atol=1e-12)
    np.testing.assert_allclose(found.variance, p @ LEVELS**2 - (p @ LEVELS) ** 2, atol=1e-12)
    np.testing.assert_allclose(found.slope, derivative(lambda x: graded.mean_terms(x, STEPS).mean), atol=1e-7)
    ratio = np.log(np.where(p > 0.0, p, 1.0) / np.where(q > 0.0, q, 1.0))
    np.testing.assert_allclose(graded.divergence(X, X + 0.7, STEPS), np.sum(p * ratio, axis=-1), rtol=1e-9)


def test_two_levels_are_right_and_wrong():
    steps = Steps(np.array([0.0, 1.0]), np.zeros((2, 1)), "adjacent")
    loadings, intercept, theta = np.array([[0.8], [1.7]]), np.array([0.3, -1.0]), np.linspace(-3, 3, 7)[:, None]
    ours = ItemParameters.create(loadings, intercept, family="graded", steps=steps)
    plain = ItemParameters.create(loadings, intercept)
    np.testing.assert_allclose(probability(ours, theta), probability(plain, theta), rtol=1e-12)
    x = theta @ loadings.T + intercept
    np.testing.assert_allclose(information_weights(ours, x), information_weights(plain, x), rtol=1e-12)
    y = np.array([[0.0, 1.0]])
    models = (ResponseModel.of(one) for one in (ours, plain))
    for one, other in zip(*(model.likelihood_terms(x, y) for model in models), strict=True):
        np.testing.assert_allclose(one, other + 0.0 * one, rtol=1e-12)


def test_far_abilities_have_values_and_missing_responses_none():
    far = np.array([[-np.inf], [np.inf]]) + np.zeros(5)
    np.testing.assert_allclose(graded.mean_terms(far, STEPS).mean, [[0, 0, 0, 0.25, 0.5], [1, 1, 0.5, 1, 1]])
    terms = graded.likelihood_terms(X, np.full(X.shape, np.nan), STEPS)
    assert all(np.isnan(one).all() for one in terms)


def test_only_adjacent_steps_may_fall():
    with pytest.raises(ParameterError, match="must not fall"):
        Steps(LEVELS, PLACES)
    with pytest.raises(ParameterError, match="link must be one of 'cumulative', 'adjacent'"):
        Steps(LEVELS, PLACES, "probit")
