"""Laws that fit a curve to scores: the sigmoid in log FLOP, and the two-step law by way of the loss.

Least squares with bounds for many small curves at once, each from many starts: Levenberg-Marquardt with the step
projected on the box of bounds; Huber's loss by weights. A law of pre-training is fitted for every recipe and scenario
from tens of starts, which one solver call a curve would make slow. The two-step law: loss from compute, then score from
loss (IRSL eq. 1; Bhagia et al. 2024).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.ties import first_smallest
from itembank_scaling.pretraining.law_fitting import (
    CurvePredictions,
    LawData,
    LawFit,
    curve_notes,
    first_sizes,
    fit_curve_law,
)
from itembank_scaling.pretraining.law_specs import SigmoidLaw, TwoStep

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
        # so small a cost counts as zero: curves of four parameters go through three points in many ways
        which = first_smallest(np.maximum(self.cost, 1e-12))
        return self.parameters[np.arange(len(which)), which]


def fit_curves(
    curve: Curve,
    x: FloatArray,  # (n_curves, n_points): NaN where a curve has fewer points
    y: FloatArray,  # (n_curves, n_points)
    starts: FloatArray,  # (n_curves, n_starts, n_parameters)
    *,
    lower: FloatArray,  # (n_parameters,): Bounds; a start outside is moved to the nearest point within
    upper: FloatArray,  # (n_parameters,)
    huber_delta: float = np.inf,
    max_iterations: int = 300,
    # A start has converged when its cost falls by less than this share, or its step is below it
    tolerance: float = 1e-9,
) -> CurveFits:
    """Fit each curve from each start.

    Minimises ``sum_j rho(f(x_j) - y_j)`` with ``rho(r) = r^2 / 2`` for ``|r| <= delta`` and
    ``delta (|r| - delta / 2)`` beyond (Huber 1964).
    """
    n_curves, n_starts, n_parameters = starts.shape
    known = np.repeat(np.isfinite(x) & np.isfinite(y), n_starts, axis=0)
    # a finite x of each curve is put where it has no point
    largest = np.where(np.isfinite(x), x, -np.inf).max(axis=1)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    at = np.where(known, np.repeat(x, n_starts, axis=0), np.repeat(finite, n_starts, axis=0)[:, None])
    wanted = np.where(known, np.repeat(y, n_starts, axis=0), 0.0)
    current = np.clip(starts.reshape(-1, n_parameters), lower, upper)
    cost = np.empty(len(current))
    converged = np.zeros(len(current), dtype=bool)
    # share of the diagonal that is added to it: from 1e-4 to 100 nearly all starts of simulated sigmoids end alike
    damping = np.full(len(current), 1e-2)
    active = np.arange(len(current))
    values, slopes = curve(current, at)
    cost[:] = _loss(np.where(known, values - wanted, 0.0), huber_delta)
    # a step is then 1e-12 of a gradient step: what is better nearby cannot be told from rounding
    largest_damping = 1e12
    smallest_damping = 1e-12  # a Gauss-Newton step to all digits; less would only take longer to raise again
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
        is_done |= damping[active] >= largest_damping
        current[active[is_better]] = tried[is_better]
        cost[active[is_better]] = new_cost[is_better]
        values = np.where(is_better[:, None], new_values, values)
        slopes = np.where(is_better[:, None, None], new_slopes, slopes)
        damping[active] = np.where(
            is_better,
            # a good step moves towards Gauss-Newton, a bad one towards a short gradient step
            np.maximum(damping[active] / 5.0, smallest_damping),
            np.minimum(damping[active] * 4.0, largest_damping),
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
    return lower + fractions * (upper - lower)


def _loss(residual: FloatArray, delta: float) -> FloatArray:
    """Huber's loss summed over the points, (n,); infinite where a residual is no number."""
    size = np.abs(residual)
    with np.errstate(invalid="ignore", over="ignore"):
        terms = np.where(size <= delta, 0.5 * size**2, 0.0 if np.isinf(delta) else delta * (size - 0.5 * delta))
    return np.where(np.isfinite(size).all(axis=1), terms.sum(axis=1), np.inf)


def _finite(values: FloatArray) -> FloatArray:
    """Values with numbers in the place of NaN and infinity."""
    return values if np.isfinite(values).all() else np.nan_to_num(values)


def _step(
    residual: FloatArray, slopes: FloatArray, damping: FloatArray, at_bounds: tuple[BoolArray, BoolArray], delta: float
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
    return -np.linalg.solve(normal, (gradient * free)[..., None])[..., 0]


def fit_sigmoid_law(
    log_flops: FloatArray,  # (n_curves, n_points): NaN where a recipe has fewer points
    scores: FloatArray,  # (n_curves, n_points)
    spec: SigmoidLaw,
    rng: np.random.Generator,  # Places the starts
) -> CurvePredictions:
    """Fit the direct law of each recipe to its scores, by least squares.

    Bounds: ``0 <= e <= 1``, ``0 <= a <= 1`` with ``e + a`` free to be anything up to 2 (scores outside what was seen
    are cut when they are reported), ``0 <= k <= 6``, x0 within three spans of the data.
    """
    centre = float(np.nanmean(log_flops))
    x = log_flops - centre
    # at least a factor of e in compute, so that sizes close together do not make the box of starts as narrow
    span = max(float(np.nanmax(x) - np.nanmin(x)), 1.0)
    lower = np.array([0.0, float(np.nanmin(x)) - 3.0 * span, 0.0, 0.0])
    # slope of the logit in a natural logarithm of FLOP; a benchmark rises over a decade or more, never within a tenth
    steepest = 6.0
    upper = np.array([steepest, float(np.nanmax(x)) + 3.0 * span, 1.0, 1.0])
    # starts lie in a smaller box than the bounds: curves that rise within the data or one span above it
    box_low = np.array([0.3 / span, float(np.nanmin(x)), 0.1, 0.0])
    box_high = np.array([min(8.0 / span, steepest), float(np.nanmax(x)) + span, 1.0, 0.5])
    starts = spread_points(box_low, box_high, spec.n_starts, rng)
    every = np.broadcast_to(starts, (len(x), *starts.shape))
    # (k, x0, a, e), x in log FLOP less the centre
    fits = fit_curves(sigmoid_curve, x, scores, every, lower=lower, upper=upper)

    def predict(log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        at = log_flops - centre
        return sigmoid_values(fits.best, at), sigmoid_values(fits.parameters, at)

    return predict


def sigmoid_values(parameters: FloatArray, x: FloatArray) -> FloatArray:
    """``e + a sigmoid(k (x - x0))`` for parameters (..., 4) = (k, x0, a, e) at x (..., n_points)."""
    k, x0, a, e = (parameters[..., i, None] for i in range(4))
    result: FloatArray = e + a * expit(k * (x - x0))
    return result


def sigmoid_curve(parameters: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and derivatives of `sigmoid_values`, for `fit_curves`."""
    k, x0, a, e = (parameters[..., i, None] for i in range(4))
    rise = expit(k * (x - x0))
    # with s = sigmoid(k (x - x0)): d/dk = a s (1 - s) (x - x0), d/dx0 = -a s (1 - s) k, d/da = s, d/de = 1
    slope = a * rise * (1.0 - rise)
    derivatives = np.stack([slope * (x - x0), -slope * k, rise, np.ones_like(rise)], axis=-1)
    return e + a * rise, derivatives


def fit_two_step(
    # (log FLOP, loss) of final checkpoints, each (n_curves, n_finals): Losses are positive; NaN where a recipe has
    # fewer points
    final: tuple[FloatArray, FloatArray],
    every: tuple[FloatArray, FloatArray],  # (loss, score) of all checkpoints, each (n_curves, n_points)
    spec: TwoStep,
    rng: np.random.Generator,  # Places the starts
) -> CurvePredictions:
    """Fit both steps for each recipe; the s-th of all starts goes through the s-th start of both steps.

    Step 1 minimises Huber's loss of log loss over final checkpoints, with ``0 <= b <= 1`` and ``E >= 0``; step 2 the
    squares of the scores over all checkpoints, with ``-1 <= a <= 0 <= e <= 1`` and ``0 <= k``.
    """
    log_flops, losses = final
    centre = float(np.nanmean(log_flops))
    x = log_flops - centre
    points = spread_points(np.array([0.02, 0.0]), np.array([0.6, 0.95]), spec.n_starts, rng)
    has_losses = np.isfinite(losses).any(axis=1)  # without losses there is no curve
    smallest, middle = np.full((2, len(losses), 1), np.nan)
    smallest[has_losses, 0] = np.nanmin(losses[has_losses], axis=1)
    middle[has_losses, 0] = np.nanmedian(losses[has_losses], axis=1)
    floor = points[:, 1] * smallest
    exponent = np.broadcast_to(points[:, 0], floor.shape)
    # A such that the curve goes through the median loss at the mean compute; the floor lies below every loss
    starts = np.stack([np.log(np.maximum(middle - floor, 1e-6)), exponent, floor], axis=-1)
    # a fence against overflow: exp(A) is about the loss at the mean compute, some bits
    largest_log_coefficient = 50.0
    first = fit_curves(
        log_loss_curve,
        x,
        np.log(losses),
        starts,
        lower=np.array([-largest_log_coefficient, 0.0, 0.0]),
        # losses may be known of no small size, of which earlier forecasts are made
        upper=np.array([largest_log_coefficient, 1.0, float(np.nanmax(losses, initial=0.0))]),
        huber_delta=spec.huber_delta,
    )
    all_losses, scores = every
    low, high = float(np.nanmin(all_losses)), float(np.nanmax(all_losses))
    span = max(high - low, 1e-3)  # losses nearer to each other count as one
    box_low = np.array([1.0 / span, low - 0.5 * span, -1.0, 0.3])
    # slope of the logit in the loss (bits per byte): a score that falls by nine tenths of its range within 0.1 bits
    steepest_in_loss = 60.0
    box_high = np.minimum([15.0 / span, high, -0.1, 1.0], [steepest_in_loss, np.inf, np.inf, np.inf])
    starts = spread_points(box_low, box_high, spec.n_starts, rng)
    second = fit_curves(
        sigmoid_curve,
        all_losses,
        scores,
        np.broadcast_to(starts, (len(scores), *starts.shape)),
        lower=np.array([0.0, low - 3.0 * span, -1.0, 0.0]),
        upper=np.array([steepest_in_loss, high + 3.0 * span, 0.0, 1.0]),
    )

    def predict(log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        at = log_flops - centre
        best = sigmoid_values(second.best, loss_of_compute(first.best, at))
        return best, sigmoid_values(second.parameters, loss_of_compute(first.parameters, at))

    return predict


def loss_of_compute(parameters: FloatArray, x: FloatArray) -> FloatArray:
    """``exp(A - b x) + E`` for parameters (..., 3) = (A, b, E) at x (..., n_points)."""
    log_scale, exponent, floor = (parameters[..., i, None] for i in range(3))
    return np.exp(log_scale - exponent * x) + floor


def log_loss_curve(parameters: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of `loss_of_compute` with its derivatives, for `fit_curves`."""
    log_scale, exponent, floor = (parameters[:, i, None] for i in range(3))
    # with f = exp(A - b x) / L, the derivatives of log L are d/dA = f, d/db = -x f and d/dE = 1 / L; 300 keeps exp from
    # overflow
    power = np.exp(np.minimum(log_scale - exponent * x, 300.0))
    total = power + floor
    fraction = power / total
    return np.log(total), np.stack([fraction, -x * fraction, 1.0 / total], axis=-1)


def fit_sigmoid(data: LawData, spec: SigmoidLaw) -> LawFit:
    """Fit the direct sigmoid of every recipe to its finished models' scores (n_models,)."""
    scores, runs = data.scores, data.runs
    x, y = (runs.of_finals(values)[runs.is_enough] for values in (runs.log_flops, scores))
    law = fit_curve_law(
        lambda n_sizes: fit_sigmoid_law(x, first_sizes(y, n_sizes), spec, np.random.default_rng(data.seed)), x, y, runs
    )
    return law, curve_notes(law, scores, runs)


def fit_two_step_law(data: LawData, spec: TwoStep) -> LawFit | None:
    """Fit the two-step law of every recipe to scores and losses (n_models,); None where no loss is known."""
    if data.losses is None:
        return None
    scores, losses, runs = data.scores, data.losses, data.runs
    x, y, final_losses = (runs.of_finals(values)[runs.is_enough] for values in (runs.log_flops, scores, losses))
    every_x, every_losses, every_scores = (
        runs.of_every(values)[runs.is_enough] for values in (runs.log_flops, losses, scores)
    )
    if np.isnan(every_losses).all():
        return None

    def fit(n_sizes: int | None) -> CurvePredictions:
        fitted_x = np.where(np.isfinite(first_sizes(x, n_sizes)), x, -np.inf)
        second = np.where(every_x <= fitted_x.max(axis=1, keepdims=True), every_scores, np.nan)
        first = (x, first_sizes(final_losses, n_sizes))
        return fit_two_step(first, (every_losses, second), spec, np.random.default_rng(data.seed))

    law = fit_curve_law(fit, x, y, runs)
    return law, curve_notes(law, scores, runs, losses=losses)
