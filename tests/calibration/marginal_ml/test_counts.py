from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from itembank.calibration.calibration_specs import MarginalML
from itembank.calibration.marginal_ml.em import item_derivatives
from itembank.calibration.marginal_ml.errors import item_covariances, lost_information
from itembank.calibration.marginal_ml.fit import fit_items
from itembank.calibration.marginal_ml.posterior import ability_grid, ability_posterior, adaptive_grid
from tests.calibration.counts import counted, one_by_one, repeated, summed

KIND = {"bounds": (-6.0, 6.0)}
GRID = ability_grid(61, 31, **KIND)


@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_posteriors_and_derivatives_are_those_of_the_single_answers(missing, lower):
    data, rng = counted(12, 9, lower=lower, missing=missing), np.random.default_rng(1)
    items, single = rng.normal(size=(9, 2)), one_by_one(data)
    ours, theirs = ability_posterior(data, items, GRID), ability_posterior(single, repeated(items), GRID)
    np.testing.assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-11)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-10)
    for observed in (False, True):
        mine = item_derivatives(data, items, ours, GRID, observed=observed)
        other = item_derivatives(single, repeated(items), ours, GRID, observed=observed)
        np.testing.assert_allclose(mine.gradient, summed(other.gradient), atol=1e-10)
        np.testing.assert_allclose(mine.precision, summed(other.precision), atol=1e-10)
    mine = lost_information(data, items, GRID, degree=2).factors(slice(0, 9))
    other = lost_information(single, repeated(items), GRID, degree=2).factors(slice(0, 9 * 6))
    np.testing.assert_allclose(mine, summed(other), atol=1e-9)


def marginal_log_likelihood(data, values):
    """Of all models, on a fine grid of ability, written anew."""
    slope, intercept = values.reshape(2, -1)
    nodes = np.linspace(-6.0, 6.0, 241)
    log_weights = -0.5 * nodes**2 - logsumexp(-0.5 * nodes**2)
    chances = expit(nodes[:, None] * slope + intercept)
    n_correct = data.responses * data.n_trials
    log_joint = n_correct @ np.log(chances).T + (data.n_trials - n_correct) @ np.log1p(-chances).T
    return logsumexp(log_joint + log_weights, axis=1).sum()


@pytest.mark.parametrize("missing", [False, True])
def test_the_fit_and_its_errors_are_those_of_the_marginal_likelihood(missing):
    data = counted(40, 6, missing=missing, seed=2)
    problem, path = fit_items(data, MarginalML(prior=None, tolerance=1e-7))
    ours = path.end.items
    start = np.concatenate([np.ones(6), np.zeros(6)])
    found = minimize(lambda values: -marginal_log_likelihood(data, values), start, options={"gtol": 1e-6})
    np.testing.assert_allclose(ours, found.x.reshape(2, -1).T, atol=2e-4)
    assert path.end.objective == pytest.approx(-found.fun, abs=1e-4)
    hessian = second_differences(lambda values: -marginal_log_likelihood(data, values), ours.T.ravel())
    theirs = np.sqrt(np.diag(np.linalg.inv(hessian))).reshape(2, -1).T
    errors = np.sqrt(np.einsum("ijj->ij", item_covariances(problem, path.end)[0]))
    np.testing.assert_allclose(errors, theirs, rtol=2e-3)


def second_differences(function, at, width=1e-3):
    steps = width * np.eye(at.size)
    return np.array(
        [
            [
                (function(at + a + b) - function(at + a - b) - function(at - a + b) + function(at - a - b))
                / (4.0 * width**2)
                for b in steps
            ]
            for a in steps
        ]
    )


def test_curve_nodes_suffice_for_many_trials():
    data = counted(8, 6, seed=3)
    data, items = replace(data, n_trials=data.n_trials * 1e4), np.array([[1.0, 0.0], [3.0, -1.0], [6.0, 0.5]] * 2)
    grid = adaptive_grid(0.01, 6.0, n_trials=6e4, **KIND)
    exact = ability_grid(len(grid.nodes), len(grid.nodes), **KIND)
    assert len(grid.curve_nodes) < len(grid.nodes) / 2
    ours, theirs = (ability_posterior(data, items, one).log_likelihood for one in (grid, exact))
    np.testing.assert_allclose(ours, theirs, atol=0.02)  # of 10^5 answers, each off by less than 2e-7
    coarse = ability_grid(len(grid.nodes), len(adaptive_grid(0.01, 6.0, **KIND).curve_nodes), **KIND)
    assert np.abs(ability_posterior(data, items, coarse).log_likelihood - theirs).max() > 0.02
