"""Which items sessions never ask, and which ones they ask every model first."""

from collections.abc import Mapping

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import BoolArray
from itembank.selection.criteria import Criterion, VOptimality
from itembank.selection.select import candidates, select
from itembank.selection.selector_specs import VOptimal
from itembank.sessions.session_spec import SessionSpec


def excluded_items(bank: Bank, spec: SessionSpec) -> tuple[str, ...]:
    """Return the items that sessions of this spec never ask: of scenarios of which `at_most` allows none, too.

    Unless the spec says which, those outside a bank's own items are among them.
    """
    excluded, items = spec.constraints.excluded, bank.responses.items
    if excluded is None:
        own = {item for one in bank.own_selections for item in one.item_ids}
        excluded = tuple(item for item in bank.item_ids if item not in own) if own else ()
    limits = spec.constraints.at_most
    none = [scenario for scenario, limit in limits.items() if limit == 0] if isinstance(limits, Mapping) else []
    return tuple(dict.fromkeys((*excluded, *items["item_id"].filter(items["scenario"].is_in(none)))))


def n_lead_items(bank: Bank, spec: SessionSpec, criterion: Criterion) -> int:
    """Return how many first items are the same for every model (`SessionSpec.n_start`)."""
    if spec.n_start is not None:
        return spec.n_start
    has_costs = spec.cost is not None or bool(spec.budget.costs)
    is_usual = isinstance(criterion, VOptimality) and not has_costs and isinstance(spec.target, str)
    # two thirds of the session, of 30 items where the budget does not say
    return 2 * (spec.budget.n_items or 30) // 3 if is_usual and bank.n_models else 0


def lead_items(bank: Bank, spec: SessionSpec, criterion: Criterion) -> BoolArray:
    """Items that every model is asked first, (n_items,): V-optimal ones.

    The item that tells most by the item model is near the model's present estimate, which is wrong where the item model
    is. These tell much whatever the model is.
    """
    n_start, result = n_lead_items(bank, spec, criterion), np.zeros(bank.n_items, dtype=bool)
    if not n_start or not bank.calibration.is_fitted:
        return result
    wanted = spec.target if spec.target in bank.targets.scenarios else None
    method = VOptimal() if wanted is None else VOptimal({str(wanted): 1.0}, minimum_per_scenario=0)
    excluded = excluded_items(bank, spec)
    may_come = candidates(bank, method, excluded)
    n_start = min(n_start, int(may_come.sum()))
    chosen = select(bank, n_start, method=method, rng=0, excluded=excluded)
    result[bank.responses.item_indices(chosen.item_ids)] = True
    return result
