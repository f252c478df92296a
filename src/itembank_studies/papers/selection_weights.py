"""The verb `selection_weights`: which parts of a benchmark chosen items represent (tinyBenchmarks App. B)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_whole_selection
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, effective_items
from itembank.responses.score_names import OVERALL
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class SelectionWeights(Tabular):
    """Result of `selection_weights`.

    Parts are the overall score, then each scenario, followed by its subscenarios where it has more than one.

    Attributes
    ----------
    bank : str
        Id of the bank.
    table : table of one row for each part and selection
        `scenario`, 'overall' for the first part, and `subscenario`, null for a whole scenario; `n_items` of the part
        that the bank holds, and the weight of all of these in the overall score (`weight_in_score`); the `selection`,
        how many items it has of the part (`n_chosen`), their `weight`, and their effective sample size within the part
        (`effective_items`); NaN where nothing was chosen.
    selections : table of one row a selection
        `selection`, as the caller calls it, and its `method`; `n_items`; Kish's effective sample size ``(sum w)^2 / sum
        w^2`` (`effective_items`): so many items of equal weight would vary as much; the same over the number of items
        (`effective_share`, which tinyBenchmarks App. B calls ESS); `largest_weight` and `smallest_weight`.
    weights : mapping of selection to (n_selected,)
        Of each item in the overall score, the largest first.
    """

    header = ("bank", "selections")

    bank: str
    table: pl.DataFrame
    selections: pl.DataFrame
    weights: Mapping[str, FloatArray]

    @property
    def finest(self) -> pl.DataFrame:
        """Rows of the parts that have no parts: subscenarios, and scenarios without these."""
        is_part = pl.col("subscenario").is_not_null()
        return self.table.filter(pl.col("scenario") != OVERALL, is_part | ~is_part.any().over("scenario"))


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
    about = {"n_items": members.sum(axis=1), "weight_in_score": members @ targets.overall_weights}
    of_parts, of_selections, weights = [], [], {}
    for given_name, one in chosen.items():
        name, items = given_name or one.method, bank.responses.item_indices(one.item_ids)
        own = one.weights * targets.scenario_weights[targets.scenario_index[items]]
        inside, effective = members[:, items], effective_items(own)
        weights[name] = np.sort(own)[::-1]
        of_parts.append(
            {
                **about,
                "selection": [name] * len(parts),
                "n_chosen": inside.sum(axis=1),
                "weight": inside @ own,
                "effective_items": [effective_items(own[part]) for part in inside],
            }
        )
        of_selections.append(
            {
                "selection": name,
                "method": one.method,
                "n_items": own.size,
                "effective_items": effective,
                "effective_share": effective / own.size,
                "largest_weight": float(weights[name][0]),
                "smallest_weight": float(weights[name][-1]),
            }
        )
    names = {"scenario": [name for name, _ in parts], "subscenario": [name or None for _, name in parts]}
    tables = [pl.DataFrame({**names, **columns}, schema_overrides={"subscenario": pl.String}) for columns in of_parts]
    by_part = np.argsort(np.tile(np.arange(len(parts)), len(tables)), kind="stable")
    return SelectionWeights(bank.bank_id, pl.concat(tables)[by_part], pl.DataFrame(of_selections), weights)
