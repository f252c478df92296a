"""Joint maximum a posteriori of items and abilities (WILD 5.1-5.2, App. A), by block Newton steps."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import GENERAL_ITEM_MODELS, JointMAP
from itembank.calibration.fits import Fit, FitData
from itembank.calibration.joint_map.ascent import Path, Point, end_of, ending
from itembank.calibration.joint_map.ascent import ascend as climb
from itembank.calibration.joint_map.nested import fit_nested
from itembank.calibration.joint_map.passes import Derivatives, ability_derivatives, item_derivatives
from itembank.calibration.joint_map.precision import LEAST_CHANGE, MOST_ROUNDS, learn, model_of
from itembank.calibration.joint_map.steps import (
    LEAST_INFORMATION,
    N_START_STEPS,
    ability_step,
    best_affine,
    item_step,
    log_prior,
)
from itembank.calibration.orientation import standardise
from itembank.calibration.precision_prior import START_PRECISION
from itembank.calibration.start import start_values
from itembank.calibration.two_starts import Started, advice, better_start
from itembank.irt.families import ResponseModel
from itembank.irt.family_names import WITH_PRECISION
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent

SIZE_OF_A_CELL = 0.5
"""What a cell counts for in the size of a log density, which a change of one unit of response shifts."""


def fit_joint_map(data: FitData, spec: JointMAP, *, progress: ProgressCallback = silent) -> Fit:
    """Maximise the joint posterior density of item parameters and abilities.

    Every sweep takes a proximal Newton step of all items, a Newton step of all abilities, and the best
    common shift and scale. Afterwards abilities get mean 0 and covariance I over the models, and items move
    with them. Covariances are conditional: each item's takes abilities as known, each ability's the items.
    `history` is the log posterior density up to its constant; it never falls. Precisions are learned between
    ascents (see `precision`), and `history` is that of the last.
    Nested item models: see `fit_nested`.
    """
    if spec.item_model in GENERAL_ITEM_MODELS:
        return fit_nested(data, spec, progress=progress)
    if data.family in WITH_PRECISION:
        return _fit_with_precision(data, spec, progress)
    started = _first_path(data, spec, progress=progress)
    return _pack(data, spec, started, n_sweeps=len(started.reached.history) - 1)


def _fit_with_precision(data: FitData, spec: JointMAP, progress: ProgressCallback) -> Fit:
    """Fit items and abilities at a given precision, or alternate with steps of the precisions."""
    index = np.zeros(data.responses.shape[1], dtype=np.int64) if data.precision_index is None else data.precision_index
    if not isinstance(spec.precision, str):
        model = model_of(data, np.full(index.size, float(spec.precision)))
        started = _first_path(data, spec, model, progress=progress)
        return _pack(data, spec, started, model, n_sweeps=len(started.reached.history) - 1)
    log_precision = np.full(int(index.max()) + 1, np.log(START_PRECISION))
    model = model_of(data, np.exp(log_precision)[index])
    started, n_sweeps = _first_path(data, spec, model), 0
    path = started.reached
    for round_number in range(MOST_ROUNDS):
        if round_number > 0:
            path = ascend(data, path.point, spec, model, progress=silent)
        point, n_sweeps = path.point, n_sweeps + len(path.history) - 1
        freedom = _freedom(data, point, spec, model=model, index=index)
        learned = learn(data, point, index, log_precision=log_precision, freedom=freedom)
        change = float(np.abs(learned.log_precision - log_precision).max())
        progress("joint MAP, precision", round_number / MOST_ROUNDS)
        if change < LEAST_CHANGE or n_sweeps >= spec.max_iterations:
            break
        log_precision = learned.log_precision
        model = model_of(data, np.exp(log_precision)[index])
    path = path._replace(converged=path.converged and change < LEAST_CHANGE)
    fit = _pack(data, spec, started._replace(reached=path), model, n_sweeps=n_sweeps)
    return replace(fit, log_precision_error=learned.error[index])


def _first_path(
    data: FitData, spec: JointMAP, model: ResponseModel | None = None, *, progress: ProgressCallback = silent
) -> Started[Path]:
    """Ascend from the better of two starts."""

    def climb_from(abilities: FloatArray) -> Path:
        return ascend(data, start_point(data, spec, abilities, model), spec, model, progress=progress)

    values = data.responses if model is None else start_values(data)
    return better_start(climb_from, end_of, values, data.observed, n_dims=spec.n_dims)


def _pack(
    data: FitData, spec: JointMAP, started: Started[Path], model: ResponseModel | None = None, *, n_sweeps: int
) -> Fit:
    """Bring the end of an ascent to the scale of its prior."""
    path, is_determined = started
    items, abilities = path.point
    item_covariance, ability_covariance = _covariances(data, path.point, spec, model)
    oriented = standardise(items[:, :-1], items[:, -1], item_covariance, abilities, ability_covariance)
    return Fit(
        **oriented._asdict(),
        prior=AbilityPrior.standard(spec.n_dims),
        converged=path.converged and is_determined,
        n_iterations=n_sweeps,
        message=ending(path, spec.tolerance) + ("" if is_determined else advice(n_dims=spec.n_dims)),
        history=np.asarray(path.history),
        precision=None if model is None else model.precision,
    )


def start_point(data: FitData, spec: JointMAP, abilities: FloatArray, model: ResponseModel | None = None) -> Point:
    """Fit items to the abilities, and give both the best shift and scale."""
    items = np.zeros((data.responses.shape[1], spec.n_dims + 1))
    for _ in range(N_START_STEPS):
        items = items + item_step(items, item_derivatives(data, items, abilities, model), spec)
    return Point(*best_affine(items, abilities, spec))


def ascend(
    data: FitData,
    point: Point,
    spec: JointMAP,
    model: ResponseModel | None = None,
    *,
    progress: ProgressCallback = silent,
) -> Path:
    """Climb from a point; see `ascent.ascend`."""
    return climb(
        _Plain(data, spec, model),
        point,
        max_iterations=spec.max_iterations,
        tolerance=spec.tolerance,
        least_size=0.0 if model is None else SIZE_OF_A_CELL * data.responses.size,
        progress=progress,
    )


class _Plain(NamedTuple):
    """The ascent's problem for one slope an item and dimension."""

    data: FitData
    spec: JointMAP
    model: ResponseModel | None = None

    def item_derivatives(self, point: Point) -> Derivatives:
        return item_derivatives(self.data, *point, self.model)

    def ability_derivatives(self, point: Point) -> Derivatives:
        return ability_derivatives(self.data, *point, self.model)

    def item_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        return item_step(point.items, derivatives, self.spec)

    def ability_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        return ability_step(point.abilities, derivatives)

    def settled(self, point: Point) -> Point:
        return Point(*best_affine(*point, self.spec))

    def log_prior(self, point: Point) -> float:
        return log_prior(*point, self.spec)


def _covariances(
    data: FitData, point: Point, spec: JointMAP, model: ResponseModel | None
) -> tuple[FloatArray, FloatArray]:
    """Inverse blocks of the information of items and of abilities, the other being known."""
    of_items = item_derivatives(data, *point, model).precision
    of_items[:, -1, -1] += 1.0 / spec.intercept_sd**2
    of_items += LEAST_INFORMATION * np.eye(of_items.shape[1])
    of_abilities = ability_derivatives(data, *point, model).precision
    return np.linalg.inv(of_items), np.linalg.inv(of_abilities + np.eye(spec.n_dims))


def _freedom(data: FitData, point: Point, spec: JointMAP, *, model: ResponseModel, index: IntArray) -> FloatArray:
    """How many parameters the responses of each precision determine, (n_precisions,): ``tr(H (H + prior)^-1)``.

    Those of abilities are divided in proportion to the numbers of items.
    """
    of_items = item_derivatives(data, *point, model).precision
    prior = np.zeros(of_items.shape[1:])
    prior[-1, -1] = 1.0 / spec.intercept_sd**2
    if spec.item_model == "1pl":  # the slope is one of all items, next to nothing for each
        of_each = of_items[:, -1, -1] / (of_items[:, -1, -1] + prior[-1, -1])
    else:
        penalised = of_items + prior + LEAST_INFORMATION * np.eye(len(prior))
        of_each = np.einsum("iab,iba->i", np.linalg.inv(penalised), of_items)
    of_abilities = ability_derivatives(data, *point, model).precision
    # tr((H + I)^-1 H) over models: the directions of ability that responses rather than the prior determine.
    inverse = np.linalg.inv(of_abilities + np.eye(spec.n_dims))
    of_all_abilities = float(np.einsum("lab,lba->", inverse, of_abilities))
    n_items = np.bincount(index)
    return np.asarray(np.bincount(index, weights=of_each) + of_all_abilities * n_items / index.size, dtype=np.float64)
