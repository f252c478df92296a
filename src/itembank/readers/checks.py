"""Checks of rows: every problem of a source is collected before one error is raised."""

import numpy as np

from itembank.errors import N_SHOWN, first_few, quoted, remedy
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.rows import ResponseRows


def row_problems(rows: ResponseRows, *, max_response: float = 1.0) -> list[str]:
    """Say what is wrong with the numbers of these rows."""
    return [
        *_response_problems(rows, max_response),
        *_trial_problems(rows),
        *(problem for unit, cost in rows.costs.items() for problem in _cost_problems(rows, unit, cost)),
    ]


def _response_problems(rows: ResponseRows, max_response: float) -> list[str]:
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero((rows.response < 0.0) | (rows.response > 1.0))
    if outside.size == 0:
        return []
    n_models = np.unique(rows.models.index[outside]).size
    values = rows.response[outside]
    divided = "" if max_response == 1.0 else f" after division by {max_response:g}"
    top = float(values.max())
    # A common mistake has its own advice: percentages.
    advice = (
        f"Percentages are divided by 100 with {remedy('max_response=100', '--max-response 100')}."
        if max_response == 1.0 and 2.0 < top <= 100.0 and float(values.min()) >= 0.0
        else f"Rescale them ({remedy('max_response=...', '--max-response')}) or drop them."
    )
    return [
        f"response must lie in [0, 1]{divided}, got {outside.size} values outside for {n_models} of "
        f"{rows.models.n_names} models: {rows.describe(outside)}. {advice}"
    ]


def _trial_problems(rows: ResponseRows) -> list[str]:
    if rows.n_trials is None:
        return []
    bad = np.flatnonzero(rows.n_trials < 0)
    if bad.size == 0:
        return []
    return [f"n_trials must be a whole number of at least 1, got something else for {_pairs(rows, bad)}."]


def _cost_problems(rows: ResponseRows, unit: str, cost: FloatArray) -> list[str]:
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero((cost < 0.0) | np.isinf(cost))
    if bad.size == 0:
        return []
    return [f"{unit} must be a finite number of at least 0, got {cost[bad[0]]:g} and the like for {_pairs(rows, bad)}."]


def _pairs(rows: ResponseRows, which: IntArray) -> str:
    """Count these rows and name the first few."""
    first = which[:N_SHOWN]
    names = zip(rows.models.at(first), rows.items.at(first), strict=True)
    pairs = [f"{quoted(model)} item {quoted(item)}" for model, item in names]
    return f"{which.size} rows: {first_few(pairs, which.size)}"
