import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import log_expit
from scipy.stats import norm

from itembank.calibration.variational.cells import guessing_terms, jaakkola_jordan, normal_expectation

means = st.floats(-12.0, 12.0)
variances = st.floats(1e-3, 4.0)


def expected_log_cosh(mean, variance):
    sd = np.sqrt(variance)

    def integrand(x):
        return np.logaddexp(x / 2, -x / 2) * norm.pdf(x, mean, sd)

    return quad(integrand, mean - 10 * sd, mean + 10 * sd, epsabs=1e-11, limit=200)[0]


def at(rule, mean, variance):
    tilt, curvature, log_cosh = rule(np.array([[float(mean)]]), np.array([[float(variance)]]))
    return 0.0 if tilt is None else tilt.item(), curvature.item(), log_cosh.item()


@settings(deadline=None, max_examples=30)  # each integrates
@given(means, variances)
def test_jaakkola_jordan_is_an_upper_bound(mean, variance):
    assert at(jaakkola_jordan, mean, variance)[2] >= expected_log_cosh(mean, variance) - 1e-9


@pytest.mark.parametrize(("mean", "variance"), [(0.3, 0.2), (-2.0, 1.0), (6.0, 0.5)])
def test_jaakkola_jordan_is_the_best_of_its_family(mean, variance):
    square = mean**2 + variance

    def bound(xi):
        return np.logaddexp(xi / 2, -xi / 2) + np.tanh(xi / 2) / (4 * xi) * (square - xi**2)

    best = minimize_scalar(bound, bounds=(1e-3, 30.0), method="bounded", options={"xatol": 1e-10})
    _, curvature, log_cosh = at(jaakkola_jordan, mean, variance)
    assert log_cosh == pytest.approx(best.fun, rel=1e-9)
    assert curvature == pytest.approx(np.tanh(best.x / 2) / (2 * best.x), rel=1e-5)


@pytest.mark.parametrize("variance", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("mean", [-8.0, -1.5, 0.0, 0.7, 4.0])
def test_normal_expectation_agrees_with_integration(mean, variance):
    # three nodes are exact to the fifth power of the deviation: the error grows as the cube of the variance
    assert at(normal_expectation, mean, variance)[2] == pytest.approx(
        expected_log_cosh(mean, variance), abs=2e-3 * variance**3 + 1e-9
    )


@settings(deadline=None)
@given(means, variances)
def test_normal_expectation_gives_its_own_derivatives(mean, variance):
    tilt, curvature, _ = at(normal_expectation, mean, variance)
    step = 1e-4 * variance
    by_mean = (
        at(normal_expectation, mean + 1e-5, variance)[2] - at(normal_expectation, mean - 1e-5, variance)[2]
    ) / 2e-5
    by_variance = (
        at(normal_expectation, mean, variance + step)[2] - at(normal_expectation, mean, variance - step)[2]
    ) / (2 * step)
    assert curvature * mean - tilt == pytest.approx(by_mean, abs=1e-7)
    assert curvature == pytest.approx(2 * by_variance, abs=1e-6 + 1e-10 / step)


@settings(deadline=None)
@given(means)
def test_rules_agree_where_the_logit_is_certain(mean):
    exact = np.logaddexp(mean / 2, -mean / 2)
    assert at(jaakkola_jordan, mean, 1e-9)[2] == pytest.approx(exact, abs=1e-6)
    assert at(normal_expectation, mean, 1e-9)[2] == pytest.approx(exact, abs=1e-6)


@settings(deadline=None)
@given(means, st.floats(0.01, 0.9))
def test_guessing_is_the_best_split_of_right_answers(mean, lower):
    known, value = guessing_terms(np.array([[mean, mean]]), np.array([[0.5, -0.5]]), np.array([[lower]]))

    def negative(r):
        entropy = -r * np.log(r) - (1 - r) * np.log1p(-r)
        return -(r * mean + (1 - r) * np.log(lower) + entropy)

    best = minimize_scalar(negative, bounds=(1e-12, 1 - 1e-12), method="bounded", options={"xatol": 1e-12})
    assert value[0, 0] == pytest.approx(-best.fun - 0.5 * mean, abs=1e-6)
    assert known[0, 0] + 0.5 == pytest.approx(best.x, abs=1e-4)
    assert value[0, 1] == pytest.approx(np.log1p(-lower) - 0.5 * mean)
    assert known[0, 1] == -0.5


@settings(deadline=None)
@given(means, st.floats(0.0, 0.9))
def test_guessing_gives_the_exact_likelihood_of_a_certain_logit(mean, lower):
    _, value = guessing_terms(np.array([[mean, mean]]), np.array([[0.5, -0.5]]), np.array([[lower]]))
    log_cosh = np.logaddexp(mean / 2, -mean / 2)
    chance = lower + (1 - lower) * np.exp(log_expit(mean))
    assert value[0, 0] - log_cosh == pytest.approx(np.log(chance), abs=1e-9)
    assert value[0, 1] - log_cosh == pytest.approx(np.log(1 - lower) + log_expit(-mean), abs=1e-9)
