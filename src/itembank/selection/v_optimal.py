"""V-optimal items: their responses leave the least uncertainty about the wanted scores.

Responses follow a linear-Gaussian factor model, ``y_i = m_i + L_i f + e_i`` with ``f ~ N(0, I)`` and
``e_i ~ N(0, s_i)`` independent, so that the posterior variance of a weighted sum of responses depends on which
items are observed and not on what the responses are: the items can be chosen beforehand.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.norms import bank_factor_model, fitted_factor_model
from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.anchors import latent_features, weighted_by_nearest
from itembank.selection.greedy import allowed_scenarios
from itembank.selection.pools import Choice, ItemPools
from itembank.selection.selector_specs import METHODS, VOptimal
from itembank.tables import plural

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMALLEST_VARIANCE = 1e-12
"""An item whose variance given the chosen items is smaller is known from them; its response adds nothing."""
DENSE_UP_TO = 500_000
"""Loadings on shifts, nearly all of them zero, that are multiplied as they are: skipping the zeros saves nothing."""


def choose_v_optimal(pools: ItemPools, spec: VOptimal) -> list[Choice]:
    """Choose from all scenarios at once the items that leave the least uncertainty about the wanted scores.

    Weights are those of `weighted_by_nearest` on the factor model's means and loadings. The chosen items are
    informative, not typical: with these weights or with a non-negative regression of the scenario
    score on them the weighted mean errs several times as much as that of a random sample (on real leaderboards,
    the regression a tenth less), so that estimates should come from a model or a regression with an intercept.
    """
    bank, targets, scenarios = pools.bank, pools.bank.targets, pools.scenarios
    model = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
    target_weights, importance = wanted_scores(targets, spec)
    items = np.concatenate([pool.items for pool in scenarios])  # in their order, the first of equals is taken
    at_least, at_most = _bounds(spec, pools)
    is_candidate = np.concatenate([pool.is_candidate for pool in scenarios])
    group = np.repeat(np.arange(len(scenarios)), [pool.items.size for pool in scenarios])
    first = np.isin(items, np.concatenate([pool.items[pool.included] for pool in scenarios]))
    weights, n_items = target_weights[items], pools.n_items
    choices = METHODS.to_plain(spec, "method")
    name = cache_name("order", choices, items, weights, importance, is_candidate, group, at_least, at_most, first)
    # the longest order chosen from this model before, by all that it followed from
    orders: dict[str, IntArray] = bank.cache.remember("orders of v-optimal items", dict)
    order = orders.get(name, np.zeros(0, dtype=np.int64))
    # a longer order begins as a shorter one, unless the shorter one had to end with scenarios that had too few
    n_each = np.bincount(group[order[:n_items]], minlength=at_least.size)
    if order.size < n_items or (n_each < at_least).any():
        n_factors = fitted_factor_model(bank, spec.n_factors).n_factors
        factors, shifts = np.split(model.loadings[items], [n_factors], axis=1)
        order, _ = greedy_v_optimal(
            LinearModel(factors, shifts, model.noise[items]),
            weights,
            importance,
            n_items,
            is_candidate=is_candidate,
            group=group,
            at_least=at_least,
            at_most=at_most,
            first=first,
        )
        orders[name] = max(orders.get(name, order), order, key=len)
    chosen, features = items[order[:n_items]], latent_features(model)
    return [
        weighted_by_nearest(pool, features[pool.items], np.flatnonzero(np.isin(pool.items, chosen)))
        for pool in scenarios
    ]


def wanted_scores(targets: ScoreTargets, spec: VOptimal) -> tuple[FloatArray, FloatArray]:
    """Weights of the items in each wanted score, (n_items, n_targets), and the importance of each score."""
    wanted = spec.target
    if spec.scenario_weights is not None:
        unknown = [name for name in spec.scenario_weights if name not in targets.scenarios]
        if unknown:
            raise ParameterError(
                f"scenario_weights must be of scenarios of the bank, {shown(targets.scenarios)}, got {shown(unknown)}."
            )
        of_scenarios = np.array([spec.scenario_weights.get(name, 0.0) for name in targets.scenarios])
        targets = replace(targets, scenario_weights=of_scenarios)
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


def _bounds(spec: VOptimal, pools: ItemPools) -> tuple[IntArray, IntArray]:
    """Least and largest number of items of each scenario, each (n_scenarios,)."""
    counts, n_items = pools.counts, pools.n_items
    if spec.allocation == "equal":
        return counts, counts
    capacities = np.array([np.sum(pool.is_candidate) for pool in pools.scenarios], dtype=np.int64)
    n_included = np.array([pool.included.size for pool in pools.scenarios], dtype=np.int64)
    minimum = 0 if spec.may_skip_scenarios(is_short=pools.is_short) else spec.minimum_per_scenario
    at_least = np.maximum(np.minimum(minimum, capacities), n_included)
    if at_least.sum() > n_items:
        more = f" with {plural(int(n_included.sum()), 'item')} that must be included" if n_included.any() else ""
        raise ParameterError(
            f"n_items must be at least {at_least.sum()}, minimum_per_scenario = {spec.minimum_per_scenario} for each "
            f"scenario{more}, got {n_items}. Ask for more items or a smaller minimum."
        )
    return at_least, capacities


@dataclass(slots=True)
class LinearModel:
    """Variances under a linear-Gaussian model, given the responses to the items chosen so far."""

    factors: FloatArray  # (n_items, n_factors): Loadings L of the items are those on factors, then those on shifts
    shifts: FloatArray  # (n_items, n_shifts): Mostly zeros
    noise: FloatArray  # (n_items,): s, variances
    quick_shifts: "FloatArray | csr_array" = field(init=False)  # The same, as they are multiplied in less time
    variance: FloatArray = field(init=False)  # (n_items,): v
    covariance: FloatArray = field(init=False)  # (n_targets, n_items): c
    target_variance: FloatArray = field(init=False)  # (n_targets,)
    directions: FloatArray = field(init=False)  # (n_chosen, n_factors + n_shifts): A L_i / sqrt(v_i) when i was chosen
    n_chosen: int = field(init=False)

    def begin(self, target_weights: FloatArray, n_choices: int) -> None:
        """Before the first item v_i = |L_i|^2 + s_i and c_it = sum_j omega_jt Cov(y_j, y_i)."""
        self.quick_shifts = self.shifts
        if self.shifts.size > DENSE_UP_TO:
            from scipy.sparse import csr_array  # noqa: PLC0415 (short commands import this module)

            self.quick_shifts = csr_array(self.shifts)
        self.variance = self.noise + np.sum(self.shifts**2, axis=1) + np.sum(self.factors**2, axis=1)
        of_shifts = self.quick_shifts @ (self.quick_shifts.T @ target_weights)
        of_factors = target_weights.T @ self.factors @ self.factors.T
        # rows of items, which numpy would otherwise lay out as columns
        self.covariance = np.ascontiguousarray(self.noise * target_weights.T + of_shifts.T + of_factors)
        self.target_variance = np.sum(target_weights.T * self.covariance, axis=1)
        n_loadings = self.factors.shape[1] + self.shifts.shape[1]
        self.directions, self.n_chosen = np.empty((n_choices, n_loadings)), 0

    def gain(self, importance: FloatArray) -> FloatArray:
        """Sum over targets of importance times c_it^2 / v_i, (n_items,)."""
        return (importance @ self.covariance**2) / np.maximum(self.variance, SMALLEST_VARIANCE)

    def observe(self, item: int) -> None:
        """Condition on one more response."""
        before, n_factors = self.directions[: self.n_chosen], self.factors.shape[1]
        row = np.concatenate([self.factors[item], self.shifts[item]])
        direction = row - (before @ row) @ before  # A L_i, where A is one minus the products of the directions before
        with_items = self.factors @ direction[:n_factors] + self.quick_shifts @ direction[n_factors:]  # b
        with_items[item] += self.noise[item]  # an item shares its own noise with itself only
        root = np.sqrt(max(float(self.variance[item]), SMALLEST_VARIANCE))
        with_items, with_targets = with_items / root, self.covariance[:, item] / root
        self.directions[self.n_chosen] = direction / root
        self.n_chosen += 1
        self.variance = self.variance - with_items**2
        self.covariance = self.covariance - np.outer(with_targets, with_items)
        self.target_variance = self.target_variance - with_targets**2


def greedy_v_optimal(
    model: LinearModel,
    target_weights: FloatArray,  # (n_items, n_targets): omega
    importance: FloatArray,  # (n_targets,): Non-negative
    n_items: int,  # How many to choose; the candidates, `at_least` and `at_most` leave room for them
    *,
    is_candidate: BoolArray,  # (n_items,)
    group: IntArray,  # (n_items,): Group of each item, numbered from 0
    at_least: IntArray,  # (n_groups,): Bounds on the number chosen from each group
    at_most: IntArray,  # (n_groups,)
    first: BoolArray | None = None,  # (n_items,): Candidates that are chosen before all others
) -> tuple[IntArray, FloatArray]:
    """Choose one item after the other, each the one that lowers the targets' posterior variance most.

    Targets are ``Z_t = sum_i omega_it y_i``, with each item's own noise. Given the chosen items S, item i lowers
    the variance of ``Z_t`` by ``c_it^2 / v_i`` with ``c_it = Cov(Z_t, y_i | S)`` and ``v_i = Var(y_i | S)``;
    the item of the largest sum over targets of importance times reduction comes next. Choosing item i changes

    ``v_j <- v_j - b_j^2 / v_i``, ``c_jt <- c_jt - b_j c_it / v_i``, ``A <- A - A L_i' L_i A / v_i``

    with ``b_j = Cov(y_j, y_i | S) = L_j A L_i' + [i = j] s_i`` and A the posterior covariance of the factors: a step
    costs O(n_items n_factors). (What these say of items already chosen means nothing and is not used.)

    Returns the positions in the order of choice, and the posterior variance of each target before the first item and
    after each, (n_chosen + 1, n_targets).
    """
    model.begin(target_weights, n_items)
    target_variances, chosen = [model.target_variance], []
    is_open, counts = is_candidate.copy(), np.zeros(at_most.shape[0], dtype=np.int64)
    first = np.zeros(is_candidate.shape, dtype=bool) if first is None else first
    for n_left in range(n_items, 0, -1):
        is_allowed = is_open & first
        if not is_allowed.any():
            is_allowed = is_open & allowed_scenarios(counts, at_least, at_most, n_left)[group]
        gain = model.gain(importance)
        item = int(first_largest(np.where(is_allowed, gain, -np.inf)))  # items with equal answers tie
        model.observe(item)
        target_variances.append(model.target_variance)
        is_open[item] = False
        counts[group[item]] += 1
        chosen.append(item)
    return np.array(chosen, dtype=np.int64), np.array(target_variances)
