"""The steps of joint MAP: items given abilities, abilities given items, the scale they share, and all in turn.

Objective: ``sum log P - |theta|^2 / 2 - l1 sum |a| - sum c^2 / (2 intercept_sd^2)``.
"""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

import numpy as np
from scipy.optimize import minimize

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Ascent, Derivatives, FitData, Point
from itembank.irt.logistic import Asymptotes, asymptotes_of, information_weights, log_likelihood_terms, score_terms
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.stable import sigmoid_terms
from itembank.numerics.symmetric import packed_products, unpack
from itembank.progress import ProgressCallback, silent

BLOCK_CELLS = 1 << 18
"""Cells of a block of models times items: what stays in a processor's cache."""

Weights: TypeAlias = FloatArray | BoolArray | None
"""How often each response of a block counts, 0 where it was not observed; None for once each."""


Terms: TypeAlias = tuple[float, FloatArray, FloatArray]
"""Of one block: log-likelihood, and its slope and curvature in each logit, (n_models, n_items)."""


def item_derivatives(data: FitData, items: FloatArray, abilities: FloatArray) -> Derivatives:
    """Differentiate in every item's (loadings, intercept), abilities given."""
    design = np.column_stack([abilities, np.ones(len(abilities))])
    squares = packed_products(design)
    gradient, packed, total = np.empty_like(items), np.empty((len(items), squares.shape[1])), 0.0
    for block, (log_likelihood, slope, curvature) in _blocks(data, items, design):
        gradient[block] = slope.T @ design
        packed[block] = curvature.T @ squares
        total += log_likelihood
    return Derivatives(total, gradient, unpack(packed, design.shape[1]))


def ability_derivatives(data: FitData, items: FloatArray, abilities: FloatArray) -> Derivatives:
    """Differentiate in every model's ability, items given."""
    design = np.column_stack([abilities, np.ones(len(abilities))])
    squares = packed_products(items[:, :-1])
    gradient, packed, total = np.zeros_like(abilities), np.zeros((len(abilities), squares.shape[1])), 0.0
    for block, (log_likelihood, slope, curvature) in _blocks(data, items, design):
        gradient += slope @ items[block, :-1]
        packed += curvature @ squares[block]
        total += log_likelihood
    return Derivatives(total, gradient, unpack(packed, abilities.shape[1]))


def _blocks(data: FitData, items: FloatArray, design: FloatArray) -> Iterator[tuple[slice, Terms]]:
    """Give the terms of each block of items."""
    n_models, n_items = data.responses.shape
    size = max(BLOCK_CELLS // n_models, 16)
    has_guessing = bool(np.any(data.lower_asymptote))
    for first in range(0, n_items, size):
        block = slice(first, min(first + size, n_items))
        x, responses = design @ items[block].T, data.responses[:, block].astype(np.float64, copy=False)
        weights = None if data.weights is None else data.weights[:, block]
        if has_guessing:
            lower = data.lower_asymptote[block]
            yield block, guessing_terms(x, responses, weights, asymptotes_of(lower, np.ones_like(lower)))
        else:
            yield block, logistic_terms(x, responses, weights)


def logistic_terms(x: FloatArray, responses: FloatArray, weights: Weights) -> Terms:
    """Terms without guessing; responses are fractions of right answers, weights the numbers of answers."""
    softplus, sigmoid, curvature = sigmoid_terms(x)
    if weights is None:
        return float(np.vdot(responses, x) - softplus.sum()), responses - sigmoid, curvature
    total = float(np.sum((responses * x - softplus) * weights))
    return total, (responses - sigmoid) * weights, curvature * weights


def guessing_terms(x: FloatArray, responses: FloatArray, weights: Weights, asymptotes: Asymptotes | None) -> Terms:
    """Terms with lower asymptotes."""
    log_likelihood = log_likelihood_terms(x, responses, asymptotes)
    slope, curvature = score_terms(x, responses, asymptotes), information_weights(x, asymptotes)
    if weights is None:
        return float(log_likelihood.sum()), slope, curvature
    return float(np.sum(log_likelihood * weights)), slope * weights, curvature * weights


N_START_STEPS = 4
"""Newton steps of the items, from zero, given the abilities that the ascent starts with."""

LEAST_INFORMATION = 1e-8
"""Added to an item's, for a dimension in which no model differs from another: its errors are huge, not infinite."""

LARGEST_STEP = 2.0
"""Largest change of a logit at ability -2 or 2, or of an ability, in one step: Newton's quadratic is local. A quarter
of it takes two to three times as many sweeps in simulations. Four times as much takes fewer as a rule, but 87 instead
of 49 where items are steep and can be guessed."""


def log_prior(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> float:
    """Log prior of all parameters up to its constant; the slope of the 1PL counts for every item."""
    intercepts = float(np.sum(items[:, -1] ** 2)) / (2.0 * spec.intercept_sd**2)
    return -0.5 * float(np.sum(abilities**2)) - spec.loading_weight * float(np.sum(np.abs(items[:, :-1]))) - intercepts


def newton_step(abilities: FloatArray, derivatives: Derivatives) -> FloatArray:
    """Newton step of every ability from the log-likelihood's derivatives, prior N(0, I), (n_models, n_dims)."""
    gradient = derivatives.gradient - abilities
    precision = derivatives.precision + np.eye(abilities.shape[1])
    step: FloatArray = np.linalg.solve(precision, gradient[..., None])[..., 0]
    length = np.linalg.norm(step, axis=1, keepdims=True)
    shorter: FloatArray = np.minimum(1.0, LARGEST_STEP / np.maximum(length, 1e-300))
    return step * shorter


def item_step(items: FloatArray, derivatives: Derivatives, spec: JointMAP) -> FloatArray:
    """Proximal Newton step of every item, (n_items, n_dims + 1): the quadratic's maximum with the L1 term exact."""
    gradient, precision = derivatives.gradient.copy(), derivatives.precision.copy()
    gradient[:, -1] -= items[:, -1] / spec.intercept_sd**2
    precision[:, -1, -1] += 1.0 / spec.intercept_sd**2
    cross, intercept_precision = precision[:, :-1, -1], precision[:, -1, -1]
    # The intercepts have no L1 term: eliminate them first.
    reduced = precision[:, :-1, :-1] - cross[:, :, None] * cross[:, None, :] / intercept_precision[:, None, None]
    reduced_gradient = gradient[:, :-1] - cross * (gradient[:, -1] / intercept_precision)[:, None]
    if spec.item_model == "1pl":
        common, l1 = items[:1, :-1], spec.loading_weight * len(items)
        slope = np.maximum(thresholded(common, reduced_gradient.sum(axis=0)[None], reduced.sum(axis=0)[None], l1), 0.0)
        step = np.broadcast_to(slope - common, items[:, :-1].shape)
    else:
        step = thresholded(items[:, :-1], reduced_gradient, reduced, spec.loading_weight) - items[:, :-1]
    intercept = (gradient[:, -1] - np.sum(cross * step, axis=1)) / intercept_precision
    whole: FloatArray = np.column_stack([step, intercept])
    # Largest change of the logit at abilities of length 2. Of the 1PL all items take the same fraction of the step, as
    # they have one slope.
    reach = 2.0 * np.linalg.norm(step, axis=1) + np.abs(intercept)
    shorter = np.minimum(1.0, LARGEST_STEP / np.maximum(reach, 1e-300))
    if spec.item_model == "1pl":
        return whole * float(shorter.min())
    shortened: FloatArray = whole * shorter[:, None]
    return shortened


def thresholded(
    loadings: FloatArray,
    gradient: FloatArray,
    precision: FloatArray,
    l1: float,
    # At most; in simulations it took up to 30 in two dimensions, 50 in three and 95 in six.
    n_sweeps: int = 100,
) -> FloatArray:
    """Maximise ``gradient . (b - a) - (b - a)' H (b - a) / 2 - l1 |b|`` over b for every item: coordinate descent.

    Each coordinate's maximum is a soft threshold; one dimension is done after the first. It ends where no loading moves
    by more than 1e-12, which is tighter than the ascent needs: with 1e-3 that ends at as high a density.
    """
    moved = loadings.copy()
    residual = gradient.copy()
    # Of a loading's quadratic, for a dimension in which no model differs from another.
    least_curvature = 1e-12
    for _ in range(n_sweeps):
        largest = 0.0
        for dim in range(loadings.shape[1]):
            # The maximum along one coordinate of the quadratic less l1 |b|, given the gradient at the others' values.
            curvature = np.maximum(precision[:, dim, dim], least_curvature)
            aim = moved[:, dim] + residual[:, dim] / curvature
            target = np.sign(aim) * np.maximum(np.abs(aim) - l1 / curvature, 0.0)
            change = target - moved[:, dim]
            residual -= precision[:, :, dim] * change[:, None]
            moved[:, dim] = target
            largest = max(largest, float(np.abs(change).max()))
        if loadings.shape[1] == 1 or largest < 1e-12:
            break
    return moved


def best_affine(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> tuple[FloatArray, FloatArray]:
    """Shift and transform abilities, and items with them, to the highest log prior; no logit changes.

    The likelihood says nothing of either, so alternating steps would creep along them. The best shift m
    solves ``(M I + A' A / v) m = sum theta - A' c / v``.
    """
    loadings, variance, l1 = items[:, :-1], spec.intercept_sd**2, spec.loading_weight
    matrix = len(abilities) * np.eye(loadings.shape[1]) + loadings.T @ loadings / variance
    shift = np.linalg.solve(matrix, abilities.sum(axis=0) - loadings.T @ items[:, -1] / variance)
    shifted = abilities - shift
    scale = l1_scales(loadings, shifted, l1)  # (n_dims,)
    scaled, shifted = loadings * scale, shifted / scale
    if loadings.shape[1] > 1:
        transform = best_transform(scaled, shifted, l1)
        scaled, shifted = scaled @ transform, shifted @ np.linalg.inv(transform).T
    return np.column_stack([scaled, items[:, -1] + loadings @ shift]), shifted


def l1_scales(loadings: FloatArray, abilities: FloatArray, l1: float, weight: float = 1.0) -> FloatArray:
    """Best scale of each dimension against the penalty on loadings, (n_dims,).

    ``l1 s sum |a| + w sum theta^2 / (2 s^2)`` is smallest at ``s = (w sum theta^2 / (l1 sum |a|))^(1/3)``.
    """
    size, square = l1 * np.abs(loadings).sum(axis=0), np.sum(abilities**2, axis=0)
    is_used = (size > 0.0) & (square > 0.0)
    return np.where(is_used, np.cbrt(weight * square / np.where(is_used, size, 1.0)), 1.0)


def best_transform(loadings: FloatArray, abilities: FloatArray, l1: float) -> FloatArray:
    """Best matrix W of ``a' = W' a``, ``theta' = W^-1 theta``, (n_dims, n_dims), near the identity.

    Minimises ``l1 sum |a'| + sum |theta'|^2 / 2`` with corners of the absolute value rounded, so that it can be
    differentiated; the identity is kept unless the true sum falls. Dimensions without any loading stay as they are.
    """
    whole = np.eye(loadings.shape[1])
    used = np.flatnonzero(loadings.any(axis=0) & abilities.any(axis=0))
    if used.size <= 1:
        return whole
    loadings, abilities, n_dims = loadings[:, used], abilities[:, used], used.size
    moments = abilities.T @ abilities
    # Rounding of the absolute value's corner. From 0.03 to 1e-6 of the size of a typical loading simulated ascents take
    # as many sweeps and end within one unit of log density; with 0.1 some take three times as many.
    corner = 1e-3 * float(np.sqrt(np.mean(loadings**2)))

    def penalty(packed: FloatArray) -> tuple[float, FloatArray]:
        forward = packed.reshape(n_dims, n_dims)
        back = np.linalg.inv(forward)
        moved = loadings @ forward
        rounded = np.sqrt(moved**2 + corner**2)
        # With W the matrix: theta' = W^-1 theta, and the gradient of tr(W^-1 M W^-T) / 2 in W is -W^-T W^-1 M W^-T.
        spread = back @ moments @ back.T
        value = l1 * rounded.sum() + 0.5 * np.trace(spread)
        return float(value), (l1 * loadings.T @ (moved / rounded) - back.T @ spread).ravel()

    start = np.eye(n_dims)
    # 20 iterations: items and abilities change with the next sweep, and so do the best axes
    optimum = minimize(penalty, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 20})
    transform: FloatArray = optimum.x.reshape(n_dims, n_dims)
    if _exact_penalty(transform, loadings, abilities, l1) < _exact_penalty(start, loadings, abilities, l1):
        whole[np.ix_(used, used)] = transform
    return whole


def _exact_penalty(transform: FloatArray, loadings: FloatArray, abilities: FloatArray, l1: float) -> float:
    """``l1 sum |a'| + sum |theta'|^2 / 2`` after a transform."""
    moved = abilities @ np.linalg.inv(transform).T
    return l1 * float(np.abs(loadings @ transform).sum()) + 0.5 * float(np.sum(moved**2))


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
