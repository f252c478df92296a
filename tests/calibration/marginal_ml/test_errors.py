import numpy as np
import pytest

from itembank.calibration.calibration_specs import ItemPrior, MarginalML
from itembank.calibration.marginal_ml import errors as marginal_ml_errors
from itembank.calibration.marginal_ml.em import Problem, em_step, item_derivatives, prior_terms
from itembank.calibration.marginal_ml.errors import affordable_degree, item_covariances, lost_information
from itembank.calibration.marginal_ml.fit import fit_items, fit_marginal_ml
from itembank.calibration.marginal_ml.posterior import ability_grid, ability_posterior
from tests.calibration.simulated import simulate

BOUNDS = (-6.0, 6.0)


def numerical_information(data, items, grid, step=1e-4):
    """Minus the second derivatives of the log marginal likelihood, by differences of its gradient."""

    def gradient(flat):
        moved = flat.reshape(items.shape)
        return item_derivatives(data, moved, ability_posterior(data, moved, grid), grid).gradient.ravel()

    flat = items.ravel()
    shifts = step * np.eye(flat.size)
    rows = [(gradient(flat + shift) - gradient(flat - shift)) / (2.0 * step) for shift in shifts]
    information = -np.array(rows)
    return 0.5 * (information + information.T)


def blocks_of(matrix, items):
    n_items, size = items.shape
    index = np.arange(n_items)
    return matrix.reshape(n_items, size, n_items, size)[index, :, index, :]


@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.2)])
@pytest.mark.parametrize("prior", [None, ItemPrior()])
def test_covariances_are_those_of_the_whole_information_matrix(missing, guessing, prior):
    # enough models for the information to be positive definite even away from the maximum
    simulated = simulate(600, 7, missing=missing, guessing=guessing, seed=3)
    grid = ability_grid(61, 61, bounds=BOUNDS)
    items = np.column_stack([np.abs(simulated.loadings) + 0.3, simulated.intercept])
    problem = Problem(simulated.data, grid, prior)
    information = numerical_information(simulated.data, items, grid)
    if prior is not None:
        index = np.arange(len(items))
        information.reshape(7, 2, 7, 2)[index, :, index, :] += prior_terms(items, prior).precision
    expected = blocks_of(np.linalg.inv(information), items)
    found, _ = item_covariances(problem, em_step(problem, items), degree=12)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def test_covariances_of_a_common_slope():
    simulated = simulate(200, 6, common_slope=1.2, missing=0.1)
    grid = ability_grid(61, 61, bounds=BOUNDS)
    items = np.column_stack([np.full(6, 1.2), simulated.intercept])
    problem = Problem(simulated.data, grid, None, has_common_slope=True)
    expand = np.zeros((12, 7))  # from (slope, intercepts) to all parameters
    expand[::2, 0], expand[1::2, 1:] = 1.0, np.eye(6)
    information = expand.T @ numerical_information(simulated.data, items, grid) @ expand
    expected = blocks_of(expand @ np.linalg.inv(information) @ expand.T, items)
    found, _ = item_covariances(problem, em_step(problem, items), degree=10)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("item_model", ["1pl", "2pl"])
def test_both_sides_of_the_woodbury_identity_agree(item_model):
    simulated = simulate(40, 30, common_slope=1.0 if item_model == "1pl" else None)
    problem, path = fit_items(simulated.data, MarginalML(item_model, prior=ItemPrior()))
    step = path.end
    lost = lost_information(problem.data, step.items, problem.grid, degree=2)
    core = marginal_ml_errors._core(problem, step)
    by_models, by_parameters = marginal_ml_errors._by_models(core, lost), marginal_ml_errors._by_parameters(core, lost)
    np.testing.assert_allclose(by_models, by_parameters, rtol=1e-9, atol=1e-12)


def test_linear_functions_nearly_suffice_when_abilities_are_known_well():
    simulated = simulate(120, 250, seed=1)
    problem, path = fit_items(simulated.data, MarginalML())
    exact, linear, none = (
        np.sqrt(np.einsum("ijj->ij", item_covariances(problem, path.end, degree=degree)[0])) for degree in (6, 1, 0)
    )
    # measured: 0.9989 and 0.9853 at the median, 0.976 and 0.82 at the least
    assert np.median(linear / exact) == pytest.approx(1.0, abs=0.003)
    assert (linear / exact).min() > 0.95
    assert np.median(none / exact) < 0.995
    assert np.all(none <= exact * (1.0 + 1e-9))


def test_work_decides_the_degree():
    assert affordable_degree(1000, 10) == 12
    assert affordable_degree(400, 56_000) == 1
    assert affordable_degree(20_000, 60_000) == 0


def test_a_fit_says_how_its_errors_were_found():
    fit = fit_marginal_ml(simulate(60, 40).data, MarginalML())
    assert "observed information, polynomials of degree 12" in fit.message
    assert np.all(np.linalg.eigvalsh(fit.item_covariance) > 0.0)
