"""V-optimal items: their responses leave the least uncertainty about the wanted scores.

Responses follow a linear-Gaussian factor model, ``y_i = m_i + L_i f + e_i`` with ``f ~ N(0, I)`` and
``e_i ~ N(0, s_i)`` independent, so that the posterior variance of a weighted sum of responses depends on which
items are observed and not on what the responses are: the items can be chosen beforehand. Several such models may have
a say: one of past models as they are, and others of models better than most of them (`linear_models`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.bank_factors import bank_factor_model, fitted_factor_model
from itembank.bank.banks import Bank
from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.anchors import latent_features, weighted_by_nearest
from itembank.selection.greedy import allowed_scenarios
from itembank.selection.local_model import LocalModel, abilities_ahead
from itembank.selection.pools import Choice, ItemPools
from itembank.selection.selector_specs import METHODS, VOptimal

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMALLEST_VARIANCE = 1e-12
"""An item whose variance given the chosen items is smaller is known from them; its response adds nothing."""
DENSE_UP_TO = 500_000
"""Loadings on shifts, nearly all of them zero, that are multiplied as they are: skipping the zeros saves nothing."""
SHARE_AHEAD = 0.5
"""What models ahead count of the criterion; from a quarter to three quarters it makes little difference."""


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
    group = targets.scenario_index[items]
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
        order, _ = greedy_v_optimal(
            linear_models(bank, spec, items),
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


def linear_models(bank: Bank, spec: VOptimal, items: IntArray) -> "LinearModels":
    """Models of these items: that of past models, and from the middle of these to twice as far as their best quarter.

    The first alone where the bank holds no past models' answers, or no item model. Models that come after a bank was
    made are mostly better than those it was made of. They differ on items that past models answered much alike, which
    `bank_factor_model` says tell little.
    """
    usual = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
    factors, shifts = np.split(usual.loadings[items], [fitted_factor_model(bank, spec.n_factors).n_factors], axis=1)
    noise = usual.noise[items]
    if not (spec.ahead and bank.n_models and bank.calibration.is_fitted):
        return LinearModels.of_one(factors, noise, shifts)
    local, abilities = LocalModel.of_bank(bank, spec), abilities_ahead(bank)
    known = np.zeros((abilities.shape[1],) * 2)
    ahead = [local.near(theta, known) for theta in abilities]
    others = slice(1, 1 + len(ahead))
    return LinearModels(
        [
            (slice(0, 1), factors, np.ones((1, items.size))),
            (others, local.of_ability[items], np.array([one.slope[items] for one in ahead])),
            (others, local.residual.loadings[items], np.array([one.size[items] for one in ahead])),
        ],
        shifts,
        np.array([noise, *(one.noise[items] for one in ahead)]),
        np.array([1.0 - SHARE_AHEAD, *[SHARE_AHEAD / len(ahead)] * len(ahead)]),
    )


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
        more = f" with the {n_included.sum()} items that must be included" if n_included.any() else ""
        raise ParameterError(
            f"n_items must be at least {at_least.sum()}, minimum_per_scenario = {spec.minimum_per_scenario} for each "
            f"scenario{more}, got {n_items}. Ask for more items or a smaller minimum."
        )
    return at_least, capacities


@dataclass(slots=True)
class LinearModels:
    """Variances under linear-Gaussian models, given the responses to the items chosen so far.

    Models have matrices of loadings in common, with other sizes of the rows: the loadings of item i in model m are
    ``L_mi = (h_m1i B_1i, h_m2i B_2i, ..., S_i)``.
    """

    # Models that have these factors, B (n_items, n_factors), and h (n_these_models, n_items)
    blocks: Sequence[tuple[slice, FloatArray, FloatArray]]
    shifts: FloatArray  # (n_items, n_shifts): S, mostly zeros
    noise: FloatArray  # (n_models, n_items): s, variances
    shares: FloatArray  # (n_models,): Of the targets' variances under each model in their mean
    quick_shifts: "FloatArray | csr_array" = field(init=False)  # The same, as they are multiplied in less time
    variance: FloatArray = field(init=False)  # (n_models, n_items): v
    covariance: FloatArray = field(init=False)  # (n_models, n_targets, n_items): c
    target_variance: FloatArray = field(init=False)  # (n_models, n_targets)
    directions: FloatArray = field(init=False)  # (n_models, n_chosen, n_factors): A L_i / sqrt(v_i) when i was chosen
    n_chosen: int = field(init=False)

    @classmethod
    def of_one(cls, loadings: FloatArray, noise: FloatArray, shifts: FloatArray | None = None) -> Self:
        """Take one model, of loadings (n_items, n_factors), noise (n_items,) and any shifts."""
        shifts = np.zeros((noise.size, 0)) if shifts is None else shifts
        return cls([(slice(0, 1), loadings, np.ones((1, noise.size)))], shifts, noise[None], np.ones(1))

    def begin(self, target_weights: FloatArray, n_choices: int) -> None:
        """Before the first item v_i = |L_i|^2 + s_i and c_it = sum_j omega_jt Cov(y_j, y_i)."""
        self.quick_shifts = self.shifts
        if self.shifts.size > DENSE_UP_TO:
            from scipy.sparse import csr_array  # noqa: PLC0415 (short commands import this module)

            self.quick_shifts = csr_array(self.shifts)
        self.variance = self.noise + np.sum(self.shifts**2, axis=1)
        of_shifts = self.quick_shifts @ (self.quick_shifts.T @ target_weights)
        # rows of items, which numpy would otherwise lay out as columns
        self.covariance = np.ascontiguousarray(self.noise[:, None] * target_weights.T + of_shifts.T)
        for models, matrix, sizes in self.blocks:
            self.variance[models] += sizes**2 * np.sum(matrix**2, axis=1)
            for covariance, size in zip(self.covariance[models], sizes, strict=True):
                np.add(covariance, size * ((target_weights.T * size) @ matrix @ matrix.T), out=covariance)
        self.target_variance = np.einsum("it,mti->mt", target_weights, self.covariance)
        n_factors = self.shifts.shape[1] + sum(matrix.shape[1] for _, matrix, _ in self.blocks)
        self.directions, self.n_chosen = np.empty((self.shares.size, n_choices, n_factors)), 0

    def gain(self, importance: FloatArray) -> FloatArray:
        """Sum over models and targets of share times importance times c_it^2 / v_i, (n_items,)."""
        reduction = (importance @ self.covariance**2) / np.maximum(self.variance, SMALLEST_VARIANCE)
        result: FloatArray = self.shares @ reduction
        return result

    def observe(self, item: int) -> None:
        """Condition on one more response."""
        before = self.directions[:, : self.n_chosen]
        row, start = np.zeros((before.shape[0], before.shape[2])), 0
        for models, matrix, sizes in self.blocks:
            stop = start + matrix.shape[1]
            row[models, start:stop] = sizes[:, item, None] * matrix[item]
            start = stop
        row[:, start:] = self.shifts[item]
        # A L_i, where A is one minus the products of the directions before
        direction = row - ((before @ row[:, :, None]).swapaxes(1, 2) @ before)[:, 0]
        with_items, start = np.ascontiguousarray((self.quick_shifts @ direction[:, start:].T).T), 0  # b
        for models, matrix, sizes in self.blocks:
            stop = start + matrix.shape[1]
            with_items[models] += sizes * (direction[models, start:stop] @ matrix.T)
            start = stop
        with_items[:, item] += self.noise[:, item]  # an item shares its own noise with itself only
        root = np.sqrt(np.maximum(self.variance[:, item], SMALLEST_VARIANCE))[:, None]
        with_items, with_targets = with_items / root, self.covariance[:, :, item] / root
        self.directions[:, self.n_chosen] = direction / root
        self.n_chosen += 1
        self.variance -= with_items**2
        self.covariance -= with_targets[:, :, None] * with_items[:, None]
        self.target_variance -= with_targets**2


def greedy_v_optimal(
    models: LinearModels,
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
    the item of the largest sum over models and targets of share times importance times reduction comes next. In each
    model, choosing item i changes

    ``v_j <- v_j - b_j^2 / v_i``, ``c_jt <- c_jt - b_j c_it / v_i``, ``A <- A - A L_i' L_i A / v_i``

    with ``b_j = Cov(y_j, y_i | S) = L_j A L_i' + [i = j] s_i`` and A the posterior covariance of the factors: a step
    costs O(n_items n_factors). (What these say of items already chosen means nothing and is not used.)

    Returns the positions in the order of choice, and the posterior variance of each target before the first item and
    after each, (n_chosen + 1, n_targets), the mean over models.
    """
    models.begin(target_weights, n_items)
    target_variances, chosen = [models.shares @ models.target_variance], []
    is_open, counts = is_candidate.copy(), np.zeros(at_most.shape[0], dtype=np.int64)
    first = np.zeros(is_candidate.shape, dtype=bool) if first is None else first
    for n_left in range(n_items, 0, -1):
        is_allowed = is_open & first
        if not is_allowed.any():
            is_allowed = is_open & allowed_scenarios(counts, at_least, at_most, n_left)[group]
        gain = models.gain(importance)
        item = int(first_largest(np.where(is_allowed, gain, -np.inf)))  # items with equal answers tie
        models.observe(item)
        target_variances.append(models.shares @ models.target_variance)
        is_open[item] = False
        counts[group[item]] += 1
        chosen.append(item)
    return np.array(chosen, dtype=np.int64), np.array(target_variances)
