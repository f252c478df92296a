"""`SessionPool`: what sessions over one bank share, made once; with the prices and errors of past models."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.costs import TOKENS, CostUnit, expected_cost, known_units, response_costs
from itembank.bank.known_scores import Headline
from itembank.bank.past_models import PastModels
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.drawn_one_by_one import DrawnDesign
from itembank.estimation.estimands import past_ratio
from itembank.estimation.estimator_specs import RUN
from itembank.estimation.headlines import reader_of
from itembank.estimation.point_methods import target_weights, weighted_means
from itembank.estimation.response_summary import ScoreBasis
from itembank.estimation.trials import FactorModels
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import normal_reach
from itembank.responses.score_names import OVERALL
from itembank.responses.targets import ScoreTargets
from itembank.selection.criteria import CRITERIA, Criterion, DrawnItem, VOptimality, uses_cost
from itembank.selection.greedy import Bounds, askable_items, check_goal
from itembank.selection.item_worth import DesignItems, goal_matrix
from itembank.selection.select import candidates, select
from itembank.selection.selector_specs import VOptimal as VOptimalItems
from itembank.sessions.limits import Decision
from itembank.sessions.session_spec import CUSTOM, SessionSpec
from itembank.tabular import Compact

ROUNDING = 1e-9
"""Share of a budget that sums of costs may be off by rounding."""


@dataclass(frozen=True, slots=True)
class PastSessions:
    """Estimates of past models after some numbers of answers, from banks that had not seen them."""

    n_answered: FloatArray  # (n_checkpoints,): Rising
    # (n_models, n_targets): The targets are every scenario and the overall score; a custom target is the last.
    truth: FloatArray
    # (n_checkpoints, n_models, n_targets): Estimates, their errors by the item model, and the expected size of their
    # errors up to a factor, as in `PastEstimates`; NaN where a session ended before.
    value: FloatArray
    standard_error: FloatArray  # (n_checkpoints, n_models, n_targets)
    scale: FloatArray  # (n_checkpoints, n_models, n_targets)
    # (n_checkpoints, 3, n_targets): Of p-IRT and of both factor models, from all models that were tried; 1, 0, 0 where
    # p-IRT serves best.
    weights: FloatArray
    misfit: FloatArray  # (n_checkpoints, n_models)
    # (n_checkpoints, n_targets): 1 where the scale is the item model's standard errors (`PastEstimates`), else 0.
    follows_item_model: FloatArray

    @classmethod
    def create(cls, n_answered: FloatArray, truth: FloatArray) -> Self:
        """Return those of which nothing but the truth is known yet, to be filled in by `put`."""
        n_checkpoints, (n_models, n_scores) = n_answered.size, truth.shape
        of_models, of_scores = (n_checkpoints, n_models, n_scores), (n_checkpoints, n_scores)
        shapes = {
            **dict.fromkeys(("value", "standard_error", "scale"), of_models),
            "weights": (n_checkpoints, 3, n_scores),
            "misfit": of_models[:2],
            "follows_item_model": of_scores,
        }
        return cls(n_answered, truth, **{name: np.full(one, np.nan) for name, one in shapes.items()})

    def put(self, checkpoint: int, columns: IntArray, past: PastEstimates) -> None:
        """Write what was found for some targets, in place."""
        for name in ("value", "standard_error", "scale"):
            getattr(self, name)[checkpoint][:, columns] = getattr(past, name)
        # where no factor model has a say, p-IRT has all
        self.weights[checkpoint][:, columns] = [[1.0], [0.0], [0.0]] if past.weights is None else past.weights
        self.follows_item_model[checkpoint, columns] = past.follows_item_model

    @property
    def n_models(self) -> int:
        """Number of past models."""
        return int(self.truth.shape[0])

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """All arrays by name, as the bank's cache keeps them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def around(
        self,
        n: int,
        # (n_columns,): Targets to take, in this order
        columns: IntArray,
        headline: Headline | None = None,  # The score that the last of them is, where it is not the overall one
    ) -> list[tuple[PastEstimates, float]]:
        """Return what is known at the checkpoints around n answers, with shares linear in the logarithm of n.

        Before the first and after the last checkpoint that of the nearest counts alone.
        """
        last = len(self.n_answered) - 1
        after = int(np.searchsorted(self.n_answered, n))
        if after == 0:
            return [(self._at(0, columns, headline), 1.0)]
        if after > last:
            return [(self._at(last, columns, headline), 1.0)]
        low, high = np.log(self.n_answered[after - 1 : after + 1])
        fraction = float((np.log(n) - low) / (high - low))
        if fraction == 1.0:
            return [(self._at(after, columns, headline), 1.0)]
        ends = ((after - 1, 1.0 - fraction), (after, fraction))
        return [(self._at(checkpoint, columns, headline), share) for checkpoint, share in ends]

    def _at(self, checkpoint: int, columns: IntArray, headline: Headline | None) -> PastEstimates:
        found = PastEstimates(
            self.truth[:, columns],
            self.value[checkpoint][:, columns],
            self.standard_error[checkpoint][:, columns],
            self.scale[checkpoint][:, columns],
            misfit=self.misfit[checkpoint],
            weights=self.weights[checkpoint][:, columns],
            follows_item_model=float(self.follows_item_model[checkpoint, columns[-1]]) > 0.0,
        )
        return found if headline is None else replace(found, reader=reader_of(headline, found))


@dataclass(frozen=True, slots=True)
class PriceLevel:
    """How many times the expected costs a model costs: lognormal, by its answers and the past models."""

    value: float  # Mean; 1 before the first answer
    variance: float  # Of its logarithm


@dataclass(frozen=True, slots=True)
class PastPrices:
    """What past models paid in one unit: ``cost = level of the model * expected cost of the item * noise``."""

    expected: FloatArray  # (n_items,): Mean over past models; where none is known, the mean of the other items
    spread: float  # Variance over models of the logarithm of the level
    noise: float  # Variance of the noise, whose mean is 1

    @classmethod
    def of_costs(cls, costs: FloatArray) -> "PastPrices":
        """Learn from costs (n_models, n_items), NaN where unknown, each model beside the mean of all others."""
        known = np.isfinite(costs)
        n_known, total = known.sum(axis=0), np.where(known, costs, 0.0).sum(axis=0)
        mean = np.divide(total, n_known, out=np.full(n_known.shape, np.nan), where=n_known > 0)
        expected = np.where(n_known > 0, mean, mean[n_known > 0].mean() if n_known.any() else np.nan)
        logs, errors, sizes = [], 0.0, 0.0
        for own, has_own in zip(costs, known, strict=True):
            shared = has_own & (n_known > 1)
            others = (total[shared] - own[shared]) / (n_known[shared] - 1)
            if not own[shared].sum() > 0.0 or not others.sum() > 0.0:
                continue
            level = own[shared].sum() / others.sum()
            logs.append(math.log(level))
            errors += float(((own[shared] / level - others) ** 2).sum())
            sizes += float((others**2).sum())
        if len(logs) < 3:  # one model in three then costs more than 2.7 times, or less than a third of, another
            return cls(expected, 1.0, 1.0)
        # a new model, and each of its answers, may cost a fifth more or less, even where all past models cost the same
        return cls(expected, max(float(np.var(logs, ddof=1)), 0.04), max(errors / sizes, 0.04))

    def level(
        self,
        items: IntArray,  # (n_told,)
        amounts: FloatArray,  # (n_told,)
    ) -> PriceLevel:
        """Return a model's price level, given what some items cost it.

        The ratio of the sums, spent to expected, is lognormal around the level with ``v = log(1 + noise * sum(e^2) /
        sum(e)^2)``; the level is lognormal over models with mean 1. Both are multiplied.
        """
        expected = self.expected[items]
        if not expected.sum() > 0.0:
            return PriceLevel(1.0, self.spread)
        doubt = self._doubt(expected)
        # answers that cost nothing do not make all others free
        seen = math.log(max(float(amounts.sum() / expected.sum()), 1e-3)) + 0.5 * doubt
        variance = 1.0 / (1.0 / doubt + 1.0 / self.spread)
        mean = variance * (seen / doubt - 0.5)
        return PriceLevel(math.exp(mean + 0.5 * variance), variance)

    def cost_of(self, level: PriceLevel, items: IntArray) -> tuple[float, float, float]:
        """Return what some items will cost together, and the ends of the 95 % interval."""
        expected = self.expected[items]
        if not expected.sum() > 0.0:
            return 0.0, 0.0, 0.0
        value, variance = level.value * float(expected.sum()), level.variance + self._doubt(expected)
        reach = normal_reach(0.95) * math.sqrt(variance)
        return value, value * math.exp(-0.5 * variance - reach), value * math.exp(-0.5 * variance + reach)

    def _doubt(self, expected: FloatArray) -> float:
        """Variance of the logarithm of the cost of these items together at a known level."""
        return math.log1p(self.noise * float((expected**2).sum()) / float(expected.sum()) ** 2)


def lead_items(bank: Bank, spec: SessionSpec, criterion: Criterion) -> BoolArray:
    """Items that every model is asked first, (n_items,): V-optimal ones.

    The item that tells most by the item model is near the model's present estimate, which is wrong where the item model
    is. These tell much whatever the model is.
    """
    n_start, result = n_lead_items(bank, spec, criterion), np.zeros(bank.n_items, dtype=bool)
    if not n_start or not bank.calibration.is_fitted:
        return result
    wanted = spec.target if spec.target in bank.targets.scenarios else None
    method = VOptimalItems() if wanted is None else VOptimalItems({str(wanted): 1.0}, minimum_per_scenario=0)
    excluded = excluded_items(bank, spec)
    may_come = candidates(bank, method, excluded)
    n_start = min(n_start, int(may_come.sum()))
    chosen = select(bank, n_start, method=method, rng=0, excluded=excluded)
    result[bank.responses.item_indices(chosen.item_ids)] = True
    return result


def excluded_items(bank: Bank, spec: SessionSpec) -> tuple[str, ...]:
    """Return the items that sessions of this spec never ask: of scenarios of which `at_most` allows none, too.

    Unless the spec says which, those outside a bank's own items are among them.
    """
    excluded, items = spec.constraints.excluded, bank.responses.items
    if excluded is None:
        own = {item for one in bank.own_selections for item in one.item_ids}
        excluded = tuple(item for item in bank.item_ids if item not in own) if own else ()
    limits = spec.constraints.at_most
    none = [scenario for scenario, limit in limits.items() if limit == 0] if isinstance(limits, Mapping) else []
    return tuple(dict.fromkeys((*excluded, *items["item_id"].filter(items["scenario"].is_in(none)))))


def n_lead_items(bank: Bank, spec: SessionSpec, criterion: Criterion) -> int:
    """Return how many first items are the same for every model (`SessionSpec.n_start`)."""
    if spec.n_start is not None:
        return spec.n_start
    has_costs = spec.cost is not None or bool(spec.budget.costs)
    is_usual = isinstance(criterion, VOptimality) and not has_costs and isinstance(spec.target, str)
    # two thirds of the session, of 30 items where the budget does not say
    return 2 * (spec.budget.n_items or 30) // 3 if is_usual and bank.n_models else 0


def cheapest_cost(
    costs: FloatArray,  # (n_items,)
    is_open: BoolArray,  # (n_items,)
    scenario_index: IntArray,  # (n_items,)
    lacking: IntArray,  # (n_scenarios,): Items each scenario lacks
) -> tuple[float, FloatArray]:  # Total, and the dearest of them in each scenario, 0 where there is none
    """Cost of the cheapest open items that fill what each scenario lacks, or all it has where these are too few."""
    total, dearest = 0.0, np.zeros(lacking.shape)
    for scenario in np.flatnonzero(lacking):
        cheapest = np.sort(costs[is_open & (scenario_index == scenario)])[: lacking[scenario]]
        total += float(cheapest.sum())
        dearest[scenario] = cheapest[-1] if cheapest.size else 0.0
    return total, dearest


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
    bounds : Bounds
    target_weights : (n_items,)
        Of the score that is wanted.
    goal : (n_dims, n_dims) or None
        M of 'v-optimal'.
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
        What reads the answers beside the item model; None if scores are the item model's alone.
    past : PastSessions or None
        What the weights of both, and intervals, rest on; None if scores are the item model's alone.
    past_ratio : float or None
        How past models' answers vary from run to run (`past_ratio`), if repeated runs are meant.
    headline : Headline or None
        The score in place of the overall one, if one was asked for.
    is_lead : (n_items,)
        Items that every model is asked first.
    drawn : DrawnDesign or None
        What draws rest on, of criterion 'drawn'.
    past_models : PastModels
        Who the past models were and what they scored, and how many new ones are compared with.
    n_past : int
    why_not_calibrated : str
        If calibrated intervals were asked for and there are none.
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
    is_lead: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    drawn: DrawnDesign | None = None
    past_models: PastModels = field(default_factory=lambda: PastModels((), np.zeros(0)))
    n_past: int = 0
    why_not_calibrated: str = ""

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
        criterion, cost = CRITERIA.resolve(spec.criterion), spec.cost_unit
        is_drawn, excluded = isinstance(criterion, DrawnItem), excluded_items(bank, spec)
        if is_drawn:
            _check_drawn(bank, excluded)
        else:
            bank.check_item_model("An adaptive session needs")
        if excluded:
            spec = replace(spec, constraints=replace(spec.constraints, excluded=excluded))
        unit = (cost or CostUnit()) if uses_cost(criterion) else None
        positions = {item: position for position, item in enumerate(bank.item_ids)}
        custom = _custom_targets(spec.target, bank, positions)
        weights = (custom or bank.targets).target(OVERALL if custom else str(spec.target)).weights
        may_be_asked = weights > 0.0 if is_drawn else askable_items(bank, excluded)
        is_lead = lead_items(bank, spec, criterion)
        items = DesignItems.of_bank(bank, may_be_asked | is_lead, cost=unit)
        basis = ScoreBasis.of_bank(bank)
        check_goal(items, criterion, weights)
        units = {name: CostUnit(name) for name in spec.budget.costs}
        if cost is not None and cost.name in units and cost.name == TOKENS:
            units[TOKENS] = cost  # a budget's tokens are counted as the criterion does
        names = dict.fromkeys([*known_units(bank.responses), *units])
        costs = {name: response_costs(bank.responses, units.get(name, name)) for name in names}
        goal = goal_matrix(items, weights) if isinstance(criterion, VOptimality) else None
        # a scenario that may be asked in full has no limit, whatever else applies
        bounds = spec.constraints.bounds(bank.targets, items.is_candidate, spec.budget.n_items)
        available = np.bincount(items.scenario_index[items.is_candidate], minlength=items.n_scenarios)
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
            Bounds(bounds.at_least, np.where(bounds.at_most >= available, np.iinfo(np.int64).max, bounds.at_most)),
            weights,
            goal,
            basis.thresholds[bank.targets.scenario_index],
            units,
            {name: expected_cost(bank, one, needed=items.is_candidate) for name, one in units.items()},
            {name: PastPrices.of_costs(cost) for name, cost in costs.items() if np.isfinite(cost).any()},
            _decision_threshold(spec.stopping.decision, bank, custom),
            bank.targets.scenario_sizes,
            known_units(bank.responses),
            headline=bank.headline,
            is_lead=is_lead,
            past_models=bank.past_models,
            n_past=bank.n_compared_models,
        )
        if spec.estimand != RUN:
            pool = replace(pool, past_ratio=past_ratio(bank))  # a session that begins has no attempts of its own
        if is_drawn:
            pool = replace(pool, drawn=_design(pool, bank))
        decision, scores = spec.stopping.decision, pool.score_names
        wanted = [*spec.stopping.half_widths, *([] if decision is None else [decision.target])]
        unknown = [name for name in wanted if name not in scores]
        if unknown:
            raise ParameterError(
                f"a rule must name a score among {shown(scores)}, got {shown(unknown)}.{did_you_mean(unknown, scores)}"
            )
        _check_budget(pool)
        return pool

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores that sessions estimate: every scenario, 'overall', and 'custom' if there is one."""
        names = self.basis.targets.names
        return names if self.custom is None else (*names, CUSTOM)

    @property
    def bases(self) -> tuple[ScoreBasis, ...]:
        """The basis of the bank's targets, and that of the custom one if there is one."""
        return (self.basis,) if self.custom is None else (self.basis, self.custom)

    def with_factors(self, bank: Bank) -> Self:
        """Return the same pool with the factor models of its bank, for all scores that sessions estimate."""
        weights = target_weights(bank)
        if self.custom is not None:
            weights = np.column_stack([weights, self.target_weights])
        return replace(self, factors=FactorModels.of_bank(bank, weights))

    def with_seed(self, seed: int) -> Self:
        """Return the same pool for sessions with another seed."""
        return replace(self, spec=replace(self.spec, seed=seed))


def _check_drawn(bank: Bank, excluded: tuple[str, ...]) -> None:
    """Refuse banks of which items that count cannot be drawn, and scores that are no means of items."""
    if bank.headline is not None:
        raise ParameterError(
            f"criterion 'drawn' estimates means of items, and {bank.targets.last!r} is none. Take another criterion."
        )
    if excluded or bank.rest is not None:
        n = f"{len(excluded)} of them" if excluded else "those that the bank leaves out"
        raise ParameterError(
            f"criterion 'drawn' needs every item of the bank, and {n} may not be asked. Give an empty "
            "constraints.excluded if all can be run, or take another criterion."
        )


def _design(pool: SessionPool, bank: Bank) -> DrawnDesign:
    """Make ready what draws of a pool rest on."""
    if pool.custom is None:
        return DrawnDesign.of_bank(bank, target_weights(bank), pool.score_names.index(str(pool.spec.target)))
    weights = np.column_stack([target_weights(bank), pool.target_weights])
    return DrawnDesign.of_bank(bank, weights, len(pool.score_names) - 1)


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


def _decision_threshold(decision: Decision | None, bank: Bank, custom: ScoreTargets | None) -> float:
    """Return the threshold of a decision: as given, or a past model's score."""
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
    if pool.drawn is not None and not fits[pool.items.is_candidate].all():
        costs = {name: pool.expected_costs[name][pool.items.is_candidate].max() for name in budget.costs}
        raise ParameterError(
            "the budget must pay for whichever item is drawn first: got "
            f"{_amounts(budget.costs)}, and the dearest is expected to cost {_amounts(costs)}. Raise it."
        )
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
