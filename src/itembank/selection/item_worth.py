"""Optimal design: how informative each item of a bank would be about ability, or about a score, as the next item.

Kernels over all items at once. Quadratic forms of all loadings are one product: with ``a a'`` packed in rows,
``a'Sa`` for several symmetric S is ``products @ [pack(S), ...]``.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.bank.costs import CostUnit, expected_cost
from itembank.irt.families import ResponseModel
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.symmetric import packed_products, triangle, unpack
from itembank.selection.criteria import (
    AOptimality,
    Criterion,
    DOptimality,
    DrawnItem,
    Fisher,
    InformationCriterion,
    MinimumCost,
    RandomItem,
    UniformOverScenarios,
    VOptimality,
)


@dataclass(frozen=True, slots=True)
class DesignItems:
    """Arrays of a bank, arranged so that a criterion is computed for all items at once."""

    loadings: FloatArray  # (n_items, n_dims): Kept column after column
    intercept: FloatArray  # (n_items,)
    model: ResponseModel
    # (n_items, n_dims (n_dims + 1) / 2): Packed ``a a'`` of each item's loadings (`packed_products`).
    products: FloatArray
    scenario_index: IntArray  # (n_items,)
    n_scenarios: int
    # (n_items,): Items that may be asked: they count in the score, the past models did not all answer them
    # alike, and they are not excluded.
    is_candidate: BoolArray
    is_degenerate: BoolArray  # (n_items,)
    # (n_items,): Expected cost of each item; NaN where it must not be asked or no criterion asks for it.
    cost: FloatArray
    # (n_items,), (n_scenarios,): Positions from first to last, for what chance or a tie decides
    order: IntArray
    scenario_order: IntArray

    @classmethod
    def of(cls, calibration: Calibration, is_candidate: BoolArray, cost: FloatArray | None = None) -> Self:
        """Take the arrays from a calibration, with all items in one scenario, in their order."""
        parameters = calibration.parameters
        return cls(
            # logits of one model are a matrix times a vector: twice as quick down the columns in five dimensions
            np.asfortranarray(parameters.loadings),
            parameters.intercept,
            ResponseModel.of(parameters),
            packed_products(parameters.loadings),
            np.zeros(parameters.n_items, dtype=np.int64),
            1,
            is_candidate,
            calibration.is_degenerate,
            np.full(parameters.n_items, np.nan) if cost is None else cost,
            np.arange(parameters.n_items),
            np.zeros(1, dtype=np.int64),
        )

    @classmethod
    def of_bank(cls, bank: Bank, is_candidate: BoolArray, *, cost: CostUnit | str | None = None) -> Self:
        """Take the arrays from a bank, once for many choices, with expected costs in a unit where one is given."""
        costs = None
        if cost is not None:
            costs = np.where(is_candidate, expected_cost(bank, cost, needed=is_candidate), np.nan)
        items, targets = cls.of(bank.calibration, is_candidate, costs), bank.targets
        return replace(
            items,
            scenario_index=targets.scenario_index,
            n_scenarios=targets.n_scenarios,
            order=bank.content_order.items,
            scenario_order=targets.by_name,
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.intercept.shape[0])

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.loadings.shape[1])

    def logit(self, theta: FloatArray) -> FloatArray:
        """Logit of every item at abilities theta (..., n_dims), (..., n_items)."""
        return theta @ self.loadings.T + self.intercept

    def weights(self, theta: FloatArray) -> FloatArray:
        """Fisher information w in the logit of every item at theta (..., n_dims), (..., n_items); of one trial."""
        return self.model.information_weights(self.logit(theta))


def goal_matrix(items: DesignItems, weights: FloatArray) -> FloatArray:
    """Matrix ``M = sum_t w_t a_t a_t'`` for which ``tr MC`` is the uncertainty of the target items, (n_dims, n_dims).

    WILD eq. 6, for weights (n_items,) of the items in the target. Items that every past model answered alike
    count for nothing, here as in WILD (A.1), although their curves rise a little with ability: their loadings come from
    other items, and nearly all of any model's answers to them are as before.
    """
    return unpack(np.where(items.is_degenerate, 0.0, weights) @ items.products, items.n_dims)


def criterion_scores(
    items: DesignItems,  # With costs where the criterion uses them (`uses_cost`)
    criterion: Criterion,
    theta: FloatArray,  # (n_dims,): Estimate of ability
    covariance: FloatArray,  # (n_dims, n_dims): Its posterior covariance, C
    *,
    goal: FloatArray | None,  # (n_dims, n_dims): M of 'v-optimal', from `goal_matrix`
    counts: IntArray,  # (n_scenarios,): Items asked from each scenario so far; only 'uniform' uses it
    rng: np.random.Generator,  # Only 'random' and 'uniform' use it
    # (n_items,): Fisher information in the logit of each item at theta, where the caller has it already
    weights: FloatArray | None = None,
) -> FloatArray:
    """Worth of asking each item next, (n_items,); larger is better. Formulas: `itembank.selection.criteria`."""
    match criterion:
        case RandomItem() | DrawnItem():  # sessions draw by themselves
            return _by_chance(items, rng)
        case UniformOverScenarios():
            # distinct whole numbers order the scenarios, chance orders the items of each; n_scenarios times the count
            # outweighs any permutation, so that the scenarios with the fewest items always come first
            order = np.empty(items.n_scenarios, dtype=np.int64)
            order[items.scenario_order] = rng.permutation(items.n_scenarios)
            order -= items.n_scenarios * counts
            return order[items.scenario_index] + _by_chance(items, rng)
        case MinimumCost():
            return -items.cost
    weights = items.weights(theta) if weights is None else weights
    return information_worth(items, criterion, weights, covariance, goal=goal)


def _by_chance(items: DesignItems, rng: np.random.Generator) -> FloatArray:
    """Draw a number for each item in their order, (n_items,)."""
    result = np.empty(items.n_items)
    result[items.order] = rng.random(items.n_items)
    return result


def updated_covariance(covariance: FloatArray, loading: FloatArray, weight: float) -> FloatArray:
    """Posterior covariance after an item with this loading (n_dims,) and information weight (WILD eq. 14, Woodbury).

    ``C - w (Ca)(Ca)' / (1 + w a'Ca)``.
    """
    # rank-one update: O(n_dims^2), where inverting the updated precision matrix would take O(n_dims^3) at each step
    direction = covariance @ loading
    shrink = weight / (1.0 + weight * float(loading @ direction))
    return covariance - shrink * np.outer(direction, direction)


def information_worth(
    items: DesignItems,
    criterion: InformationCriterion,
    weights: FloatArray,  # (..., n_items): At the abilities of one session or of several
    covariance: FloatArray,  # (..., n_dims, n_dims)
    *,
    goal: FloatArray | None,
) -> FloatArray:
    """`criterion_scores` by information, (..., n_items)."""
    gain = _information(items, criterion, weights, covariance, goal)
    return gain / items.cost if criterion.per_cost else gain


def _information(
    items: DesignItems,
    criterion: InformationCriterion,
    weights: FloatArray,
    covariance: FloatArray,
    goal: FloatArray | None,
) -> FloatArray:
    """Worth of each item by a criterion of information, cost apart."""
    identity = np.eye(items.n_dims)
    match criterion:
        case Fisher():
            return weights * _quadratic_forms(items, identity)[0]  # w a'a
        case DOptimality():
            # determinant lemma: det(C^-1 + w a a') = det(C^-1) (1 + w a'Ca)
            return np.log1p(weights * _quadratic_forms(items, covariance)[0])
        case AOptimality() | VOptimality():
            # w (Ca)'M(Ca) / (1 + w a'Ca), by how much tr MC falls, with M = I for 'a-optimal'; (Ca)'M(Ca) = a'(CMC)a,
            # so that numerator and denominator are quadratic forms of the same packed products
            matrix = identity if goal is None or isinstance(criterion, AOptimality) else goal
            reduction, variance = _quadratic_forms(items, covariance @ matrix @ covariance, covariance)
            return weights * reduction / (1.0 + weights * variance)


def _quadratic_forms(items: DesignItems, *matrices: FloatArray) -> list[FloatArray]:
    """``a'Sa`` of every item for each symmetric matrix S, (..., n_dims, n_dims), (..., n_items) each."""
    first, second = triangle(items.n_dims)
    # packed rows hold each product a_i a_j once: off the diagonal it is for S_ij and S_ji, on it for S_ii alone
    twice = np.where(first == second, 0.5, 1.0)
    packed = (twice * (matrix[..., first, second] + matrix[..., second, first]) for matrix in matrices)
    # one product for each: BLAS takes twice as long for a matrix of two rows
    return [one @ items.products.T for one in packed]
