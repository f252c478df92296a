import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.irt import logistic
from itembank.irt.logistic import asymptotes_of
from tests.irt.scores import differentiate

KINDS = {"none": (0.0, 1.0), "lower": (0.25, 1.0), "upper": (0.0, 0.9), "both": (0.2, 0.95)}
CELLS = np.linspace(-8.0, 8.0, 33)


def case(kind, shape=()):
    lower, upper = KINDS[kind]
    return asymptotes_of(np.full(shape, lower), np.full(shape, upper))


def test_tails_keep_their_digits_and_no_asymptotes_are_recognised():
    # With g = 0.2 the information at x = -40 is (1 - g) e^{2x} / g to first order: far below rounding of p.
    low = logistic.information_weights(np.array([-40.0]), asymptotes_of(np.array([0.2]), np.ones(1)))
    np.testing.assert_allclose(low, 0.8 / 0.2 * np.exp(-80.0), rtol=1e-12)
    assert asymptotes_of(np.zeros(3), np.ones(3)) is None
    assert asymptotes_of(np.array([0.0, 0.1]), np.ones(2)) is not None
    assert asymptotes_of(np.zeros(2), np.array([1.0, 0.9])) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_those_of_the_definition_and_overflow_nowhere(kind):
    lower, upper = KINDS[kind]
    p = lower + (upper - lower) / (1.0 + np.exp(-CELLS))
    log_p, log_q = logistic.log_probabilities(CELLS, case(kind))
    np.testing.assert_allclose(log_p, np.log(p), rtol=1e-12)
    np.testing.assert_allclose(log_q, np.log1p(-p), rtol=1e-12)
    x, asymptotes = np.array([-1e4, -700.0, 700.0, 1e4]), case(kind)
    for y in (0.0, 0.5, 1.0):
        for part in logistic.likelihood_terms(x, np.full(4, y), asymptotes):
            assert np.isfinite(part).all()
    assert all(np.isfinite(part).all() for part in logistic.information_slopes(x, asymptotes))


@pytest.mark.parametrize("y", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_agree_with_finite_differences(kind, y):
    asymptotes, responses = case(kind), np.full_like(CELLS, y)
    score = logistic.score_terms(CELLS, responses, asymptotes)
    curvature = logistic.curvature_terms(CELLS, responses, asymptotes)
    chain = [
        (lambda x: logistic.log_likelihood_terms(x, responses, asymptotes), score),
        (lambda x: logistic.score_terms(x, responses, asymptotes), -curvature),
    ]
    for function, derivative in chain:
        np.testing.assert_allclose(derivative, differentiate(function, CELLS), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_information_slopes_agree_with_finite_differences(kind):
    asymptotes = case(kind)
    weights, first, second = logistic.information_slopes(CELLS, asymptotes)
    np.testing.assert_array_equal(weights, logistic.information_weights(CELLS, asymptotes))
    np.testing.assert_allclose(
        first, differentiate(lambda x: logistic.information_slopes(x, asymptotes)[0], CELLS), atol=1e-11
    )
    np.testing.assert_allclose(
        second, differentiate(lambda x: logistic.information_slopes(x, asymptotes)[1], CELLS), atol=1e-11
    )


@pytest.mark.parametrize("kind", KINDS)
def test_information_is_the_expected_curvature_and_the_expected_squared_score(kind):
    asymptotes = case(kind)
    p = np.exp(logistic.log_probabilities(CELLS, asymptotes)[0])
    right, wrong = np.ones_like(CELLS), np.zeros_like(CELLS)
    expected = sum(
        chance * logistic.curvature_terms(CELLS, y, asymptotes) for chance, y in ((p, right), (1.0 - p, wrong))
    )
    squared = sum(
        chance * logistic.score_terms(CELLS, y, asymptotes) ** 2 for chance, y in ((p, right), (1.0 - p, wrong))
    )
    information = logistic.information_weights(CELLS, asymptotes)
    np.testing.assert_allclose(information, expected, atol=1e-14)
    np.testing.assert_allclose(information, squared, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_fused_terms_agree_with_each_alone(kind, rng):
    x, y, asymptotes = rng.normal(size=50) * 5.0, rng.random(50), case(kind)
    terms = logistic.likelihood_terms(x, y, asymptotes)
    np.testing.assert_allclose(terms.log_likelihood, logistic.log_likelihood_terms(x, y, asymptotes), rtol=1e-13)
    np.testing.assert_allclose(terms.slope, logistic.score_terms(x, y, asymptotes), atol=1e-15)
    np.testing.assert_allclose(terms.curvature, logistic.curvature_terms(x, y, asymptotes), atol=1e-15)


@given(
    x=st.floats(-30.0, 30.0),
    lower=st.floats(0.0, 0.45),
    upper=st.floats(0.55, 1.0),
)
def test_probability_lies_within_the_asymptotes_and_information_is_not_negative(x, lower, upper):
    asymptotes = asymptotes_of(np.array([lower]), np.array([upper]))
    log_p, log_q = logistic.log_probabilities(np.array([x]), asymptotes)
    assert lower - 1e-15 <= np.exp(log_p[0]) <= upper + 1e-15
    np.testing.assert_allclose(np.exp(log_p) + np.exp(log_q), 1.0, rtol=1e-13)
    assert logistic.information_weights(np.array([x]), asymptotes)[0] >= 0.0
    assert logistic.information_weights(np.array([x]), asymptotes)[0] <= 0.25
