"""What items cost: what past models paid, the price level of a new one, and what is left of a session's budget."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    TOKENS,
    CostUnit,
    expected_cost,
    known_units,
    response_costs,
)
from itembank.errors import ParameterError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import normal_reach
from itembank.selection.greedy import Bounds
from itembank.selection.item_worth import DesignItems
from itembank.sessions.asking import SessionState
from itembank.sessions.session_spec import SessionSpec

ROUNDING = 1e-9
"""Share of a budget that sums of costs may be off by rounding: three items of 0.1 must fit one of 0.3."""


def amount_in(costs: Mapping[str, float], unit: CostUnit) -> float | None:
    """Convert costs by unit into this unit; None where they do not hold it."""
    if unit.name in costs:
        return costs[unit.name]
    if unit.name != TOKENS or not (OUTPUT_TOKENS in costs or INPUT_TOKENS in costs):
        return None
    return costs.get(OUTPUT_TOKENS, 0.0) + unit.input_weight * costs.get(INPUT_TOKENS, 0.0)


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
        mean = total / np.maximum(n_known, 1)
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
    ) -> tuple[float, float]:
        """Return how many times the expected costs a model costs, given what some items cost it: lognormal.

        With the variance of its logarithm. The mean is 1 before the first answer.

        The ratio of the sums, spent to expected, is lognormal around the level with ``v = log(1 + noise * sum(e^2) /
        sum(e)^2)``; the level is lognormal over models with mean 1. Both are multiplied.
        """
        expected = self.expected[items]
        if not expected.sum() > 0.0:
            return 1.0, self.spread
        doubt = self._doubt(expected)
        # answers that cost nothing do not make all others free
        seen = math.log(max(float(amounts.sum() / expected.sum()), 1e-3)) + 0.5 * doubt
        variance = 1.0 / (1.0 / doubt + 1.0 / self.spread)
        mean = variance * (seen / doubt - 0.5)
        return math.exp(mean + 0.5 * variance), variance

    def cost_of(self, level: tuple[float, float], items: IntArray) -> tuple[float, float, float]:
        """Return what some items will cost together, and the ends of the 95 % interval."""
        expected = self.expected[items]
        if not expected.sum() > 0.0:
            return 0.0, 0.0, 0.0
        value, variance = level[0] * float(expected.sum()), level[1] + self._doubt(expected)
        reach = normal_reach(0.95) * math.sqrt(variance)
        return value, value * math.exp(-0.5 * variance - reach), value * math.exp(-0.5 * variance + reach)

    def _doubt(self, expected: FloatArray) -> float:
        """Variance of the logarithm of the cost of these items together at a known level."""
        return math.log1p(self.noise * float((expected**2).sum()) / float(expected.sum()) ** 2)


@dataclass(frozen=True, slots=True)
class Prices:
    """What sessions over one bank share of costs."""

    budget: Mapping[str, float]
    units: Mapping[str, CostUnit]  # Of the budget's costs
    expected: Mapping[str, FloatArray]  # (n_items,) each, in the units of the budget
    past: Mapping[str, PastPrices]  # In the units of the budget and in all others that past costs are known in
    recorded: tuple[str, ...]  # Units in which the bank's responses record costs

    @classmethod
    def of_bank(cls, bank: Bank, spec: SessionSpec, needed: BoolArray) -> Self:
        """Learn from a bank; every `needed` item must have an expected cost in the units of the budget."""
        budget, cost, recorded = spec.budget.costs, spec.cost_unit, known_units(bank.responses)
        units = {name: CostUnit(name) for name in budget}
        if cost is not None and cost.name in units and cost.name == TOKENS:
            units[TOKENS] = cost  # a budget's tokens are counted as the criterion does
        costs = {
            name: response_costs(bank.responses, units.get(name, name)) for name in dict.fromkeys([*recorded, *units])
        }
        expected = {name: expected_cost(bank, one, needed=needed) for name, one in units.items()}
        past = {name: PastPrices.of_costs(cost) for name, cost in costs.items() if np.isfinite(cost).any()}
        return cls(budget, units, expected, past, recorded)

    def check_budget(self, spec: SessionSpec, items: DesignItems, bounds: Bounds, *, whichever: bool) -> None:
        """Refuse a budget that cannot pay for one item (all, if any may come), or for what scenarios and rules need."""
        budget, stopping, is_candidate = spec.budget, spec.stopping, items.is_candidate
        if stopping.has_rules and budget.n_items is not None and stopping.min_items > budget.n_items:
            raise ParameterError(
                f"min_items must be at most the budget of items, or no precision could end a session: got "
                f"{stopping.min_items} and {budget.n_items}. Lower it, or raise the budget."
            )
        fits = is_candidate.copy()
        for name, amount in budget.costs.items():
            fits &= self.expected[name] <= amount * (1.0 + ROUNDING)
        if whichever and not fits[is_candidate].all():
            costs = {name: self.expected[name][is_candidate].max() for name in budget.costs}
            raise ParameterError(
                "the budget must pay for whichever item is drawn first: got "
                f"{_amounts(budget.costs)}, and the dearest is expected to cost {_amounts(costs)}. Raise it."
            )
        if not fits.any():
            costs = {name: self.expected[name][is_candidate].min() for name in budget.costs}
            raise ParameterError(
                "the budget must pay for at least one item, and no item to choose from is expected to cost so little: "
                f"got {_amounts(budget.costs)}, and the cheapest costs {_amounts(costs)}. Raise it."
            )
        for name, amount in budget.costs.items():
            needed, _ = cheapest_cost(self.expected[name], is_candidate, items.scenario_index, bounds.at_least)
            if needed > amount:
                raise ParameterError(
                    f"constraints must not contradict the budget: at_least asks for {bounds.at_least.sum()} items, "
                    f"which cost {needed:g} {name} at least, and the budget is {amount:g}. Ask for fewer, or raise it."
                )

    def silent_in(self, costs: Mapping[str, float]) -> list[str]:
        """Name the units of the budget that given costs are not in, so that the expected cost is counted instead."""
        return [name for name, unit in self.units.items() if amount_in(costs, unit) is None]

    def told(self, state: SessionState, name: str) -> dict[int, float]:
        """Return what answers cost, by position, where they say it in this unit."""
        unit = self.units.get(name, CostUnit(name))
        amounts = {position: amount_in(answer.costs, unit) for position, answer in state.answers.items()}
        return {position: amount for position, amount in amounts.items() if amount is not None}

    def level(self, state: SessionState, name: str) -> tuple[float, float]:
        """Return the level of the model in a unit of `past`, by what it has told so far."""
        told = self.told(state, name)
        items = np.array(sorted(told), dtype=np.int64)
        return self.past[name].level(items, np.array([told[item] for item in items.tolist()]))

    def whole(self, state: SessionState) -> dict[str, tuple[float, float, float]]:
        """Return what all items will have cost this model, by unit: what was told, and the others at its price level.

        With the ends of the 95 % interval.
        """
        costs, found = state.costs, {}
        for name, past in self.past.items():
            is_left = np.ones(past.expected.shape, dtype=bool)
            is_left[list(self.told(state, name))] = False
            spent = amount_in(costs, self.units.get(name, CostUnit(name))) or 0.0
            rest = past.cost_of(self.level(state, name), np.flatnonzero(is_left))
            found[name] = (spent + rest[0], spent + rest[1], spent + rest[2])
        return found

    def assumed(self, state: SessionState) -> dict[str, tuple[int, float]]:
        """Return how many answers and failed attempts told no cost in each unit of the budget, and what was assumed."""
        found, costs = {}, self.purse(state).costs
        for name, unit in self.units.items():
            told = self.told(state, name)
            silent = [item for item in state.answers if item not in told]
            silent += [item for item, failed in state.failed_costs if amount_in(failed, unit) is None]
            if silent:
                found[name] = (len(silent), float(np.nan_to_num(costs[name][silent]).sum()))
        return found

    def purse(self, state: SessionState) -> "Purse":
        """Return what is left of the budget, answers and failed attempts that told no cost at the expected one."""
        costs = {name: cost * self.level(state, name)[0] for name, cost in self.expected.items()}
        left = {}
        for name, most in self.budget.items():
            spent = [*((item, answer.costs) for item, answer in state.answers.items()), *state.failed_costs]
            told = [(item, amount_in(one, self.units[name])) for item, one in spent]
            amounts = [float(np.nan_to_num(costs[name][item])) if one is None else one for item, one in told]
            amounts += [float(costs[name][item]) for item in state.pending]
            left[name] = most - math.fsum(amounts)
        return Purse(left, costs, {name: ROUNDING * most for name, most in self.budget.items()})


class Purse(NamedTuple):
    """What is left of each cost in a budget, and what items would take of it."""

    left: Mapping[str, float]  # Pending items at their expected cost; negative when overspent
    costs: Mapping[str, FloatArray]  # (n_items,) each: What an item is expected to cost this model
    slack: Mapping[str, float]  # Rounding that is allowed for

    def affordable(self, is_open: BoolArray) -> BoolArray:
        """Open items whose expected cost fits what is left, (n_items,)."""
        for name, amount in self.left.items():
            is_open = is_open & (self.costs[name] <= amount + self.slack[name])
        return is_open

    def can_pay(self, is_open: BoolArray, *, whichever: bool) -> bool:
        """Whether an open item is affordable; with `whichever`, all are, since any may be drawn."""
        within = self.affordable(is_open)
        return bool(within.any()) and (not whichever or bool(within[is_open].all()))

    def after(self, item: int) -> Self:
        """Return what is left when an item is asked, too."""
        return self._replace(left={name: amount - float(self.costs[name][item]) for name, amount in self.left.items()})

    def with_reserve(self, is_open: BoolArray, scenario_index: IntArray, lacking: IntArray) -> tuple[BoolArray, bool]:
        """Affordable items that leave enough for scenarios that lack items, (n_items,), and whether there is enough.

        The reserve R is the cost of the cheapest items that the scenarios lack. An item of a scenario that lacks none
        may cost at most ``left - R``. An item of a scenario that lacks some replaces one in the reserve, and may cost
        more by the price of the dearest reserved item of its scenario. Where less than R is left, or no item fits in
        all units, all affordable items are returned.
        """
        result = self.affordable(is_open)
        if not lacking.any():
            return result, True
        allowed = result
        for name, amount in self.left.items():
            reserve, dearest = cheapest_cost(self.costs[name], result, scenario_index, lacking)
            if reserve > amount + self.slack[name]:
                return result, False
            allowed = allowed & (self.costs[name] <= (amount - reserve + dearest + self.slack[name])[scenario_index])
        if not allowed.any():  # several units, and the cheapest in one are dear in another
            return result, False
        return allowed, True


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


def _amounts(costs: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in costs.items())
