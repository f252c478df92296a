"""Newton's method for many small maximisations at once, one row each."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-7
"""Newton decrement at which a row stops: distance to the maximum in standard errors, before the last step."""


class Evaluation(NamedTuple):
    """The objective at one point for each of n rows.

    Attributes
    ----------
    objective : (n,)
    gradient : (n, n_dims)
    precision : (n, n_dims, n_dims)
        Minus the Hessian.
    """

    objective: FloatArray
    gradient: FloatArray
    precision: FloatArray


Evaluate: TypeAlias = Callable[[FloatArray, IntArray], Evaluation]
"""Evaluates points (n, n_dims) for the rows at the given indices (n,)."""


class Maximum(NamedTuple):
    """Where each row ended.

    Attributes
    ----------
    theta : (n, n_dims)
    precision : (n, n_dims, n_dims)
    converged : (n,)
    """

    theta: FloatArray
    precision: FloatArray
    converged: BoolArray


def maximise(evaluate: Evaluate, start: FloatArray, *, is_concave: bool, max_iterations: int = 100) -> Maximum:
    """Maximise every row from its start (n, n_dims); the objective of a row never falls.

    A step that lowers its row's objective is refused and quartered. Where the objective may curve
    upwards, eigenvalues of the precision count by their absolute value, so every step points uphill.
    """
    theta = start.copy()
    rows = np.arange(len(theta))
    precision = np.empty((*theta.shape, theta.shape[1]))
    converged = np.zeros(len(theta), dtype=bool)
    point, scale = theta.copy(), np.ones(len(theta))
    current = evaluate(point, rows)
    for _ in range(max_iterations):
        step = _uphill(current, is_concave=is_concave)
        done = np.einsum("nd,nd->n", current.gradient, step) <= TOLERANCE**2
        if done.any():
            ended = rows[done]
            theta[ended] = point[done] + step[done]
            precision[ended] = current.precision[done]
            converged[ended] = True
            rows, point, scale, step = rows[~done], point[~done], scale[~done], step[~done]
            current = Evaluation(*(part[~done] for part in current))
            if not len(rows):
                return Maximum(theta, precision, converged)
        candidate = point + scale[:, None] * step
        proposed = evaluate(candidate, rows)
        # Rounding may lower the objective of a row that has all but arrived.
        slack = 1e-13 * np.abs(current.objective)
        better = proposed.objective >= current.objective - slack
        if better.all():
            point, current, scale = candidate, proposed, np.minimum(1.0, 2.0 * scale)
            continue
        point = np.where(better[:, None], candidate, point)
        scale = np.where(better, np.minimum(1.0, 2.0 * scale), scale / 4.0)
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
        step: FloatArray = np.linalg.solve(current.precision, current.gradient[..., None])[..., 0]
        return step
    values, vectors = np.linalg.eigh(current.precision)
    sizes = np.abs(values)
    sizes = np.maximum(sizes, 1e-10 * np.max(sizes, axis=1, keepdims=True, initial=1e-300))
    along = np.einsum("nde,nd->ne", vectors, current.gradient) / sizes
    result: FloatArray = np.einsum("nde,ne->nd", vectors, along)
    return result
