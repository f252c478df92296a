"""Input and output of every method of selection: the items of each scenario, and which are wanted or not."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ScenarioPool:
    """The items of one scenario."""

    # (n_pool,): Position of each item in the bank, in the order of what past models answered; of equally good items the
    # first is taken.
    items: IntArray
    weights: FloatArray  # (n_pool,): Target weight of each item within the scenario, summing to one
    is_candidate: BoolArray  # (n_pool,): Items that may be chosen; the weight of the others still has to be represented
    # (n_included,): Positions within the pool of items that must be chosen, candidates all.
    included: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen items of one scenario."""

    chosen: IntArray  # (n_chosen,): Positions within the pool, each once
    weights: FloatArray  # (n_chosen,): Summing to one
    # (n_chosen,): Probability with which each item came into the sample, among the candidates; None where it is not
    # known.
    inclusion_probabilities: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class ItemPools:
    """Items that a method may choose from, and how many to choose."""

    bank: Bank
    scenarios: tuple[ScenarioPool, ...]  # By the names of the scenarios (`ScoreTargets.by_name`)
    # (n_scenarios,): Items to choose from each pool; for a method that works on the benchmark as a whole their sum
    # counts.
    counts: IntArray
    is_per_scenario: bool  # Whether so many items of each scenario were asked for, rather than a number in all
    rng: np.random.Generator

    @property
    def n_items(self) -> int:
        """Items to choose in all."""
        return int(self.counts.sum())

    @property
    def is_short(self) -> bool:
        """Whether there are fewer items to choose than scenarios to choose from."""
        return self.n_items < sum(bool(pool.is_candidate.any()) for pool in self.scenarios)

    def each(self, choose: Callable[[ScenarioPool, int], Choice]) -> list[Choice]:
        """Choose from one scenario after the other, by a function of its pool and the number of items.

        Items that must be included represent themselves; the function chooses from the others, which the items it
        chooses represent.
        """
        return [_chosen(pool, int(count), choose) for pool, count in zip(self.scenarios, self.counts, strict=True)]


def _chosen(pool: ScenarioPool, n_items: int, choose: Callable[[ScenarioPool, int], Choice]) -> Choice:
    """Choose so many items of a scenario, among them those that must be included."""
    included = pool.included
    if n_items == 0:  # of a scenario that is excluded
        return Choice(included, np.zeros(0), np.zeros(0))
    if included.size == 0:
        return choose(pool, n_items)
    others = np.setdiff1d(np.arange(pool.items.size), included)
    own, rest = pool.weights[included], float(pool.weights[others].sum())
    if n_items == included.size:
        # What is left out had no chance to come: where it counts, no probability says how the sample was drawn.
        return Choice(included, own / own.sum(), None if rest > 0.0 else np.ones(n_items))
    choice = choose(
        ScenarioPool(pool.items[others], pool.weights[others] / rest, pool.is_candidate[others]),
        n_items - included.size,
    )
    drawn = choice.inclusion_probabilities
    return Choice(
        np.concatenate([included, others[choice.chosen]]),
        np.concatenate([own, rest * choice.weights]),
        None if drawn is None else np.concatenate([np.ones(included.size), drawn]),
    )


def not_excluded(bank: Bank, excluded: Collection[str]) -> BoolArray:
    """Whether each item is not among the excluded ids, (n_items,); `DataError` names ids that are not in the bank."""
    return ~_named(bank, excluded, "excluded")


def is_included(bank: Bank, included: Collection[str], excluded: Collection[str]) -> BoolArray:
    """Whether each item must be among the chosen ones, (n_items,)."""
    result = _named(bank, included, "included")
    both = sorted(set(included) & set(excluded))
    if both:
        raise ParameterError(f"items must not be both included and excluded, got {len(both)} of them: {shown(both)}.")
    idle = np.flatnonzero(result & (bank.targets.weights <= 0.0)).tolist()
    if idle:
        names = bank.responses.items["item_id"][idle].to_list()
        raise ParameterError(
            f"items that must be included must count in the score, and {shown(names)} have no weight in it."
        )
    return result


def _named(bank: Bank, ids: Collection[str], kind: str) -> BoolArray:
    """Whether each item is among these ids, (n_items,); `DataError` names ids that are not in the bank."""
    if not ids:
        return np.zeros(bank.n_items, dtype=bool)
    wanted = pl.Series(list(ids), dtype=pl.String)
    known = bank.responses.items["item_id"]
    absent = wanted.filter(~wanted.is_in(known.implode()))
    if absent.len():
        raise DataError(
            f"every {kind} item must be in bank {bank.bank_id}: {shown(absent.to_list())} are not."
            f"{did_you_mean(absent.to_list(), known)} Check the spelling."
        )
    return known.is_in(wanted.implode()).to_numpy()
