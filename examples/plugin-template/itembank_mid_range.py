"""Items that a middling share of past models solves (arXiv 2603.23749): good for ranks, too simple for scores."""

from dataclasses import dataclass

import numpy as np

from itembank.errors import ParameterError
from itembank.methods import Method
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.selector_specs import SelectionSpec


@dataclass(frozen=True, slots=True)
class MidRange(SelectionSpec):
    """Items that a share of past models between `low` and `high` solves; where these are too few, the nearest to it."""

    low: float = 0.3
    high: float = 0.7

    def __post_init__(self) -> None:
        """Check the choices: a spec that exists is one that can be used."""
        if not 0.0 <= self.low <= self.high <= 1.0:
            raise ParameterError(f"low and high must be 0 to 1 and in order, got {self.low} and {self.high}.")


def choose_mid_range(pools: ItemPools, spec: MidRange) -> list[Choice]:
    """Choose from one scenario after the other; chance, which comes from `pools.rng`, decides between equals."""
    pools.bank.check_responses("Items of the mid-range need")
    shares = np.nanmean(pools.bank.responses.responses, axis=0)  # (n_items,)
    outside = np.maximum.reduce([spec.low - shares, shares - spec.high, np.zeros_like(shares)])

    def choose(pool: ScenarioPool, n_items: int) -> Choice:
        distance = np.where(pool.is_candidate, outside[pool.items], np.inf)
        chosen = np.lexsort((pools.rng.permutation(distance.size), distance))[:n_items]
        return Choice(chosen, pool.weights[chosen] / pool.weights[chosen].sum())

    return pools.each(choose)


MID_RANGE = Method(MidRange, choose_mid_range)
