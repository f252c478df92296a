import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from itembank.irt import bernoulli, logistic
from itembank.irt.logistic import asymptotes_of
from itembank.irt.parameters import ItemParameters
from tests.irt import scores
from tests.numerics.compare import slopes_by_column


def make_parameters(rng, n_items=15, n_dims=3, *, lower=0.2, upper=0.95):
    return ItemParameters.create(rng.normal(size=(n_items, n_dims)), rng.normal(size=n_items), lower, upper)


def make_responses(rng, n_models, n_items):
    responses = rng.random((n_models, n_items))
    responses[rng.random(responses.shape) < 0.3] = np.nan
    return responses


ALL_ASYMPTOTES = pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (0.25, 1.0), (0.2, 0.95)])


@pytest.mark.parametrize("part", ["twopl", "threepl"])
def test_information_and_probability_are_mirts(shared_dir, part):
    golden = json.loads((shared_dir / "golden" / "scoring_known_bank" / "results.json").read_text())
    bank, info = golden["bank"], golden[part]["info"]
    lower = np.array(bank["g"]) if part == "threepl" else 0.0
    parameters = ItemParameters.create(np.array(bank["a"])[:, None], np.array(bank["d"]), lower)
    theta = np.array(info["theta"])[:, None]
    # mirt forms 1 - P, so its information is exact to rounding of 1 only, not in the tails.
    assert_allclose(scores.item_information(parameters, theta).T, info["item_info"], rtol=1e-12, atol=1e-14)
    assert_allclose(scores.fisher_information(parameters, theta)[:, 0, 0], info["test_info"], rtol=1e-12)
    probability = bernoulli.probability(parameters, theta)
    assert_allclose(probability.sum(axis=1), info["expected_test"], rtol=1e-12)
    assert_allclose(probability.T, np.array(info["category_prob"])[:, :, 1], rtol=1e-12)


def test_information_matrices_in_two_dimensions_are_mirts(shared_dir):
    golden = json.loads((shared_dir / "golden/sim_mirt2_confirmatory/results.json").read_text())
    items, info = np.array(golden["par"]["items"], dtype=float), golden["info"]
    parameters = ItemParameters.create(items[:, :2], items[:, 2])
    matrices = scores.fisher_information(parameters, np.array(info["theta"], dtype=float))
    assert_allclose(matrices, info["info_matrix_test"], rtol=1e-12)
    assert_allclose(matrices[:, 0, 0], info["testinfo_0_90"], rtol=1e-12)
    # Information along the diagonal direction: u' I u with u = (1, 1) / sqrt(2).
    assert_allclose(matrices.sum(axis=(1, 2)) / 2.0, info["testinfo_45deg"], rtol=1e-12)
    assert_allclose(parameters.discrimination, golden["mdisc"], rtol=1e-12)
    assert_allclose(parameters.difficulty, golden["mdiff"], rtol=1e-12)


@ALL_ASYMPTOTES
def test_gradient_and_observed_information_agree_with_finite_differences(rng, lower, upper):
    parameters = make_parameters(rng, lower=lower, upper=upper)
    theta, responses = rng.normal(size=(6, 3)), make_responses(rng, 6, 15)
    gradient = slopes_by_column(lambda at: scores.log_likelihood(parameters, at, responses), theta)
    assert_allclose(scores.score_function(parameters, theta, responses), gradient, atol=1e-8)
    bends = slopes_by_column(lambda at: scores.score_function(parameters, at, responses), theta)
    assert_allclose(-scores.observed_information(parameters, theta, responses), bends, atol=1e-8)


@ALL_ASYMPTOTES
def test_information_is_the_expectation_over_every_response_pattern(rng, lower, upper):
    parameters, theta = make_parameters(rng, 4, 2, lower=lower, upper=upper), rng.normal(size=(1, 2))
    patterns = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(float)
    everywhere = np.repeat(theta, 16, axis=0)
    chances = np.exp(scores.log_likelihood(parameters, everywhere, patterns))
    assert chances.sum() == pytest.approx(1.0, abs=1e-14)
    slope = scores.score_function(parameters, everywhere, patterns)
    observed = scores.observed_information(parameters, everywhere, patterns)
    information = scores.fisher_information(parameters, theta)[0]
    assert_allclose(chances @ slope, 0.0, atol=1e-14)
    assert_allclose(np.einsum("p,pd,pe->de", chances, slope, slope), information, atol=1e-13)
    assert_allclose(np.einsum("p,pde->de", chances, observed), information, atol=1e-13)


KINDS = {"none": (0.0, 1.0), "lower": (0.25, 1.0), "upper": (0.0, 0.9), "both": (0.2, 0.95)}
CELLS = np.linspace(-8.0, 8.0, 33)


def case(kind):
    return asymptotes_of(*(np.array(end) for end in KINDS[kind]))


def test_tails_keep_their_digits_and_no_asymptotes_are_recognised():
    # With g = 0.2 the information at x = -40 is (1 - g) e^{2x} / g to first order: far below rounding of p.
    low = logistic.information_weights(np.array([-40.0]), asymptotes_of(np.array([0.2]), np.ones(1)))
    assert_allclose(low, 0.8 / 0.2 * np.exp(-80.0), rtol=1e-12)
    assert asymptotes_of(np.zeros(3), np.ones(3)) is None
    assert asymptotes_of(np.array([0.0, 0.1]), np.ones(2)) is not None
    assert asymptotes_of(np.zeros(2), np.array([1.0, 0.9])) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_those_of_the_definition_and_overflow_nowhere(kind):
    lower, upper = KINDS[kind]
    p = lower + (upper - lower) / (1.0 + np.exp(-CELLS))
    assert_allclose(logistic.log_probabilities(CELLS, case(kind)), [np.log(p), np.log1p(-p)], rtol=1e-12)
    x, asymptotes = np.array([-1e4, -700.0, 700.0, 1e4]), case(kind)
    for y in (0.0, 0.5, 1.0):
        assert np.isfinite(logistic.likelihood_terms(x, np.full(4, y), asymptotes)).all()
    assert np.isfinite(logistic.information_slopes(x, asymptotes)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_agree_with_finite_differences(kind):
    asymptotes = case(kind)
    for y in (0.0, 0.3, 1.0):
        rest = np.full_like(CELLS, y), asymptotes
        rise = scores.differentiate(lambda x, rest=rest: logistic.log_likelihood_terms(x, *rest), CELLS)
        bend = scores.differentiate(lambda x, rest=rest: logistic.score_terms(x, *rest), CELLS)
        assert_allclose(logistic.score_terms(CELLS, *rest), rise, atol=1e-10)
        assert_allclose(-logistic.curvature_terms(CELLS, *rest), bend, atol=1e-10)
    weights, first, second = logistic.information_slopes(CELLS, asymptotes)
    assert_array_equal(weights, logistic.information_weights(CELLS, asymptotes))
    assert_allclose(
        first, scores.differentiate(lambda x: logistic.information_slopes(x, asymptotes)[0], CELLS), atol=1e-11
    )
    assert_allclose(
        second, scores.differentiate(lambda x: logistic.information_slopes(x, asymptotes)[1], CELLS), atol=1e-11
    )


@pytest.mark.parametrize("kind", KINDS)
def test_information_is_the_expected_curvature_and_the_expected_squared_score(kind):
    asymptotes = case(kind)
    p = np.exp(logistic.log_probabilities(CELLS, asymptotes)[0])
    right, wrong = np.ones_like(CELLS), np.zeros_like(CELLS)
    answers = ((p, right), (1.0 - p, wrong))
    expected = sum(chance * logistic.curvature_terms(CELLS, y, asymptotes) for chance, y in answers)
    squared = sum(chance * logistic.score_terms(CELLS, y, asymptotes) ** 2 for chance, y in answers)
    information = logistic.information_weights(CELLS, asymptotes)
    assert_allclose(information, expected, atol=1e-14)
    assert_allclose(information, squared, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_fused_terms_agree_with_each_alone(kind, rng):
    x, y, asymptotes = rng.normal(size=50) * 5.0, rng.random(50), case(kind)
    terms = logistic.likelihood_terms(x, y, asymptotes)
    assert_allclose(terms.log_likelihood, logistic.log_likelihood_terms(x, y, asymptotes), rtol=1e-13)
    assert_allclose(terms.slope, logistic.score_terms(x, y, asymptotes), atol=1e-15)
    assert_allclose(terms.curvature, logistic.curvature_terms(x, y, asymptotes), atol=1e-15)


@given(x=st.floats(-30.0, 30.0), lower=st.floats(0.0, 0.45), upper=st.floats(0.55, 1.0))
def test_probability_lies_within_the_asymptotes_and_information_is_not_negative(x, lower, upper):
    asymptotes = asymptotes_of(np.array([lower]), np.array([upper]))
    log_p, log_q = logistic.log_probabilities(np.array([x]), asymptotes)
    assert lower - 1e-15 <= np.exp(log_p[0]) <= upper + 1e-15
    assert_allclose(np.exp(log_p) + np.exp(log_q), 1.0, rtol=1e-13)
    assert 0.0 <= logistic.information_weights(np.array([x]), asymptotes)[0] <= 0.25
