"""Cost to reserve so that every scenario can still get the items that it must have."""

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


def cheapest_cost(
    costs: FloatArray, is_open: BoolArray, scenario_index: IntArray, lacking: IntArray
) -> tuple[float, FloatArray]:
    """Cost of the cheapest open items that fill what each scenario lacks, or all it has where these are too few.

    Parameters
    ----------
    costs : (n_items,)
    is_open : (n_items,)
    scenario_index : (n_items,)
    lacking : (n_scenarios,)
        Items each scenario lacks.

    Returns
    -------
    total : float
    dearest : (n_scenarios,)
        Cost of the dearest of them in each scenario, 0 where there is none.
    """
    total, dearest = 0.0, np.zeros(lacking.shape)
    for scenario in np.flatnonzero(lacking):
        cheapest = np.sort(costs[is_open & (scenario_index == scenario)])[: lacking[scenario]]
        total += float(cheapest.sum())
        dearest[scenario] = cheapest[-1] if cheapest.size else 0.0
    return total, dearest
