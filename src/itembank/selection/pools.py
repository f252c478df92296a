"""Input and output of every method of selection: the items of each scenario, as positions in the bank."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from itembank.data.banks import Bank
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ScenarioPool:
    """The items of one scenario.

    Attributes
    ----------
    items : (n_pool,)
        Position of each item in the bank, in the order of their ids; of equally good items the first is taken.
    weights : (n_pool,)
        Target weight of each item within the scenario, summing to one.
    is_candidate : (n_pool,)
        Items that may be chosen; the weight of the others still has to be represented.
    """

    items: IntArray
    weights: FloatArray
    is_candidate: BoolArray


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen items of one scenario.

    Attributes
    ----------
    chosen : (n_chosen,)
        Positions within the pool, each once.
    weights : (n_chosen,)
        Summing to one.
    inclusion_probabilities : (n_chosen,) or None
        Probability with which each item came into the sample, among the candidates; None where it is not known.
    """

    chosen: IntArray
    weights: FloatArray
    inclusion_probabilities: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class ItemPools:
    """Items that a method may choose from, and how many to choose.

    Attributes
    ----------
    bank : Bank
    scenarios : tuple of n_scenarios pools
        In the order of the bank's scenarios.
    counts : (n_scenarios,)
        Items to choose from each pool; for a method that works on the benchmark as a whole their sum counts.
    is_per_scenario : bool
        Whether so many items of each scenario were asked for, rather than a number in all.
    rng : Generator
    """

    bank: Bank
    scenarios: tuple[ScenarioPool, ...]
    counts: IntArray
    is_per_scenario: bool
    rng: np.random.Generator

    @property
    def n_items(self) -> int:
        """Items to choose in all."""
        return int(self.counts.sum())

    def each(self, choose: Callable[[ScenarioPool, int], Choice]) -> list[Choice]:
        """Choose from one scenario after the other, by a function of its pool and the number of items."""
        return [choose(pool, int(count)) for pool, count in zip(self.scenarios, self.counts, strict=True)]
