"""Optimal design: how informative each item of a bank would be about ability, or about a score, as the next item.

Kernels over all items at once. Quadratic forms of all loadings are one product: with ``a a'`` packed in rows,
``a'Sa`` for several symmetric S is ``products @ [pack(S), ...]``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import CostUnit, expected_cost
from itembank.errors import ParameterError
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
from itembank.selection.exclusions import not_excluded

SMALLEST = 1e-300
"""Probabilities are raised to at least this before their logarithm is taken, so that it stays finite."""


def _outer_nodes(n_quadrature: int) -> tuple[list[tuple[float, float]], float]:
    """Return Gauss-Hermite nodes with their weights, all but the middle node, and the weight of the middle node."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_quadrature)
    pairs = list(zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True))
    middle = n_quadrature // 2
    return pairs[:middle] + pairs[middle + 1 :], pairs[middle][1]


OUTER_NODES, CENTRE = _outer_nodes(7)
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
    # (n_items,): Expected cost of each item; NaN where it must not be asked, as nothing is known of that cost.
    cost: FloatArray | None = None

    @classmethod
    def of_bank(
        cls,
        bank: Bank,
        *,
        cost: CostUnit | str | None = None,
        excluded: Collection[str] = (),
        is_candidate: BoolArray | None = None,
    ) -> Self:
        """Take the arrays from a bank, once for many choices.

        Parameters
        ----------
        bank : Bank
        cost : CostUnit or str, optional
            Unit of the expected costs.
        excluded : collection of item ids
        is_candidate : (n_items,), optional
            Items that may be asked, in place of the rule above; excluded ones are taken from it.

        Raises
        ------
        DataError
            When an excluded item is not in the bank, or the expected cost of a candidate is unknown or not positive.
        ParameterError
            When nothing is left to ask.
        """
        is_degenerate = bank.calibration.is_degenerate
        allowed = (bank.targets.weights > 0.0) & ~is_degenerate if is_candidate is None else is_candidate
        is_open = allowed & not_excluded(bank, excluded)
        if not is_open.any():
            raise ParameterError(
                f"the candidate set must not be empty: {int(allowed.sum())} of {bank.n_items} items count in the "
                f"score and tell models apart, and none of them is left after excluding {len(set(excluded))}. "
                "Exclude fewer."
            )
        parameters = bank.parameters
        return cls(
            # logits of one model are a matrix times a vector: twice as quick down the columns in five dimensions
            np.asfortranarray(parameters.loadings),
            parameters.intercept,
            ResponseModel.of(parameters),
            packed_products(parameters.loadings),
            bank.targets.scenario_index,
            bank.targets.n_scenarios,
            is_open,
            is_degenerate,
            None if cost is None else np.where(is_open, expected_cost(bank, cost, needed=is_open), np.nan),
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


def goal_matrix(items: DesignItems, weights: FloatArray, theta: FloatArray, *, of: Goal) -> FloatArray:
    """Matrix M for which ``tr MC`` is the uncertainty of the target items, (n_dims, n_dims).

    With ``d_t = dp_t / d eta_t``: 'logits' ``sum_t w_t a_t a_t'`` (WILD eq. 6), 'probabilities'
    ``sum_t w_t d_t^2 a_t a_t'``, 'score' ``g g'`` with ``g = sum_t w_t d_t a_t``, so that ``tr MC = g'Cg`` is the
    variance of the expected score.
    Items that every calibration model answered alike count for nothing, here as in WILD (A.1), although their curves
    rise a little with ability: their loadings come from other items, and nearly all of any model's answers to them are
    as before. So 'score' is the variance of what the other items contribute.

    Parameters
    ----------
    items : DesignItems
    weights : (n_items,)
        Of the items in the target.
    theta : (n_dims,)
    of : {'logits', 'probabilities', 'score'}
    """
    weights = np.where(items.is_degenerate, 0.0, weights)
    if of == "logits":
        return unpack(weights @ items.products, items.n_dims)
    slopes = _probability_slopes(items, theta)
    if of == "probabilities":
        return unpack((weights * slopes**2) @ items.products, items.n_dims)
    gradient = (weights * slopes) @ items.loadings
    return np.outer(gradient, gradient)


def check_goal(items: DesignItems, criterion: Criterion, weights: FloatArray) -> None:
    """Raise `ParameterError` for 'v-optimal' when no item of the target, by its weights (n_items,), tells models apart.

    Every item would then have the value zero, and the first items of the bank would be asked.
    """
    if isinstance(criterion, VOptimality) and not np.any((weights > 0.0) & ~items.is_degenerate):
        raise ParameterError(
            f"criterion 'v-optimal' needs a target with an item that tells models apart, and all "
            f"{int(np.sum(weights > 0.0))} of this one were answered alike by every calibration model. Take another "
            "target or criterion ('d-optimal')."
        )


def criterion_scores(
    items: DesignItems,
    criterion: Criterion,
    theta: FloatArray,
    covariance: FloatArray,
    *,
    goal: FloatArray | None,
    counts: IntArray,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Worth of asking each item next, (n_items,); larger is better. Formulas: `itembank.selection.criteria`.

    Parameters
    ----------
    items : DesignItems
        With costs where the criterion uses them (`uses_cost`).
    criterion : Criterion
    theta : (n_dims,)
        Estimate of ability.
    covariance : (n_dims, n_dims)
        Its posterior covariance, C.
    goal : (n_dims, n_dims) or None
        M, from `goal_matrix`; only 'v-optimal' uses it.
    counts : (n_scenarios,)
        Items asked from each scenario so far; only 'uniform' uses it.
    rng : Generator
        Only 'random' and 'uniform' use it.
    weights : (n_items,), optional
        Fisher information in the logit of each item at theta, where the caller has it already.
    """
    match criterion:
        case RandomItem():
            return rng.random(items.n_items)
        case UniformOverScenarios():
            # distinct whole numbers order the scenarios, chance orders the items of each; n_scenarios times the count
            # outweighs any permutation, so that the scenarios with the fewest items always come first
            order = rng.permutation(items.n_scenarios) - items.n_scenarios * counts
            return order[items.scenario_index] + rng.random(items.n_items)
        case MinimumCost():
            return -_cost(items)
    weights = items.weights(theta) if weights is None else weights
    gain = _information(items, criterion, theta, weights, covariance, goal=goal)
    return gain / _cost(items) if criterion.per_cost else gain


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
    match criterion:
        case Fisher() | Trace():
            return weights * _quadratic_forms(items, np.eye(items.n_dims))[0]  # w a'a
        case DOptimality():
            # determinant lemma: det(C^-1 + w a a') = det(C^-1) (1 + w a'Ca)
            return np.log1p(weights * _quadratic_forms(items, covariance)[0])
        case AOptimality():
            return _variance_reduction(items, weights, covariance, np.eye(items.n_dims))  # M = I: the fall of tr C
        case VOptimality():
            if goal is None:
                raise ParameterError("criterion 'v-optimal' needs the matrix of its goal, got None.")
            return _variance_reduction(items, weights, covariance, goal)
        case KullbackLeibler():
            return _expected_divergence(items, theta, _quadratic_forms(items, covariance)[0])


def _variance_reduction(
    items: DesignItems, weights: FloatArray, covariance: FloatArray, goal: FloatArray
) -> FloatArray:
    """``w (Ca)'M(Ca) / (1 + w a'Ca)``: by how much ``tr MC`` falls."""
    # (Ca)'M(Ca) = a'(CMC)a, so that numerator and denominator are quadratic forms of the same packed products
    reduction, variance = _quadratic_forms(items, covariance @ goal @ covariance, covariance)
    result: FloatArray = weights * reduction / (1.0 + weights * variance)
    return result


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
        return _expected_family_divergence(items.model, eta, spread)
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


def _expected_family_divergence(model: ResponseModel, eta: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the expected divergence of the distributions of a response, of probabilities or levels, (n_items,)."""
    total = np.zeros(eta.shape)
    for node, weight in OUTER_NODES:
        total += weight * model.divergence(eta, eta + node * spread)
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


def _probability_slopes(items: DesignItems, theta: FloatArray) -> FloatArray:
    """``dp / d eta`` of every item, (n_items,)."""
    if items.model.steps is not None:
        return items.model.mean(items.logit(theta))[1]
    slopes = sigmoid_slope(items.logit(theta))
    if items.model.asymptotes is None:
        return slopes
    return slopes * _Curve.of(items.model.asymptotes).height


def _cost(items: DesignItems) -> FloatArray:
    if items.cost is None:
        raise ParameterError("this criterion needs the items' expected cost; lay the bank out with a cost unit.")
    return items.cost
