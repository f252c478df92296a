"""Joint maximum a posteriori of items and abilities (WILD 5.1-5.2, App. A), by block Newton steps."""

from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Derivatives, Fit, FitData, Point, standardise
from itembank.calibration.joint_map.nested import fit_nested
from itembank.calibration.joint_map.steps import (
    LEAST_INFORMATION,
    N_START_STEPS,
    ability_derivatives,
    ascend,
    best_affine,
    ending,
    item_derivatives,
    item_step,
    log_prior,
    newton_step,
)
from itembank.calibration.start import advice, better_start
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent


def fit_joint_map(data: FitData, spec: JointMAP, *, progress: ProgressCallback = silent) -> Fit:
    """Maximise the joint posterior density of item parameters and abilities.

    Every sweep takes a proximal Newton step of all items, a Newton step of all abilities, and the best
    common shift and scale. Afterwards abilities get mean 0 and covariance I over the models, and items move
    with them. Covariances are conditional: each item's takes abilities as known, each ability's the items.
    `history` is the log posterior density up to its constant; it never falls.
    Nested item models: see `fit_nested`.
    """
    if spec.item_model == "nested":
        return fit_nested(data, spec, progress=progress)
    path, is_determined = better_start(
        lambda abilities: ascend(Plain(data, spec), start_point(data, spec, abilities), progress=progress),
        Point._make,
        data.responses,
        data.observed,
        n_dims=spec.n_dims,
    )
    items, abilities = path.end
    of_items = item_derivatives(data, *path.end).precision
    of_items[:, -1, -1] += 1.0 / spec.intercept_sd**2
    of_items += LEAST_INFORMATION * np.eye(of_items.shape[1])
    of_abilities = ability_derivatives(data, *path.end).precision
    item_covariance, ability_covariance = np.linalg.inv(of_items), np.linalg.inv(of_abilities + np.eye(spec.n_dims))
    return standardise(
        Fit(
            *(items[:, :-1], items[:, -1], item_covariance, abilities, ability_covariance),
            prior=AbilityPrior.standard(spec.n_dims),
            converged=path.converged and is_determined,
            n_iterations=len(path.history) - 1,
            message=ending(path, spec.tolerance) + ("" if is_determined else advice(n_dims=spec.n_dims)),
            history=np.asarray(path.history),
        )
    )


def start_point(data: FitData, spec: JointMAP, abilities: FloatArray) -> Point:
    """Fit items to the abilities, and give both the best shift and scale."""
    items = np.zeros((data.responses.shape[1], spec.n_dims + 1))
    for _ in range(N_START_STEPS):
        items = items + item_step(items, item_derivatives(data, items, abilities), spec)
    return Point(*best_affine(items, abilities, spec))


class Plain(NamedTuple):
    """The ascent's problem for one slope an item and dimension."""

    data: FitData
    spec: JointMAP

    def item_derivatives(self, point: Point) -> Derivatives:
        """Of all items."""
        return item_derivatives(self.data, *point)

    def ability_derivatives(self, point: Point) -> Derivatives:
        """Of all abilities."""
        return ability_derivatives(self.data, *point)

    def item_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        """Proximal Newton step of all items."""
        return item_step(point.items, derivatives, self.spec)

    def ability_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        """Newton step of all abilities."""
        return newton_step(point.abilities, derivatives)

    def settled(self, point: Point) -> Point:
        """Best shift and scale."""
        return Point(*best_affine(*point, self.spec))

    def log_prior(self, point: Point) -> float:
        """Of items and abilities."""
        return log_prior(*point, self.spec)
