"""Cells of right and wrong answers, of probabilities and of counts, against integrals, scipy and differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammaln, log_expit, logit, polygamma
from scipy.stats import beta, betabinom, binom, norm

from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import LEAST_CURVATURE, BetaRule, Few, make_table, normaliser
from itembank.calibration.variational.cells import guessing_terms, jaakkola_jordan, normal_expectation

means = st.floats(-12.0, 12.0)
variances = st.floats(1e-3, 4.0)
GUESSING = pytest.mark.parametrize("lower", [0.0, 0.25])


def expected_log_cosh(mean, variance):
    sd = np.sqrt(variance)

    def integrand(x):
        return np.logaddexp(x / 2, -x / 2) * norm.pdf(x, mean, sd)

    return quad(integrand, mean - 10 * sd, mean + 10 * sd, epsabs=1e-11, limit=200)[0]


def at(rule, mean, variance):
    tilt, curvature, log_cosh = rule(np.array([[float(mean)]]), np.array([[float(variance)]]))
    return 0.0 if tilt is None else tilt.item(), curvature.item(), log_cosh.item()


def derivatives(value, mean, variance, by_mean=1e-5, by_variance=1e-4):
    """Central differences of a function of both."""
    of_mean = (value(mean + by_mean, variance) - value(mean - by_mean, variance)) / (2 * by_mean)
    of_variance = (value(mean, variance + by_variance) - value(mean, variance - by_variance)) / (2 * by_variance)
    return of_mean, of_variance


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
    expected = pytest.approx(expected_log_cosh(mean, variance), abs=2e-3 * variance**3 + 1e-9)
    assert at(normal_expectation, mean, variance)[2] == expected


@settings(deadline=None)
@given(means, variances)
def test_normal_expectation_gives_its_own_derivatives(mean, variance):
    tilt, curvature, _ = at(normal_expectation, mean, variance)
    step = 1e-4 * variance
    of_mean, of_variance = derivatives(lambda *where: at(normal_expectation, *where)[2], mean, variance, 1e-5, step)
    assert curvature * mean - tilt == pytest.approx(of_mean, abs=1e-7)
    assert curvature == pytest.approx(2 * of_variance, abs=1e-6 + 1e-10 / step)


@settings(deadline=None)
@given(means)
def test_rules_agree_where_the_logit_is_certain(mean):
    for rule in (jaakkola_jordan, normal_expectation):
        assert at(rule, mean, 1e-9)[2] == pytest.approx(np.logaddexp(mean / 2, -mean / 2), abs=1e-6)


@settings(deadline=None)
@given(means, st.floats(0.01, 0.9))
def test_guessing_is_the_best_split_of_right_answers_and_gives_the_likelihood_of_a_certain_logit(mean, lower):
    def terms(lower):
        return guessing_terms(np.array([[mean, mean]]), np.array([[0.5, -0.5]]), np.array([[lower]]))

    def negative(r):
        entropy = -r * np.log(r) - (1 - r) * np.log1p(-r)
        return -(r * mean + (1 - r) * np.log(lower) + entropy)

    known, value = terms(lower)
    best = minimize_scalar(negative, bounds=(1e-12, 1 - 1e-12), method="bounded", options={"xatol": 1e-12})
    assert value[0, 0] == pytest.approx(-best.fun - 0.5 * mean, abs=1e-6)
    assert known[0, 0] + 0.5 == pytest.approx(best.x, abs=1e-4)
    assert value[0, 1] == pytest.approx(np.log1p(-lower) - 0.5 * mean)
    assert known[0, 1] == -0.5
    for guess in (lower, 0.0):
        likelihood = terms(guess)[1][0] - np.logaddexp(mean / 2, -mean / 2)
        chance = guess + (1 - guess) * np.exp(log_expit(mean))
        assert likelihood == pytest.approx([np.log(chance), np.log(1 - guess) + log_expit(-mean)], abs=1e-9)


SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
LOGITS = np.linspace(-14.0, 14.0, 173)


def beta_rule(precision, *, lower=0.0, is_narrow=False):
    return BetaRule((make_table(precision, lower, DOUBLE),), is_narrow)


def of_probability(made, response, mean, variance):
    """Pull, curvature and value of one cell."""
    value, mean, variance = (np.array([[number]]) for number in (logit(response), mean, variance))
    return tuple(float(term.item()) for term in made.evaluate(value, None, 0, mean, variance))


def density(response, logits, precision, lower=0.0):
    chances = lower + (1 - lower) * expit(logits)
    return beta.logpdf(response, chances * precision, (1 - chances) * precision)


def constant(response, precision):
    return precision * np.log1p(-response) - np.log(response * (1 - response))


@GUESSING
@pytest.mark.parametrize("precision", [0.3, 10.0, 1e4])
def test_the_normaliser_s_derivatives_are_those_of_finite_differences(precision, lower):
    at, above, below = (normaliser(LOGITS + shift, precision, lower) for shift in (0.0, 1e-4, -1e-4))
    for term in range(3):
        difference = (above[term] - below[term]) / 2e-4
        assert_allclose(at[term + 1], difference, atol=2e-6 * max(precision, 1.0), rtol=1e-5)


@GUESSING
@pytest.mark.parametrize("precision", [0.05, 1.0, 30.0, 1e5])
def test_tables_agree_with_the_special_functions(precision, lower):
    logits = np.random.default_rng(0).uniform(-23.0, 23.0, 4000)
    exact, scale = normaliser(logits, precision, lower), max(precision, 1.0)
    for dtype, tolerance in ((DOUBLE, 1e-9), (SINGLE, 3e-6)):
        found = make_table(precision, lower, dtype).at(logits.astype(dtype))
        assert_allclose(found.value, exact.value, atol=tolerance * scale, rtol=tolerance)
        assert_allclose(found.slope, exact.slope, atol=3 * tolerance * scale, rtol=3 * tolerance)


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-5, 1 - 1e-5), st.floats(-8.0, 8.0), st.sampled_from([0.5, 8.0, 300.0]), st.sampled_from([0.0, 0.3]))
def test_a_certain_logit_has_the_beta_density(response, mean, precision, lower):
    _, _, value = of_probability(beta_rule(precision, lower=lower), response, mean, 0.0)
    exact = density(response, mean, precision, lower)
    assert value + constant(response, precision) == pytest.approx(exact, rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("response", [0.02, 0.4, 0.97])
@pytest.mark.parametrize("mean", [-2.0, 0.3, 3.0])
@pytest.mark.parametrize("variance", [0.003, 0.03])
def test_the_value_is_the_expectation_over_the_logit(response, mean, variance):
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    expected = weights @ density(response, mean + np.sqrt(variance) * nodes, 20.0) / weights.sum()
    for is_narrow, order in ((False, 3), (True, 2)):
        _, _, value = of_probability(beta_rule(20.0, is_narrow=is_narrow), response, mean, variance)
        assert value + constant(response, 20.0) == pytest.approx(expected, abs=20 * variance**order + 1e-6)


@pytest.mark.parametrize("is_narrow", [False, True])
@pytest.mark.parametrize("lower", [0.0, 0.3])
@pytest.mark.parametrize(("response", "mean"), [(0.3, -0.5), (0.6, 0.4), (0.9, 1.7)])
def test_pull_and_curvature_are_derivatives_of_the_value(response, mean, lower, is_narrow):
    made = beta_rule(15.0, lower=lower, is_narrow=is_narrow)
    pull, curvature, _ = of_probability(made, response, mean, 0.02)
    of_mean, of_variance = derivatives(lambda *where: of_probability(made, response, *where)[2], mean, 0.02, 1e-3, 2e-3)
    assert pull - curvature * mean == pytest.approx(of_mean, rel=1e-4, abs=1e-4)
    assert curvature == pytest.approx(-2.0 * of_variance, rel=2e-3)


def test_far_from_its_expectation_a_response_keeps_a_share_of_the_information():
    chance = expit(4.0)
    spread = polygamma(1, 10.0 * chance) + polygamma(1, 10.0 * (1.0 - chance))
    information = (10.0 * chance * (1.0 - chance)) ** 2 * spread
    for is_narrow in (False, True):
        _, curvature, _ = of_probability(beta_rule(10.0, is_narrow=is_narrow), 2e-6, 4.0, 1e-6)
        assert curvature == pytest.approx(LEAST_CURVATURE * information, rel=2e-3)


def test_another_precision_makes_other_tables_only_where_it_differs():
    made = BetaRule((make_table(3.0, 0.0, DOUBLE), make_table(5.0, 0.2, DOUBLE)))
    changed = made.with_precision(np.array([3.0, 7.0]))
    assert changed.tables[0] is made.tables[0]
    assert_array_equal(changed.precision, [3.0, 7.0])
    assert changed.tables[1].lower_asymptote == 0.2


@GUESSING
@pytest.mark.parametrize("mean", [-6.0, -1.0, 2.0])
@pytest.mark.parametrize("response", [1e-6, 1 - 1e-6])
def test_a_clipped_probability_counts_by_its_chance(response, mean, lower):
    made, chance = beta_rule(3.0, lower=lower), lower + (1 - lower) * expit(mean)
    law = beta(chance * 3.0, (1 - chance) * 3.0)
    exact = np.log(law.cdf(response) if response < 0.5 else law.sf(response))
    pull, curvature, value = of_probability(made, response, mean, 0.0)
    # the density's own factor y (1 - y) stays, as of every response
    assert value + constant(response, 3.0) + np.log(1e-6) == pytest.approx(exact, abs=1e-3)
    above, below = (of_probability(made, response, mean + step, 0.0)[2] for step in (1e-4, -1e-4))
    assert pull - curvature * mean == pytest.approx((above - below) / 2e-4, rel=1e-4, abs=1e-5)


def test_clipped_probabilities_are_expanded_like_others():
    by_nodes, expanded = (
        of_probability(beta_rule(3.0, is_narrow=is_narrow), 1e-6, -1.0, 0.01) for is_narrow in (False, True)
    )
    assert_allclose(expanded, by_nodes, rtol=1e-2)


def test_small_groups_in_one_block_give_what_each_gives_by_its_table(rng):
    precisions, lower = np.array([0.4, 7.0, 300.0]), np.array([0.0, 0.2, 0.0])
    group = np.repeat([0, 1, 2], [2, 1, 3])
    mean, variance = rng.normal(scale=3.0, size=(6, 9)), rng.uniform(0.01, 1.0, (6, 9))
    values, weights = rng.normal(scale=2.0, size=(6, 9)), (rng.uniform(size=(6, 9)) < 0.6).astype(float)
    values[0, :2], weights[0, :2] = [-20.0, 20.0], 1.0  # clipped at either end
    mean[1, 0], weights[1, 0] = 40.0, 1.0  # beyond the tables
    few = BetaRule(tuple(Few(*each) for each in zip(precisions, lower, strict=True)))
    tables = BetaRule(tuple(make_table(*each, DOUBLE) for each in zip(precisions, lower, strict=True)))
    found = few.evaluate(values, weights, group, mean, variance)
    for number in range(3):
        one = group == number
        expected = tables.evaluate(values[one], weights[one], number, mean[one], variance[one])
        for term, right in zip(found, expected, strict=True):
            assert_allclose(term[one], right, rtol=1e-6, atol=1e-6)
    assert few.with_precision(precisions * 2.0).precision.tolist() == (precisions * 2.0).tolist()


COUNTS = [(0, 1), (1, 1), (0, 10), (3, 10), (10, 10), (0, 10_000), (7, 10_000), (900, 1_000), (12, 3_000_000)]


def of_count(precision, right, trials, mean, variance, lower=0.0):
    """Pull, curvature and value of one cell."""
    made = BetaBinomialRule(np.array([precision]), np.array([lower]))
    rate, trials, mean, variance = (
        np.array([[value]], dtype=float) for value in (right / trials if trials else 0.0, trials, mean, variance)
    )
    return tuple(term.item() for term in made.evaluate(rate, trials, 0, mean, variance))


def orders(right, trials):
    return gammaln(trials + 1) - gammaln(right + 1) - gammaln(trials - right + 1)


@pytest.mark.parametrize(("right", "trials"), COUNTS)
@pytest.mark.parametrize("mean", [-9.0, -1.0, 2.0])
@GUESSING
def test_a_certain_logit_has_the_beta_binomial_mass(right, trials, mean, lower):
    chance = lower + (1 - lower) * expit(mean)
    _, _, value = of_count(25.0, right, trials, mean, 0.0, lower)
    exact = betabinom.logpmf(right, trials, 25.0 * chance, 25.0 * (1 - chance))
    # at the least variance of 1e-6 the expectation differs by half of that times the second derivative
    assert value + orders(right, trials) == pytest.approx(exact, rel=1e-6, abs=2e-5)


@pytest.mark.parametrize(("right", "trials"), [(0, 50), (20, 50), (50, 50)])
def test_a_large_precision_is_the_binomial(right, trials):
    _, _, value = of_count(1e7, right, trials, -0.4, 0.0)
    assert value + orders(right, trials) == pytest.approx(binom.logpmf(right, trials, expit(-0.4)), abs=1e-3)


@pytest.mark.parametrize("right", [0, 1])
def test_one_trial_is_right_or_wrong_whatever_the_precision(right):
    pull, curvature, value = of_count(3.0, right, 1, 0.8, 0.0)
    chance = expit(0.8)
    assert value == pytest.approx(np.log(chance if right else 1 - chance), abs=1e-5)
    assert pull - 0.8 * curvature == pytest.approx(right - chance, abs=1e-5)
    assert curvature == pytest.approx(chance * (1 - chance), rel=1e-4)


@pytest.mark.parametrize(("right", "trials"), COUNTS)
@pytest.mark.parametrize("mean", [-4.0, 0.5])
def test_pull_of_a_count_is_the_derivative_of_the_value(right, trials, mean):
    pull, curvature, _ = of_count(40.0, right, trials, mean, 0.05)
    of_mean, _ = derivatives(lambda *where: of_count(40.0, right, trials, *where)[2], mean, 0.05)
    assert pull - curvature * mean == pytest.approx(of_mean, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("right", "trials", "mean"), [(3, 10, -0.5), (0, 10_000, -8.0), (12, 3_000_000, -8.0)])
def test_curvature_of_a_count_is_minus_twice_the_derivative_by_the_variance(right, trials, mean):
    _, of_variance = derivatives(lambda *where: of_count(40.0, right, trials, *where)[2], mean, 0.05)
    assert of_count(40.0, right, trials, mean, 0.05)[1] == pytest.approx(-2.0 * of_variance, rel=1e-3)


def test_without_trials_there_is_nothing_and_logits_without_bounds_give_finite_numbers():
    assert_array_equal(of_count(5.0, 0, 0, 1.0, 0.2), 0.0)
    for mean in (-2000.0, 2000.0):
        assert np.all(np.isfinite(of_count(5.0, 3, 10, mean, 1.0)))
