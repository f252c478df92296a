from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from scipy.special import expit, log_expit

from itembank.numerics.newton import Evaluation, inverse, maximise, non_negative_minimum


@dataclass
class Quadratic:
    """-(t - c)' A (t - c) / 2, a row each."""

    matrices: np.ndarray
    centres: np.ndarray

    def evaluate(self, theta):
        distance = theta - self.centres
        pull = np.einsum("nde,ne->nd", self.matrices, distance)
        return Evaluation(-0.5 * np.sum(pull * distance, axis=1), -pull, self.matrices)

    def take(self, rows):
        return Quadratic(self.matrices[rows], self.centres[rows])


@dataclass
class Wells:
    """t^2 - t^4 / 4 - tilt t: two maxima, curved upwards in between."""

    tilt: np.ndarray

    def evaluate(self, theta):
        t = theta[:, 0]
        gradient = 2.0 * t - t**3 - self.tilt
        return Evaluation(t**2 - t**4 / 4.0 - self.tilt * t, gradient[:, None], (3.0 * t**2 - 2.0)[:, None, None])

    def take(self, rows):
        return Wells(self.tilt[rows])


@dataclass
class Logistic:
    """Penalised logistic regression of one response vector a row."""

    design: np.ndarray
    responses: np.ndarray

    def evaluate(self, theta):
        x = theta @ self.design.T
        value = np.sum(self.responses * log_expit(x) + (1.0 - self.responses) * log_expit(-x), axis=1)
        gradient = (self.responses - expit(x)) @ self.design - theta
        weights = expit(x) * expit(-x)
        precision = np.einsum("ni,id,ie->nde", weights, self.design, self.design) + np.eye(theta.shape[1])
        return Evaluation(value - 0.5 * np.sum(theta**2, axis=1), gradient, precision)

    def take(self, rows):
        return Logistic(self.design, self.responses[rows])


def test_quadratics_are_solved_row_by_row_and_upward_curvature_climbed(rng):
    roots = rng.normal(size=(6, 3, 3))
    matrices, centres = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(3), rng.normal(size=(6, 3))
    start = np.zeros((6, 3))
    found = maximise(Quadratic(matrices, centres), start, is_concave=True)
    assert not start.any()
    assert_allclose(found.theta, centres, atol=1e-12)
    assert_array_equal(found.precision, matrices)
    assert found.converged.all()
    start = np.array([[-3.0], [-0.2], [0.0], [0.3], [0.7]])
    found = maximise(Wells(np.full(5, 0.1)), start, is_concave=False)
    roots = np.sort(np.roots([-1.0, 0.0, 2.0, -0.1]).real)  # low maximum, minimum, high maximum
    assert found.converged.all()
    assert_allclose(found.theta[:, 0], roots[[0, 0, 0, 2, 2]], atol=1e-10)


def test_overshooting_steps_are_shortened_and_too_few_iterations_say_so(rng):
    # From far out, where the likelihood is straight, a full Newton step leaps past everything.
    problem = Logistic(rng.normal(size=(40, 2)), (rng.random((8, 40)) < 0.5).astype(float))
    far, near = (maximise(problem, np.full((8, 2), start), is_concave=True) for start in (60.0, 0.0))
    assert far.converged.all()
    assert not maximise(problem, np.ones((8, 2)), is_concave=True, max_iterations=1).converged.any()
    assert_allclose(far.theta, near.theta, atol=1e-10)


def test_agrees_with_scipy(rng):
    design, responses = rng.normal(size=(30, 3)), rng.random((3, 30))
    found = maximise(Logistic(design, responses), np.zeros((3, 3)), is_concave=True)
    for row in range(3):
        one = Logistic(design, responses[row : row + 1])

        def loss(t, one=one):
            value = one.evaluate(t[None])
            return -value.objective[0], -value.gradient[0]

        best = minimize(loss, np.zeros(3), jac=True, tol=1e-12)
        assert_allclose(found.theta[row], best.x, atol=1e-6)  # BFGS stops near 1e-7


def test_a_direction_that_rounding_has_swallowed_is_left_where_it_is():
    """Of two directions one is known 1e20 times better: the sum of their curvatures holds only that one."""
    sharp, flat = np.array([0.3, 1.7]), np.array([1.7, -0.3])
    matrix = 1e4 * np.outer(sharp, sharp) + 1e-16 * np.outer(flat, flat)
    singular = np.stack([matrix, 75.0 * np.ones((2, 2))])
    found = maximise(Quadratic(singular, np.array([[2.0, -1.0], [0.5, 0.5]])), np.zeros((2, 2)), is_concave=True)
    assert found.converged.all()
    assert found.theta[0] @ sharp == pytest.approx(2.0 * 0.3 - 1.7, abs=1e-6)
    assert found.theta[1].sum() == pytest.approx(1.0, abs=1e-6)
    variance = np.einsum("ndd->nd", inverse(singular))
    assert np.all(variance > 1e4)
    matrices = np.stack([np.diag([1e-6, 1e6]), np.array([[2.0, 0.9], [0.9, 1.0]])])
    assert_array_equal(inverse(matrices), np.linalg.inv(matrices))


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
        assert_allclose(unit * found, unit * nnls(columns, target)[0], atol=1e-8)
        assert np.all(found >= 0.0)


def test_what_is_negative_without_bounds_may_be_positive_with_them_and_the_search_ends():
    matrix = np.array([[10.0, -4.0, -2.0], [-4.0, 10.0, -6.0], [-2.0, -6.0, 9.0]])
    linear = np.array([-1.0, 1.0, -1.0])
    assert np.all(np.linalg.solve(matrix, linear) < 0.0)
    assert_allclose(non_negative_minimum(matrix, linear), [0.0, 0.1, 0.0], atol=1e-15)
    assert not non_negative_minimum(np.eye(3), np.array([-1.0, -2.0, 0.0])).any()
    # as it goes when steps are not cut at the first coefficient that gets zero; slopes tell the optimum
    columns = np.array([
        [-20, -3, -6, 2, 9, 9], [10, -1, -9, -3, 6, 3], [10, -1, -6, 1, 6, 3], [10, 0, 3, -3, 9, -9],
        [-10, -1, 6, 3, -3, -6], [10, 1, 3, -1, -9, -6], [-20, 2, 9, 0, 9, 0],
    ], dtype=float)  # fmt: skip
    linear = np.array([150.0, -18.0, -153.0, 13.0, -30.0, 114.0])
    found = non_negative_minimum(columns.T @ columns, linear)
    slope = linear - columns.T @ (columns @ found)
    assert found.min() >= 0.0
    assert slope.max() < 1e-9
    assert_allclose(slope[found > 0.0], 0.0, atol=1e-9)
