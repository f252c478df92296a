"""Run a method on the scenarios of a bank."""

import numpy as np
import polars as pl

from itembank.data.bank_factors import bank_factor_model
from itembank.data.banks import Bank
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.anchor_correctness import correctness_features
from itembank.selection.anchor_irt import irt_features
from itembank.selection.anchor_latent import latent_features
from itembank.selection.anchors import choose_anchors
from itembank.selection.disagreement import choose_by_disagreement
from itembank.selection.information import choose_by_information
from itembank.selection.optimal_design import choose_optimal_design
from itembank.selection.pools import Choice, ScenarioPool
from itembank.selection.simple_random import choose_random
from itembank.selection.specs import (
    AnchorCorrectness,
    AnchorIRT,
    AnchorLatent,
    Disagreement,
    Information,
    OptimalDesign,
    Random,
    ScenarioSpec,
    SelectionSpec,
    Stratified,
    Uncertainty,
    VOptimal,
)
from itembank.selection.stratified import choose_stratified
from itembank.selection.uncertainty import choose_by_uncertainty, response_spread
from itembank.selection.v_optimal import choose_v_optimal


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
    if isinstance(spec, VOptimal):
        model = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
        return choose_v_optimal(model, bank.targets, spec, pools, counts)
    if isinstance(spec, OptimalDesign):
        return choose_optimal_design(bank, spec, pools, int(counts.sum()), rng)
    shared = _shared_by_scenarios(bank, spec)
    return [
        _choose_from(bank, spec, pool, int(count), rng, shared=shared[pool.items])
        for pool, count in zip(pools, counts, strict=True)
    ]


def _shared_by_scenarios(bank: Bank, spec: ScenarioSpec) -> FloatArray:
    """Work out once, for all items, what a method needs in every scenario: (n_items, n_columns), none for most."""
    if isinstance(spec, Stratified):
        return _strata(bank.responses.items)[:, None].astype(np.float64)
    if isinstance(spec, AnchorLatent):
        return latent_features(bank_factor_model(bank, n_factors=spec.n_components))
    return np.zeros((bank.n_items, 0))


def _choose_from(
    bank: Bank,
    spec: ScenarioSpec,
    pool: ScenarioPool,
    n_items: int,
    rng: np.random.Generator,
    *,
    shared: FloatArray,
) -> Choice:
    """Run a method that works scenario by scenario on one of them."""
    match spec:
        case Random():
            return choose_random(pool, n_items, rng)
        case Stratified():
            return choose_stratified(pool, shared[:, 0].astype(np.int64), n_items, rng, allocation=spec.allocation)
        case Uncertainty():
            return choose_by_uncertainty(pool, response_spread(bank, pool), n_items, rng, mixture=spec.mixture)
        case Disagreement():
            return choose_by_disagreement(bank, pool, n_items, rng, measure=spec.measure)
        case Information():
            return choose_by_information(bank, pool, n_items)
        case AnchorCorrectness():
            features = correctness_features(bank, pool, standardise=spec.standardise)
        case AnchorIRT():
            features = irt_features(bank, pool, standardise=spec.standardise)
        case AnchorLatent():
            features = shared
    return choose_anchors(pool, features, n_items, rng, n_restarts=spec.n_restarts)


def _strata(items: pl.DataFrame) -> IntArray:
    """Return the number of each item's (scenario, subscenario), (n_items,); items without a subscenario form one."""
    groups = items.select(group=pl.struct("scenario", pl.col("subscenario").fill_null("")).rank("dense"))
    return groups["group"].cast(pl.Int64).to_numpy() - 1
