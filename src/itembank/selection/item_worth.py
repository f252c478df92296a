"""Optimal design: how informative each item of a bank would be about ability, or about a score, as the next item.

Kernels over all items at once. Quadratic forms of all loadings are one product: with ``a a'`` packed in rows,
``a'Sa`` for several symmetric S is ``products @ [pack(S), ...]``.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import CostUnit, expected_cost
from itembank.irt.families import ResponseModel
from itembank.irt.logistic import Asymptotes
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.stable import sigmoid_pair, sigmoid_slope, softplus
from itembank.numerics.symmetric import packed_products, triangle, unpack
from itembank.selection.criteria import (
    AOptimality,
    Criterion,
    DOptimality,
    Fisher,
    Goal,
    InformationCriterion,
    KullbackLeibler,
    MinimumCost,
    RandomItem,
    Trace,
    UniformOverScenarios,
    VOptimality,
)

SMALLEST = 1e-300
"""Probabilities are raised to at least this before their logarithm is taken, so that it stays finite."""


_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(7)
OUTER_NODES = [(node, share / _SHARES.sum()) for node, share in zip(_NODES, _SHARES, strict=True) if node != 0.0]
CENTRE = float(_SHARES[3] / _SHARES.sum())
"""Seven nodes for the Kullback-Leibler criterion: its error is below 0.6 % up to a logit variance of 4, 4 % up to 9.

The middle node is the estimate itself, where the divergence is zero; only its weight is needed.
"""


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
    # (n_items,): Items that may be asked: they count in the score, the calibration models did not all answer them
    # alike, and they are not excluded.
    is_candidate: BoolArray
    is_degenerate: BoolArray  # (n_items,)
    # (n_items,): Expected cost of each item; NaN where it must not be asked or no criterion asks for it.
    cost: FloatArray

    @classmethod
    def of_bank(cls, bank: Bank, is_candidate: BoolArray, *, cost: CostUnit | str | None = None) -> Self:
        """Take the arrays from a bank, once for many choices, with expected costs in a unit where one is given."""
        parameters = bank.parameters
        costs = np.full(bank.n_items, np.nan)
        if cost is not None:
            costs = np.where(is_candidate, expected_cost(bank, cost, needed=is_candidate), np.nan)
        return cls(
            # logits of one model are a matrix times a vector: twice as quick down the columns in five dimensions
            np.asfortranarray(parameters.loadings),
            parameters.intercept,
            ResponseModel.of(parameters),
            packed_products(parameters.loadings),
            bank.targets.scenario_index,
            bank.targets.n_scenarios,
            is_candidate,
            bank.calibration.is_degenerate,
            costs,
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
        """Logit of every item at ability theta (n_dims,), (n_items,)."""
        result: FloatArray = self.loadings @ theta + self.intercept
        return result

    def weights(self, theta: FloatArray) -> FloatArray:
        """Fisher information w in the logit of every item at theta (n_dims,), (n_items,); of counts, of one trial."""
        return self.model.information_weights(self.logit(theta))


def goal_matrix(
    items: DesignItems,
    weights: FloatArray,  # (n_items,): Of the items in the target
    theta: FloatArray,  # (n_dims,)
    *,
    of: Goal,
) -> FloatArray:
    """Matrix M for which ``tr MC`` is the uncertainty of the target items, (n_dims, n_dims).

    With ``d_t = dp_t / d eta_t``: 'logits' ``sum_t w_t a_t a_t'`` (WILD eq. 6), 'probabilities'
    ``sum_t w_t d_t^2 a_t a_t'``, 'score' ``g g'`` with ``g = sum_t w_t d_t a_t``, so that ``tr MC = g'Cg`` is the
    variance of the expected score.
    Items that every calibration model answered alike count for nothing, here as in WILD (A.1), although their curves
    rise a little with ability: their loadings come from other items, and nearly all of any model's answers to them are
    as before. So 'score' is the variance of what the other items contribute.
    """
    weights = np.where(items.is_degenerate, 0.0, weights)
    if of == "logits":
        return unpack(weights @ items.products, items.n_dims)
    slopes = sigmoid_slope(items.logit(theta))  # dp / d eta
    if items.model.steps is not None:
        slopes = items.model.mean(items.logit(theta))[1]
    elif items.model.asymptotes is not None:
        slopes = slopes * _Curve.of(items.model.asymptotes).height
    if of == "probabilities":
        return unpack((weights * slopes**2) @ items.products, items.n_dims)
    gradient = (weights * slopes) @ items.loadings
    return np.outer(gradient, gradient)


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
        case RandomItem():
            return rng.random(items.n_items)
        case UniformOverScenarios():
            # distinct whole numbers order the scenarios, chance orders the items of each; n_scenarios times the count
            # outweighs any permutation, so that the scenarios with the fewest items always come first
            order = rng.permutation(items.n_scenarios) - items.n_scenarios * counts
            return order[items.scenario_index] + rng.random(items.n_items)
        case MinimumCost():
            return -items.cost
    weights = items.weights(theta) if weights is None else weights
    gain = _information(items, criterion, theta, weights, covariance, goal=goal)
    return gain / items.cost if criterion.per_cost else gain


def updated_covariance(covariance: FloatArray, loading: FloatArray, weight: float) -> FloatArray:
    """Posterior covariance after an item with this loading (n_dims,) and information weight (WILD eq. 14, Woodbury).

    ``C - w (Ca)(Ca)' / (1 + w a'Ca)``.
    """
    # rank-one update: O(n_dims^2), where inverting the updated precision matrix would take O(n_dims^3) at each step
    direction = covariance @ loading
    shrink = weight / (1.0 + weight * float(loading @ direction))
    result: FloatArray = covariance - shrink * np.outer(direction, direction)
    return result


def _information(
    items: DesignItems,
    criterion: InformationCriterion,
    theta: FloatArray,
    weights: FloatArray,
    covariance: FloatArray,
    *,
    goal: FloatArray | None,
) -> FloatArray:
    """Worth of each item by a criterion of information, cost apart, (n_items,)."""
    identity = np.eye(items.n_dims)
    match criterion:
        case Fisher() | Trace():
            return weights * _quadratic_forms(items, identity)[0]  # w a'a
        case DOptimality():
            # determinant lemma: det(C^-1 + w a a') = det(C^-1) (1 + w a'Ca)
            return np.log1p(weights * _quadratic_forms(items, covariance)[0])
        case AOptimality() | VOptimality():
            # w (Ca)'M(Ca) / (1 + w a'Ca), by how much tr MC falls, with M = I for 'a-optimal'; (Ca)'M(Ca) = a'(CMC)a,
            # so that numerator and denominator are quadratic forms of the same packed products
            matrix = identity if goal is None or isinstance(criterion, AOptimality) else goal
            reduction, variance = _quadratic_forms(items, covariance @ matrix @ covariance, covariance)
            result: FloatArray = weights * reduction / (1.0 + weights * variance)
            return result
        case KullbackLeibler():
            return _expected_divergence(items, theta, _quadratic_forms(items, covariance)[0])


def _quadratic_forms(items: DesignItems, *matrices: FloatArray) -> list[FloatArray]:
    """``a'Sa`` of every item for each symmetric matrix S, (n_items,) each."""
    first, second = triangle(items.n_dims)
    # packed rows hold each product a_i a_j once: off the diagonal it stands for S_ij and S_ji, on it for S_ii alone
    twice = np.where(first == second, 0.5, 1.0)
    packed = (twice * (matrix[first, second] + matrix[second, first]) for matrix in matrices)
    # one product for each: BLAS takes twice as long for a matrix of two columns
    return [items.products @ one for one in packed]


def _expected_divergence(items: DesignItems, theta: FloatArray, variance: FloatArray) -> FloatArray:
    """``E KL(p(eta) || p(x))`` for ``x ~ N(eta, variance)``, by Gauss-Hermite nodes; never below zero.

    Without asymptotes ``KL(p(eta) || p(x)) = log(1 + e^x) - log(1 + e^eta) - p(eta) (x - eta)``. The last term has
    expectation zero, and ``E log(1 + e^x) - log(1 + e^eta)`` is left.
    """
    eta, spread = items.logit(theta), np.sqrt(variance)
    if items.model.has_divergence:
        total = np.zeros(eta.shape)
        for node, weight in OUTER_NODES:
            total += weight * items.model.divergence(eta, eta + node * spread)
        return np.maximum(total, 0.0)
    if items.model.asymptotes is None:
        # the middle node contributes CENTRE * softplus(eta), which is taken off -softplus(eta) here
        mean: FloatArray = -softplus(eta) * (1.0 - CENTRE)
        for node, weight in OUTER_NODES:
            mean += weight * softplus(eta + node * spread)
        return np.maximum(mean, 0.0)  # never negative by Jensen's inequality, but for rounding
    curve = _Curve.of(items.model.asymptotes)
    p, q = curve.probabilities(eta)
    # E KL = p log p + q log q - E[p log p(x) + q log q(x)], the middle node of the expectation cancelled as above
    total = (1.0 - CENTRE) * (p * np.log(p) + q * np.log(q))
    for node, weight in OUTER_NODES:
        there_p, there_q = curve.probabilities(eta + node * spread)
        total -= weight * (p * np.log(there_p) + q * np.log(there_q))
    return np.maximum(total, 0.0)


class _Curve(NamedTuple):
    """Asymptotes as probabilities, and the height of the curve between them, each (n_items,)."""

    lower: FloatArray
    height: FloatArray
    one_minus_upper: FloatArray

    @classmethod
    def of(cls, asymptotes: Asymptotes) -> Self:
        lower = np.exp(asymptotes.log_lower)
        return cls(lower, np.exp(asymptotes.log_upper) - lower, np.exp(asymptotes.log_one_minus_upper))

    def probabilities(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probability of a right and of a wrong answer, never quite zero: sums of positive terms only."""
        rising, falling = sigmoid_pair(x)
        # q is not 1 - p: the difference would lose its digits where p is near one
        p, q = self.lower + self.height * rising, self.one_minus_upper + self.height * falling
        return np.maximum(p, SMALLEST), np.maximum(q, SMALLEST)
