import numpy as np
import pytest

from itembank.calibration.marginal_ml.posterior import (
    WIDEST_SLOPE_TIMES_SPACING,
    ability_grid,
    adaptive_grid,
    is_fine_enough,
    nodes_for_spacing,
    sharpest_sd,
)
from itembank.numerics.stable import softplus

BOUNDS = (-6.0, 6.0)


@pytest.mark.parametrize(("product", "error"), [(0.75, 3e-6), (WIDEST_SLOPE_TIMES_SPACING, 5e-5)])
def test_interpolated_curves_err_as_stated(product, error):
    grid = ability_grid(1201, 121, bounds=BOUNDS)
    slope = product / 0.1
    for difficulty in np.linspace(-2.0, 2.05, 9):
        curve = softplus(slope * (grid.curve_nodes[:, 0] - difficulty))
        exact = softplus(slope * (grid.nodes[:, 0] - difficulty))
        assert np.abs(grid.refine(curve[None])[0] - exact).max() < error


def test_gathered_weights_keep_the_sum_of_every_interpolated_curve():
    rng = np.random.default_rng(0)
    grid = ability_grid(41, 21, bounds=BOUNDS)
    weights, curves = rng.random((3, 41)), rng.normal(size=(3, 21))
    np.testing.assert_allclose(
        np.sum(grid.gather(weights) * curves, axis=1), np.sum(weights * grid.refine(curves), axis=1), rtol=1e-12
    )


def test_one_grid_serves_both_when_curves_need_as_many_nodes():
    grid = ability_grid(61, 100, bounds=BOUNDS)
    assert grid.interpolation is None
    values = np.arange(122.0).reshape(2, 61)
    assert grid.refine(values) is values
    assert grid.gather(values) is values


def test_adaptive_grid_is_fine_enough_for_what_it_was_made_for():
    grid = adaptive_grid(0.03, 4.0, bounds=BOUNDS)
    assert is_fine_enough(grid, 0.03, 4.0)
    assert not is_fine_enough(grid, 0.02, 4.0)
    assert not is_fine_enough(grid, 0.03, 8.0)
    assert nodes_for_spacing(0.1, BOUNDS) == 121


def test_sharpest_sd_is_that_of_the_test_information():
    rng = np.random.default_rng(1)
    items = np.column_stack([rng.lognormal(size=50), rng.normal(size=50)])
    abilities = rng.normal(size=(7, 1))
    share = 1.0 / (1.0 + np.exp(-(abilities @ items[:, :1].T + items[:, 1])))
    information = (share * (1.0 - share)) @ items[:, 0] ** 2
    assert sharpest_sd(items, abilities) == pytest.approx(1.0 / np.sqrt(1.0 + information.max()), rel=1e-12)
