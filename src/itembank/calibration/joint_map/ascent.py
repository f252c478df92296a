"""The ascent of joint MAP: sweeps of items and abilities with jumps along the way, for any of its item models."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Ascent, Derivatives, Point
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent


class Problem(Protocol):
    """A log posterior density of items and abilities, with the steps that raise it."""

    @property
    def spec(self) -> JointMAP:
        """When to stop."""
        ...

    def item_derivatives(self, point: Point) -> Derivatives:
        """Log-likelihood and what `item_step` needs."""
        ...

    def ability_derivatives(self, point: Point) -> Derivatives:
        """Log-likelihood and what `ability_step` needs."""
        ...

    def item_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        """Step of all items, (n_items, n_dims + 1)."""
        ...

    def ability_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        """Step of all abilities, (n_models, n_dims)."""
        ...

    def settled(self, point: Point) -> Point:
        """Move items and abilities together to a higher prior, along what the likelihood says nothing of."""
        ...

    def log_prior(self, point: Point) -> float:
        """Log prior of all parameters up to its constant."""
        ...


_Reached: TypeAlias = tuple[Point, Derivatives, float]
"""A point with the derivatives that the next step needs, and the objective there."""


def ascend(problem: Problem, start: Point, *, progress: ProgressCallback = silent) -> Ascent[Point]:
    """Repeat sweeps until one raises the log posterior density by less than the tolerance times its size.

    A sweep is a step of all items, then of all abilities. After every second sweep it tries a jump along the way of the
    last two (SQUAREM, Varadhan and Roland 2008, scheme S3), which is kept only when the density does not fall.
    """
    max_iterations, tolerance = problem.spec.max_iterations, problem.spec.tolerance
    point, of_items = start, problem.item_derivatives(start)
    objective = of_items.value + problem.log_prior(start)
    history, before = [objective], [start]
    for sweep in range(max_iterations):
        step = Point(problem.item_step(point, of_items), np.zeros_like(point.abilities))
        point, of_abilities, objective = _raise(problem, point, step, objective, problem.ability_derivatives)
        step = Point(np.zeros_like(point.items), problem.ability_step(point, of_abilities))
        point, of_items, objective = _raise(problem, point, step, objective, problem.item_derivatives)
        history.append(objective)
        rise = (history[-1] - history[-2]) / abs(history[-1])
        if rise <= tolerance:
            return Ascent(point, history, converged=True)
        before.append(point)
        if len(before) == 3:
            point, of_items, objective = _jump(problem, before, (point, of_items, objective))
            before = [point]
        done = float(np.log(rise) / np.log(tolerance)) if rise < 1.0 else 0.0
        progress("joint MAP", max(sweep / max_iterations, done))
    return Ascent(point, history, converged=False)


def _jump(problem: Problem, before: list[Point], reached: _Reached) -> _Reached:
    """Extrapolate three points on the way; loadings that would change sign stay where they are."""
    differences = [second - first for first, second in zip(before[0], before[1], strict=True)]
    second_differences = [
        third - second - step for second, third, step in zip(before[1], before[2], differences, strict=True)
    ]
    # With r the last step but one and v the change from it to the last step, go to x0 + 2 s r + s^2 v with
    # s = |r| / |v|. At s = 1 that is the last point itself, so a smaller s is no jump.
    second_square = sum(float(np.vdot(part, part)) for part in second_differences)
    first_square = sum(float(np.vdot(part, part)) for part in differences)
    if first_square <= second_square:
        return reached
    stretch = float(np.sqrt(first_square / second_square)) if second_square > 0.0 else 1.0
    items, abilities = (
        first + 2.0 * stretch * step + stretch**2 * second_step
        for first, step, second_step in zip(before[0], differences, second_differences, strict=True)
    )
    items = np.where(items * before[2].items < 0.0, before[2].items, items)
    point = problem.settled(Point(items, abilities))
    derivatives = problem.item_derivatives(point)
    objective = derivatives.value + problem.log_prior(point)
    return (point, derivatives, objective) if objective >= reached[-1] else reached


def _raise(
    problem: Problem, start: Point, step: Point, objective: float, derivatives_at: Callable[[Point], Derivatives]
) -> _Reached:
    """Take the step, or less of it, so that the objective does not fall; settle; differentiate there."""
    # a sum over all responses may lose 1e-12 of its size to rounding
    fraction, least = 1.0, objective - 1e-12 * abs(objective)
    while True:
        items = start.items + fraction * step.items
        point = problem.settled(Point(items, start.abilities + fraction * step.abilities))
        derivatives = derivatives_at(point)
        objective = derivatives.value + problem.log_prior(point)
        if objective >= least or fraction < 1e-4:
            return point, derivatives, objective
        fraction *= 0.5


def ending(path: Ascent[Point], tolerance: float) -> str:
    """Say how the ascent ended."""
    n_sweeps = len(path.history) - 1
    if path.converged:
        return (
            f"the log posterior rose by less than {tolerance:g} of its size in sweep {n_sweeps}; "
            "standard errors of items take abilities as known."
        )
    return (
        f"the log posterior still rose by more than {tolerance:g} of its size in sweep {n_sweeps}. "
        "Raise max_iterations, or accept a larger tolerance."
    )
