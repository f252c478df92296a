"""`SessionPool`: data that sessions over one bank share, made once and small enough to send to workers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.costs import TOKENS, CostUnit, expected_cost, known_units, response_costs
from itembank.bank.known_scores import Headline
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.estimation.basis import ScoreBasis
from itembank.estimation.estimand_names import RUN
from itembank.estimation.estimands import past_ratio
from itembank.estimation.expectations import FactorModels
from itembank.estimation.point import target_weights, weighted_means
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.criteria import CRITERIA, Criterion, VOptimality, check_criterion, uses_cost
from itembank.selection.design import DesignItems, check_goal, goal_matrix
from itembank.selection.greedy import Bounds
from itembank.sessions.limits import Decision
from itembank.sessions.past_session_results import PastSessions
from itembank.sessions.prices import PastPrices
from itembank.sessions.priors import KnownModels, ability_prior
from itembank.sessions.reserves import cheapest_cost
from itembank.sessions.session_spec import CUSTOM, SessionSpec
from itembank.tabular import Compact

NO_LIMIT = np.iinfo(np.int64).max
ROUNDING = 1e-9
"""Share of a budget that sums of costs may be off by rounding."""


@dataclass(frozen=True, slots=True, repr=False)
class SessionPool(Compact):
    """A bank made ready for sessions of one kind, without the calibration responses.

    Make one with `prepare_sessions`, send it to as many processes as you like, and give each model its
    `AdaptiveSession`.

    Attributes
    ----------
    spec : SessionSpec
    criterion : Criterion
        The spec's.
    bank_id, target_id : str
    item_table : DataFrame
        The bank's table of items.
    item_ids : tuple of n_items ids
    positions : mapping of item id to position
    items : DesignItems
    basis : ScoreBasis
    custom : ScoreBasis or None
        The same with targets whose 'overall' is the custom one.
    known : KnownModels
    bounds : Bounds
    target_weights : (n_items,)
        Of the score that is wanted.
    goal : (n_dims, n_dims) or None
        M of 'v-optimal' where it does not depend on ability.
    thresholds : (n_items,)
        From which response on an answer counts as right for ability; NaN where it is taken as it is.
    units : mapping of name to CostUnit
        Of the budget's costs.
    expected_costs : mapping of name to (n_items,)
        In the units of the budget.
    prices : mapping of name to PastPrices
        What past models paid in the units of the budget and in all others that their costs are known in.
    threshold : float
        Of the decision; NaN without one.
    scenario_sizes : (n_scenarios,)
    cost_units : tuple of str
        Units in which the bank's responses record costs.
    factors : FactorModels or None
        What reads the answers beside the item model; None where scores are the item model's alone.
    past : PastSessions or None
        What the weights of both, and intervals, rest on; None where scores are the item model's alone.
    past_ratio : float or None
        How calibration models' answers vary from run to run (`past_ratio`), where the expected score is meant.
    headline : Headline or None
        The score in place of the overall one, where one was asked for.
    """

    spec: SessionSpec
    criterion: Criterion
    bank_id: str
    target_id: str
    item_table: pl.DataFrame
    item_ids: tuple[str, ...]
    positions: Mapping[str, int]
    items: DesignItems
    basis: ScoreBasis
    custom: ScoreBasis | None
    known: KnownModels
    bounds: Bounds
    target_weights: FloatArray
    goal: FloatArray | None
    thresholds: FloatArray
    units: Mapping[str, CostUnit]
    expected_costs: Mapping[str, FloatArray]
    prices: Mapping[str, PastPrices]
    threshold: float
    scenario_sizes: IntArray
    cost_units: tuple[str, ...] = ()
    factors: FactorModels | None = None
    past: PastSessions | None = None
    past_ratio: float | None = None
    headline: Headline | None = None

    @classmethod
    def create(cls, bank: Bank, spec: SessionSpec) -> Self:
        """Prepare a bank for sessions of this spec, with scores by the item model; see `prepare_sessions`.

        Raises
        ------
        DataError
            When the bank has no item model, or an item, column, model or cost that the spec names is not
            in it.
        ParameterError
            When nothing may be asked, constraints contradict each other, a score is unknown, or the criterion does
            not fit the bank.
        """
        bank.check_item_model("An adaptive session needs")
        criterion, cost = CRITERIA.resolve(spec.criterion), spec.cost_unit
        check_criterion(criterion, bank.parameters.n_dims)
        unit = (cost or CostUnit()) if uses_cost(criterion) else None
        items = DesignItems.of_bank(bank, cost=unit, excluded=spec.constraints.excluded)
        positions = {item: position for position, item in enumerate(bank.item_ids)}
        basis = ScoreBasis.of_bank(bank)
        custom = _custom_targets(spec.target, bank, positions)
        weights = (custom or bank.targets).target(OVERALL if custom else str(spec.target)).weights
        check_goal(items, criterion, weights)
        units = {name: _budget_unit(name, cost) for name in spec.budget.costs}
        pool = cls(
            spec,
            criterion,
            bank.bank_id,
            bank.target_id,
            bank.responses.items,
            tuple(positions),
            positions,
            items,
            basis,
            None if custom is None else ScoreBasis.of_bank(bank, custom),
            KnownModels.of_bank(bank),
            _bounds(spec, bank, items),
            weights,
            _fixed_goal(criterion, items, weights),
            basis.thresholds[bank.targets.scenario_index],
            units,
            {name: expected_cost(bank, one, needed=items.is_candidate) for name, one in units.items()},
            _prices(bank, units),
            _decision_threshold(spec.stopping.decision, bank, custom),
            bank.targets.scenario_sizes,
            known_units(bank.responses),
            headline=bank.headline,
        )
        if spec.estimand != RUN:
            pool = replace(pool, past_ratio=past_ratio(bank))  # a session that begins has no attempts of its own
        _check_scores(spec, pool.score_names)
        _check_budget(pool)
        ability_prior(pool.known, spec.prior)
        return pool

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores that sessions estimate: every scenario, 'overall', and 'custom' where there is one."""
        names = self.basis.targets.names
        return names if self.custom is None else (*names, CUSTOM)

    @property
    def bases(self) -> tuple[ScoreBasis, ...]:
        """The basis of the bank's targets, and that of the custom one where there is one."""
        return (self.basis,) if self.custom is None else (self.basis, self.custom)

    def with_factors(self, bank: Bank) -> Self:
        """Return the same pool with the factor models of its bank, for all scores that sessions estimate."""
        weights = target_weights(bank)
        if self.custom is not None:
            weights = np.column_stack([weights, self.target_weights])
        return replace(self, factors=FactorModels.of_bank(bank, weights))

    def with_spec(self, **changes: Any) -> Self:
        """Return the same pool for another `seed`, `prior` or `n_start`."""
        others = sorted(set(changes) - {"seed", "prior", "n_start"})
        if others:
            raise ParameterError(f"{shown(others)} of a pool is settled when it is made; make another pool.")
        return replace(self, spec=replace(self.spec, **changes))


def _custom_targets(target: str | Mapping[str, float], bank: Bank, positions: Mapping[str, int]) -> ScoreTargets | None:
    """Turn weights of items into targets over the bank's scenarios whose overall score is the weighted mean."""
    if isinstance(target, str):
        return None
    if CUSTOM in bank.targets.names:
        raise ParameterError(f"a target given as weights is called {CUSTOM!r}, and so is a scenario; rename that.")
    unknown = [item for item in target if item not in positions]
    if unknown:
        raise DataError(
            f"every item of the target must be in bank {bank.bank_id}, got {shown(unknown)}."
            f"{did_you_mean(unknown, positions)}"
        )
    weights, index = np.zeros(bank.n_items), bank.targets.scenario_index
    weights[[positions[item] for item in target]] = list(target.values())
    mass = np.bincount(index, weights=weights, minlength=bank.targets.n_scenarios)
    within = np.divide(weights, mass[index], out=np.zeros(weights.shape), where=mass[index] > 0.0)
    return ScoreTargets(bank.targets.scenarios, index, within, mass / mass.sum(), "custom", "items")


def _budget_unit(name: str, cost: CostUnit | None) -> CostUnit:
    """Count a budget's tokens as the criterion does."""
    return cost if cost is not None and cost.name == name == TOKENS else CostUnit(name)


def _prices(bank: Bank, units: Mapping[str, CostUnit]) -> dict[str, PastPrices]:
    """Learn from past models' costs in each unit, as the budget counts it where it does."""
    names = dict.fromkeys([*known_units(bank.responses), *units])
    costs = {name: response_costs(bank.responses, units.get(name, name)) for name in names}
    return {name: PastPrices.of_costs(cost) for name, cost in costs.items() if np.isfinite(cost).any()}


def _bounds(spec: SessionSpec, bank: Bank, items: DesignItems) -> Bounds:
    """Turn the constraints into bounds; a scenario that may be asked in full has no limit, whatever else applies."""
    bounds = spec.constraints.bounds(bank.targets, items.is_candidate, spec.budget.n_items)
    available = np.bincount(items.scenario_index[items.is_candidate], minlength=items.n_scenarios)
    return Bounds(bounds.at_least, np.where(bounds.at_most >= available, NO_LIMIT, bounds.at_most))


def _fixed_goal(criterion: Criterion, items: DesignItems, weights: FloatArray) -> FloatArray | None:
    if not isinstance(criterion, VOptimality) or criterion.of != "logits":
        return None
    return goal_matrix(items, weights, np.zeros(items.n_dims), of=criterion.of)


def _decision_threshold(decision: Decision | None, bank: Bank, custom: ScoreTargets | None) -> float:
    """Return the threshold of a decision: as given, or a calibration model's score."""
    if decision is None:
        return float("nan")
    if decision.threshold is not None:
        return decision.threshold
    row = bank.responses.model_indices([str(decision.model)])
    targets, name = bank.targets, decision.target
    if custom is not None and name == CUSTOM:
        targets, name = custom, OVERALL
    weights = targets.target(name).weights
    counts = np.flatnonzero(weights > 0.0)
    responses = bank.responses.take(models=row, items=counts).responses
    if np.isnan(responses).all():
        raise DataError(f"model {decision.model!r} must have a score on {decision.target!r}, but answered none of it.")
    if targets is custom:
        value = float(weighted_means(responses, weights[counts])[0])
    else:
        value = float(targets.with_overall(bank.scenario_scores[row])[0, targets.names.index(name)])
    if bank.headline is not None and targets is not custom and name == targets.last:
        value = float(bank.headline.past[row[0]])
    if np.isnan(value):
        raise DataError(
            f"model {decision.model!r} must have a score on {decision.target!r}, but some scenario of it has no answer."
        )
    return value


def _check_budget(pool: SessionPool) -> None:
    """Refuse a budget that cannot pay for a single item, or not for those that scenarios or rules must have."""
    budget, stopping = pool.spec.budget, pool.spec.stopping
    if stopping.has_rules and budget.n_items is not None and stopping.min_items > budget.n_items:
        raise ParameterError(
            f"min_items must be at most the budget of items, or no precision could end a session: got "
            f"{stopping.min_items} and {budget.n_items}. Lower it, or raise the budget."
        )
    fits = pool.items.is_candidate.copy()
    for name, amount in budget.costs.items():
        fits &= pool.expected_costs[name] <= amount * (1.0 + ROUNDING)
    if not fits.any():
        costs = {name: pool.expected_costs[name][pool.items.is_candidate].min() for name in budget.costs}
        raise ParameterError(
            "the budget must pay for at least one item, and no item to choose from is expected to cost so little: got "
            f"{_amounts(budget.costs)}, and the cheapest costs {_amounts(costs)}. Raise it."
        )
    for name, amount in budget.costs.items():
        needed, _ = cheapest_cost(
            pool.expected_costs[name], pool.items.is_candidate, pool.items.scenario_index, pool.bounds.at_least
        )
        if needed > amount:
            raise ParameterError(
                f"constraints must not contradict the budget: at_least asks for {pool.bounds.at_least.sum()} items, "
                f"which cost {needed:g} {name} at least, and the budget is {amount:g}. Ask for fewer, or raise it."
            )


def _amounts(costs: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in costs.items())


def _check_scores(spec: SessionSpec, names: tuple[str, ...]) -> None:
    decision = spec.stopping.decision
    wanted = [*spec.stopping.half_widths, *([] if decision is None else [decision.target])]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ParameterError(
            f"a rule must name a score among {shown(names)}, got {shown(unknown)}.{did_you_mean(unknown, names)}"
        )
