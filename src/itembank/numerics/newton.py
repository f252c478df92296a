"""Newton's method for many small maximisations at once, one row each."""

from typing import NamedTuple, Protocol, Self

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-8
"""Newton decrement at which a row stops: its distance to the maximum in standard errors, before the last step."""


LEAST_VARIANCE_SHARE = 1e-3
"""An expected squared error is at least this fraction of the mean one, as it is divided by."""


class Evaluation(NamedTuple):
    """The objective at one point for each of n rows."""

    objective: FloatArray  # (n,)
    gradient: FloatArray  # (n, n_dims)
    precision: FloatArray  # (n, n_dims, n_dims): Minus the Hessian


class Maximum(NamedTuple):
    """Where each row ended."""

    theta: FloatArray  # (n, n_dims)
    precision: FloatArray  # (n, n_dims, n_dims)
    converged: BoolArray  # (n,)


class Problem(Protocol):
    """n objectives to maximise, one a row."""

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Evaluate every row at its own point of theta (n, n_dims)."""
        ...

    def take(self, rows: IntArray) -> Self:
        """Return the problem of these rows only."""
        ...


def maximise(
    problem: Problem, start: FloatArray, *, is_concave: bool, tolerance: float = TOLERANCE, max_iterations: int = 200
) -> Maximum:
    """Maximise every row from its start (n, n_dims); the objective of a row never falls.

    A step that lowers its row's objective is refused, and the row's next step is shorter. Where the
    objective may curve upwards (`is_concave` false), curvatures count by their absolute value, so that
    every step points uphill. Rows that have arrived are left out of further work.
    """
    theta, precision = start.copy(), np.empty((*start.shape, start.shape[1]))
    converged = np.zeros(len(theta), dtype=bool)
    rows, point, scale = np.arange(len(theta)), start, np.ones(len(theta))
    current = problem.evaluate(point)
    # Fall of an objective, relative to 1 or its size, that counts as rounding.
    slack = 1e-13
    for _ in range(max_iterations):
        step = _uphill(current, is_concave=is_concave)
        # gradient . H^-1 gradient is the squared distance to the maximum of the quadratic, in standard errors.
        arrived = np.einsum("nd,nd->n", current.gradient, step) <= tolerance**2
        if arrived.any():
            # The last step is known, and so short that the curvature before it holds after it.
            finished, remaining = rows[arrived], np.flatnonzero(~arrived)
            theta[finished] = point[arrived] + step[arrived]
            precision[finished], converged[finished] = current.precision[arrived], True
            if not len(remaining):
                return Maximum(theta, precision, converged)
            problem, current = problem.take(remaining), Evaluation(*(part[remaining] for part in current))
            rows, point, scale, step = rows[remaining], point[remaining], scale[remaining], step[remaining]
        candidate = point + scale[:, None] * step
        proposed = problem.evaluate(candidate)
        # A refused step is quartered, and two good ones bring the whole step back: only at Newton's own length does it
        # converge quadratically.
        # Rounding may lower the objective of a row that has all but arrived.
        better = proposed.objective >= current.objective - slack * (1.0 + np.abs(current.objective))
        scale = np.where(better, np.minimum(1.0, 2.0 * scale), 0.25 * scale)
        if better.all():
            point, current = candidate, proposed
        else:
            point = np.where(better[:, None], candidate, point)
            current = Evaluation(
                np.where(better, proposed.objective, current.objective),
                np.where(better[:, None], proposed.gradient, current.gradient),
                np.where(better[:, None, None], proposed.precision, current.precision),
            )
    theta[rows], precision[rows] = point, current.precision
    return Maximum(theta, precision, converged)


def _uphill(current: Evaluation, *, is_concave: bool) -> FloatArray:
    """Newton step of each row, (n, n_dims)."""
    if is_concave:
        try:
            step: FloatArray = np.linalg.solve(current.precision, current.gradient[..., None])[..., 0]
        except np.linalg.LinAlgError:  # with the ridge of `inverse`
            step = np.linalg.solve(_ridged(current.precision), current.gradient[..., None])[..., 0]
        return step
    values, vectors = np.linalg.eigh(current.precision)
    # With absolute values every step goes uphill; with negative ones it could go to a saddle or a minimum.
    sizes = np.abs(values)  # (n, n_dims)
    largest = np.maximum(sizes.max(axis=1, keepdims=True), 1e-150)  # no overflow below
    # Smallest curvature a step divides by, as a fraction of the row's largest: below it there is only rounding.
    flattest = 1e-15
    sizes = np.maximum(sizes, flattest * largest)
    along = np.einsum("nde,nd->ne", vectors, current.gradient) / sizes
    result: FloatArray = np.einsum("nde,ne->nd", vectors, along)
    return result


def inverse(precision: FloatArray) -> FloatArray:
    """Invert positive definite matrices (n, n_dims, n_dims); those that rounding made singular get a ridge.

    Where one direction is known 1e16 times better than another, as from millions of trials under a wide prior, the
    matrix holds nothing of the other any more. The ridge, 1e-12 of the largest curvature, gives it a variance that
    is finite and huge, which is true.
    """
    try:
        result: FloatArray = np.linalg.inv(precision)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.inv(_ridged(precision)))
    wrong = np.flatnonzero((np.einsum("ndd->nd", result) <= 0.0).any(axis=1))
    if wrong.size:
        result[wrong] = np.linalg.inv(_ridged(precision[wrong]))
    return result


def _ridged(precision: FloatArray) -> FloatArray:
    largest = np.maximum(np.einsum("ndd->nd", precision).max(axis=1), 1e-150)  # no overflow below
    # Ridge for a singular matrix, as a fraction of its largest curvature: some hundred times the rounding error.
    ridge = 1e-12
    result: FloatArray = precision + ridge * largest[:, None, None] * np.eye(precision.shape[1])
    return result


def non_negative_minimum(
    matrix: FloatArray,  # (n, n): A, positive definite; small
    linear: FloatArray,  # (n,): b
) -> FloatArray:
    """Find the ``x >= 0``, (n,), that minimises ``x'Ax / 2 - b'x`` (Lawson and Hanson 1974, algorithm 23.10).

    With ``A = M'M`` and ``b = M'y`` this is `scipy.optimize.nnls`. To import that takes longer than many a command.
    """
    is_free = np.ones(linear.size, dtype=bool)
    solution = _unbounded(matrix, linear, is_free)
    while np.any(solution < 0.0):  # a start: most coefficients that get negative here are zero in the end
        is_free &= solution > 0.0
        solution = _unbounded(matrix, linear, is_free)
    for _ in range(3 * linear.size):  # every round finds a lower minimum, and only rounding could ask for more
        slope = linear - matrix @ solution
        rounding = 10.0 * linear.size * np.finfo(np.float64).eps * (np.abs(linear) + np.abs(matrix) @ solution)
        gain = np.where(is_free | (slope <= rounding), 0.0, slope)
        if not gain.any():
            break
        is_free[np.argmax(gain)] = True
        wanted = _unbounded(matrix, linear, is_free)
        while (blocked := np.flatnonzero(wanted < 0.0)).size:
            # go towards it until the first coefficient is zero, and hold that one there
            shares = solution[blocked] / (solution[blocked] - wanted[blocked])
            solution = solution + shares.min() * (wanted - solution)
            is_free[blocked[np.argmin(shares)]] = False
            solution[~is_free] = 0.0
            wanted = _unbounded(matrix, linear, is_free)
        solution = wanted
    return solution


def _unbounded(matrix: FloatArray, linear: FloatArray, is_free: BoolArray) -> FloatArray:
    """Find the minimum over the free numbers, (n,); the others are zero."""
    free = np.flatnonzero(is_free)
    result = np.zeros(is_free.size)
    result[free] = np.linalg.solve(matrix[np.ix_(free, free)], linear[free])
    return result


def fit_variance(squared: FloatArray, design: FloatArray) -> tuple[float, float]:
    """Fit ``E[squared] = design @ (a, b)`` with a, b >= 0, given (n,) and (n, 2)."""
    floor = LEAST_VARIANCE_SHARE * squared.mean()
    if floor <= 0.0:
        return 0.0, 0.0
    # columns of mean one, so that the ridge of `_non_negative` treats them alike; one of zeros stays
    unit = design.mean(axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    scaled = design / unit
    # The variance of a squared normal error is 2 E^2, hence weights 1 / fitted^2. Their fixed point solves the score
    # equations; unweighted least squares, the start, would follow the few largest errors.
    coefficients = _non_negative(scaled, squared)
    # Of simulated pairs 12 settle both coefficients to ten digits, 5 to four.
    n_reweightings = 25
    for _ in range(n_reweightings):
        fitted = np.maximum(scaled @ coefficients, floor)
        coefficients = _non_negative(scaled / fitted[:, None], squared / fitted)
    a, b = (coefficients / unit).tolist()
    return a, b * bool(np.any(design[:, 1] > 0.0))


def _non_negative(design: FloatArray, target: FloatArray) -> FloatArray:
    """Non-negative least squares by the normal equations: their size is two, whatever n is."""
    gram, right = design.T @ design, design.T @ target
    # G is singular where both columns are equal, as where all pairs disagree alike; the ridge shares between them
    # what they explain.
    return non_negative_minimum(gram + 1e-12 * np.trace(gram) * np.eye(gram.shape[0]), right)
