"""V-optimal items: their responses leave the least uncertainty about the wanted scores.

Responses follow a linear-Gaussian factor model, ``y_i = m_i + L_i f + e_i`` with ``f ~ N(0, I)`` and
``e_i ~ N(0, s_i)`` independent, so that the posterior variance of a weighted sum of responses depends on which
items are observed and not on what the responses are: the items can be chosen beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.greedy import allowed_scenarios
from itembank.selection.nearest import weighted_by_nearest
from itembank.selection.pools import Choice, ScenarioPool
from itembank.selection.selector_specs import VOptimal

SMALLEST_VARIANCE = 1e-12
"""An item whose variance given the chosen items is smaller is known from them; its response adds nothing."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """What a linear-Gaussian model says of how responses vary."""

    loadings: FloatArray  # (n_items, n_factors)
    noise: FloatArray  # (n_items,): Variances, non-negative

    def take(self, items: IntArray) -> Self:
        """Return the model of the items at these positions."""
        return replace(self, loadings=self.loadings[items], noise=self.noise[items])


@dataclass(frozen=True, slots=True)
class GreedyItems:
    """Items in the order in which they were chosen."""

    items: IntArray  # (n_chosen,)
    # (n_chosen + 1, n_targets): Posterior variance of each target before the first item and after each.
    variances: FloatArray


def choose_v_optimal(
    model: LinearModel,
    targets: ScoreTargets,
    spec: VOptimal,
    pools: Sequence[ScenarioPool],
    counts: IntArray,
    *,
    features: FloatArray,
    orders: dict[str, IntArray],
) -> list[Choice]:
    """Choose from all scenarios at once, for the scores that the spec names.

    Weights are those of `weighted_by_nearest` on the features. The chosen items are
    informative, not typical: with these weights or with a non-negative regression of the scenario
    score on them the weighted mean errs several times as much as that of a random sample (on real leaderboards,
    the regression a tenth less), so that estimates should come from a model or a regression with an intercept.

    Parameters
    ----------
    model : LinearModel
    targets : ScoreTargets
    spec : VOptimal
    pools : sequence of n_scenarios pools
    counts : (n_scenarios,)
        Items of each scenario with equal allocation; their sum is what 'free' allocation chooses.
    features : (n_items, n_features)
        What makes items similar, for the weights of the chosen ones.
    orders : mapping of name to (n_chosen,)
        The longest chosen from this model before, by all they followed from; what is chosen now is added.

    Raises
    ------
    ParameterError
        For a target the bank has not, or more items wanted from every scenario than in all.
    """
    target_weights, importance = wanted_scores(targets, spec)
    items = np.concatenate([pool.items for pool in pools])  # in their order, the first of equals is taken
    at_least, at_most = _bounds(spec, pools, counts)
    is_candidate = np.concatenate([pool.is_candidate for pool in pools])
    group = targets.scenario_index[items]
    first = np.isin(items, np.concatenate([pool.items[pool.included] for pool in pools]))
    weights, n_items = target_weights[items], int(counts.sum())
    name = cache_name("order", repr(spec), items, weights, importance, is_candidate, group, at_least, at_most, first)
    order = orders.get(name, np.zeros(0, dtype=np.int64))
    # a longer order begins as a shorter one, unless the shorter one had to end with scenarios that had too few
    n_each = np.bincount(group[order[:n_items]], minlength=at_least.size)
    if order.size < n_items or (n_each < at_least).any():
        order = greedy_v_optimal(
            model.take(items),
            weights,
            importance,
            n_items,
            is_candidate=is_candidate,
            group=group,
            at_least=at_least,
            at_most=at_most,
            first=first,
        ).items
        orders[name] = max(orders.get(name, order), order, key=len)
    chosen = items[order[:n_items]]
    return [
        weighted_by_nearest(pool, features[pool.items], np.flatnonzero(np.isin(pool.items, chosen))) for pool in pools
    ]


def wanted_scores(targets: ScoreTargets, spec: VOptimal) -> tuple[FloatArray, FloatArray]:
    """Weights of the items in each wanted score, (n_items, n_targets), and the importance of each score."""
    wanted, targets = spec.target, _reweighted(targets, spec)
    if wanted == "balanced":
        # the variance of the overall score is the sum of t_j^2 times those of the scenarios: both parts weigh alike
        squares = (targets.scenario_weights**2).tolist()
        importance = {OVERALL: 1.0, **dict(zip(targets.scenarios, squares, strict=True))}
    else:
        importance = {wanted: 1.0} if isinstance(wanted, str) else dict(wanted)
    names = (*targets.scenarios, OVERALL)
    unknown = [name for name in importance if name not in names]
    if unknown:
        raise ParameterError(
            f"target must be 'balanced' or among {shown(names, limit=len(names))}, got {shown(unknown)}."
        )
    weights = np.column_stack([targets.target(name).weights for name in importance])
    return weights, np.array(list(importance.values()), dtype=np.float64)


def _reweighted(targets: ScoreTargets, spec: VOptimal) -> ScoreTargets:
    """Put the spec's weights of scenarios in place of those of the overall score."""
    if spec.scenario_weights is None:
        return targets
    unknown = [name for name in spec.scenario_weights if name not in targets.scenarios]
    if unknown:
        raise ParameterError(
            f"scenario_weights must be of scenarios of the bank, {shown(targets.scenarios)}, got {shown(unknown)}."
        )
    weights = np.array([spec.scenario_weights.get(name, 0.0) for name in targets.scenarios])
    return replace(targets, scenario_weights=weights)


def _bounds(spec: VOptimal, pools: Sequence[ScenarioPool], counts: IntArray) -> tuple[IntArray, IntArray]:
    """Least and largest number of items of each scenario, each (n_scenarios,)."""
    if spec.allocation == "equal":
        return counts, counts
    capacities = np.array([np.sum(pool.is_candidate) for pool in pools], dtype=np.int64)
    n_included = np.array([pool.included.size for pool in pools], dtype=np.int64)
    minimum = 0 if spec.may_skip_scenarios(is_short=counts.sum() < len(pools)) else spec.minimum_per_scenario
    at_least = np.maximum(np.minimum(minimum, capacities), n_included)
    if at_least.sum() > counts.sum():
        more = f" with the {n_included.sum()} items that must be included" if n_included.any() else ""
        raise ParameterError(
            f"n_items must be at least {at_least.sum()}, minimum_per_scenario = {spec.minimum_per_scenario} for each "
            f"scenario{more}, got {counts.sum()}. Ask for more items or a smaller minimum."
        )
    return at_least, capacities


def greedy_v_optimal(
    model: LinearModel,
    target_weights: FloatArray,
    importance: FloatArray,
    n_items: int,
    *,
    is_candidate: BoolArray,
    group: IntArray,
    at_least: IntArray,
    at_most: IntArray,
    first: BoolArray | None = None,
) -> GreedyItems:
    """Choose one item after the other, each the one that lowers the targets' posterior variance most.

    Targets are ``Z_t = sum_i omega_it y_i``, with each item's own noise. Given the chosen items S, item i lowers
    the variance of ``Z_t`` by ``c_it^2 / v_i`` with ``c_it = Cov(Z_t, y_i | S)`` and ``v_i = Var(y_i | S)``;
    the item of the largest sum over targets of importance times reduction comes next. Choosing item i changes

    ``v_j <- v_j - b_j^2 / v_i``, ``c_jt <- c_jt - b_j c_it / v_i``, ``A <- A - A L_i' L_i A / v_i``

    with ``b_j = Cov(y_j, y_i | S) = L_j A L_i' + [i = j] s_i`` and A the posterior covariance of the factors: a step
    costs O(n_items n_factors). (What these say of items already chosen means nothing and is not used.)

    Parameters
    ----------
    model : LinearModel
    target_weights : (n_items, n_targets)
        omega.
    importance : (n_targets,)
        Non-negative.
    n_items : int
        How many to choose; the candidates, `at_least` and `at_most` leave room for them.
    is_candidate : (n_items,)
    group : (n_items,)
        Group of each item, numbered from 0.
    at_least, at_most : (n_groups,)
        Bounds on the number chosen from each group.
    first : (n_items,), optional
        Candidates that are chosen before all others.

    Returns
    -------
    GreedyItems
    """
    given = _Given.nothing(model, target_weights)
    variances, items = [given.target_variance], []
    is_open, counts = is_candidate.copy(), np.zeros(at_most.shape[0], dtype=np.int64)
    first = np.zeros(is_candidate.shape, dtype=bool) if first is None else first
    for n_left in range(n_items, 0, -1):
        is_allowed = is_open & first
        if not is_allowed.any():
            is_allowed = is_open & allowed_scenarios(counts, at_least, at_most, n_left)[group]
        item = int(first_largest(np.where(is_allowed, given.gain(importance), -np.inf)))  # items with equal answers tie
        given = given.and_item(item)
        is_open[item] = False
        counts[group[item]] += 1
        items.append(item)
        variances.append(given.target_variance)
    return GreedyItems(np.array(items, dtype=np.int64), np.array(variances))


@dataclass(frozen=True, slots=True)
class _Given:
    """Variances and covariances given the responses to the items chosen so far."""

    model: LinearModel
    factors: FloatArray  # (n_factors, n_factors): A
    variance: FloatArray  # (n_items,): v
    covariance: FloatArray  # (n_items, n_targets): c
    target_variance: FloatArray  # (n_targets,)

    @classmethod
    def nothing(cls, model: LinearModel, target_weights: FloatArray) -> Self:
        """Before the first item: A = I, v_i = |L_i|^2 + s_i, and c_it = sum_j omega_jt Cov(y_j, y_i)."""
        loadings, noise = model.loadings, model.noise
        covariance = loadings @ (loadings.T @ target_weights) + noise[:, None] * target_weights
        return cls(
            model,
            np.eye(loadings.shape[1]),
            np.sum(loadings**2, axis=1) + noise,
            covariance,
            np.sum(target_weights * covariance, axis=0),
        )

    def gain(self, importance: FloatArray) -> FloatArray:
        """Sum over targets of importance times c_it^2 / v_i, (n_items,)."""
        result: FloatArray = (self.covariance**2 @ importance) / np.maximum(self.variance, SMALLEST_VARIANCE)
        return result

    def and_item(self, item: int) -> Self:
        """Condition every variance and covariance on one more response (a rank-one update each)."""
        loadings = self.model.loadings
        direction = self.factors @ loadings[item]
        item_variance = max(float(self.variance[item]), SMALLEST_VARIANCE)
        item_covariance = self.covariance[item].copy()
        # b_j = L_j A L_i'; an item shares its own noise with itself only
        cross_covariance = loadings @ direction  # (n_items,)
        cross_covariance[item] += self.model.noise[item]
        return replace(
            self,
            factors=self.factors - np.outer(direction, direction) / item_variance,
            variance=self.variance - cross_covariance**2 / item_variance,
            covariance=self.covariance - cross_covariance[:, None] * (item_covariance / item_variance),
            target_variance=self.target_variance - item_covariance**2 / item_variance,
        )
