"""Minimum of a quadratic over numbers that must not be negative."""

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray


def non_negative_minimum(matrix: FloatArray, linear: FloatArray) -> FloatArray:
    """Find the ``x >= 0`` that minimises ``x'Ax / 2 - b'x`` (Lawson and Hanson 1974, algorithm 23.10).

    With ``A = M'M`` and ``b = M'y`` this is `scipy.optimize.nnls`. To import that takes longer than many a command.

    Parameters
    ----------
    matrix : (n, n)
        A, positive definite; small.
    linear : (n,)
        b.

    Returns
    -------
    (n,)
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
