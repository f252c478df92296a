"""Rests and differences of gamma functions against sums, the recurrence and the library."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import bernoulli, betaln, digamma, gammaln, polygamma

from itembank.numerics import gamma

A = np.array([1e-8, 1e-3, 0.4, 2.0, 9.999, 10.0, 10.001, 33.3, 1e3])


def test_rests_are_the_functions_less_their_growth():
    assert_allclose(gamma.log_gamma_rest(A), gammaln(A) - (A - 0.5) * np.log(A) + A - gamma.HALF_LOG_TWO_PI, atol=1e-12)
    assert_allclose(gamma.digamma_rest(A), digamma(A) - np.log(A), atol=1e-14, rtol=1e-14)
    assert_allclose(gamma.trigamma(A), polygamma(1, A), rtol=1e-14)
    assert_allclose(gamma.trigamma_rest(A), gamma.trigamma(A) - 1.0 / A, atol=1e-15, rtol=1e-14)
    k = np.arange(1, 8)
    numbers = bernoulli(14)[2 * k]
    assert_allclose(gamma.LOG_GAMMA_SERIES, numbers / (2 * k * (2 * k - 1)), rtol=1e-11)
    assert_allclose(gamma.DIGAMMA_SERIES, -numbers / (2 * k), rtol=1e-11)
    assert_allclose(gamma.TRIGAMMA_SERIES, numbers, rtol=1e-11)


def test_log_beta_is_finite_where_the_library_loses_it_to_subnormal_numbers(monkeypatch):
    """1 / Gamma(a + b) is below the smallest normal number from 171.4 on; a process may flush it to zero."""
    b = np.array([1e-9, 0.3, 9.3, 80.0])[:, None]
    a = np.array([30.0, 171.5, 171.6, 300.0]) - b
    assert_array_equal(gamma.log_beta(a, b), betaln(a, b))

    def flushed(a, b):
        inverse = np.exp(-gammaln(np.add(a, b)))
        return np.where((inverse > 0.0) & (inverse < np.finfo(float).tiny), -np.inf, betaln(a, b))

    assert np.isneginf(flushed(a, b)).any()
    monkeypatch.setattr("scipy.special.betaln", flushed)
    assert_allclose(gamma.log_beta(a, b), betaln(a, b), rtol=1e-12, atol=1e-11)
    assert gamma.log_beta(162.3, 9.25) == pytest.approx(betaln(162.3, 9.25), rel=1e-12)


@pytest.mark.parametrize("rest", [gamma.log_gamma_rest, gamma.digamma_rest, gamma.trigamma_rest])
def test_series_meets_the_library_function(rest):
    below, above = np.nextafter(gamma.SERIES_FROM, 0.0), gamma.SERIES_FROM
    assert_allclose(rest(np.array([below])), rest(np.array([above])), rtol=3e-12)
    mixed = rest(np.array([below, above]))
    assert_array_equal(mixed, [rest(np.array(below)), rest(np.array(above))])


@pytest.mark.parametrize("n", [0, 1, 7, 5000])
@pytest.mark.parametrize("a", [1e-6, 0.3, 12.0, 5e6, 1e14])
def test_differences_are_sums(a, n):
    steps = a + np.arange(n, dtype=np.float64)
    log_sum = np.sum(np.log1p(np.arange(n) / a))
    first, size = np.array(a), np.array(float(n))
    assert_allclose(gamma.log_gamma_difference(first, size), log_sum, rtol=1e-11, atol=1e-11 * (1 + n))
    assert_allclose(gamma.digamma_difference(first, size), np.sum(1.0 / steps), rtol=1e-12)
    assert_allclose(gamma.trigamma_difference(first, size), np.sum(1.0 / steps**2), rtol=1e-11)


@settings(deadline=None, max_examples=200)
@given(st.floats(1e-6, 1e7), st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_log_gamma_second_difference_against_log_gammas(x, s, t):
    terms = gammaln(x + s), gammaln(x + t), gammaln(x + s + t), gammaln(x)
    rounding = 8e-16 * sum(abs(one) for one in terms) + 1e-13
    found = float(gamma.log_gamma_second_difference(x, s, t))
    assert found == pytest.approx(terms[0] + terms[1] - terms[2] - terms[3], abs=rounding + 1e-9 * abs(found))
    assert found <= 1e-12
