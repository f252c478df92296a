"""How many items a budget in cost buys."""

from collections.abc import Callable

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import known_units, mean_cost
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, shown
from itembank.numerics.arrays import FloatArray

MOST_TRIALS = 16


def item_costs(bank: Bank, unit: str) -> FloatArray:
    """Return the expected cost of each item over the calibration models, (n_items,); the mean of all where unknown.

    Raises
    ------
    DataError
        When the responses do not have this cost.
    """
    known = known_units(bank.responses)
    costs = mean_cost(bank.responses, unit) if unit in known else np.full(bank.n_items, np.nan)
    if np.isnan(costs).all():
        raise DataError(
            f"a study of cost {unit!r} needs that column with the responses, which have "
            f"{shown(sorted(known)) or 'no costs'}."
        )
    result: FloatArray = np.where(np.isnan(costs), np.nanmean(costs), costs)
    return result


def selection_cost(bank: Bank, selection: Selection, costs: FloatArray) -> float:
    """Sum of the expected costs of the chosen items."""
    return float(costs[bank.responses.item_indices(selection.item_ids)].sum())


def largest_within(bank: Bank, choose: Callable[[int], Selection], costs: FloatArray, amount: float) -> Selection:
    """Return the largest selection found whose expected cost is within the amount.

    The number of items is searched by bisection, from below what the cheapest items would allow: methods choose a
    set as a whole, so that the first items of a larger set would not do. `choose` must give the same items for the
    same number each time.

    Raises
    ------
    ParameterError
        When even one item for each scenario costs more.
    """
    least, most = bank.targets.n_scenarios, _most_items(bank, costs, amount)
    best = choose(least)
    lowest = selection_cost(bank, best, costs)
    if lowest > amount:
        raise ParameterError(
            f"a budget of {amount:g} must pay for one item of each of {least} scenarios, which cost {lowest:g}. "
            "Give a larger amount."
        )
    guess = round(amount / float(costs.mean()))  # right for a random selection
    for _ in range(MOST_TRIALS):
        if most - least <= 1:
            break
        middle = guess if least < guess < most else (least + most) // 2
        guess = -1
        tried = choose(middle)
        if selection_cost(bank, tried, costs) <= amount:
            least, best = middle, tried
        else:
            most = middle
    return best


def _most_items(bank: Bank, costs: FloatArray, amount: float) -> int:
    """One more than could ever be bought or chosen."""
    is_open = (bank.targets.weights > 0.0) & ~bank.calibration.is_degenerate
    affordable = int(np.searchsorted(np.cumsum(np.sort(costs)), amount, side="right"))
    return min(affordable, int(is_open.sum())) + 1
