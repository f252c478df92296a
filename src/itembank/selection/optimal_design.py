"""A static optimal design: items chosen greedily at the prior mean of ability, by any criterion."""

from dataclasses import replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.anchors import irt_features, weighted_by_nearest
from itembank.selection.criteria import uses_cost, uses_information
from itembank.selection.greedy import Bounds, check_goal, next_items
from itembank.selection.item_worth import DesignItems, updated_covariance
from itembank.selection.pools import Choice, ItemPools
from itembank.selection.selector_specs import OptimalDesign


def choose_optimal_design(pools: ItemPools, spec: OptimalDesign) -> list[Choice]:
    """Choose from all scenarios at once, as a session would for a model of average ability whose answers it never sees.

    Starts from the prior of ability; each item narrows the posterior covariance as its expected information says.
    Weights are those of `weighted_by_nearest` on the item parameters: items that tell most are not typical ones, so
    that estimates should come from ability or a regression, not from the weighted mean.
    """
    # every pool that may be asked asks for the same number then
    if pools.is_per_scenario:
        n_each = int(pools.counts.max())
        if spec.at_most is not None or spec.at_least not in (0, 1):
            raise ParameterError(
                "constraints must not contradict each other: with per_scenario every scenario gets n_items = "
                f"{n_each}, got at_least={spec.at_least!r} and at_most={spec.at_most!r} too. Leave out one or the "
                "other."
            )
        spec = replace(spec, at_least=n_each, at_most=n_each)
    bank, n_items = pools.bank, pools.n_items
    if spec.at_least == 1 and pools.is_short:  # as far as the items go
        spec = replace(spec, at_least=0)
    criterion, constraints = spec.full_criterion, spec.constraints
    is_candidate = np.zeros(bank.n_items, dtype=bool)
    for pool in pools.scenarios:
        is_candidate[pool.items] = pool.is_candidate
    included = np.concatenate([pool.items[pool.included] for pool in pools.scenarios])
    n_included = np.bincount(bank.targets.scenario_index[included], minlength=bank.targets.n_scenarios)
    bounds = constraints.bounds(bank.targets, is_candidate, n_items)
    _check_room(bank, bounds, n_included, n_items)
    if bounds.at_most.sum() < n_items:
        raise ParameterError(
            f"n_items must be at most {bounds.at_most.sum()}, what at_most leaves of {is_candidate.sum()} items to "
            f"choose from, got {n_items}. Ask for fewer, or allow more of each scenario."
        )
    items = DesignItems.of_bank(bank, is_candidate, cost=spec.cost_unit if uses_cost(criterion) else None)
    wanted = {spec.target: 1.0} if isinstance(spec.target, str) else spec.target
    weighted = [share * bank.targets.target(name).weights for name, share in wanted.items()]
    target_weights: FloatArray = np.sum(weighted, axis=0)
    check_goal(items, criterion, target_weights)
    prior, is_open = bank.calibration.prior, is_candidate.copy()
    is_open[included] = False
    covariance = prior.covariance
    if included.size and uses_information(criterion):
        weights = items.weights(prior.mean)
        for item in included.tolist():
            covariance = updated_covariance(covariance, items.loadings[item], float(weights[item]))
    chosen = next_items(
        items,
        criterion,
        prior.mean,
        covariance,
        n_items - included.size,
        target_weights=target_weights,
        is_open=is_open,
        counts=n_included,
        bounds=bounds,
        n_left=n_items - included.size,
        randomesque=constraints.randomesque,
        rng=pools.rng,
    )
    choices, chosen = [], np.concatenate([included, chosen])
    for pool in pools.scenarios:
        positions = np.flatnonzero(np.isin(pool.items, chosen))
        features = irt_features(bank, pool, standardise=True) if positions.size else np.zeros((pool.items.size, 0))
        choices.append(weighted_by_nearest(pool, features, positions))
    return choices


def _check_room(bank: Bank, bounds: Bounds, n_included: IntArray, n_items: int) -> None:
    """Refuse constraints that leave no room for the items that must be included, or for others beside them."""
    full = [bank.targets.scenarios[j] for j in np.flatnonzero(n_included > bounds.at_most)]
    wanted = np.maximum(bounds.at_least, n_included).sum()
    problem = ""
    if full:
        problem = f"at_most is below the number of items that must be included in {shown(full)}"
    elif wanted > n_items:
        problem = f"at_least and the items that must be included make {wanted} in all, and {n_items} are to be chosen"
    if problem:
        raise ParameterError(f"constraints must not contradict each other: {problem}. Include fewer, or allow more.")
