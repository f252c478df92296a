"""Run a method on the scenarios of a bank."""

import numpy as np
import polars as pl

from itembank.data.banks import Bank
from itembank.numerics.arrays import IntArray
from itembank.selection.anchor_correctness import correctness_features
from itembank.selection.anchor_irt import irt_features
from itembank.selection.anchors import choose_anchors
from itembank.selection.pools import Choice, ScenarioPool
from itembank.selection.simple_random import choose_random
from itembank.selection.specs import AnchorCorrectness, AnchorIRT, Random, SelectionSpec, Stratified, Uncertainty
from itembank.selection.stratified import choose_stratified
from itembank.selection.uncertainty import choose_by_uncertainty, response_spread


def choose(
    bank: Bank, spec: SelectionSpec, pools: list[ScenarioPool], counts: IntArray, rng: np.random.Generator
) -> list[Choice]:
    """Choose from the pool of each scenario, in their order.

    Parameters
    ----------
    bank : Bank
    spec : spec
    pools : list of n_scenarios pools
    counts : (n_scenarios,)
        Items to choose from each pool; for a method that works on the benchmark as a whole their sum counts.
    rng : Generator
    """
    strata = _strata(bank.responses.items) if isinstance(spec, Stratified) else None
    return [
        _choose_from(bank, spec, pool, int(count), rng, strata=strata)
        for pool, count in zip(pools, counts, strict=True)
    ]


def _choose_from(
    bank: Bank,
    spec: SelectionSpec,
    pool: ScenarioPool,
    n_items: int,
    rng: np.random.Generator,
    *,
    strata: IntArray | None,
) -> Choice:
    """Run a method that works scenario by scenario on one of them."""
    match spec:
        case Random():
            return choose_random(pool, n_items, rng)
        case Stratified():
            groups = np.zeros(pool.items.shape[0], np.int64) if strata is None else strata[pool.items]
            return choose_stratified(pool, groups, n_items, rng, allocation=spec.allocation)
        case Uncertainty():
            return choose_by_uncertainty(pool, response_spread(bank, pool), n_items, rng, mixture=spec.mixture)
        case AnchorCorrectness():
            features = correctness_features(bank, pool, standardise=spec.standardise)
        case AnchorIRT():
            features = irt_features(bank, pool, standardise=spec.standardise)
    return choose_anchors(pool, features, n_items, rng, n_restarts=spec.n_restarts)


def _strata(items: pl.DataFrame) -> IntArray:
    """Return the number of each item's (scenario, subscenario), (n_items,); items without a subscenario form one."""
    groups = items.select(group=pl.struct("scenario", pl.col("subscenario").fill_null("")).rank("dense"))
    return groups["group"].cast(pl.Int64).to_numpy() - 1
