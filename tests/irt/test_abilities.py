import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from itembank.irt.abilities import expected_difficulties
from itembank.irt.binarise import apply_thresholds

SLOPE, INTERCEPT = np.array([1.2, 0.3, -0.05]), np.array([0.7, -0.4, 1.1])
ROOTS = np.array([[[0.1, 0.0], [0.05, 0.2]], [[0.3, 0.0], [-0.1, 0.3]], [[0.2, 0.0], [0.1, 0.1]]])
COVARIANCE = ROOTS @ ROOTS.swapaxes(1, 2)


def test_the_expected_square_of_the_logit_is_least_there():
    found = expected_difficulties(SLOPE, INTERCEPT, COVARIANCE)
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    for item in range(3):
        drawn = grid @ ROOTS[item].T + [SLOPE[item], INTERCEPT[item]]
        square = minimize_scalar(lambda b, drawn=drawn: weights @ (drawn[:, 0] * b + drawn[:, 1]) ** 2)
        assert found.value[item] == pytest.approx(square.x, abs=1e-6)
        least = square.fun / (weights @ drawn[:, 0] ** 2)
        assert found.standard_error[item] == pytest.approx(np.sqrt(least), rel=1e-8)


def test_well_known_slopes_give_the_plain_ratio_and_the_delta_methods_error():
    small = 1e-6 * COVARIANCE[:1]
    found = expected_difficulties(SLOPE[:1], INTERCEPT[:1], small)
    assert found.value[0] == pytest.approx(-0.7 / 1.2, rel=1e-6)
    gradient = np.array([0.7 / 1.2**2, -1.0 / 1.2])
    assert found.standard_error[0] == pytest.approx(np.sqrt(gradient @ small[0] @ gradient), rel=1e-4)


def test_they_move_with_the_scale_of_ability():
    scale, shift = 1.7, -0.4  # theta' = scale * theta + shift
    change = np.array([[1.0 / scale, 0.0], [-shift / scale, 1.0]])
    moved = np.column_stack([SLOPE, INTERCEPT]) @ change.T
    before = expected_difficulties(SLOPE, INTERCEPT, COVARIANCE)
    after = expected_difficulties(moved[:, 0], moved[:, 1], change @ COVARIANCE @ change.T)
    np.testing.assert_allclose(after.value, scale * before.value + shift, atol=1e-12)
    np.testing.assert_allclose(after.standard_error, scale * before.standard_error, rtol=1e-12)


def test_a_response_at_the_threshold_counts_as_right_and_missing_stays_missing():
    binary = apply_thresholds(np.array([[0.49, 0.5, 0.51]]), np.full(3, 0.5))
    np.testing.assert_array_equal(binary, [[0.0, 1.0, 1.0]])
    responses = np.array([[np.nan, 0.3, 0.3], [0.9, np.nan, 0.1]])
    binary = apply_thresholds(responses, np.array([0.5, np.nan, 0.2]))
    np.testing.assert_array_equal(binary, [[np.nan, 0.3, 1.0], [1.0, np.nan, 0.0]])
    assert responses[0, 1] == 0.3
    assert np.isnan(responses[0, 0])
