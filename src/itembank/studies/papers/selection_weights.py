"""The verb `selection_weights`: which parts of a benchmark chosen items stand for (tinyBenchmarks App. B)."""

from collections.abc import Mapping

import numpy as np

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_whole_selection
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.numerics.arrays import BoolArray, effective_items
from itembank.responses.score_names import OVERALL
from itembank.studies.papers.selection_weights_results import ChosenWeights, SelectionWeights

NO_SUBSCENARIO = "(none)"


def selection_weights(bank: GivenBank, selections: GivenSelection | Mapping[str, GivenSelection]) -> SelectionWeights:
    """Say how chosen items share out the weight of the overall score.

    An item's weight is that within its scenario, which `select` gave it, times the scenario's weight in the overall
    score. It is what the item counts in the weighted mean of answers ('weighted', and the first half of 'gp-irt').

    Parameters
    ----------
    bank : Bank or path
    selections : Selection, path, or mapping of names to these
        Of a later stage, the items of all stages together. A single one is called by its method.

    Returns
    -------
    SelectionWeights

    Raises
    ------
    ParameterError
        Without a selection.
    BankError, DataError
        When a file cannot be read, or a selection names items that are not in the bank.

    Examples
    --------
    >>> chosen = {method: select(bank, 100, method=method) for method in ("anchor-irt", "anchor-correctness")}
    >>> print(selection_weights(bank, chosen))  # doctest: +SKIP
    """
    bank = as_bank(bank)
    given = selections if isinstance(selections, Mapping) else {"": selections}
    chosen = {name: one for name, path in given.items() if (one := as_whole_selection(path)) is not None}
    if not chosen:
        raise ParameterError("selections must name at least one selection, got none.")
    parts = _parts(bank)
    members = np.stack(list(parts.values()))
    return SelectionWeights(
        bank.bank_id,
        tuple(scenario for scenario, _ in parts),
        tuple(subscenario for _, subscenario in parts),
        members.sum(axis=1),
        members @ bank.targets.overall_weights,
        tuple(_chosen(bank, name or one.method, one, members) for name, one in chosen.items()),
    )


def _parts(bank: Bank) -> dict[tuple[str, str], BoolArray]:
    """Which items (n_items,) belong to each part, by scenario and subscenario."""
    targets = bank.targets
    subscenario = np.array(bank.responses.items["subscenario"].fill_null(NO_SUBSCENARIO).to_list(), dtype=object)
    parts = {(OVERALL, ""): np.ones(bank.n_items, dtype=bool)}
    for j, scenario in enumerate(targets.scenarios):
        is_inside = targets.scenario_index == j
        parts[scenario, ""] = is_inside
        names = sorted(set(subscenario[is_inside]))
        if len(names) > 1:
            parts |= {(scenario, name): is_inside & (subscenario == name) for name in names}
    return parts


def _chosen(bank: Bank, name: str, selection: Selection, members: BoolArray) -> ChosenWeights:
    """Weights of one selection, from which items (n_parts, n_items) belong to each part."""
    items = bank.responses.item_indices(selection.item_ids)
    weights = selection.weights * bank.targets.scenario_weights[bank.targets.scenario_index[items]]
    inside = members[:, items]
    return ChosenWeights(
        name,
        selection.method,
        np.sort(weights)[::-1],
        effective_items(weights),
        inside.sum(axis=1),
        inside @ weights,
        np.array([effective_items(weights[one]) for one in inside]),
    )
