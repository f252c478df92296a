"""What a run would ask and should cost, from what the bank's models spent."""

from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.harnesses.inspect.command import HarnessCall
from itembank.harnesses.inspect.task_items import TaskItems
from itembank.selection.recipes import stages_of


def expected_run(bank: Bank, known: TaskItems, call: HarnessCall) -> dict[str, Any]:
    """Return the items of a run at most, and its expected cost in each unit that the bank records.

    Parameters
    ----------
    bank : Bank
    known : TaskItems
    call : HarnessCall
    """
    arguments = call.task_arguments
    own = set(known.items.values())
    if call.task == "subset":
        wanted = [item_id for item_id in Selection.load(arguments["selection"]).item_ids if item_id in own]
        n_items = len(wanted)
    else:  # any item may be asked
        wanted = list(known.items.values())
        most = _most_items(call)
        n_items = len(wanted) if most is None else min(most, len(wanted))
    places = bank.responses.item_indices(wanted)
    costs = {
        unit: n_items * float(np.nanmean(cost[places]))
        for unit, cost in bank.responses.expected_costs().items()
        if not np.isnan(cost[places]).all()
    }
    return {"bank": bank.bank_id, "task": known.task, "n_items": n_items, "n_items_full": len(own), **costs}


def _most_items(call: HarnessCall) -> int | None:
    """Return how many items a run whose items depend on answers asks at most; None where no number was given."""
    if call.task == "stages":
        return sum(stages_of(Selection.load(call.task_arguments["selection"]))[0])
    most: int | None = call.task_arguments["session"]["budget"]["n_items"]
    return most
