"""Moments of weighted sums of responses under the item model, scenario by scenario."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from itembank.estimation.scenario_sums import scenario_items
from itembank.irt import graded
from itembank.irt.parameters import ItemParameters, Steps
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class PredictedSums:
    """Moments of ``sum_i omega_i Y_i`` over some items of each scenario, given ability."""

    mean: FloatArray  # (n_models, n_scenarios): ``sum_i omega_i p_i``
    # (n_models, n_scenarios): Variance given ability, ``sum_i omega_i^2 p_i (1 - p_i)``, of levels with their own
    # variance: responses are independent given ability.
    noise: FloatArray
    gradient: FloatArray  # (n_models, n_scenarios, n_dims): ``sum_i omega_i dp_i / dtheta``

    def __sub__(self, other: "PredictedSums") -> "PredictedSums":
        """Moments of the sum over the items that are in this one and not in the other."""
        return PredictedSums(
            self.mean - other.mean,
            np.maximum(self.noise - other.noise, 0.0),  # rounding must not make a variance negative
            self.gradient - other.gradient,
        )


@dataclass(frozen=True, slots=True)
class WeightedItems:
    """Items with their weights, those of a scenario side by side, for sums that are taken again and again."""

    order: IntArray  # (n_items,): Which item stands where
    begins: tuple[int, ...]  # Where the items of each scenario begin, and the end of the last
    loadings: FloatArray  # (n_items, n_dims)
    intercept: FloatArray  # (n_items,)
    # (lower, rise), each (n_items,),: Lower asymptote and its distance to the upper one; None where every curve rises
    # from 0 to 1.
    asymptotes: tuple[FloatArray, FloatArray] | None
    weights: FloatArray  # (n_items,): omega and its square
    squares: FloatArray  # (n_items,)
    weighted: FloatArray  # (n_items, n_dims): ``omega_i a_i``
    steps: Steps | None = None  # Of family 'graded'

    @classmethod
    def create(
        cls, parameters: ItemParameters, weights: FloatArray, scenario_index: IntArray, n_scenarios: int
    ) -> Self:
        """Sort items by scenario; `weights` are omega, (n_items,)."""
        groups = scenario_items(scenario_index, n_scenarios)
        order = np.concatenate(groups)
        sizes = [len(group) for group in groups]
        of, omega = parameters.take(order), weights[order]
        is_plain = not np.any(of.lower_asymptote) and bool(np.all(of.upper_asymptote == 1.0))
        return cls(
            order,
            (0, *np.cumsum(sizes).tolist()),
            of.loadings,
            of.intercept,
            None if is_plain else (of.lower_asymptote, of.upper_asymptote - of.lower_asymptote),
            omega,
            omega**2,
            omega[:, None] * of.loadings,
            of.steps,
        )


def predicted_sums(
    parameters: ItemParameters,
    weights: FloatArray,
    scenario_index: IntArray,
    n_scenarios: int,
    theta: FloatArray,
    *,
    mask: BoolArray | None = None,
) -> PredictedSums:
    """Moments of the weighted sums of responses over each scenario.

    With ``s = sigmoid(a . theta + c)``: ``p = g + (u - g) s`` and ``dp/dtheta = (u - g) s (1 - s) a``.

    Parameters
    ----------
    parameters : ItemParameters
        Of n_items items.
    weights : (n_items,)
        omega.
    scenario_index : (n_items,)
    n_scenarios : int
    theta : (n_models, n_dims)
    mask : (n_models, n_items), optional
        Which items to sum over; all by default.
    """
    return sums_at(WeightedItems.create(parameters, weights, scenario_index, n_scenarios), theta, mask=mask)


def sums_at(items: WeightedItems, theta: FloatArray, *, mask: BoolArray | None = None) -> PredictedSums:
    """Return the same moments for items sorted before; `mask` (n_models, n_items) is in the order before sorting."""
    n_models, n_dims = theta.shape
    n_scenarios = len(items.begins) - 1
    mean = np.zeros((n_models, n_scenarios))
    noise = np.zeros((n_models, n_scenarios))
    gradient = np.zeros((n_models, n_scenarios, n_dims))
    for scenario, (begin, end) in enumerate(zip(items.begins[:-1], items.begins[1:], strict=True)):
        block = slice(begin, end)
        p, slope, spread = _moments(items, block, theta)
        if mask is not None:
            seen = mask[:, items.order[block]]
            p, slope, spread = p * seen, slope * seen, spread * seen
        mean[:, scenario] = p @ items.weights[block]
        noise[:, scenario] = spread @ items.squares[block]
        gradient[:, scenario] = slope @ items.weighted[block]
    return PredictedSums(mean, noise, gradient)


def _moments(items: WeightedItems, block: slice, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, slope in the logit and variance of the responses to a block of items, each (n_models, n_block)."""
    x = theta @ items.loadings[block].T + items.intercept[block]
    if items.steps is not None:
        return graded.mean_terms(x, items.steps.take(block))
    p = expit(x)
    slope = p * (1.0 - p)
    if items.asymptotes is None:
        return p, slope, slope  # dp/d eta = s (1 - s) is the variance p (1 - p) as well
    lower, rise = items.asymptotes[0][block], items.asymptotes[1][block]
    p = lower + rise * p
    return p, rise * slope, p * (1.0 - p)
