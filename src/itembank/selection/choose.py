"""The methods of selection: each function takes `ItemPools` and a spec and returns one `Choice` for each scenario."""

from collections.abc import Callable

import numpy as np
import polars as pl

from itembank.bank.bank_factors import bank_factor_model
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection import selector_specs as specs
from itembank.selection.anchors import choose_anchors, correctness_features, irt_features, latent_features
from itembank.selection.local_model import models_near_abilities
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.simple_random import choose_random
from itembank.selection.stratified import choose_stratified
from itembank.selection.v_optimal import LinearModel, choose_v_optimal


def at_random(pools: ItemPools, spec: specs.Random) -> list[Choice]:  # noqa: ARG001 (the signature of all)
    """Draw items uniformly within each scenario."""
    return pools.each(lambda pool, n_items: choose_random(pool, n_items, pools.rng))


def from_strata(pools: ItemPools, spec: specs.Stratified) -> list[Choice]:
    """Draw items within each scenario so that every subscenario is represented."""
    strata = _strata(pools.bank.responses.items)
    return pools.each(
        lambda pool, n_items: choose_stratified(
            pool, strata[pool.items], n_items, pools.rng, allocation=spec.allocation
        )
    )


def anchors_on_correctness(pools: ItemPools, spec: specs.AnchorCorrectness) -> list[Choice]:
    """Cluster items that the calibration models answered alike."""
    return _anchors(pools, spec, lambda pool: correctness_features(pools.bank, pool, standardise=spec.standardise))


def anchors_on_parameters(pools: ItemPools, spec: specs.AnchorIRT) -> list[Choice]:
    """Cluster items with similar parameters."""
    return _anchors(pools, spec, lambda pool: irt_features(pools.bank, pool, standardise=spec.standardise))


def anchors_on_components(pools: ItemPools, spec: specs.AnchorLatent) -> list[Choice]:
    """Cluster items with similar mean and loadings on the leading components of the responses."""
    features = latent_features(bank_factor_model(pools.bank, n_factors=spec.n_components))
    return _anchors(pools, spec, lambda pool: features[pool.items])


def v_optimal(pools: ItemPools, spec: specs.VOptimal) -> list[Choice]:
    """Choose the items whose responses leave the least uncertainty about the wanted scores."""
    usual = bank_factor_model(pools.bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
    models = [LinearModel(usual.loadings, usual.noise)]
    if spec.n_abilities:
        local = models_near_abilities(pools.bank, spec)
        models = [LinearModel(usual.loadings, usual.noise, 0.5)]
        models += [LinearModel(one.loadings, one.noise, 0.5 / len(local)) for one in local]
    features, targets = latent_features(usual), pools.bank.targets
    orders: dict[str, IntArray] = pools.bank.cache.remember("orders of v-optimal items", dict)
    return choose_v_optimal(models, targets, spec, pools.scenarios, pools.counts, features=features, orders=orders)


def _anchors(
    pools: ItemPools,
    spec: specs.AnchorCorrectness | specs.AnchorIRT | specs.AnchorLatent,
    features: Callable[[ScenarioPool], FloatArray],
) -> list[Choice]:
    """Cluster the items of each scenario by their features."""
    return pools.each(
        lambda pool, n_items: choose_anchors(pool, features(pool), n_items, pools.rng, n_restarts=spec.n_restarts)
    )


def _strata(items: pl.DataFrame) -> IntArray:
    """Return a number for each item's (scenario, subscenario), (n_items,); items without a subscenario form a group."""
    groups = items.select(group=pl.struct("scenario", pl.col("subscenario").fill_null("")).rank("dense"))
    return groups["group"].cast(pl.Int64).to_numpy().astype(np.int64) - 1
