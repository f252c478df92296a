import numpy as np
import pytest
from scipy.optimize import nnls

from itembank.numerics.newton import non_negative_minimum


def problem(rng, n, *, shared=0.0):
    """Columns of very different sizes, which `shared` makes alike, and a target."""
    columns = rng.normal(size=(n + 3, n)) + shared * rng.normal(size=(n + 3, 1))
    return columns * 10.0 ** rng.uniform(-3.0, 3.0, n), rng.normal(size=n + 3)


@pytest.mark.parametrize("shared", [0.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_it_is_the_least_squares_of_scipy(rng, n, shared):
    for _ in range(40):
        columns, target = problem(rng, n, shared=shared)
        found = non_negative_minimum(columns.T @ columns, columns.T @ target)
        unit = np.linalg.norm(columns, axis=0)
        np.testing.assert_allclose(unit * found, unit * nnls(columns, target)[0], atol=1e-8)
        assert np.all(found >= 0.0)


def test_what_is_negative_without_bounds_may_be_positive_with_them():
    matrix = np.array([[10.0, -4.0, -2.0], [-4.0, 10.0, -6.0], [-2.0, -6.0, 9.0]])
    linear = np.array([-1.0, 1.0, -1.0])
    assert np.all(np.linalg.solve(matrix, linear) < 0.0)
    np.testing.assert_allclose(non_negative_minimum(matrix, linear), [0.0, 0.1, 0.0], atol=1e-15)


def test_where_every_slope_points_down_all_are_zero():
    assert not non_negative_minimum(np.eye(3), np.array([-1.0, -2.0, 0.0])).any()
