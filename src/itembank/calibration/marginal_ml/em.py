"""The EM map of marginal ML, and its acceleration; the M-step is one damped Newton step for all items at once."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize

from itembank.calibration.calibration_specs import ItemPrior, RelativeItemPrior
from itembank.calibration.fits import Ascent, Derivatives, FitData
from itembank.calibration.marginal_ml.posterior import (
    AbilityGrid,
    AbilityPosterior,
    ability_posterior,
    item_blocks,
    right_answers,
    trials,
)
from itembank.calibration.start import start_abilities
from itembank.irt.logistic import asymptotes_of, curvature_terms, information_weights, score_terms
from itembank.numerics.arrays import FloatArray
from itembank.numerics.quadrature import log_sum_exp
from itembank.numerics.stable import sigmoid_terms
from itembank.numerics.symmetric import packed_products, unpack
from itembank.progress import ProgressCallback


class LinePrior(NamedTuple):
    """A `RelativeItemPrior` with the slope of its line for the intercepts; the line's height follows the items."""

    slope_sd: float
    intercept_sd: float
    line_slope: float


AnyItemPrior: TypeAlias = ItemPrior | LinePrior


def with_line(prior: RelativeItemPrior, items: FloatArray, *, has_common_slope: bool = False) -> LinePrior:
    """Fit the line of the intercepts (in the loading) to these items by least squares, (n_items, 2).

    Items of one slope have no line: what rounding leaves of their differences would be any.
    """
    centred = items - items.mean(axis=0)
    size = 0.0 if has_common_slope else float(centred[:, 0] @ centred[:, 0])
    line_slope = float(centred[:, 0] @ centred[:, 1]) / size if size > 0.0 else 0.0
    return LinePrior(prior.slope_sd, prior.intercept_sd, line_slope)


def prior_terms(items: FloatArray, prior: AnyItemPrior, *, has_common_slope: bool = False) -> Derivatives:
    """Log-density of all item parameters (loading, intercept).

    A common slope counts once; its terms are with the first item, since only sums over items are used.
    """
    value, gradient, precision = 0.0, np.zeros_like(items), np.zeros((*items.shape, items.shape[1]))
    if isinstance(prior, ItemPrior):
        counted = slice(0, 1 if has_common_slope else len(items))
        slopes, sd = items[counted, 0], prior.log_discrimination_sd
        away = np.log(slopes) - prior.log_discrimination_mean
        # Of log density -(log a - mu)^2 / (2 s^2) - log a: the chain rule in log a.
        value = _normal_log_density(away, sd) - float(np.log(slopes).sum())
        gradient[counted, 0] = -(1.0 + away / sd**2) / slopes
        precision[counted, 0, 0] = (1.0 / sd**2 - 1.0 - away / sd**2) / slopes**2
    elif not has_common_slope:
        # sum_i -(a_i / m - 1)^2 / (2 s^2) at its best centre m = sum a^2 / sum a, held fixed: as it maximises the sum,
        # the gradient in the slopes needs no derivative of it.
        slopes = items[:, 0]
        weight, centre = 1.0 / prior.slope_sd**2, float(slopes @ slopes / slopes.sum())
        value = _normal_log_density(slopes / centre - 1.0, prior.slope_sd)
        gradient[:, 0], precision[:, 0, 0] = -weight / centre * (slopes / centre - 1.0), weight / centre**2
    residual, line_slope = items[:, -1], 0.0
    if isinstance(prior, LinePrior):
        # The best height for these items: the gradient needs no derivative of it (envelope theorem).
        line_slope = prior.line_slope
        residual = residual - line_slope * items[:, 0]
        residual = residual - residual.mean()
    contrast = np.zeros(items.shape[1])
    contrast[0], contrast[-1] = -line_slope, 1.0
    weight = 1.0 / prior.intercept_sd**2
    value += _normal_log_density(residual, prior.intercept_sd)
    gradient -= weight * residual[:, None] * contrast
    return Derivatives(value, gradient, precision + weight * np.outer(contrast, contrast))


def log_prior(items: FloatArray, prior: AnyItemPrior | None, *, has_common_slope: bool = False) -> float:
    """Log-density of all item parameters; zero without a prior."""
    return 0.0 if prior is None else prior_terms(items, prior, has_common_slope=has_common_slope).value


def _normal_log_density(values: FloatArray, sd: float) -> float:
    constant = values.size * (np.log(sd) + 0.5 * np.log(2.0 * np.pi))
    return float(-0.5 * np.sum(values**2) / sd**2 - constant)


def best_scale(
    mean: FloatArray,  # (n_models, 1): Posterior means of ability
    covariance: FloatArray,  # (n_models, 1, 1)
    items: FloatArray,  # (n_items, 2)
    prior: AnyItemPrior | None,
    *,
    has_common_slope: bool = False,
) -> tuple[float, float]:
    """Find the population of ability that suits the posteriors, and the item priors on its scale, best.

    The parameter expansion of EM (Liu, Rubin and Wu 1998, PX-EM): the population's mean m and
    standard deviation s are fitted as well, then reduced to N(0, 1) by `rescale`. Plain EM all but
    does not move along these directions when abilities are known sharply, as its step is the fraction
    that the prior weighs in each posterior. With item priors this maximises
    ``-M (log s + T(m) / (2 s^2)) + log prior(s a, c + m a)`` over m and s, with T(m) the mean square around m.

    Returns m and s.
    """
    centre = float(mean.mean())
    spread = float(np.mean((mean - centre) ** 2) + covariance.mean())
    if prior is None:
        return centre, float(np.sqrt(spread))

    def negative(packed: FloatArray) -> tuple[float, FloatArray]:
        """Minus the objective in (m, log s), and its gradient: the logarithm keeps s positive."""
        shift, size = float(packed[0]), float(np.exp(packed[1]))
        total = (spread + (centre - shift) ** 2) / size**2
        terms = prior_terms(rescale(items, shift, size), prior, has_common_slope=has_common_slope)
        value = terms.value - len(mean) * (packed[1] + 0.5 * total)
        # Derivatives of the population part, and those of the log prior by a' = s a and c' = c + m a.
        shift_slope = len(mean) * (centre - shift) / size**2 + items[:, 0] @ terms.gradient[:, 1]
        size_slope = len(mean) * (total - 1.0) + size * (items[:, 0] @ terms.gradient[:, 0])
        return -value, np.array([-shift_slope, -size_slope])

    found = minimize(
        negative,
        np.array([centre, np.log(np.sqrt(spread))]),
        jac=True,
        method="BFGS",
        # the gradient is a sum over models, so its tolerance is one for each; the next EM step goes on from here
        options={"maxiter": 30, "gtol": 1e-6 * len(mean)},
    ).x
    return float(found[0]), float(np.exp(found[1]))


def rescale(items: FloatArray, shift: float, size: float) -> FloatArray:
    """Item parameters after the population is moved to N(0, 1): ``a' = s a``, ``c' = c + m a``."""
    return np.column_stack([size * items[:, 0], items[:, 1] + shift * items[:, 0]])


LIMITS = np.array([12.0, 40.0])
"""Where slope and intercept of items whose likelihood has no maximum are stopped (and said to be so). At a slope of 12
the curve rises from 5 to 95 % within half a standard deviation of ability: responses can hardly tell it from a steeper
one."""


class ItemDerivatives(NamedTuple):
    """Derivatives of the expected complete-data log-likelihood in (loading, intercept) of each item."""

    gradient: FloatArray  # (n_items, 2)
    precision: FloatArray  # (n_items, 2, 2): Minus the second derivatives, expected (always positive) or observed


def item_derivatives(
    data: FitData, items: FloatArray, posterior: AbilityPosterior, grid: AbilityGrid, *, observed: bool = False
) -> ItemDerivatives:
    """Compute the derivatives of all items, block by block.

    With r and n the expected numbers of right answers and of answers at each node,
    ``gradient = sum_k (r - n P) dlogP/dx (theta_k, 1)``; `observed` asks for the observed instead of
    the expected curvature, which differ with guessing only.
    """
    design = np.column_stack([grid.curve_nodes, np.ones(len(grid.curve_nodes))])
    squares = packed_products(design)
    gradient, packed = np.empty_like(items), np.empty((len(items), squares.shape[1]))
    has_guessing = bool(np.any(data.lower_asymptote))
    everyone = posterior.curve_weights.sum(axis=0)  # (n_curve_nodes,)
    moments = np.column_stack([posterior.mean, np.ones(len(posterior.mean))])
    one, zero = np.ones(()), np.zeros(())
    for block in item_blocks(len(items), len(design)):
        x = items[block] @ design.T  # (n_items, n_curve_nodes)
        counts = everyone
        if data.weights is not None:
            counts = trials(data, block).T @ posterior.curve_weights
        right_of_models = right_answers(data, block).T.astype(np.float64)
        if has_guessing:
            right = right_of_models @ posterior.curve_weights
            lower = data.lower_asymptote[block, None]
            asymptotes, wrong = asymptotes_of(lower, np.ones_like(lower)), counts - right
            slope = right * score_terms(x, one, asymptotes) + wrong * score_terms(x, zero, asymptotes)
            gradient[block] = slope @ design
            curvature = counts * information_weights(x, asymptotes)
            if observed:
                from_right = right * curvature_terms(x, one, asymptotes)
                curvature = from_right + wrong * curvature_terms(x, zero, asymptotes)
        else:
            _, sigmoid, curvature = sigmoid_terms(x)
            # Without guessing the score is (right - n P) times (theta, 1), so that its first part needs posterior
            # means only.
            gradient[block] = right_of_models @ moments - (sigmoid * counts) @ design
            curvature *= counts
        packed[block] = curvature @ squares
    return ItemDerivatives(gradient, unpack(packed, design.shape[1]))


def improve_items(
    items: FloatArray,  # (n_items, 2)
    derivatives: ItemDerivatives,
    prior: AnyItemPrior | None,
    *,
    has_common_slope: bool = False,  # All items share one slope (1PL)
) -> FloatArray:
    """One damped Newton step of every item towards the maximum of expected log-likelihood plus log prior."""
    gradient, precision = derivatives
    if prior is not None:
        terms = prior_terms(items, prior, has_common_slope=has_common_slope)
        # A lognormal prior curves upwards far out; only its downward curvature may shorten the step.
        raised = terms.precision.copy()
        diagonal = np.einsum("ijj->ij", raised)
        diagonal[:] = np.maximum(diagonal, 0.0)
        gradient, precision = gradient + terms.gradient, precision + raised
    step = _common_slope_step(gradient, precision) if has_common_slope else _separate_steps(items, gradient, precision)
    # Largest change of each item's logit at abilities of length 2: by 2 at most in one step, as Newton's quadratic is
    # local. A quarter of it takes up to twice as many steps in simulations; more gains nothing.
    reach = 2.0 * np.linalg.norm(step[:, :-1], axis=1) + np.abs(step[:, -1]) + 1e-300
    shorter = np.minimum(1.0, 2.0 / reach)
    step *= shorter.min() if has_common_slope else shorter[:, None]
    # Up to each item's first bound and no further: cutting one parameter alone could lower the objective.
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step != 0.0, (np.sign(step) * LIMITS - items) / step, np.inf)
    moved = items + np.clip(room.min(axis=1), 0.0, 1.0)[:, None] * step
    if isinstance(prior, ItemPrior):
        moved[:, 0] = np.maximum(moved[:, 0], 0.3 * items[:, 0])  # a lognormal slope stays positive
    return within_bounds(moved)


def _separate_steps(items: FloatArray, gradient: FloatArray, precision: FloatArray) -> FloatArray:
    """Newton step of every item by itself, with parameters that push against their bound held."""
    free = (np.abs(items) < LIMITS) | (np.sign(gradient) != np.sign(items))
    both = free[:, :, None] & free[:, None, :]
    size = items.shape[1]
    # An item without information left (at its bound, or all but perfectly predicted) must still be solvable.
    ridge = 1e-10 + 1e-10 * np.einsum("ijj->i", precision)
    solvable = np.where(both, precision, np.eye(size)) + ridge[:, None, None] * np.eye(size)
    return np.linalg.solve(solvable, np.where(free, gradient, 0.0)[..., None])[..., 0]


def within_bounds(items: FloatArray) -> FloatArray:
    """Stop slopes and intercepts at their largest values."""
    return np.clip(items, -LIMITS, LIMITS)


def _common_slope_step(gradient: FloatArray, precision: FloatArray) -> FloatArray:
    """Newton step of one slope and all intercepts: an arrow matrix, solved by its Schur complement."""
    intercept_precision, cross = precision[:, 1, 1], precision[:, 0, 1]
    schur = np.sum(precision[:, 0, 0]) - np.sum(cross**2 / intercept_precision)
    slope = (np.sum(gradient[:, 0]) - np.sum(cross * gradient[:, 1] / intercept_precision)) / schur
    return np.column_stack(
        [np.full(len(intercept_precision), slope), (gradient[:, 1] - cross * slope) / intercept_precision]
    )


def start_items(data: FitData, grid: AbilityGrid, *, has_common_slope: bool) -> FloatArray:
    """Item parameters (n_items, 2) given roughly known abilities, under the default prior."""
    counts = data.responses.shape[0] if data.weights is None else data.weights.sum(axis=0)
    fraction = (right_answers(data, slice(None)).sum(axis=0) + 0.5) / (counts + 1.0)
    # Kept off 0 and 1, where the logit is infinite.
    above = np.clip((fraction - data.lower_asymptote) / (1.0 - data.lower_asymptote), 0.02, 0.98)
    result: FloatArray = np.log(above / (1.0 - above))
    items = np.column_stack([np.ones(data.responses.shape[1]), result])
    posterior = _provisional(start_abilities(data.responses, data.observed, n_dims=1), grid)
    for _ in range(5):  # one to ten lead to the same end
        derivatives = item_derivatives(data, items, posterior, grid)
        items = improve_items(items, derivatives, ItemPrior(), has_common_slope=has_common_slope)
    return items


def _provisional(abilities: FloatArray, grid: AbilityGrid, *, sd: float = 0.4) -> AbilityPosterior:
    """Make normal posteriors around given abilities, on the curve nodes. From an sd of 0.1 to 0.8 the ends agree."""
    distance = abilities[:, None, :] - grid.curve_nodes[None, :, :]  # (n_models, n_curve_nodes, 1)
    log_density = -0.5 * np.sum(distance**2, axis=2) / sd**2
    log_total = log_sum_exp(log_density)
    return AbilityPosterior(
        log_total, np.exp(log_density - log_total[:, None]), abilities, np.broadcast_to(sd**2, (len(abilities), 1, 1))
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """What is fitted."""

    data: FitData
    grid: AbilityGrid
    prior: AnyItemPrior | None  # ItemPrior, LinePrior
    has_common_slope: bool = False  # 1PL


class Step(NamedTuple):
    """One EM step."""

    items: FloatArray  # (n_items, 2): (Loading, intercept) where it began, and where `objective` and `posterior` belong
    objective: float  # Log marginal likelihood plus log prior of the items
    posterior: AbilityPosterior
    following: FloatArray  # (n_items, 2): After the Newton step of the items and the rescaling of the population
    unscaled: FloatArray  # (n_items, 2): After the Newton step alone
    precision: FloatArray  # (n_items, 2, 2): Of each item, given the posteriors of ability
    # Largest length of an item's step in this precision, so in standard errors. (An item whose likelihood has no
    # maximum, such as one that only the best models solve, takes steps of one for ever, in ever larger standard
    # errors.)
    change: float


def em_step(problem: Problem, items: FloatArray) -> Step:
    """E-step, one Newton step of the items, then the scale of the population (PX-EM)."""
    posterior = ability_posterior(problem.data, items, problem.grid)
    common = problem.has_common_slope
    objective = float(posterior.log_likelihood.sum()) + log_prior(items, problem.prior, has_common_slope=common)
    derivatives = item_derivatives(problem.data, items, posterior, problem.grid)
    unscaled = improve_items(items, derivatives, problem.prior, has_common_slope=common)
    scale = best_scale(posterior.mean, posterior.covariance, unscaled, problem.prior, has_common_slope=common)
    following = within_bounds(rescale(unscaled, *scale))
    change = float(np.sqrt(_squared_lengths(following - items, derivatives.precision).max()))
    return Step(items, objective, posterior, following, unscaled, derivatives.precision, change)


def run_em(
    problem: Problem, start: FloatArray, *, max_steps: int, tolerance: float, progress: ProgressCallback
) -> Ascent[Step]:
    """Repeat EM steps, with SQUAREM jumps that are kept only when the objective does not fall.

    SQUAREM (Varadhan and Roland 2008, scheme S3): after two steps x0, x1, x2 with r = x1 - x0 and
    v = (x2 - x1) - r, jump to ``x0 + 2 s r + s^2 v`` with ``s = |r| / |v|``.
    """
    first = em_step(problem, start)
    history, start_change = [first.objective], first.change
    while first.change > tolerance and len(history) < max_steps:
        done = 0.0
        if first.change < start_change:  # towards the tolerance, on a log scale
            done = float(np.log(start_change / first.change) / np.log(start_change / tolerance))
        progress("marginal ML", min(done, 1.0))
        second = _next_step(problem, first)
        if second is None:
            break
        history.append(second.objective)
        if second.change <= tolerance:
            return Ascent(second, history, converged=True)
        third: Step | None = em_step(problem, _jump(first, second, keeps_positive=isinstance(problem.prior, ItemPrior)))
        if third is None or not third.objective >= second.objective - _slack(second.objective):
            third = _next_step(problem, second)
        if third is None:
            return Ascent(second, history, converged=False)
        history.append(third.objective)
        first = third
    return Ascent(first, history, first.change <= tolerance)


def _next_step(problem: Problem, previous: Step) -> Step | None:
    """Step from where the previous one led, or from less far where that lowers the objective; None at no rise.

    Rescaling may lower it where items are at their bounds, and so may a Newton step that is too long.
    """
    direction = previous.unscaled - previous.items
    # Of a step that lowers the objective; EM ends where even the shortest does.
    most_halvings = 8
    shorter = [previous.items + 0.5**power * direction for power in range(most_halvings)]
    for items in (previous.following, *shorter):
        step = em_step(problem, items)
        if step.objective >= previous.objective - _slack(previous.objective):
            return step
    return None


def _jump(first: Step, second: Step, *, keeps_positive: bool) -> FloatArray:
    """Extrapolate two steps; slopes that must stay positive and would not are taken from the second."""
    start, middle, end = first.items, second.items, second.following
    differences = middle - start
    second_differences = (end - middle) - differences
    second_square = float(_squared_lengths(second_differences, second.precision).sum())
    first_square = float(_squared_lengths(differences, second.precision).sum())
    stretch = max(float(np.sqrt(first_square / second_square)), 1.0) if second_square > 0.0 else 1.0
    items = start + 2.0 * stretch * differences + stretch**2 * second_differences
    # An item that SQUAREM would move further than this beyond its second step is not moved beyond it.
    largest_jump = 1.0
    # Far beyond the second step the extrapolation is no guide, as for items whose likelihood has no maximum.
    is_near = np.abs(items - end).max(axis=1, keepdims=True) < largest_jump
    items = np.where(is_near, items, end)
    if keeps_positive:
        items = np.where(items[:, :1] > 0.0, items, end)
    return within_bounds(items)


def _squared_lengths(steps: FloatArray, precision: FloatArray) -> FloatArray:
    """``s' H s`` of each item, (n_items,)."""
    result: FloatArray = np.einsum("ia,iab,ib->i", steps, precision, steps)
    return np.maximum(result, 0.0)


def _slack(objective: float) -> float:
    """Fall of the objective that rounding alone may cause in a sum over all responses."""
    return 1e-11 * abs(objective)
