"""Joint MAP of nested item models: a general ability in every item, specific ones beside it (WILD 5.1-5.2, App. A).

The steps of joint MAP for nested item models, and the scale and axes that items and abilities share.

Objective (WILD 5.1, App. A), with normal priors of alpha and the intercept c that WILD does not state:
``sum l(y, alpha (theta_g + K . theta) + c) + lambda l(y, alpha theta_g + c)``
``- |theta|^2 / 2 - l1 sum |K| - sum (alpha - 1)^2 / (2 slope_sd^2) - sum c^2 / (2 intercept_sd^2)``.

Passes over all responses for nested item models: both logits of every cell, and their derivatives.

``eta = alpha (theta_g + K . theta) + c`` and the general logit ``alpha theta_g + c`` (WILD 5.1, its ``-alpha delta``
is our c).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Derivatives, Fit, FitData, Point, standardise_each
from itembank.calibration.joint_map.steps import (
    BLOCK_CELLS,
    LARGEST_STEP,
    LEAST_INFORMATION,
    N_START_STEPS,
    Terms,
    ascend,
    best_transform,
    ending,
    guessing_terms,
    l1_scales,
    newton_step,
    thresholded,
)
from itembank.calibration.start import advice, better_start, start_abilities
from itembank.irt.logistic import asymptotes_of
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray
from itembank.numerics.symmetric import packed_products, unpack
from itembank.progress import ProgressCallback, silent


class Nested(NamedTuple):
    """The ascent's problem; items are (alpha, K, c)."""

    data: FitData  # Of the type of numbers that passes take
    spec: JointMAP

    def item_derivatives(self, point: Point) -> Derivatives:
        """Differentiate in every item's (alpha, K, c), abilities given."""
        data, (items, abilities), general_weight = self.data, point, self.spec.general_weight
        design = np.asfortranarray(np.column_stack([abilities, np.ones(len(abilities))]), dtype=data.responses.dtype)
        general_design = design[:, [0, -1]]
        squares, general_squares = packed_products(design), packed_products(general_design)
        slopes, packed, total = np.empty_like(items), np.empty((len(items), squares.shape[1])), 0.0
        general_slopes, general_packed = np.zeros((len(items), 2)), np.zeros((len(items), 3))
        for rows, (value, slope, curvature), general in _blocks(data, items, design, general_weight):
            slopes[rows], packed[rows] = slope.T @ design, curvature.T @ squares
            total += value
            if general is not None:
                of_general, slope_of_general, curvature_of_general = general
                general_slopes[rows] = slope_of_general.T @ general_design
                general_packed[rows] = curvature_of_general.T @ general_squares
                total += general_weight * of_general
        # from derivatives in (alpha, alpha K, c) to those in (alpha, K, c), by the chain rule
        precision = unpack(packed, design.shape[1])
        chain = np.zeros_like(precision)  # of each own parameter (row) on each canonical one
        chain[:, 0, 0] = chain[:, -1, -1] = 1.0
        chain[:, 0, 1:-1] = items[:, 1:-1]
        inner = np.arange(1, items.shape[1] - 1)
        chain[:, inner, inner] = items[:, :1]
        gradient, precision = np.einsum("ijk,ik->ij", chain, slopes), chain @ precision @ chain.swapaxes(1, 2)
        ends = np.array([0, design.shape[1] - 1])
        gradient[:, ends] += general_weight * general_slopes
        precision[:, ends[:, None], ends] += general_weight * unpack(general_packed, 2)
        return Derivatives(total, gradient, precision)

    def ability_derivatives(self, point: Point) -> Derivatives:
        """Differentiate in every model's ability, items given."""
        data, (items, abilities), general_weight = self.data, point, self.spec.general_weight
        n_models, n_dims = abilities.shape
        loadings = canonical(items)[:, :-1].astype(data.responses.dtype)
        design = np.asfortranarray(np.column_stack([abilities, np.ones(n_models)]), dtype=data.responses.dtype)
        squares = packed_products(loadings)
        gradient, packed, total = np.zeros((n_models, n_dims)), np.zeros((n_models, squares.shape[1])), 0.0
        for rows, (value, slope, curvature), general in _blocks(data, items, design, general_weight):
            gradient += slope @ loadings[rows]
            packed += curvature @ squares[rows]
            total += value
            if general is not None:
                of_general, slope_of_general, curvature_of_general = general
                gradient[:, 0] += general_weight * (slope_of_general @ loadings[rows, 0])
                packed[:, 0] += general_weight * (curvature_of_general @ squares[rows, 0])
                total += general_weight * of_general
        return Derivatives(total, gradient, unpack(packed, n_dims))

    def item_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        """Step of all items."""
        return item_step(point.items, derivatives, self.spec)

    def ability_step(self, point: Point, derivatives: Derivatives) -> FloatArray:
        """Newton step of all abilities."""
        return newton_step(point.abilities, derivatives)

    def settled(self, point: Point) -> Point:
        """Best scale, and best axes: those of the specific abilities are given by the L1 term alone."""
        if self.spec.n_dims > 2:
            point = Point(*best_axes(*point, self.spec))
        return Point(*best_scale(*point, self.spec))

    def log_prior(self, point: Point) -> float:
        """Of items and abilities."""
        return log_prior(*point, self.spec)


def fit_nested(data: FitData, spec: JointMAP, *, progress: ProgressCallback = silent) -> Fit:
    """Maximise the joint posterior density of a nested item model.

    Abilities then get mean 0 and variance 1 in each dimension, and items move with them; dimensions are neither
    turned nor mixed. The prior for new models has the calibration abilities' covariance (WILD eq. 9), by the law of
    total variance: that of the estimates plus the mean of their posterior covariances.
    """
    problem = make_problem(data, spec)
    path, is_determined = better_start(
        lambda abilities: ascend(problem, start_point(problem, abilities), progress=progress),
        # in the general ability alone: specific ones may end in several ways that are about as good, anywhere
        lambda point: Point(point.items[:, [0, -1]], point.abilities[:, :1]),
        problem.data.responses,
        problem.data.observed,
        n_dims=spec.n_dims,
    )
    return standardise_each(
        Fit(
            *_in_canonical(problem, path.end),
            prior=AbilityPrior.standard(spec.n_dims),
            converged=path.converged and is_determined,
            n_iterations=len(path.history) - 1,
            message=ending(path, spec.tolerance) + ("" if is_determined else advice(n_dims=spec.n_dims)),
            history=np.asarray(path.history),
        )
    )


def make_problem(data: FitData, spec: JointMAP) -> Nested:
    """State what is maximised, on the numbers that passes take."""
    responses = data.responses
    n_models, n_items = responses.shape
    if spec.l1 == "auto":
        # WILD's objective leaves the scale of the specific abilities free. With abilities t theta and loadings k / t
        # for abilities theta of variance 1, the penalties l1 n_items |k| / t + n_models t^2 / 2 are least together at
        # 1.5 n_models^(1/3) (l1 n_items |k|)^(2/3), which rises by (l1^2 n_models / (n_items |k|))^(1/3) a unit of
        # one item's |k|. With this weight that is 1.5, a Laplace prior's of scale 2/3, where |k| is 0.3 on average.
        spec = replace(spec, l1=float(np.sqrt(n_items / n_models)))
    # From so many cells on the passes over them are in float32; sums over them stay in float64.
    single_precision_cells = 1 << 21
    if responses.size >= single_precision_cells:
        responses = responses.astype(np.float32)
    n_trials = None if data.n_trials is None else data.n_trials.astype(responses.dtype)
    return Nested(replace(data, responses=responses, n_trials=n_trials), spec)


def start_point(problem: Nested, abilities: FloatArray | None = None) -> Point:
    """Fit items to abilities; these lie along the leading directions of the responses unless they are given."""
    data, n_dims = problem.data, problem.spec.n_dims
    abilities = start_abilities(data.responses, data.observed, n_dims=n_dims) if abilities is None else abilities.copy()
    # The scale of the specific abilities at which loadings of typical size and abilities cost least together, 1 at
    # least: on a smaller one the L1 term sets every K to zero at once.
    n_models, n_items = data.responses.shape
    typical_loading = 0.3  # for abilities of variance 1
    abilities[:, 1:] *= max(float(np.cbrt(typical_loading * problem.spec.loading_weight * n_items / n_models)), 1.0)
    items = np.zeros((data.responses.shape[1], n_dims + 1))
    items[:, 0] = 1.0
    point = Point(items, abilities)
    for _ in range(N_START_STEPS):
        step = problem.item_step(point, problem.item_derivatives(point))
        point = Point(point.items + step, point.abilities)
    return problem.settled(point)


def _in_canonical(problem: Nested, point: Point) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Give loadings, intercepts, abilities and covariances: inverse information, the other being known.

    The information is that of the responses alone, which the general logit's term would count twice. An L1 term
    counts as a normal prior of the same variance.
    """
    spec, plain = problem.spec, problem._replace(spec=replace(problem.spec, general_weight=0.0))
    precision = plain.item_derivatives(point).precision  # of (alpha, K, c)
    size = precision.shape[1]
    own = np.full(size, spec.loading_weight**2 / 2.0)
    own[0], own[-1] = 1.0 / spec.slope_sd**2, 1.0 / spec.intercept_sd**2
    inner = np.arange(size)
    precision[:, inner, inner] += own + LEAST_INFORMATION
    chain = np.zeros_like(precision)  # of each canonical parameter (row) on each own one
    chain[:, 0, 0] = chain[:, -1, -1] = 1.0
    chain[:, 1:-1, 0] = point.items[:, 1:-1]
    chain[:, inner[1:-1], inner[1:-1]] = point.items[:, :1]
    items, information = canonical(point.items), plain.ability_derivatives(point).precision
    return (
        items[:, :-1],
        items[:, -1],
        chain @ np.linalg.inv(precision) @ chain.swapaxes(1, 2),
        point.abilities,
        np.linalg.inv(information + np.eye(spec.n_dims)),
    )


def log_prior(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> float:
    """Log prior of all parameters up to its constant."""
    slopes = float(np.sum((items[:, 0] - 1.0) ** 2)) / (2.0 * spec.slope_sd**2)
    intercepts = float(np.sum(items[:, -1] ** 2)) / (2.0 * spec.intercept_sd**2)
    loadings = spec.loading_weight * float(np.abs(items[:, 1:-1]).sum())
    return -0.5 * float(np.sum(abilities**2)) - loadings - slopes - intercepts


def item_step(items: FloatArray, derivatives: Derivatives, spec: JointMAP) -> FloatArray:
    """Proximal Newton step of every item's (alpha, K, c), (n_items, n_dims + 1), with the L1 term exact."""
    gradient, precision = derivatives.gradient.copy(), derivatives.precision.copy()
    for place, centre, spread in ((0, 1.0, spec.slope_sd), (-1, 0.0, spec.intercept_sd)):
        gradient[:, place] -= (items[:, place] - centre) / spread**2
        precision[:, place, place] += 1.0 / spread**2
    # alpha and c have no L1 term: eliminate them by the Schur complement of their block
    ends, inner = np.array([0, items.shape[1] - 1]), np.arange(1, items.shape[1] - 1)
    ends_precision = precision[:, ends[:, None], ends]
    cross = precision[:, inner[:, None], ends]  # (n_items, n_specific, 2)
    regression = np.linalg.solve(ends_precision, cross.swapaxes(1, 2))  # (n_items, 2, n_specific)
    reduced = precision[:, inner[:, None], inner] - cross @ regression
    reduced_gradient = gradient[:, inner] - np.einsum("iep,ie->ip", regression, gradient[:, ends])
    # Sweeps of coordinate descent in a step of the items: the next step goes on where this one ends. 1 to 30 end alike.
    n_threshold_sweeps = 8
    specific = (
        thresholded(items[:, inner], reduced_gradient, reduced, spec.loading_weight, n_threshold_sweeps)
        - items[:, inner]
    )
    ends_step = np.linalg.solve(ends_precision, gradient[:, ends, None])[..., 0] - np.einsum(
        "iep,ip->ie", regression, specific
    )
    step = np.column_stack([ends_step[:, 0], specific, ends_step[:, 1]])
    # of the logit, to first order, at abilities of size 2
    reach = 2.0 * np.abs(ends_step[:, 0]) * (1.0 + np.linalg.norm(items[:, inner], axis=1)) + np.abs(ends_step[:, 1])
    reach += 2.0 * np.abs(items[:, 0]) * np.linalg.norm(specific, axis=1)
    shortened: FloatArray = step * np.minimum(1.0, LARGEST_STEP / np.maximum(reach, 1e-300))[:, None]
    return shortened


def best_scale(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> tuple[FloatArray, FloatArray]:
    """Shift and scale the general ability, and scale the specific ones, to the highest log prior; no logit changes.

    With ``theta_g = m + s theta_g'`` and ``theta_k = t_k theta_k'`` items are
    ``alpha' = s alpha``, ``K_k' = t_k K_k / s`` and ``c' = c + alpha m``. The best m is a ratio; for given s the best
    ``t_k^3`` is ``s sum theta_k^2 / (l1 sum |K_k|)``; s is found by a search in one dimension.
    """
    slope, specific, intercept = items[:, 0], items[:, 1:-1], items[:, -1]
    variance = spec.intercept_sd**2
    shift = (abilities[:, 0].sum() - slope @ intercept / variance) / (len(abilities) + slope @ slope / variance)
    general = abilities[:, 0] - shift
    scale = _general_scale(items, general, abilities[:, 1:], spec)
    scales = l1_scales(specific, abilities[:, 1:], spec.loading_weight, scale)
    moved = np.column_stack([slope * scale, specific * (scales / scale), intercept + slope * shift])
    return moved, np.column_stack([general / scale, abilities[:, 1:] / scales])


def _general_scale(items: FloatArray, general: FloatArray, specific: FloatArray, spec: JointMAP) -> float:
    """Best scale s of the general ability."""
    slope, spread = items[:, 0], float(general @ general)
    linear, square = float(slope.sum()), float(slope @ slope)
    sizes, spreads = spec.loading_weight * np.abs(items[:, 1:-1]).sum(axis=0), np.sum(specific**2, axis=0)
    least = 1.5 * float(np.sum(np.cbrt(spreads * sizes**2)))  # l1 |K'| + |theta'|^2 / 2 at the best t, for s = 1

    def penalty(logarithm: float) -> float:
        scale = np.exp(logarithm)
        # sum (s alpha - 1)^2 / (2 slope_sd^2) without its constant; |theta_g|^2 / 2 falls as s^-2, and at the best t_k
        # the specific part as s^(-2/3).
        slopes = (scale**2 * square - 2.0 * scale * linear) / (2.0 * spec.slope_sd**2)
        return float(slopes + spread / (2.0 * scale**2) + least * scale ** (-2.0 / 3.0))

    # Largest factor, up or down, by which one step changes the scale of the general ability. With 1.2 to 8 the ends are
    # the same.
    scale_range = 2.0
    reach = np.log(scale_range)
    optimum = minimize_scalar(penalty, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9})
    return float(np.exp(optimum.x)) if optimum.fun < penalty(0.0) else 1.0


def best_axes(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> tuple[FloatArray, FloatArray]:
    """Rotate the specific abilities, and K with them, to a higher log prior; no logit changes.

    Every rotation removes the zeros of K until the next step of the items restores them, so a tiny gain is refused.
    """
    transform = best_transform(items[:, 1:-1], abilities[:, 1:], spec.loading_weight)
    rotated = abilities[:, 1:] @ np.linalg.inv(transform).T
    moved = np.column_stack([items[:, 0], items[:, 1:-1] @ transform, items[:, -1]])
    before = log_prior(items, abilities, spec)
    after = log_prior(moved, np.column_stack([abilities[:, 0], rotated]), spec)
    # Fraction of the log prior's size that a rotation of the axes must add to it. From 0 to 1e-3 the ends are the same.
    least_gain = 1e-5
    if after - before <= least_gain * abs(before):
        return items, abilities
    return moved, np.column_stack([abilities[:, 0], rotated])


def canonical(items: FloatArray) -> FloatArray:
    """Give loadings and intercepts ``(alpha, alpha K, c)`` of items ``(alpha, K, c)``, (n_items, n_dims + 1)."""
    result = items.copy()
    result[:, 1:-1] *= items[:, :1]
    return result


def _blocks(
    data: FitData, items: FloatArray, design: FloatArray, general_weight: float
) -> Iterator[tuple[slice, Terms, Terms | None]]:
    """Give the terms of both logits of each block of items; the general ones None when they weigh nothing."""
    coefficients = canonical(items).astype(design.dtype)
    size = max(BLOCK_CELLS // len(design), 16)
    for first in range(0, len(items), size):
        rows = slice(first, min(first + size, len(items)))
        of_rows = coefficients[rows]
        whole = _terms(data, rows, design @ of_rows.T)
        general = None
        if general_weight > 0.0:
            general = _terms(data, rows, design[:, [0, -1]] @ of_rows[:, [0, -1]].T)
        yield rows, whole, general


def _terms(data: FitData, block: slice, x: FloatArray) -> Terms:
    """Terms of a block of logits (n_models, n_block)."""
    responses = data.responses[:, block]
    weights = None if data.weights is None else data.weights[:, block]
    lower = data.lower_asymptote[block]
    if np.any(lower):
        return guessing_terms(x, responses, weights, asymptotes_of(lower, np.ones_like(lower)))
    # log P = y x - log(1 + e^x) = y x - max(x, 0) + log sigmoid(|x|).
    larger = 1.0 / (1.0 + np.exp(-np.abs(x)))  # sigmoid(|x|)
    sigmoid = np.where(x >= 0.0, larger, 1.0 - larger)
    curvature = sigmoid * (1.0 - sigmoid)
    # a log-likelihood of 0 in cells that were not observed: their response is 0
    cells = np.log(larger)
    cells -= np.maximum(x, 0.0)
    cells += responses * x
    slope = responses - sigmoid
    if weights is not None:
        cells, slope, curvature = cells * weights, slope * weights, curvature * weights
    return float(cells.sum(dtype=np.float64)), slope, curvature
