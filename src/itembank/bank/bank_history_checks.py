"""What a history must be to belong to its bank, whoever wrote it."""

import numpy as np

from itembank.bank.bank_history import STATUSES, BankHistory
from itembank.bank.banks import Bank
from itembank.bank.known_targets import KnownTarget
from itembank.errors import quoted


def check_history(history: BankHistory, whole: Bank) -> None:
    """Raise `ValueError` where a history's marks and targets are not those of the items of its bank."""
    for name, marks, most in (
        ("status", history.status, len(STATUSES) - 1),
        ("since", history.since, len(history.changes)),
    ):
        if marks.shape != (whole.n_items,) or marks.min(initial=0) < 0 or marks.max(initial=0) > most:
            raise ValueError(f"{name} must be a number from 0 to {most} for each of {whole.n_items} items")
    if history.current >= len(history.targets):
        raise ValueError(f"the current target must be one of {len(history.targets)}, got {history.current}")
    names = [one.name for one in history.targets if one.name]
    digests = [one.digest for one in history.targets]
    if len(set(names)) < len(names) or len(set(digests)) < len(digests):
        raise ValueError("names and digests of targets must be unique")
    for one in history.targets:
        _check_target(one, whole)
    if not gives_what_counts(history):
        raise ValueError("the items of the current target must be those whose status counts")


def gives_what_counts(history: BankHistory) -> bool:
    """Whether the current target is that of the items that count; else it is an earlier one, asked for by its name."""
    return np.array_equal(history.targets[history.current].items, np.flatnonzero(history.counted))


def _check_target(known: KnownTarget, whole: Bank) -> None:
    """Raise `ValueError` where a target's arrays are not those of its scenarios and the bank's items."""
    n_scenarios = len(known.scenarios)
    shapes = {
        "weights": (known.weights.shape, (whole.n_items,)),
        "scenario_weights": (known.scenario_weights.shape, (n_scenarios,)),
        "item_model_bias": (known.item_model_bias.shape, (n_scenarios,)),
        "response_variance": (known.response_variance.shape, (n_scenarios,)),
    }
    for name, (shape, wanted) in shapes.items():
        if shape != wanted:
            raise ValueError(f"{name} of target {quoted(known.target_id)} must have shape {wanted}, got {shape}")
    scenarios = set(whole.responses.items["scenario"].gather(known.items).to_list())
    if not scenarios or scenarios != set(known.scenarios) or len(scenarios) < n_scenarios:
        raise ValueError(f"target {quoted(known.target_id)} must have items, and their scenarios, each once")
