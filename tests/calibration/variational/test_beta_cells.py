import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, polygamma
from scipy.stats import beta

from itembank.calibration.variational.beta_cells import LEAST_CURVATURE, BetaRule, Few, make_table, normaliser

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
LOGITS = np.linspace(-14.0, 14.0, 173)


def rule(precision, *, lower=0.0, dtype=DOUBLE, is_narrow=False):
    return BetaRule((make_table(precision, lower, dtype),), is_narrow)


def evaluate(made, response, mean, variance):
    dtype = made.tables[0].nodes.value.dtype
    cells = made.evaluate(
        *(np.array([[value]], dtype=dtype) for value in (logit(response),)),
        None,
        0,
        np.array([[mean]], dtype=dtype),
        np.array([[variance]], dtype=dtype),
    )
    return tuple(float(term.item()) for term in cells)


def density(response, logits, precision, lower=0.0):
    chances = lower + (1 - lower) * expit(logits)
    return beta.logpdf(response, chances * precision, (1 - chances) * precision)


def constant(response, precision):
    return precision * np.log1p(-response) - np.log(response * (1 - response))


@pytest.mark.parametrize("lower", [0.0, 0.25])
@pytest.mark.parametrize("precision", [0.3, 10.0, 1e4])
def test_the_normaliser_s_derivatives_are_those_of_finite_differences(precision, lower):
    step = 1e-4
    at, above, below = (normaliser(LOGITS + shift, precision, lower) for shift in (0.0, step, -step))
    for term in range(3):
        difference = (above[term] - below[term]) / (2 * step)
        np.testing.assert_allclose(at[term + 1], difference, atol=2e-6 * max(precision, 1.0), rtol=1e-5)


@pytest.mark.parametrize("lower", [0.0, 0.25])
@pytest.mark.parametrize("precision", [0.05, 1.0, 30.0, 1e5])
def test_tables_agree_with_the_special_functions(precision, lower):
    logits = np.random.default_rng(0).uniform(-23.0, 23.0, 4000)
    exact = normaliser(logits, precision, lower)
    for dtype, tolerance in ((DOUBLE, 1e-9), (SINGLE, 3e-6)):
        found = make_table(precision, lower, dtype).at(logits.astype(dtype))
        scale = max(precision, 1.0)
        np.testing.assert_allclose(found.value, exact.value, atol=tolerance * scale, rtol=tolerance)
        np.testing.assert_allclose(found.slope, exact.slope, atol=3 * tolerance * scale, rtol=3 * tolerance)


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-5, 1 - 1e-5), st.floats(-8.0, 8.0), st.sampled_from([0.5, 8.0, 300.0]), st.sampled_from([0.0, 0.3]))
def test_a_certain_logit_has_the_beta_density(response, mean, precision, lower):
    _, _, value = evaluate(rule(precision, lower=lower), response, mean, 0.0)
    exact = density(response, mean, precision, lower)
    assert value + constant(response, precision) == pytest.approx(exact, rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("response", [0.02, 0.4, 0.97])
@pytest.mark.parametrize("mean", [-2.0, 0.3, 3.0])
@pytest.mark.parametrize("variance", [0.003, 0.03])
def test_the_value_is_the_expectation_over_the_logit(response, mean, variance):
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    expected = weights @ density(response, mean + np.sqrt(variance) * nodes, 20.0) / weights.sum()
    by_nodes = evaluate(rule(20.0), response, mean, variance)[2] + constant(response, 20.0)
    expanded = evaluate(rule(20.0, is_narrow=True), response, mean, variance)[2] + constant(response, 20.0)
    assert by_nodes == pytest.approx(expected, abs=20 * variance**3 + 1e-6)
    assert expanded == pytest.approx(expected, abs=20 * variance**2 + 1e-6)


@pytest.mark.parametrize("is_narrow", [False, True])
@pytest.mark.parametrize("lower", [0.0, 0.3])
@pytest.mark.parametrize(("response", "mean"), [(0.3, -0.5), (0.6, 0.4), (0.9, 1.7)])
def test_pull_and_curvature_are_derivatives_of_the_value(response, mean, lower, is_narrow):
    made, variance = rule(15.0, lower=lower, is_narrow=is_narrow), 0.02
    pull, curvature, _ = evaluate(made, response, mean, variance)

    def value(mean, variance):
        return evaluate(made, response, mean, variance)[2]

    by_mean = (value(mean + 1e-3, variance) - value(mean - 1e-3, variance)) / 2e-3
    by_variance = (value(mean, variance + 2e-3) - value(mean, variance - 2e-3)) / 4e-3
    assert pull - curvature * mean == pytest.approx(by_mean, rel=1e-4, abs=1e-4)
    assert curvature == pytest.approx(-2.0 * by_variance, rel=2e-3)


def test_far_from_its_expectation_a_response_keeps_a_share_of_the_information():
    chance = expit(4.0)
    spread = polygamma(1, 10.0 * chance) + polygamma(1, 10.0 * (1.0 - chance))
    information = (10.0 * chance * (1.0 - chance)) ** 2 * spread
    for is_narrow in (False, True):
        _, curvature, _ = evaluate(rule(10.0, is_narrow=is_narrow), 2e-6, 4.0, 1e-6)
        assert curvature == pytest.approx(LEAST_CURVATURE * information, rel=2e-3)


def test_another_precision_makes_other_tables_only_where_it_differs():
    made = BetaRule((make_table(3.0, 0.0, DOUBLE), make_table(5.0, 0.2, DOUBLE)))
    changed = made.with_precision(np.array([3.0, 7.0]))
    assert changed.tables[0] is made.tables[0]
    np.testing.assert_array_equal(changed.precision, [3.0, 7.0])
    assert changed.tables[1].lower_asymptote == 0.2


@pytest.mark.parametrize("lower", [0.0, 0.25])
@pytest.mark.parametrize("mean", [-6.0, -1.0, 2.0])
@pytest.mark.parametrize("response", [1e-6, 1 - 1e-6])
def test_a_clipped_probability_counts_by_its_chance(response, mean, lower):
    precision = 3.0
    made = rule(precision, lower=lower)
    chance = lower + (1 - lower) * expit(mean)
    shapes = chance * precision, (1 - chance) * precision
    exact = np.log(beta.cdf(response, *shapes) if response < 0.5 else beta.sf(response, *shapes))
    pull, curvature, value = evaluate(made, response, mean, 0.0)
    # the density's own factor y (1 - y) stays, as of every response
    assert value + constant(response, precision) + np.log(1e-6) == pytest.approx(exact, abs=1e-3)
    above, below = (evaluate(made, response, mean + step, 0.0)[2] for step in (1e-4, -1e-4))
    assert pull - curvature * mean == pytest.approx((above - below) / 2e-4, rel=1e-4, abs=1e-5)


def test_clipped_probabilities_are_expanded_like_others():
    by_nodes, expanded = (evaluate(rule(3.0, is_narrow=is_narrow), 1e-6, -1.0, 0.01) for is_narrow in (False, True))
    np.testing.assert_allclose(expanded, by_nodes, rtol=1e-2)


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
            np.testing.assert_allclose(term[one], right, rtol=1e-6, atol=1e-6)
    assert few.with_precision(precisions * 2.0).precision.tolist() == (precisions * 2.0).tolist()
