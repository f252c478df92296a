"""Every scoring method against R's mirt; the cases are described in the README of the golden folder."""

import numpy as np
import pytest

from itembank.irt.answers import gather
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.likelihood_abilities import Jeffreys, ml_abilities, wle_abilities
from itembank.irt.newton import map_abilities
from itembank.numerics.newton import Evaluation
from tests.irt.golden import CASES, main_case, read_case
from tests.irt.scores import score_function

METHODS = {
    "MAP": lambda case: map_abilities(case.parameters, case.responses, case.prior),
    "ML": lambda case: ml_abilities(case.parameters, case.responses),
    "WLE": lambda case: wle_abilities(case.parameters, case.responses),
    # mirt's own grid: 121 nodes in one dimension, 31 in the two-dimensional case.
    "EAP": lambda case: eap_abilities(
        case.parameters, case.responses, case.prior, n_quadrature=121 if case.prior.n_dims == 1 else 31
    ),
}
PAIRS = [
    (name, method)
    for name in CASES
    for method in METHODS
    if (name, method) not in {("free guessing", "ML"), ("free guessing", "WLE")}
]


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_abilities_and_standard_errors_are_mirts_and_the_polished_ones(shared_dir, name, method):
    case = CASES[name](shared_dir)
    found = METHODS[method](case)
    # Polished values are roots to 1e-12; the 3PL WLE among them is flat enough to leave 1e-9.
    np.testing.assert_allclose(found.theta, case.polished_theta(method), rtol=0, atol=1e-8)
    assert found.converged.all()
    np.testing.assert_array_equal(found.at_bound, np.isinf(case.polished_theta(method)[:, 0]))
    is_finite = np.isfinite(found.theta)
    # mirt's search stops about 6e-6 from the root, and it takes the Hessian there by differences.
    atol = 1e-12 if method == "EAP" else 1e-5
    np.testing.assert_allclose(found.theta, case.theta(method), rtol=0, atol=atol)
    errors, known = found.standard_errors[is_finite], case.standard_errors(method)[is_finite]
    np.testing.assert_allclose(errors, known, rtol=0, atol=1e-12 if method == "EAP" else 1e-3)
    assert np.isnan(found.standard_errors[~is_finite]).all()


@pytest.mark.parametrize("name", ["known bank 2PL", "known bank 3PL", "missing"])
def test_standard_errors_are_those_of_the_hessian_by_finite_differences(shared_dir, name):
    case, step = CASES[name](shared_dir), 1e-5
    theta = case.polished_theta("MAP")
    slopes = [
        score_function(case.parameters, theta + sign * step, case.responses) - (theta + sign * step)
        for sign in (1.0, -1.0)
    ]
    information = (slopes[1] - slopes[0]) / (2.0 * step)
    np.testing.assert_allclose(METHODS["MAP"](case).standard_errors, 1.0 / np.sqrt(information), rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_two_dimensions(shared_dir, method):
    case = main_case(shared_dir, "sim_mirt2_confirmatory")
    found = METHODS[method](case)
    is_finite = np.isfinite(found.theta)
    np.testing.assert_array_equal(is_finite, np.isfinite(case.theta(method)))
    # With one dimension infinite, mirt searches the other from its limit of 20: 2e-4 off.
    inside = ~found.at_bound
    atol = 1e-12 if method == "EAP" else 1e-5
    np.testing.assert_allclose(found.theta[inside], case.theta(method)[inside], rtol=0, atol=atol)
    np.testing.assert_allclose(found.theta, case.theta(method), rtol=0, atol=1e-3)
    errors, known = found.standard_errors[inside], case.standard_errors(method)[inside]
    np.testing.assert_allclose(errors, known, rtol=0, atol=1e-12 if method == "EAP" else 1e-3)
    assert np.isnan(found.covariance[~inside]).all()
    assert found.converged.all()


def test_posterior_covariances_in_two_dimensions(shared_dir):
    results, _, _ = read_case(shared_dir, "sim_mirt2_confirmatory")
    case = main_case(shared_dir, "sim_mirt2_confirmatory")
    found = METHODS["EAP"](case)
    expected = np.array([results["eap_acov_first10"][str(row)] for row in range(1, 11)])
    np.testing.assert_allclose(found.covariance[:10], expected, rtol=0, atol=1e-13)


def test_common_grid_and_automatic_nodes_agree(shared_dir):
    case = main_case(shared_dir, "sim_mirt2_confirmatory")
    automatic = eap_abilities(case.parameters, case.responses, case.prior)
    # 31 nodes a dimension leave the quadrature error that the golden README states.
    np.testing.assert_allclose(automatic.theta, case.theta("EAP"), rtol=0, atol=1e-3)
    assert automatic.converged.all()


def test_jeffreys_derivatives_agree_with_finite_differences(rng, shared_dir):
    case = main_case(shared_dir, "sim_mirt2_confirmatory")
    answers, step = gather(case.parameters, case.responses[:20]), 1e-5
    theta = rng.normal(size=(20, 2))
    at: Evaluation = Jeffreys(answers).evaluate(theta)
    for dim in range(2):
        up, down = (Jeffreys(answers).evaluate(theta + sign * step * np.eye(2)[dim]) for sign in (1.0, -1.0))
        np.testing.assert_allclose(at.gradient[:, dim], (up.objective - down.objective) / (2 * step), atol=1e-8)
        np.testing.assert_allclose(-at.precision[:, dim], (up.gradient - down.gradient) / (2 * step), atol=1e-8)
