"""Joint maximum a posteriori of items and abilities (P2 5.1-5.2, App. A), by block Newton steps."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from itembank.calibration.fits import Fit, FitData
from itembank.calibration.joint_map.passes import Derivatives, ability_derivatives, item_derivatives
from itembank.calibration.joint_map.steps import ability_step, best_affine, item_step, log_prior
from itembank.calibration.orientation import standardise
from itembank.calibration.specs import JointMAP
from itembank.calibration.start import start_abilities
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent

N_START_STEPS = 4

OBJECTIVE_NOISE = 1e-12
"""Share of the objective's size that rounding may take from it."""

LEAST_INFORMATION = 1e-8
"""Added to an item's, for a dimension in which no model differs from another: its errors are huge, not infinite."""

LEAST_SHARE = 1e-4
"""Smallest share of a step that is tried."""


class Point(NamedTuple):
    """Items (n_items, n_dims + 1) and abilities (n_models, n_dims)."""

    items: FloatArray
    abilities: FloatArray


class Path(NamedTuple):
    """Where the ascent ended, the log posterior density on the way, and whether it met the tolerance."""

    point: Point
    history: list[float]
    converged: bool


class _Line(NamedTuple):
    """A point, a step from it, and the objective there."""

    start: Point
    step: Point
    objective: float


class _Reached(NamedTuple):
    """A point with the derivatives that the next step needs, and the objective there."""

    point: Point
    derivatives: Derivatives
    objective: float


def fit_joint_map(data: FitData, spec: JointMAP, *, progress: ProgressCallback = silent) -> Fit:
    """Maximise the joint posterior density of item parameters and abilities.

    Every sweep takes a proximal Newton step of all items, a Newton step of all abilities, and the best
    common shift and scale. Afterwards abilities get mean 0 and covariance I over the models, and items move
    with them. Covariances are conditional: each item's takes abilities as known, each ability's the items.
    `history` is the log posterior density up to its constant; it never falls.
    """
    path = ascend(data, start_point(data, spec), spec, progress=progress)
    items, abilities = path.point
    item_covariance, ability_covariance = _covariances(data, path.point, spec)
    oriented = standardise(items[:, :-1], items[:, -1], item_covariance, abilities, ability_covariance)
    return Fit(
        **oriented._asdict(),
        prior=AbilityPrior.standard(spec.n_dims),
        converged=path.converged,
        n_iterations=len(path.history) - 1,
        message=_message(path, spec),
        history=np.asarray(path.history),
    )


def start_point(data: FitData, spec: JointMAP) -> Point:
    """Abilities along the leading directions of the responses, and items fitted to them."""
    abilities = start_abilities(data.responses, data.observed, n_dims=spec.n_dims)
    items = np.zeros((data.responses.shape[1], spec.n_dims + 1))
    for _ in range(N_START_STEPS):
        items = items + item_step(items, item_derivatives(data, items, abilities), spec)
    return Point(*best_affine(items, abilities, spec))


def ascend(data: FitData, point: Point, spec: JointMAP, *, progress: ProgressCallback = silent) -> Path:
    """Repeat sweeps until one raises the log posterior density by less than the tolerance times its size.

    After every second sweep it tries a jump along the way of the last two (SQUAREM, Varadhan and Roland
    2008, scheme S3), which is kept only when the density does not fall.
    """
    of_items = item_derivatives(data, *point)
    reached = _Reached(point, of_items, of_items.log_likelihood + log_prior(*point, spec))
    history, before = [reached.objective], [point]
    for sweep in range(spec.max_iterations):
        reached = _sweep(data, reached, spec)
        history.append(reached.objective)
        rise = (history[-1] - history[-2]) / abs(history[-1])
        if rise <= spec.tolerance:
            return Path(reached.point, history, converged=True)
        before.append(reached.point)
        if len(before) == 3:
            reached = _jump(data, before, reached, spec)
            before = [reached.point]
        done = float(np.log(rise) / np.log(spec.tolerance)) if rise < 1.0 else 0.0
        progress("joint MAP", max(sweep / spec.max_iterations, done))
    return Path(reached.point, history, converged=False)


def _sweep(data: FitData, reached: _Reached, spec: JointMAP) -> _Reached:
    """Step of all items, then of all abilities."""
    point, of_items, objective = reached
    step = Point(item_step(point.items, of_items, spec), np.zeros_like(point.abilities))
    point, of_abilities, objective = _raise(_Line(point, step, objective), data, spec, ability_derivatives)
    step = Point(np.zeros_like(point.items), ability_step(point.abilities, of_abilities))
    return _raise(_Line(point, step, objective), data, spec, item_derivatives)


def _jump(data: FitData, before: list[Point], reached: _Reached, spec: JointMAP) -> _Reached:
    """Extrapolate three points on the way; loadings that would change sign stay where they are."""
    once = [second - first for first, second in zip(before[0], before[1], strict=True)]
    twice = [third - second - step for second, third, step in zip(before[1], before[2], once, strict=True)]
    bend = sum(float(np.vdot(part, part)) for part in twice)
    speed = sum(float(np.vdot(part, part)) for part in once)
    if speed <= bend:
        return reached
    stretch = float(np.sqrt(speed / bend)) if bend > 0.0 else 1.0
    items, abilities = (
        first + 2.0 * stretch * step + stretch**2 * turn
        for first, step, turn in zip(before[0], once, twice, strict=True)
    )
    items = np.where(items * before[2].items < 0.0, before[2].items, items)
    point = Point(*best_affine(items, abilities, spec))
    derivatives = item_derivatives(data, *point)
    objective = derivatives.log_likelihood + log_prior(*point, spec)
    return _Reached(point, derivatives, objective) if objective >= reached.objective else reached


def _raise(line: _Line, data: FitData, spec: JointMAP, derivatives_of: Callable[..., Derivatives]) -> _Reached:
    """Take the step, or less of it, so that the objective does not fall; shift and scale; differentiate there."""
    share, least = 1.0, line.objective - OBJECTIVE_NOISE * abs(line.objective)
    while True:
        items = line.start.items + share * line.step.items
        point = Point(*best_affine(items, line.start.abilities + share * line.step.abilities, spec))
        derivatives = derivatives_of(data, *point)
        objective = derivatives.log_likelihood + log_prior(*point, spec)
        if objective >= least or share < LEAST_SHARE:
            return _Reached(point, derivatives, objective)
        share *= 0.5


def _covariances(data: FitData, point: Point, spec: JointMAP) -> tuple[FloatArray, FloatArray]:
    """Inverse blocks of the information of items and of abilities, the other being known."""
    of_items = item_derivatives(data, *point).precision
    of_items[:, -1, -1] += 1.0 / spec.intercept_sd**2
    of_items += LEAST_INFORMATION * np.eye(of_items.shape[1])
    of_abilities = ability_derivatives(data, *point).precision
    return np.linalg.inv(of_items), np.linalg.inv(of_abilities + np.eye(spec.n_dims))


def _message(path: Path, spec: JointMAP) -> str:
    """Say how the ascent ended."""
    n_sweeps = len(path.history) - 1
    if path.converged:
        return (
            f"the log posterior rose by less than {spec.tolerance:g} of its size in sweep {n_sweeps}; "
            "standard errors of items take abilities as known."
        )
    return (
        f"the log posterior still rose by more than {spec.tolerance:g} of its size in sweep {n_sweeps}. "
        "Raise max_iterations, or accept a larger tolerance."
    )
