"""The M-step: one damped Newton step for all items at once, given the posteriors of ability."""

from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import ItemPrior
from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml.grid import AbilityGrid
from itembank.calibration.marginal_ml.posterior import AbilityPosterior, item_blocks, right_answers, trials
from itembank.calibration.marginal_ml.prior import AnyItemPrior, prior_terms
from itembank.irt.logistic import asymptotes_of, curvature_terms, information_weights, score_terms
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_terms
from itembank.numerics.symmetric import packed_products, unpack

LARGEST_SLOPE = 12.0
LARGEST_INTERCEPT = 40.0
"""Where parameters of items whose likelihood has no maximum are stopped (and said to be so). At a slope of 12 the curve
rises from 5 to 95 % within half a standard deviation of ability: responses can hardly tell it from a steeper one."""
LIMITS = np.array([LARGEST_SLOPE, LARGEST_INTERCEPT])

LARGEST_STEP = 2.0
"""Largest change of a logit at ability -2 or 2 in one step: Newton's quadratic is local. A quarter of it takes up
to twice as many steps in simulations; more gains nothing."""


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
    for block in item_blocks(len(items), len(design)):
        x = items[block] @ design.T  # (n_items, n_curve_nodes)
        counts = everyone
        if data.weights is not None:
            counts = trials(data, block).T @ posterior.curve_weights
        right_of_models = right_answers(data, block).T.astype(np.float64)
        if has_guessing:
            right = right_of_models @ posterior.curve_weights
            slope, curvature = _guessing_terms(x, right, counts, data.lower_asymptote[block], observed=observed)
            gradient[block] = slope @ design
        else:
            _, sigmoid, curvature = sigmoid_terms(x)
            # Without guessing the score is (right - n P) times (theta, 1), so that its first part needs posterior
            # means only.
            gradient[block] = right_of_models @ moments - (sigmoid * counts) @ design
            curvature *= counts
        packed[block] = curvature @ squares
    return ItemDerivatives(gradient, unpack(packed, design.shape[1]))


def _guessing_terms(
    x: FloatArray, right: FloatArray, counts: FloatArray, lower: FloatArray, *, observed: bool
) -> tuple[FloatArray, FloatArray]:
    """First and minus second derivatives in the logit, at each node, with lower asymptotes."""
    asymptotes = asymptotes_of(lower[:, None], np.ones((len(lower), 1)))
    one, zero = np.ones(()), np.zeros(())
    slope = right * score_terms(x, one, asymptotes) + (counts - right) * score_terms(x, zero, asymptotes)
    if not observed:
        return slope, counts * information_weights(x, asymptotes)
    from_right = right * curvature_terms(x, one, asymptotes)
    return slope, from_right + (counts - right) * curvature_terms(x, zero, asymptotes)


def improve_items(
    items: FloatArray,
    derivatives: ItemDerivatives,
    prior: AnyItemPrior | None,
    *,
    has_common_slope: bool = False,
) -> FloatArray:
    """One damped Newton step of every item towards the maximum of expected log-likelihood plus log prior.

    Parameters
    ----------
    items : (n_items, 2)
    derivatives : ItemDerivatives
    prior : ItemPrior, LinePrior or None
    has_common_slope : bool
        All items share one slope (1PL).
    """
    gradient, precision = with_prior(items, derivatives, prior, has_common_slope=has_common_slope)
    if has_common_slope:
        step = _common_slope_step(gradient, precision)
        step *= min(1.0, LARGEST_STEP / float(_reach(step).max()))
    else:
        step = _separate_steps(items, gradient, precision)
        step *= np.minimum(1.0, LARGEST_STEP / _reach(step))[:, None]
    moved = items + _fraction_within_bounds(items, step)[:, None] * step
    if isinstance(prior, ItemPrior):
        moved[:, 0] = np.maximum(moved[:, 0], 0.3 * items[:, 0])  # a lognormal slope stays positive
    return within_bounds(moved)


def _fraction_within_bounds(items: FloatArray, step: FloatArray) -> FloatArray:
    """Fraction of each item's step up to its first bound: cutting one parameter alone could lower the objective."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step != 0.0, (np.sign(step) * LIMITS - items) / step, np.inf)
    result: FloatArray = np.clip(room.min(axis=1), 0.0, 1.0)
    return result


def with_prior(
    items: FloatArray, derivatives: ItemDerivatives, prior: AnyItemPrior | None, *, has_common_slope: bool
) -> ItemDerivatives:
    """Add the prior's derivatives, for a Newton step."""
    if prior is None:
        return derivatives
    terms = prior_terms(items, prior, has_common_slope=has_common_slope)
    # A lognormal prior curves upwards far out; only its downward curvature may shorten the step.
    precision = derivatives.precision + _never_negative(terms.precision)
    return ItemDerivatives(derivatives.gradient + terms.gradient, precision)


def _never_negative(precision: FloatArray) -> FloatArray:
    """Raise negative diagonals to zero."""
    raised = precision.copy()
    diagonal = np.einsum("ijj->ij", raised)
    diagonal[:] = np.maximum(diagonal, 0.0)
    return raised


def _separate_steps(items: FloatArray, gradient: FloatArray, precision: FloatArray) -> FloatArray:
    """Newton step of every item by itself, with parameters that push against their bound held."""
    free = (np.abs(items) < LIMITS) | (np.sign(gradient) != np.sign(items))
    both = free[:, :, None] & free[:, None, :]
    size = items.shape[1]
    # An item without information left (at its bound, or all but perfectly predicted) must still be solvable.
    ridge = 1e-10 + 1e-10 * np.einsum("ijj->i", precision)
    solvable = np.where(both, precision, np.eye(size)) + ridge[:, None, None] * np.eye(size)
    result: FloatArray = np.linalg.solve(solvable, np.where(free, gradient, 0.0)[..., None])[..., 0]
    return result


def within_bounds(items: FloatArray) -> FloatArray:
    """Stop slopes and intercepts at their largest values."""
    return np.clip(items, -LIMITS, LIMITS)


def _reach(step: FloatArray) -> FloatArray:
    """Largest change of each item's logit at abilities of length 2, never zero, (n_items,)."""
    result: FloatArray = 2.0 * np.linalg.norm(step[:, :-1], axis=1) + np.abs(step[:, -1]) + 1e-300
    return result


def _common_slope_step(gradient: FloatArray, precision: FloatArray) -> FloatArray:
    """Newton step of one slope and all intercepts: an arrow matrix, solved by its Schur complement."""
    intercept_precision, cross = precision[:, 1, 1], precision[:, 0, 1]
    schur = np.sum(precision[:, 0, 0]) - np.sum(cross**2 / intercept_precision)
    slope = (np.sum(gradient[:, 0]) - np.sum(cross * gradient[:, 1] / intercept_precision)) / schur
    return np.column_stack(
        [np.full(len(intercept_precision), slope), (gradient[:, 1] - cross * slope) / intercept_precision]
    )
