import numpy as np
import pytest
from scipy.optimize import minimize

from itembank.estimation.stacking import combined, reconciled, stack_weights


def objective(weights, errors, prior_models):
    """What the weights minimise: ``w' (E'E + k D) w``, D the diagonal of ``E'E / n_models``."""
    gram = errors.T @ errors
    return weights @ (gram + prior_models * np.diag(np.diag(gram)) / errors.shape[0]) @ weights


def correlated_errors(rng, n_models=40, n_members=5):
    common = rng.normal(size=(n_models, 1))
    return 0.03 * (common + rng.uniform(0.3, 2.0, n_members) * rng.normal(size=(n_models, n_members)))


@pytest.mark.parametrize("prior_models", [0.01, 10.0, 1000.0])
@pytest.mark.parametrize("n_models", [3, 12, 200])
def test_weights_are_those_of_a_general_solver(rng, n_models, prior_models):
    errors = correlated_errors(rng, n_models)
    found = stack_weights(errors, prior_models=prior_models)
    scale = objective(np.full(5, 0.2), errors, prior_models)
    solved = minimize(
        lambda weights: objective(weights, errors, prior_models) / scale,
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 5,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.sum() == pytest.approx(1.0)
    assert np.all(found >= 0.0)
    assert objective(found, errors, prior_models) / scale <= solved.fun + 1e-7
    np.testing.assert_allclose(found, solved.x, atol=2e-3)


def test_with_a_strong_prior_weights_are_inverse_mean_squares(rng):
    errors = correlated_errors(rng)
    inverse = 1.0 / np.mean(errors**2, axis=0)
    np.testing.assert_allclose(stack_weights(errors, prior_models=1e8), inverse / inverse.sum(), rtol=1e-4)


def test_a_useless_method_gets_next_to_nothing(rng):
    errors = np.column_stack([0.02 * rng.normal(size=(100, 2)), 0.4 * rng.normal(size=100)])
    weights = stack_weights(errors, prior_models=20.0)
    assert weights[2] < 0.01
    np.testing.assert_allclose(weights[:2], 0.5, atol=0.15)


def test_methods_whose_errors_cancel_are_taken_together(rng):
    error = 0.05 * rng.normal(size=200)
    errors = np.column_stack([error, -error, 0.03 * rng.normal(size=200)])
    np.testing.assert_allclose(stack_weights(errors, prior_models=1e-3), [0.5, 0.5, 0.0], atol=0.01)


def test_an_exact_method_gets_everything(rng):
    errors = np.column_stack([0.02 * rng.normal(size=(30, 2)), np.zeros(30)])
    np.testing.assert_allclose(stack_weights(errors, prior_models=10.0), [0.0, 0.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(stack_weights(np.zeros((30, 4)), prior_models=10.0), 0.25)


def test_a_method_that_is_mostly_unknown_is_left_out(rng):
    errors = correlated_errors(rng)
    partial = np.column_stack([errors, np.where(np.arange(40) < 25, np.nan, 0.0)])
    expected = np.append(stack_weights(errors, prior_models=10.0), 0.0)
    np.testing.assert_allclose(stack_weights(partial, prior_models=10.0), expected)


def test_models_with_an_unknown_error_are_left_out(rng):
    errors = correlated_errors(rng)
    partial = errors.copy()
    partial[[3, 7], [0, 4]] = np.nan
    expected = stack_weights(np.delete(errors, [3, 7], axis=0), prior_models=10.0)
    np.testing.assert_allclose(stack_weights(partial, prior_models=10.0), expected)


def test_without_any_known_error_all_weigh_the_same():
    errors = np.full((6, 4), np.nan)
    np.testing.assert_allclose(stack_weights(errors, prior_models=10.0), 0.25)


def test_scale_and_order_of_methods_do_not_matter(rng):
    errors = correlated_errors(rng)
    weights = stack_weights(errors, prior_models=10.0)
    np.testing.assert_allclose(stack_weights(1e-6 * errors, prior_models=10.0), weights, atol=1e-6)
    np.testing.assert_allclose(stack_weights(errors[:, ::-1], prior_models=10.0), weights[::-1], atol=1e-6)


def test_combined_by_hand():
    values = np.array([[[0.2], [0.4], [np.nan]], [[0.6], [np.nan], [np.nan]], [[0.9], [0.8], [0.5]]])
    weights = np.array([[0.5], [0.25], [0.25]])
    found = combined(values, weights)
    np.testing.assert_allclose(found[:, 0], [0.1 + 0.15 + 0.225, (0.2 + 0.2) / 0.75, 0.5])


def test_combined_is_not_a_number_where_only_methods_without_weight_know():
    values = np.array([[[np.nan]], [[0.5]]])
    assert np.isnan(combined(values, np.array([[1.0], [0.0]])))


def test_reconciled_scenarios_are_the_nearest_that_make_the_overall_score(rng):
    values, variances = rng.random((5, 4)), rng.uniform(0.5, 2.0, size=(5, 4))
    weights = np.array([0.5, 0.3, 0.2])
    found = reconciled(values, variances, weights)
    np.testing.assert_array_equal(found[:, -1], values[:, -1])
    np.testing.assert_allclose(found[:, :-1] @ weights, values[:, -1])
    for row in range(5):
        constraint = {"type": "eq", "fun": lambda x, row=row: x @ weights - values[row, -1]}
        wanted = minimize(
            lambda x, row=row: np.sum((x - values[row, :-1]) ** 2 / variances[row, :-1]),
            values[row, :-1],
            constraints=[constraint],
            tol=1e-14,
        )
        np.testing.assert_allclose(found[row, :-1], wanted.x, atol=1e-6)


def test_scenarios_that_are_certain_stay():
    values, weights = np.array([[0.2, 0.4, 0.5]]), np.array([0.5, 0.5])
    np.testing.assert_allclose(reconciled(values, np.array([[0.0, 1.0, 1.0]]), weights), [[0.2, 0.8, 0.5]])
    np.testing.assert_array_equal(reconciled(values, np.zeros((1, 3)), weights), values)


def test_a_scenario_without_an_estimate_leaves_the_others_alone():
    values = np.array([[np.nan, 0.4, 0.5]])
    np.testing.assert_array_equal(reconciled(values, np.ones((1, 3)), np.array([0.5, 0.5])), values)


def test_exact_methods_share_the_weight(rng):
    """Only the penalty tells exact methods apart from none: rounding must not outweigh it."""
    errors = np.column_stack([0.02 * rng.normal(size=30), np.zeros((30, 2))])
    np.testing.assert_allclose(stack_weights(errors, prior_models=10.0), [0.0, 0.5, 0.5], atol=1e-5)


def test_weights_of_one_model_are_those_of_a_closed_form():
    """With two methods, w_1 = (c_22 - c_12) / (c_11 + c_22 - 2 c_12), c of ``E'E + k D``."""
    errors = np.array([[0.01, -0.04]])
    c = errors.T @ errors + 3.0 * np.diag(errors[0] ** 2)
    first = (c[1, 1] - c[0, 1]) / (c[0, 0] + c[1, 1] - 2.0 * c[0, 1])
    np.testing.assert_allclose(stack_weights(errors, prior_models=3.0), [first, 1.0 - first], rtol=1e-12)
