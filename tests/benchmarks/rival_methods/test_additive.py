"""The smooth curves against scipy's smoothing spline, quadrature and known truth."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline, make_smoothing_spline

from itembank_rivals.additive import fit_penalised, make_smooth, roughness, smooth_columns


def test_roughness_is_the_integral_of_the_squared_second_derivative(rng):
    knots, values = np.sort(rng.normal(size=7)), rng.normal(size=7)
    spline = CubicSpline(knots, values, bc_type="natural")
    expected = quad(lambda z: spline(z, 2) ** 2, knots[0], knots[-1], points=knots[1:-1], epsabs=1e-10, limit=200)[0]
    assert values @ roughness(knots) @ values == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_one_axis_with_every_knot_equals_scipys_smoothing_spline(rng, penalty):
    x = np.cumsum(rng.uniform(0.5, 2.0, 40))
    x = (x - x.mean()) / x.std()
    y = np.sin(2.0 * x) + rng.normal(0.0, 0.2, 40)
    smooth = make_smooth(x, 40)
    design = np.column_stack([np.ones(40), smooth_columns(smooth, x)])
    groups = np.array([-1, -1] + [0] * 38)
    coefficients, _ = fit_penalised(design, y, groups, (np.array([penalty]),))
    at = np.linspace(x[0] - 1.0, x[-1] + 1.0, 50)
    found = np.column_stack([np.ones(50), smooth_columns(smooth, at)]) @ coefficients
    reference = make_smoothing_spline(x, y, lam=penalty)
    inside = (at >= x[0]) & (at <= x[-1])
    np.testing.assert_allclose(found[inside], reference(at[inside]), atol=1e-6)
    straight = reference(x[-1]) + (at - x[-1]) * reference(x[-1], 1)  # scipy's own ends are cubic
    np.testing.assert_allclose(found[at > x[-1]], straight[at > x[-1]], atol=1e-6)


def test_recovers_a_sine_and_a_line(rng):
    x, noise = rng.uniform(-2.0, 2.0, (400, 2)), 0.1
    y = np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] + rng.normal(0.0, noise, 400)
    smooths = [make_smooth(x[:, axis], 12) for axis in range(2)]
    n = [1 + smooth.curves.shape[1] for smooth in smooths]
    groups = np.array([-1, -1, *[0] * (n[0] - 1), -1, *[1] * (n[1] - 1)])
    grids = (400 * np.logspace(-5, 3, 9),) * 2
    design = np.column_stack([np.ones(400), *[smooth_columns(s, x[:, a]) for a, s in enumerate(smooths)]])
    coefficients, penalties = fit_penalised(design, y, groups, grids)
    at = np.linspace(-1.9, 1.9, 60)
    sine = smooth_columns(smooths[0], at) @ coefficients[1 : 1 + n[0]]
    line = smooth_columns(smooths[1], at) @ coefficients[1 + n[0] :]
    gap = sine - np.sin(2.0 * at)
    assert np.abs(gap - gap.mean()).max() < 0.06
    assert np.abs(np.diff(line) / np.diff(at) - 0.5).max() < 0.05
    assert penalties[0] < penalties[1]  # the line is found to be smoother


def test_knots_are_quantiles_of_the_standardised_values():
    x = np.linspace(3.0, 9.0, 21)
    expected = np.quantile((x - x.mean()) / x.std(), np.linspace(0.0, 1.0, 6))
    np.testing.assert_allclose(make_smooth(x, 6).knots, expected, atol=1e-12)
    x = np.array([0.1, 0.1 + 1e-17, 0.2, 0.3, 0.3 + 1e-16, 0.3 - 1e-16])
    assert make_smooth(x, 6).knots.size == 3
    assert smooth_columns(make_smooth(np.array([0.0, 1.0, 1.0, 0.0]), 8), np.array([0.0, 2.0])).shape == (2, 1)
    np.testing.assert_array_equal(smooth_columns(make_smooth(np.full(4, 0.3), 8), np.array([0.3, 0.9])), 0.0)


def test_the_criterion_is_gcv_by_brute_force(rng):
    design, y = np.column_stack([np.ones(30), rng.normal(size=(30, 6))]), rng.normal(size=30)
    groups, grid = np.array([-1, 0, 0, 0, 1, 1, 1]), np.logspace(-2, 3, 6)
    _, penalties = fit_penalised(design, y, groups, (grid, grid))

    def criterion(a, b):
        hat = design @ np.linalg.solve(design.T @ design + np.diag([0.0, a, a, a, b, b, b]), design.T)
        return ((y - hat @ y) ** 2).sum() / (30 - 1.4 * np.trace(hat)) ** 2

    assert all(criterion(*penalties) <= criterion(a, penalties[1]) + 1e-12 for a in grid)
    assert all(criterion(*penalties) <= criterion(penalties[0], b) + 1e-12 for b in grid)
