"""Joint maximum a posteriori of items and abilities (WILD 5.1-5.2, App. A), by block Newton steps.

The precision of families that have one, in joint MAP: learned between ascents of items and abilities.

At the joint maximum the residual spread of the responses is too small, since items and abilities fit part of it. So
phi maximises ``sum log f(y; phi) - (nu / 2) log I(phi)``, with nu the number of parameters that the responses determine
and I how their information grows with phi: Laplace's approximation of the marginal likelihood (MacKay 1992). I is
``phi + 1`` for probabilities, which for large phi makes phi the usual unbiased ``(n - nu) / sum of squares``, and
``(phi + 1) / (phi + n)`` for n trials: the inverses of the variances of a response. A wide prior keeps phi finite
where there are as many parameters as responses, as in the 2PL with two models; there it decides, so give a precision.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import GENERAL_ITEM_MODELS, JointMAP
from itembank.calibration.fits import DIFFERENCE, LEAST, MOST, PRIOR_MEAN, PRIOR_SD, START_PRECISION, Fit, FitData
from itembank.calibration.joint_map.ascent import Path, Point, end_of, ending
from itembank.calibration.joint_map.ascent import ascend as climb
from itembank.calibration.joint_map.nested import fit_nested
from itembank.calibration.joint_map.steps import (
    LEAST_INFORMATION,
    N_START_STEPS,
    Derivatives,
    ability_derivatives,
    ability_step,
    best_affine,
    item_derivatives,
    item_step,
    log_prior,
    logit_blocks,
    trials_at,
)
from itembank.calibration.orientation import standardise
from itembank.calibration.start import Started, advice, better_start, start_values
from itembank.irt.families import ResponseModel, response_model
from itembank.irt.family_names import KINDS, WITH_PRECISION
from itembank.irt.logistic import asymptotes_of
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
    of_items = item_derivatives(data, *path.point, model).precision
    of_items[:, -1, -1] += 1.0 / spec.intercept_sd**2
    of_items += LEAST_INFORMATION * np.eye(of_items.shape[1])
    of_abilities = ability_derivatives(data, *path.point, model).precision
    item_covariance, ability_covariance = np.linalg.inv(of_items), np.linalg.inv(of_abilities + np.eye(spec.n_dims))
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


LARGEST_STEP = 2.0
"""Of log phi: a factor of seven, as far as differences at the old phi can be trusted."""
LEAST_CHANGE = 1e-3
"""Of log phi: far below its standard error."""
MOST_ROUNDS = 60
"""Of an ascent and a step of the precisions."""


class Learned(NamedTuple):
    """Logs of the precisions after a step, and their standard errors, each (n_precisions,)."""

    log_precision: FloatArray
    error: FloatArray


def model_of(data: FitData, precision: FloatArray) -> ResponseModel:
    """Make the distribution of the responses at a precision of each item, (n_items,)."""
    lower = data.lower_asymptote
    return response_model(data.family, asymptotes_of(lower, np.ones_like(lower)), precision)


def learn(data: FitData, point: Point, index: IntArray, *, log_precision: FloatArray, freedom: FloatArray) -> Learned:
    """Take a Newton step of every precision, by differences.

    Parameters
    ----------
    data, point
    index : (n_items,)
        Which items share a precision.
    log_precision : (n_precisions,)
        At present.
    freedom : (n_precisions,)
        Parameters that the responses determine.
    """
    low, middle, high = (
        _of_each(data, point, model_of(data, np.exp(log_precision + step)[index]), index)
        - 0.5 * freedom * _log_information(data, np.exp(log_precision + step), index)
        - 0.5 * ((log_precision + step - PRIOR_MEAN) / PRIOR_SD) ** 2
        for step in (-DIFFERENCE, 0.0, DIFFERENCE)
    )
    gradient, curvature = (high - low) / (2.0 * DIFFERENCE), (2.0 * middle - high - low) / DIFFERENCE**2
    # Where the objective is not concave, a whole unit uphill.
    step = np.where(curvature > 0.0, gradient / np.where(curvature > 0.0, curvature, 1.0), np.sign(gradient))
    moved = np.clip(log_precision + np.clip(step, -LARGEST_STEP, LARGEST_STEP), np.log(LEAST), np.log(MOST))
    return Learned(moved, 1.0 / np.sqrt(np.maximum(curvature, 1.0 / PRIOR_SD**2)))


def _of_each(data: FitData, point: Point, model: ResponseModel, index: IntArray) -> FloatArray:
    """Log-likelihood of the responses of each precision, (n_precisions,)."""
    design = np.column_stack([point.abilities, np.ones(len(point.abilities))])
    of_items = np.empty(len(point.items))
    for block, x, responses in logit_blocks(data, point.items, design):
        inside = model.take(np.arange(block.start, block.stop))
        terms = inside.log_likelihood_terms(x, responses, trials_at(data, block))
        of_items[block] = np.sum(terms if data.observed is None else terms * data.observed[:, block], axis=0)
    return np.asarray(np.bincount(index, weights=of_items), dtype=np.float64)


def _log_information(data: FitData, precision: FloatArray, index: IntArray) -> FloatArray:
    """Mean log of the information of the responses of each precision, up to what does not depend on it."""
    if data.n_trials is None:
        return np.log1p(precision) if KINDS[data.family].takes == "probabilities" else np.zeros(precision.shape)
    of_cells = np.log1p(precision)[index] - np.log(precision[index] + np.maximum(data.n_trials, 1.0))
    is_there = data.n_trials > 0.0
    total = np.bincount(index, weights=np.sum(of_cells * is_there, axis=0))
    return np.asarray(total / np.maximum(np.bincount(index, weights=is_there.sum(axis=0)), 1.0), dtype=np.float64)
