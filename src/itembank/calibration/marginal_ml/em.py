"""The EM map of marginal ML, and its acceleration."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import ItemPrior
from itembank.calibration.fits import Ascent, FitData
from itembank.calibration.marginal_ml.items import (
    AnyItemPrior,
    best_scale,
    improve_items,
    item_derivatives,
    log_prior,
    rescale,
    within_bounds,
)
from itembank.calibration.marginal_ml.posterior import AbilityGrid, AbilityPosterior, ability_posterior, right_answers
from itembank.calibration.start import start_abilities
from itembank.numerics.arrays import FloatArray
from itembank.numerics.quadrature import log_sum_exp
from itembank.progress import ProgressCallback


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
