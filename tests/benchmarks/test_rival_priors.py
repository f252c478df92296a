import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

from benchmarks.problems import simulate
from benchmarks.rivals import priors
from benchmarks.rivals.priors import PRIORS, JointPrior, averaged_chances, joint_map, loss_and_gradient
from itembank.calibration.calibrate import calibrate
from itembank.responses.responses import ResponseMatrix


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_the_gradient_is_that_of_the_loss(prior):
    rng = np.random.default_rng(0)
    responses = np.where(rng.random((6, 4)) < 0.2, np.nan, rng.integers(0, 2, (6, 4)))
    point = rng.normal(size=6 + 2 * 4)
    _, gradient = loss_and_gradient(point, responses, prior)
    numeric = approx_fprime(point, lambda x: loss_and_gradient(x, responses, prior)[0], 1e-6)
    assert gradient == pytest.approx(numeric, abs=1e-4)


def test_the_prior_of_jml_is_its_penalty():
    """The density is its loss a cell, times the number of cells: mean loss + 0.01 * mean of squared parameters."""
    rng = np.random.default_rng(1)
    responses = np.where(rng.random((6, 4)) < 0.2, np.nan, rng.integers(0, 2, (6, 4)))
    point = rng.normal(size=6 + 2 * 4)
    theta, difficulty, slope = point[:6, None], point[6:10], np.exp(point[10:])
    p = expit(slope * (theta - difficulty))
    cells = np.where(responses == 1.0, np.log(p), np.log1p(-p))[~np.isnan(responses)]
    expected = cells.size * (-cells.mean() + 0.01 * np.mean(point**2))
    found, _ = loss_and_gradient(point, responses, priors.torch_measure_prior(responses))
    assert found == pytest.approx(expected)


def test_the_maximum_is_one_and_recovers_the_truth():
    problem = simulate(60, 80, 1)
    theta, chances = joint_map(problem.responses, JointPrior())
    assert np.corrcoef(theta[:, 0], problem.theta[:, 0])[0, 1] > 0.9
    assert np.sqrt(np.mean((chances - problem.chances) ** 2)) < 0.1


def test_averaged_probabilities_are_those_of_draws_from_the_posterior():
    rng = np.random.default_rng(2)
    found = calibrate(ResponseMatrix.create(simulate(30, 12, 1).hidden), "variational")
    items = np.column_stack([found.parameters.loadings, found.parameters.intercept])
    chances = np.zeros((30, 12))
    n_draws = 2_000
    spread = np.sqrt(found.ability_covariance[:, 0, 0])
    factors = np.linalg.cholesky(found.item_covariance)
    for _ in range(n_draws):
        slope, intercept = (items + np.einsum("iab,ib->ia", factors, rng.normal(size=items.shape))).T
        chances += expit((found.abilities[:, 0] + spread * rng.normal(size=30))[:, None] * slope + intercept) / n_draws
    # A product of normals is not quite normal: more than the 0.005 of the draws.
    assert averaged_chances(found) == pytest.approx(chances, abs=0.03)
