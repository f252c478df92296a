import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_expit

from itembank.numerics.stable import sigmoid_pair, sigmoid_slope, sigmoid_terms, softplus

WIDE = np.concatenate([-np.logspace(3, -12, 60), [0.0], np.logspace(-12, 3, 60)])


def test_softplus_agrees_with_scipy():
    np.testing.assert_allclose(softplus(WIDE), -log_expit(-WIDE), rtol=1e-14)


def test_sigmoid_slope_keeps_its_digits_where_one_minus_sigmoid_has_none():
    # sigmoid(50) rounds to 1, so sigmoid (1 - sigmoid) would be 0.
    np.testing.assert_allclose(sigmoid_slope(np.array([50.0, -50.0])), np.exp(-50.0), rtol=1e-14)


def test_infinite_logits_give_the_limit():
    assert sigmoid_slope(np.array([np.inf]))[0] == 0.0


@given(st.floats(-700.0, 700.0))
def test_sigmoid_terms_agree_with_each_alone(x):
    terms = sigmoid_terms(np.array([x]))
    np.testing.assert_allclose(terms.softplus, softplus(np.array([x])), rtol=1e-14)
    np.testing.assert_allclose(terms.sigmoid, expit(x), rtol=1e-14)
    np.testing.assert_allclose(terms.slope, sigmoid_slope(np.array([x])), rtol=1e-13)


def test_sigmoids_of_both_signs_agree_with_scipy():
    rising, falling = sigmoid_pair(WIDE)
    np.testing.assert_allclose(rising, expit(WIDE), rtol=1e-14)
    np.testing.assert_allclose(falling, expit(-WIDE), rtol=1e-14)
    np.testing.assert_allclose(sigmoid_slope(WIDE), expit(WIDE) * expit(-WIDE), rtol=1e-14)
