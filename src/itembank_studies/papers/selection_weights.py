"""The verb `selection_weights`: which parts of a benchmark chosen items represent (tinyBenchmarks App. B)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_whole_selection
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, effective_items
from itembank.responses.score_names import OVERALL
from itembank.tabular import Compact, Tabular


@dataclass(frozen=True, slots=True, repr=False)
class ChosenWeights(Compact):
    """Weights of one selection.

    Attributes
    ----------
    name : str
        What the caller calls it.
    method : str
        How its items were chosen.
    weights : (n_selected,)
        Of each item in the overall score, the largest first.
    effective_items : float
        Kish's effective sample size ``(sum w)^2 / sum w^2``: so many items of equal weight would vary as much.
    n_chosen : (n_parts,)
        Items chosen of each part of the benchmark.
    part_weights : (n_parts,)
        Their weight in the overall score.
    part_effective_items : (n_parts,)
        Effective sample size within the part; NaN where nothing was chosen.
    """

    name: str
    method: str
    weights: FloatArray
    effective_items: float
    n_chosen: IntArray
    part_weights: FloatArray
    part_effective_items: FloatArray

    @property
    def n_items(self) -> int:
        """Number of chosen items."""
        return int(self.weights.size)

    @property
    def effective_share(self) -> float:
        """Effective sample size over the number of items, in (0, 1] (tinyBenchmarks App. B calls this ESS)."""
        return self.effective_items / self.n_items

    def row(self) -> dict[str, Any]:
        """One record of plain numbers."""
        return {
            "selection": self.name,
            "method": self.method,
            "n_items": self.n_items,
            "effective_items": self.effective_items,
            "effective_share": self.effective_share,
            "largest_weight": float(self.weights[0]),
            "smallest_weight": float(self.weights[-1]),
        }


@dataclass(frozen=True, slots=True, repr=False)
class SelectionWeights(Tabular):
    """Result of `selection_weights`.

    Parts are the overall score, then each scenario, followed by its subscenarios where it has more than one.

    Attributes
    ----------
    bank : str
        Id of the bank.
    scenarios : tuple of n_parts names
        Of the part; 'overall' for the first.
    subscenarios : tuple of n_parts names
        Of the part; empty for a whole scenario.
    n_items : (n_parts,)
        Items of the part that the bank holds.
    score_weights : (n_parts,)
        Weight of all of these in the overall score.
    selections : tuple of ChosenWeights
    """

    bank: str
    scenarios: tuple[str, ...]
    subscenarios: tuple[str, ...]
    n_items: IntArray
    score_weights: FloatArray
    selections: tuple[ChosenWeights, ...]

    @property
    def finest(self) -> tuple[int, ...]:
        """Places of the parts that have no parts: subscenarios, and scenarios without these."""
        split = {name for name, part in zip(self.scenarios, self.subscenarios, strict=True) if part} | {OVERALL}
        parts = enumerate(zip(self.scenarios, self.subscenarios, strict=True))
        return tuple(place for place, (name, part) in parts if part or name not in split)

    def rows(self) -> list[dict[str, Any]]:
        """One record for each part and selection."""
        return [
            {
                "scenario": self.scenarios[k],
                "subscenario": self.subscenarios[k] or None,
                "n_items": int(self.n_items[k]),
                "weight_in_score": float(self.score_weights[k]),
                "selection": one.name,
                "n_chosen": int(one.n_chosen[k]),
                "weight": float(one.part_weights[k]),
                "effective_items": float(one.part_effective_items[k]),
            }
            for k in range(len(self.scenarios))
            for one in self.selections
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the bank's id, and one record for each selection."""
        return {"bank": self.bank, "selections": [one.row() for one in self.selections]}


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
    targets = bank.targets
    named = np.array(bank.responses.items["subscenario"].fill_null(NO_SUBSCENARIO).to_list(), dtype=object)
    parts = {(OVERALL, ""): np.ones(bank.n_items, dtype=bool)}  # which items belong to each, (n_items,)
    for j, scenario in enumerate(targets.scenarios):
        is_inside = targets.scenario_index == j
        parts[scenario, ""] = is_inside
        subscenarios = sorted(set(named[is_inside]))
        if len(subscenarios) > 1:
            parts |= {(scenario, name): is_inside & (named == name) for name in subscenarios}
    members = np.stack(list(parts.values()))
    return SelectionWeights(
        bank.bank_id,
        tuple(name for name, _ in parts),
        tuple(name for _, name in parts),
        members.sum(axis=1),
        members @ targets.overall_weights,
        tuple(_chosen(bank, name or one.method, one, members) for name, one in chosen.items()),
    )


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
