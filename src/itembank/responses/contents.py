"""What is in responses: how much, by scenario, and which mean their mean is."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from itembank.errors import remedy
from itembank.responses.responses import ResponseMatrix

SAME_MEAN = 0.0005
"""Means of all answers and of scenarios that differ by less are told as one."""


def about_responses(responses: ResponseMatrix) -> dict[str, Any]:
    """Return facts on all responses."""
    n_cells = responses.n_models * responses.n_items
    n_responses = n_trials = 0
    total, is_binary = 0.0, True
    for part in responses.parts():
        observed = part.observed
        n_responses += int(observed.sum())
        total += float(part.responses[observed].sum())
        is_binary &= part.is_binary
        if part.n_trials is not None:
            n_trials += int(part.n_trials[observed].sum())
    return {
        "n_models": responses.n_models,
        "n_items": responses.n_items,
        "n_scenarios": responses.items["scenario"].n_unique(),
        "n_responses": n_responses,
        "n_missing": n_cells - n_responses,
        "n_lost": 0 if responses.lost is None else int(responses.lost.n.sum()),
        "errors": None if responses.lost is None else responses.lost.errors,
        "density": n_responses / n_cells,
        "mean_response": total / n_responses if n_responses else math.nan,
        "is_binary": is_binary,
        "n_trials": None if responses.n_trials is None else n_trials,
        "costs": ", ".join(responses.costs) or None,
    }


def scenario_rows(responses: ResponseMatrix) -> list[dict[str, Any]]:
    """One row a scenario."""
    scenario = responses.items["scenario"].to_numpy()
    names = list(dict.fromkeys(scenario.tolist()))
    n_models, n_responses, total = (np.zeros(len(names)) for _ in range(3))
    for part in responses.parts():
        values = part.responses
        for number, name in enumerate(names):
            own = values[:, scenario == name]
            is_there = ~np.isnan(own)
            n_models[number] += is_there.any(axis=1).sum()
            n_responses[number] += is_there.sum()
            total[number] += np.nansum(own)
    n_items = [int(np.sum(scenario == name)) for name in names]
    return [
        {
            "scenario": name,
            "n_items": n_items[number],
            "n_models": int(n_models[number]),
            "density": float(n_responses[number] / (responses.n_models * n_items[number])),
            "mean_response": float(total[number] / n_responses[number]) if n_responses[number] else None,
        }
        for number, name in enumerate(names)
    ]


def means_in_words(about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Say which mean the mean response is, if that of scenarios is another: a bank's overall score is the latter."""
    means = [row["mean_response"] for row in rows if row["mean_response"] is not None]
    if len(means) < 2 or abs(sum(means) / len(means) - about["mean_response"]) <= SAME_MEAN:
        return ()
    micro = remedy("calibrate(responses, across='items')", "itembank calibrate --across items")
    return (
        f"mean_response is the mean of all answers (micro). A bank's overall score is the mean of its {len(means)} "
        f"scenario scores (macro), {100.0 * sum(means) / len(means):.1f} points here; "
        f"{micro} makes it micro.",
    )
