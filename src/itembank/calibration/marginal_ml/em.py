"""The EM map of marginal ML, and its acceleration."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import ItemPrior
from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml.grid import AbilityGrid
from itembank.calibration.marginal_ml.items import improve_items, item_derivatives, within_bounds
from itembank.calibration.marginal_ml.posterior import AbilityPosterior, ability_posterior
from itembank.calibration.marginal_ml.prior import AnyItemPrior, Scale, best_scale, log_prior, rescale
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.quadrature import log_sum_exp
from itembank.progress import ProgressCallback

OBJECTIVE_NOISE = 1e-11
"""Fraction of the objective's size that a sum over all responses may lose to rounding."""


MOST_HALVINGS = 8
"""Of a step that lowers the objective; EM ends where even the shortest does."""

LARGEST_JUMP = 1.0
"""An item that SQUAREM would move further than this beyond its second step is not moved beyond it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is fitted.

    Attributes
    ----------
    data : FitData
    grid : AbilityGrid
    prior : ItemPrior, LinePrior or None
    has_common_slope : bool
        1PL.
    is_free : (n_items, n_dims) or None
        Confirmatory pattern: loadings to fit, the others zero, with a free correlation of the two dimensions.
    """

    data: FitData
    grid: AbilityGrid
    prior: AnyItemPrior | None
    has_common_slope: bool = False
    is_free: BoolArray | None = None


class State(NamedTuple):
    """Item parameters (n_items, n_dims + 1), and the correlation of two abilities (zero unless confirmatory)."""

    items: FloatArray
    correlation: float = 0.0


class Step(NamedTuple):
    """One EM step from a state.

    Attributes
    ----------
    state : State
        Where it began, and where `objective` and `posterior` belong.
    objective : float
        Log marginal likelihood plus log prior of the items.
    posterior : AbilityPosterior
    following : State
        After the Newton step of the items and the rescaling of the population.
    unscaled : State
        After the Newton step alone.
    precision : (n_items, n_dims + 1, n_dims + 1)
        Of each item, given the posteriors of ability.
    change : float
        Largest length of an item's step in this precision, so in standard errors. (An item whose likelihood
        has no maximum, such as one that only the best models solve, takes steps of one for ever, in ever
        larger standard errors.)
    """

    state: State
    objective: float
    posterior: AbilityPosterior
    following: State
    unscaled: State
    precision: FloatArray
    change: float


class Path(NamedTuple):
    """Where EM ended, and how it came there."""

    last: Step
    history: list[float]
    converged: bool


def em_step(problem: Problem, state: State) -> Step:
    """E-step, one Newton step of the items, then the scale of the population (PX-EM)."""
    grid = _correlated(problem.grid, state.correlation)
    posterior = ability_posterior(problem.data, state.items, grid)
    common = problem.has_common_slope
    objective = float(posterior.log_likelihood.sum())
    objective += log_prior(state.items, problem.prior, has_common_slope=common)
    derivatives = item_derivatives(problem.data, state.items, posterior, grid)
    moved = improve_items(state.items, derivatives, problem.prior, has_common_slope=common, is_free=problem.is_free)
    following = _rescaled(problem, posterior, moved, state.items)
    change = float(np.sqrt(_squared_lengths(following.items - state.items, derivatives.precision).max()))
    change = max(change, abs(following.correlation - state.correlation))
    unscaled = State(moved, state.correlation)
    return Step(state, objective, posterior, following, unscaled, derivatives.precision, change)


def run_em(problem: Problem, start: State, *, max_steps: int, tolerance: float, progress: ProgressCallback) -> Path:
    """Repeat EM steps, with SQUAREM jumps that are kept only when the objective does not fall.

    SQUAREM (Varadhan and Roland 2008, scheme S3): after two steps x0, x1, x2 with r = x1 - x0 and
    v = (x2 - x1) - r, jump to ``x0 + 2 s r + s^2 v`` with ``s = |r| / |v|``.
    """
    first = em_step(problem, start)
    history, start_change = [first.objective], first.change
    while first.change > tolerance and len(history) < max_steps:
        progress("marginal ML", _progress_of(start_change, first.change, tolerance))
        second = _next_step(problem, first)
        if second is None:
            break
        history.append(second.objective)
        if second.change <= tolerance:
            return Path(second, history, converged=True)
        third: Step | None = em_step(problem, _jump(first, second, keeps_positive=isinstance(problem.prior, ItemPrior)))
        if third is None or not third.objective >= second.objective - _slack(second.objective):
            third = _next_step(problem, second)
        if third is None:
            return Path(second, history, converged=False)
        history.append(third.objective)
        first = third
    return Path(first, history, first.change <= tolerance)


def _next_step(problem: Problem, previous: Step) -> Step | None:
    """Step from where the previous one led, or from less far where that lowers the objective; None at no rise.

    Rescaling may lower it where items stand at their bounds, and so may a Newton step that is too long.
    """
    shorter = [_between(previous.state, previous.unscaled, 0.5**power) for power in range(MOST_HALVINGS)]
    for state in (previous.following, *shorter):
        step = em_step(problem, state)
        if step.objective >= previous.objective - _slack(previous.objective):
            return step
    return None


def _jump(first: Step, second: Step, *, keeps_positive: bool) -> State:
    """Extrapolate two steps; slopes that must stay positive and would not are taken from the second."""
    start, middle, end = first.state, second.state, second.following
    differences = middle.items - start.items
    second_differences = (end.items - middle.items) - differences
    second_square = float(_squared_lengths(second_differences, second.precision).sum())
    first_square = float(_squared_lengths(differences, second.precision).sum())
    stretch = max(float(np.sqrt(first_square / second_square)), 1.0) if second_square > 0.0 else 1.0
    items = start.items + 2.0 * stretch * differences + stretch**2 * second_differences
    # Far beyond the second step the extrapolation is no guide, as for items whose likelihood has no maximum.
    is_near = np.abs(items - end.items).max(axis=1, keepdims=True) < LARGEST_JUMP
    items = np.where(is_near, items, end.items)
    if keeps_positive and items.shape[1] == 2:
        items = np.where(items[:, :1] > 0.0, items, end.items)
    return State(within_bounds(items), end.correlation)


def _squared_lengths(steps: FloatArray, precision: FloatArray) -> FloatArray:
    """``s' H s`` of each item, (n_items,)."""
    result: FloatArray = np.einsum("ia,iab,ib->i", steps, precision, steps)
    return np.maximum(result, 0.0)


def _between(start: State, end: State, fraction: float) -> State:
    """Point on the line between two states."""
    return State(
        start.items + fraction * (end.items - start.items),
        start.correlation + fraction * (end.correlation - start.correlation),
    )


def _slack(objective: float) -> float:
    """Fall of the objective that rounding alone may cause."""
    return OBJECTIVE_NOISE * abs(objective)


def _progress_of(start: float, now: float, tolerance: float) -> float:
    """Progress towards the tolerance on a log scale, in [0, 1]."""
    if now >= start:
        return 0.0
    return min(float(np.log(start / now) / np.log(start / tolerance)), 1.0)


def _correlated(grid: AbilityGrid, correlation: float) -> AbilityGrid:
    """Make the population one of two correlated abilities with unit variances, on the same nodes."""
    if correlation == 0.0:
        return grid
    first, second = grid.nodes.T
    log_density = -0.5 * (first**2 - 2.0 * correlation * first * second + second**2) / (1.0 - correlation**2)
    return replace(grid, log_weights=log_density - log_sum_exp(log_density))


def _unrotated(items: FloatArray, before: FloatArray) -> FloatArray:
    """Take back the rotation that loadings made since `before` (orthogonal Procrustes).

    The likelihood does not change along a rotation, but for the corners of the grid, which would have EM
    drift along it for ever.
    """
    left, _, right = np.linalg.svd(items[:, :-1].T @ before[:, :-1])
    return np.column_stack([items[:, :-1] @ left @ right, items[:, -1]])


def _rescaled(problem: Problem, posterior: AbilityPosterior, items: FloatArray, before: FloatArray) -> State:
    """Fit the population's mean and covariance, then move it back to mean 0 and unit variances."""
    mean, covariance = posterior.mean, posterior.covariance
    if problem.is_free is None:
        scale = best_scale(mean, covariance, items, problem.prior, has_common_slope=problem.has_common_slope)
        moved = within_bounds(rescale(items, scale))
        return State(moved if moved.shape[1] == 2 else _unrotated(moved, before))
    # Confirmatory loadings keep their zeros only if each dimension is scaled by itself; the rest is the correlation.
    shift, matrix = best_scale(mean, covariance, items, None)
    spread = matrix @ matrix.T
    size = np.sqrt(np.diag(spread))
    return State(within_bounds(rescale(items, Scale(shift, np.diag(size)))), float(spread[0, 1] / (size[0] * size[1])))
