import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import betabinom, binom

from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule

COUNTS = [(0, 1), (1, 1), (0, 10), (3, 10), (10, 10), (0, 10_000), (7, 10_000), (900, 1_000), (12, 3_000_000)]


def evaluate(precision, right, trials, mean, variance, lower=0.0):
    made = BetaBinomialRule(np.array([precision]), np.array([lower]))
    arrays = (np.array([[value]], dtype=float) for value in (right / trials, trials))
    cells = made.evaluate(*arrays, 0, np.array([[mean]]), np.array([[variance]]))
    return tuple(term.item() for term in cells)


def orders(right, trials):
    return gammaln(trials + 1) - gammaln(right + 1) - gammaln(trials - right + 1)


@pytest.mark.parametrize(("right", "trials"), COUNTS)
@pytest.mark.parametrize("mean", [-9.0, -1.0, 2.0])
@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_a_certain_logit_has_the_beta_binomial_mass(right, trials, mean, lower):
    chance = lower + (1 - lower) * expit(mean)
    _, _, value = evaluate(25.0, right, trials, mean, 0.0, lower)
    exact = betabinom.logpmf(right, trials, 25.0 * chance, 25.0 * (1 - chance))
    # at the least variance of 1e-6 the expectation differs by half of that times the second derivative
    assert value + orders(right, trials) == pytest.approx(exact, rel=1e-6, abs=2e-5)


@pytest.mark.parametrize(("right", "trials"), [(0, 50), (20, 50), (50, 50)])
def test_a_large_precision_is_the_binomial(right, trials):
    _, _, value = evaluate(1e7, right, trials, -0.4, 0.0)
    assert value + orders(right, trials) == pytest.approx(binom.logpmf(right, trials, expit(-0.4)), abs=1e-3)


@pytest.mark.parametrize("right", [0, 1])
def test_one_trial_is_right_or_wrong_whatever_the_precision(right):
    pull, curvature, value = evaluate(3.0, right, 1, 0.8, 0.0)
    chance = expit(0.8)
    assert value == pytest.approx(np.log(chance if right else 1 - chance), abs=1e-5)
    assert pull - 0.8 * curvature == pytest.approx(right - chance, abs=1e-5)
    assert curvature == pytest.approx(chance * (1 - chance), rel=1e-4)


@pytest.mark.parametrize(("right", "trials"), COUNTS)
@pytest.mark.parametrize("mean", [-4.0, 0.5])
def test_pull_is_the_derivative_of_the_value(right, trials, mean):
    pull, curvature, _ = evaluate(40.0, right, trials, mean, 0.05)
    above, below = (evaluate(40.0, right, trials, mean + step, 0.05)[2] for step in (1e-5, -1e-5))
    assert pull - curvature * mean == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("right", "trials"), [(3, 10), (0, 10_000), (12, 3_000_000)])
def test_curvature_is_minus_twice_the_derivative_by_the_variance(right, trials):
    mean = -8.0 if trials > 100 else -0.5
    _, curvature, _ = evaluate(40.0, right, trials, mean, 0.05)
    above, below = (evaluate(40.0, right, trials, mean, 0.05 + step)[2] for step in (1e-4, -1e-4))
    assert curvature == pytest.approx(-(above - below) / 1e-4, rel=1e-3)


def test_without_trials_there_is_nothing():
    made = BetaBinomialRule(np.array([5.0]), np.array([0.0]))
    cells = made.evaluate(np.zeros((1, 1)), np.zeros((1, 1)), 0, np.array([[1.0]]), np.array([[0.2]]))
    np.testing.assert_array_equal(np.ravel(cells), 0.0)


def test_logits_without_bounds_give_finite_numbers():
    for mean in (-2000.0, 2000.0):
        assert np.all(np.isfinite(evaluate(5.0, 3, 10, mean, 1.0)))
