"""The ordered levels of graded responses: which there are, and which an item has."""

import numpy as np

from itembank.errors import DataError, shown
from itembank.numerics.arrays import BoolArray, FloatArray

MOST_LEVELS = 12
"""Of graded responses: ten points and zero are eleven; with more, responses are as good as continuous."""


def response_levels(values: FloatArray) -> FloatArray:
    """Different values of responses (n_models, n_items), NaN where missing, in rising order.

    Raises
    ------
    DataError
        For two levels, or more than twelve.
    """
    levels = np.unique(values[~np.isnan(values)].astype(np.float64))
    if 3 <= levels.size <= MOST_LEVELS:
        return levels
    remedy = "Take 'bernoulli'" if levels.size < 3 else "Take 'beta', or round them"
    raise DataError(
        f"family 'graded' is for responses of 3 to {MOST_LEVELS} levels, got {levels.size} different values: "
        f"{shown(levels.tolist())}. {remedy}."
    )


def levels_of_items(values: FloatArray, levels: FloatArray, scenarios: list[str], item_ids: list[str]) -> BoolArray:
    """Which levels every item may have: those seen in its scenario, (n_items, n_levels).

    Parameters
    ----------
    values : (n_models, n_items)
    levels : (n_levels,)
    scenarios, item_ids : n_items names
        With a name of its own for every item, those that the item itself has shown.

    Raises
    ------
    DataError
        When items have a single level.
    """
    names, index = np.unique(scenarios, return_inverse=True)
    seen = np.zeros((names.size, levels.size), dtype=bool)
    for number, level in enumerate(levels):
        seen[np.unique(index[np.any(values == level, axis=0)]), number] = True
    has: BoolArray = seen[index]
    alone = np.flatnonzero(has.sum(axis=1) < 2)
    if alone.size:
        raise DataError(
            f"responses must have two levels or more wherever items are fitted by themselves, got one for "
            f"{shown([item_ids[item] for item in alone.tolist()])}. Leave these items out, or let them have a prior."
        )
    return has
