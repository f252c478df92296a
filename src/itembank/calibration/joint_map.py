"""Joint maximum a posteriori of items and abilities (P2 5.1-5.2, App. A), by block Newton steps."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from itembank.calibration.fits import Fit, FitData
from itembank.calibration.joint_map_passes import Derivatives, ability_derivatives, item_derivatives
from itembank.calibration.joint_map_steps import ability_step, best_affine, item_step, log_prior
from itembank.calibration.orientation import standardise
from itembank.calibration.specs import JointMAP
from itembank.calibration.start import start_abilities
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent

N_START_STEPS = 4

OBJECTIVE_NOISE = 1e-12
"""Share of the objective's size that rounding may take from it."""

LEAST_SHARE = 1e-4
"""Smallest share of a step that is tried."""


class Point(NamedTuple):
    """Items (n_items, n_dims + 1) and abilities (n_models, n_dims)."""

    items: FloatArray
    abilities: FloatArray


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


class Path(NamedTuple):
    """Where the ascent ended, the log posterior density on the way, and whether it met the tolerance."""

    point: Point
    history: list[float]
    converged: bool


def start_point(data: FitData, spec: JointMAP) -> Point:
    """Abilities along the leading directions of the responses, and items fitted to them."""
    abilities = start_abilities(data.responses, data.observed, n_dims=spec.n_dims)
    items = np.zeros((data.responses.shape[1], spec.n_dims + 1))
    for _ in range(N_START_STEPS):
        items = items + item_step(items, item_derivatives(data, items, abilities), spec)
    return Point(*best_affine(items, abilities, spec))


def ascend(data: FitData, point: Point, spec: JointMAP, *, progress: ProgressCallback = silent) -> Path:
    """Repeat sweeps until one raises the log posterior density by less than the tolerance times its size."""
    of_items = item_derivatives(data, *point)
    history = [of_items.log_likelihood + log_prior(*point, spec)]
    for sweep in range(spec.max_iterations):
        step = Point(item_step(point.items, of_items, spec), np.zeros_like(point.abilities))
        after_items = _raise(_Line(point, step, history[-1]), data, spec, ability_derivatives)
        point, of_abilities = after_items.point, after_items.derivatives
        step = Point(np.zeros_like(point.items), ability_step(point.abilities, of_abilities))
        point, of_items, objective = _raise(_Line(point, step, after_items.objective), data, spec, item_derivatives)
        history.append(objective)
        rise = (history[-1] - history[-2]) / abs(history[-1])
        if rise <= spec.tolerance:
            return Path(point, history, converged=True)
        done = float(np.log(rise) / np.log(spec.tolerance)) if rise < 1.0 else 0.0
        progress("joint MAP", max(sweep / spec.max_iterations, done))
    return Path(point, history, converged=False)


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
