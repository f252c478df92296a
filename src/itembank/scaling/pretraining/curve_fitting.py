"""Least squares with bounds for many small curves at once, each from many starts.

Levenberg-Marquardt with the step projected on the box of bounds; Huber's loss by weights. A law of pre-training is
fitted for every recipe and scenario from tens of starts, which one solver call a curve would make slow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.ties import first_smallest

FIRST_DAMPING = 1e-2
"""Share of the diagonal that is added to it. From 1e-4 to 100 nearly all starts of simulated sigmoids end alike."""
LARGEST_DAMPING = 1e12
"""A step is then 1e-12 of a gradient step: what is better nearby cannot be told from rounding."""
SMALLEST_DAMPING = 1e-12
"""A Gauss-Newton step to all digits; less would only take longer to raise again."""
NO_MISFIT = 1e-12
"""A cost up to this counts as zero: curves of four parameters go through three points in many ways."""

Curve: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Of parameters (n, n_parameters) and x (n, n_points): values (n, n_points) and derivatives (n, n_points, ...)."""


@dataclass(frozen=True, slots=True)
class CurveFits:
    """Where every start of every curve ended."""

    parameters: FloatArray  # (n_curves, n_starts, n_parameters)
    # (n_curves, n_starts): Sum of the loss over the points; half the sum of squares without Huber's loss.
    cost: FloatArray
    converged: BoolArray  # (n_curves, n_starts)

    @property
    def best(self) -> FloatArray:
        """Parameters of the first start with the lowest cost, (n_curves, n_parameters)."""
        which = first_smallest(np.maximum(self.cost, NO_MISFIT))
        result: FloatArray = self.parameters[np.arange(len(which)), which]
        return result


def fit_curves(
    curve: Curve,
    x: FloatArray,
    y: FloatArray,
    starts: FloatArray,
    *,
    lower: FloatArray,
    upper: FloatArray,
    huber_delta: float = np.inf,
    max_iterations: int = 300,
    tolerance: float = 1e-9,
) -> CurveFits:
    """Fit each curve from each start.

    Minimises ``sum_j rho(f(x_j) - y_j)`` with ``rho(r) = r^2 / 2`` for ``|r| <= delta`` and
    ``delta (|r| - delta / 2)`` beyond (Huber 1964).

    Parameters
    ----------
    curve : function of parameters and x
    x, y : (n_curves, n_points)
        NaN where a curve has fewer points.
    starts : (n_curves, n_starts, n_parameters)
    lower, upper : (n_parameters,)
        Bounds; a start outside is moved to the nearest point within.
    huber_delta : float
    max_iterations : int
    tolerance : float
        A start has converged when its cost falls by less than this share, or its step is below it.
    """
    n_curves, n_starts, n_parameters = starts.shape
    known = np.repeat(np.isfinite(x) & np.isfinite(y), n_starts, axis=0)
    at = np.where(known, np.repeat(x, n_starts, axis=0), np.repeat(_some_known(x), n_starts, axis=0)[:, None])
    wanted = np.where(known, np.repeat(y, n_starts, axis=0), 0.0)
    current = np.clip(starts.reshape(-1, n_parameters), lower, upper)
    cost = np.empty(len(current))
    converged = np.zeros(len(current), dtype=bool)
    damping = np.full(len(current), FIRST_DAMPING)
    active = np.arange(len(current))
    values, slopes = curve(current, at)
    cost[:] = _loss(np.where(known, values - wanted, 0.0), huber_delta)
    for _ in range(max_iterations):
        residual = np.where(known[active], values - wanted[active], 0.0)
        # <=, as clipping puts parameters on the bound itself
        is_low, is_high = current[active] <= lower, current[active] >= upper
        step = _step(residual, slopes, damping[active], (is_low, is_high), huber_delta)
        tried = np.clip(current[active] + step, lower, upper)
        new_values, new_slopes = curve(tried, at[active])
        new_cost = _loss(np.where(known[active], new_values - wanted[active], 0.0), huber_delta)
        is_better = new_cost < cost[active]
        fall = cost[active] - new_cost
        move = np.max(np.abs(tried - current[active]) / (1.0 + np.abs(current[active])), axis=1)
        is_done = (is_better & (fall <= tolerance * cost[active])) | (move <= tolerance)
        is_done |= damping[active] >= LARGEST_DAMPING
        current[active[is_better]] = tried[is_better]
        cost[active[is_better]] = new_cost[is_better]
        values = np.where(is_better[:, None], new_values, values)
        slopes = np.where(is_better[:, None, None], new_slopes, slopes)
        damping[active] = np.where(
            is_better,
            # a good step moves towards Gauss-Newton, a bad one towards a short gradient step
            np.maximum(damping[active] / 5.0, SMALLEST_DAMPING),
            np.minimum(damping[active] * 4.0, LARGEST_DAMPING),
        )
        converged[active[is_done]] = True
        active, values, slopes = active[~is_done], values[~is_done], slopes[~is_done]
        if not active.size:
            break
    shape = (n_curves, n_starts)
    return CurveFits(current.reshape(*shape, n_parameters), cost.reshape(shape), converged.reshape(shape))


def spread_points(lower: FloatArray, upper: FloatArray, n_points: int, rng: np.random.Generator) -> FloatArray:
    """Points (n_points, n_parameters) that fill a box evenly: a Latin hypercube."""
    n_parameters = len(lower)
    places = np.stack([rng.permutation(n_points) for _ in range(n_parameters)], axis=1)
    fractions = (places + rng.random((n_points, n_parameters))) / n_points
    result: FloatArray = lower + fractions * (upper - lower)
    return result


def _some_known(x: FloatArray) -> FloatArray:
    """Return a finite x of each curve, (n_curves,), to stand where it has no point."""
    largest = np.where(np.isfinite(x), x, -np.inf).max(axis=1)
    return np.where(np.isfinite(largest), largest, 0.0)


def _loss(residual: FloatArray, delta: float) -> FloatArray:
    """Huber's loss summed over the points, (n,); infinite where a residual is no number."""
    size = np.abs(residual)
    with np.errstate(invalid="ignore", over="ignore"):
        terms = np.where(size <= delta, 0.5 * size**2, 0.0 if np.isinf(delta) else delta * (size - 0.5 * delta))
    result: FloatArray = np.where(np.isfinite(size).all(axis=1), terms.sum(axis=1), np.inf)
    return result


def _finite(values: FloatArray) -> FloatArray:
    """Values with numbers in the place of NaN and infinity."""
    return values if np.isfinite(values).all() else np.nan_to_num(values)


def _step(
    residual: FloatArray,
    slopes: FloatArray,
    damping: FloatArray,
    at_bounds: tuple[BoolArray, BoolArray],
    delta: float,
) -> FloatArray:
    """Damped Gauss-Newton step, (n, n_parameters); zero along bounds that the gradient pushes against."""
    # iteratively reweighted least squares: Huber's loss has the gradient min(1, delta / |r|) r
    # 1e-300: a residual of zero has the weight one
    weights = np.minimum(1.0, delta / np.maximum(np.abs(residual), 1e-300)) * np.isfinite(residual)
    slopes = _finite(slopes)
    scaled = slopes * weights[..., None]
    transposed = scaled.transpose(0, 2, 1)
    gradient = np.matmul(transposed, _finite(residual)[..., None])[..., 0]
    normal = np.matmul(transposed, slopes)
    # at a lower bound a positive gradient leads outside, at an upper bound a negative one: those parameters stay fixed
    is_stuck = (at_bounds[0] & (gradient > 0.0)) | (at_bounds[1] & (gradient < 0.0))
    free = (~is_stuck).astype(np.float64)
    normal = normal * free[:, :, None] * free[:, None, :]
    size = np.einsum("npp->np", normal)
    floor = 1e-12 * np.maximum(size.max(axis=1, keepdims=True), 1e-12)
    # damping in proportion to the diagonal makes the step independent of the scale of each parameter;
    # the floor and is_stuck keep the matrix positive definite where a parameter has no effect or is fixed
    ridge = damping[:, None] * np.maximum(size, floor) + is_stuck
    index = np.arange(normal.shape[1])
    normal[:, index, index] += ridge + floor
    result: FloatArray = -np.linalg.solve(normal, (gradient * free)[..., None])[..., 0]
    return result
