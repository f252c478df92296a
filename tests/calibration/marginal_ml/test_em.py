import numpy as np
import pytest
from scipy.stats import norm

from itembank.calibration.marginal_ml.em import _provisional
from itembank.calibration.marginal_ml.posterior import ability_grid


def test_provisional_posteriors_are_normal_around_the_given_abilities():
    grid = ability_grid(41, 41, bounds=(-6.0, 6.0))
    abilities = np.array([[-0.7], [1.2]])
    found = _provisional(abilities, grid, sd=0.4)
    density = norm.pdf(grid.curve_nodes[:, 0], abilities, 0.4)
    np.testing.assert_allclose(found.curve_weights, density / density.sum(axis=1, keepdims=True), atol=1e-12)
    assert found.curve_weights @ grid.curve_nodes[:, 0] == pytest.approx(abilities[:, 0], abs=1e-3)
    np.testing.assert_allclose(found.covariance[:, 0, 0], 0.4**2)
