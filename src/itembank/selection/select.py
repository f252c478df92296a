"""Choose the items that a new model should answer, by a named method."""

from collections.abc import Collection

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import ParameterError, remedy, shown
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.numerics.random import as_generator
from itembank.selection.pools import ItemPools, ScenarioPool, is_included, not_excluded
from itembank.selection.random_items import equal_counts
from itembank.selection.recipes import Recipe, recipe_of
from itembank.selection.selector_specs import METHODS, SelectionSpec


def select(
    bank: Bank,
    n_items: int,
    *,
    method: SelectionSpec | str = "anchor-irt",
    per_scenario: bool = False,
    rng: np.random.Generator | int | None = None,
    excluded: Collection[str] = (),
    included: Collection[str] = (),
) -> Selection:
    """Choose items by a named method: the public `select` without 'auto', one layer below it.

    Parameters, results and errors are those of `itembank.planning.select.select`.
    """
    spec = METHODS.resolve(method)
    if per_scenario:
        spec = spec.for_each_scenario()
    must_come = is_included(bank, included, excluded)
    is_candidate = candidates(bank, spec, excluded) | must_come
    is_short = n_items < open_scenarios(bank, excluded).size
    is_free = not per_scenario and spec.may_skip_scenarios(is_short=is_short)
    counts = _scenario_counts(bank, is_candidate, must_come, n_items, per_scenario=per_scenario, is_free=is_free)
    in_order = scenario_pools(bank, is_candidate, must_come)
    pools = ItemPools(bank, in_order, counts[bank.targets.by_name], per_scenario, as_generator(rng))
    choices = list(zip(pools.scenarios, METHODS.kernel(spec)(pools, spec), strict=True))
    positions, weights, probabilities = [], [], []
    for place in np.argsort(bank.targets.by_name).tolist():
        pool, choice = choices[place]
        # in the order of the bank, whatever order the method chose them in: a file must not depend on it
        order = np.argsort(pool.items[choice.chosen])
        positions.append(pool.items[choice.chosen[order]])
        weights.append(choice.weights[order])
        if choice.inclusion_probabilities is not None:
            probabilities.append(choice.inclusion_probabilities[order])
    absent = must_come.copy()
    absent[np.concatenate(positions)] = False
    if absent.any():  # of a method of another package
        names = [bank.item_ids[position] for position in np.flatnonzero(absent).tolist()]
        raise ParameterError(
            f"method {METHODS.name_of(spec)!r} must choose the items that are to be included, and left out "
            f"{shown(names)}. Take another method, or include none."
        )
    chosen = bank.responses.items[np.concatenate(positions).tolist()]
    is_known = len(probabilities) == len(positions) and bool(is_candidate[bank.targets.weights > 0.0].all())
    seed = int(rng) if isinstance(rng, int | np.integer) else None
    return Selection(
        tuple(chosen["item_id"].to_list()),
        tuple(chosen["scenario"].to_list()),
        np.concatenate(weights),
        METHODS.name_of(spec),
        bank.bank_id,
        seed,
        # an item that counts in the score but can never be drawn has probability zero: no design-based estimate
        # covers its part of the score
        np.concatenate(probabilities) if is_known else None,
        recipe_of(spec, n_items, per_scenario=per_scenario, excluded=excluded, included=included),
        target=bank.target_id,
        target_digest=bank.target_digest,
    )


def select_by_recipe(bank: Bank, recipe: Recipe, rng: np.random.Generator | int | None) -> Selection:
    """Choose from this bank by the recipe of an earlier selection."""
    return select(
        bank,
        recipe.n_items,
        method=recipe.spec,
        per_scenario=recipe.per_scenario,
        rng=rng,
        excluded=recipe.excluded,
        included=recipe.included,
    )


def scenario_pools(bank: Bank, is_candidate: BoolArray, must_come: BoolArray) -> tuple[ScenarioPool, ...]:
    """Give the scenarios by name, the items of each in an order that neither their names nor a file's order change."""
    order = bank.content_order.items
    by_scenario = [order[bank.targets.scenario_index[order] == scenario] for scenario in bank.targets.by_name]
    return tuple(
        ScenarioPool(items, bank.targets.weights[items], is_candidate[items], np.flatnonzero(must_come[items]))
        for items in by_scenario
    )


def open_scenarios(bank: Bank, excluded: Collection[str]) -> IntArray:
    """Scenarios with an item that counts in the score and is not excluded, (n_open,): the others are asked nothing."""
    counts = (bank.targets.weights > 0.0) & not_excluded(bank, excluded)
    return np.flatnonzero(np.bincount(bank.targets.scenario_index[counts]))  # np.unique loads more of NumPy


def candidates(bank: Bank, spec: SelectionSpec, excluded: Collection[str]) -> BoolArray:
    """Items the method may choose, (n_items,)."""
    is_open: BoolArray = (bank.targets.weights > 0.0) & not_excluded(bank, excluded)
    if spec.allow_degenerate:
        return is_open
    informative = is_open & ~bank.calibration.is_degenerate
    scenario = bank.targets.scenario_index
    n_informative = np.bincount(scenario[informative], minlength=bank.targets.n_scenarios)
    return np.where((n_informative > 0)[scenario], informative, is_open)


def _scenario_counts(
    bank: Bank, is_candidate: BoolArray, must_come: BoolArray, n_items: int, *, per_scenario: bool, is_free: bool
) -> IntArray:
    """Items to choose from each scenario, (n_scenarios,)."""
    names, n_scenarios = bank.targets.scenarios, bank.targets.n_scenarios
    capacities = np.bincount(bank.targets.scenario_index[is_candidate], minlength=n_scenarios)
    is_open = capacities > 0  # of a scenario that is excluded nothing is asked
    if not is_open.any():
        raise ParameterError("the candidate set must not be empty: every item is excluded. Exclude fewer.")
    n_included = np.bincount(bank.targets.scenario_index[must_come], minlength=n_scenarios)
    if per_scenario:
        if n_items < n_included.max():
            raise ParameterError(
                f"n_items for each scenario must be at least {n_included.max()}, what must be included in one, got "
                f"{n_items}."
            )
        short = [f"{names[j]} ({capacities[j]})" for j in np.flatnonzero(is_open & (capacities < n_items))]
        if n_items < 1 or short:
            raise ParameterError(
                f"n_items for each scenario must be from 1 to {capacities[is_open].min()}, got {n_items}"
                + (f"; fewer to choose from in {shown(short)}." if short else ".")
            )
        return np.where(is_open, n_items, 0)
    total = int(capacities.sum())
    at_least = n_included if is_free else np.maximum(n_included, is_open)
    least = max(int(at_least.sum()), 1)
    meaning = "" if is_free else " (one for each scenario)"
    if n_included.any():
        meaning = (
            f" (with the {n_included.sum()} that must be included{'' if is_free else ', and one for each scenario'})"
        )
    if not least <= n_items <= total:
        how = remedy("method='auto', 'v-optimal' or 'optimal-design'", "--method auto, v-optimal or optimal-design")
        advice = "" if is_free or n_items >= least else f" To leave scenarios out: {how}."
        raise ParameterError(
            f"n_items must be from {least}{meaning} to {total} (all that can be chosen), got {n_items}.{advice}"
        )
    order = bank.targets.by_name  # of those with as many items the first gets one more
    counts = np.empty(n_scenarios, dtype=np.int64)
    counts[order] = equal_counts(n_items, capacities[order], n_included[order])
    return counts
