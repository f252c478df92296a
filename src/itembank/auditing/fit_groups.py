"""Groups of items whose answers are compared with those to other items."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from itembank.auditing.fit_statistics import ItemGroup
from itembank.bank.bank_views import aside_items
from itembank.bank.banks import Bank
from itembank.errors import DataError, DataWarning, ParameterError, remedy, shown, warn
from itembank.estimation.observations import bank_positions
from itembank.numerics.arrays import BoolArray

NAMED = "named"
OTHERS = "all others"
"""Name of the items that are suspected where only a reference is given."""


def item_groups(
    bank: Bank, named: Mapping[str, Sequence[str]], reference: Sequence[str] | None
) -> tuple[ItemGroup, ...]:
    """Return the scenarios, the subscenarios and the named groups of a bank's items.

    A scenario is compared with all other items; a named group with the reference where there is one, else with all
    other items. A reference without a named group is compared with all items outside it. Items of lists that the bank
    keeps aside are left out, with a `DataWarning`.

    Raises
    ------
    DataError
        When an item is not in the bank.
    ParameterError
        When a group and the reference share items, or a group has none, or all items.
    """
    trusted = None if reference is None else _marked(bank, reference, "the reference")
    marked = {name: _marked(bank, ids, f"group {name!r}") for name, ids in named.items()}
    if trusted is not None and not marked:
        marked = {OTHERS: ~trusted}
    _check(bank, marked, trusted)
    by_hand = [ItemGroup(name, NAMED, one, ~one if trusted is None else trusted) for name, one in marked.items()]
    return (*_of_table(bank), *by_hand)


def _of_table(bank: Bank) -> Iterator[ItemGroup]:
    """Scenarios, where there are several, and their subscenarios, where they are others."""
    items = bank.responses.items
    scenarios = items["scenario"].to_numpy()
    names = bank.targets.scenarios
    if len(names) > 1:
        for name in names:
            yield ItemGroup(name, "scenario", scenarios == name, scenarios != name)
    parts = items.select(pl.struct("scenario", "subscenario").alias("part"))["part"]
    for scenario, part in items.select("scenario", "subscenario").drop_nulls().unique(maintain_order=True).iter_rows():
        inside = (parts.struct.field("scenario") == scenario) & (parts.struct.field("subscenario") == part)
        is_member = inside.fill_null(value=False).to_numpy()
        if 0 < is_member.sum() < np.sum(scenarios == scenario):
            yield ItemGroup(f"{scenario}/{part}", "subscenario", is_member, ~is_member)


def _marked(bank: Bank, item_ids: Sequence[str], source: str) -> BoolArray:
    """Mark those items of a list that count, (n_items,)."""
    if isinstance(item_ids, str):
        raise ParameterError(f"{source} must be a sequence of item ids, got the text {item_ids!r}.")
    aside = dict.fromkeys(aside_items(bank, item_ids))
    if aside:
        warn(
            f"{len(aside)} of {len(item_ids)} items of {source} count no more in the score of bank {bank.bank_id} and "
            f"are left out: {shown(list(aside))}.",
            DataWarning,
        )
    counting = pl.Series([item for item in item_ids if item not in aside], dtype=pl.String)
    result = np.zeros(bank.n_items, dtype=bool)
    result[bank_positions(bank, counting, source)] = True
    return result


def _check(bank: Bank, marked: Mapping[str, BoolArray], trusted: BoolArray | None) -> None:
    """Refuse groups that leave nothing to compare."""
    for name, is_member in marked.items():
        if not is_member.any() or is_member.all():
            raise ParameterError(
                f"group {name!r} must hold some of the {bank.n_items} items of the bank and not all, got "
                f"{int(is_member.sum())}."
            )
        both = [] if trusted is None else np.flatnonzero(is_member & trusted).tolist()
        if both:
            ids = [bank.responses.item_ids[position] for position in both]
            raise ParameterError(
                f"group {name!r} and the reference ({remedy('reference=', '--reference')}) must share no item, got "
                f"{len(both)} that are in both: {shown(ids)}."
            )
    if trusted is not None and not trusted.any():
        raise DataError("the reference must hold at least one item, got none.")
