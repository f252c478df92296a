"""Sums over the items of each scenario."""

import numpy as np
from scipy.sparse import csr_array

from itembank.numerics.arrays import FloatArray, IntArray


def scenario_sums(values: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Sum values (n_models, n_items) over the items of each scenario, (n_models, n_scenarios)."""
    if values.shape[0] == 1:  # making the sparse matrix would take longer than the sums
        sums: FloatArray = np.bincount(scenario_index, weights=values[0], minlength=n_scenarios).astype(np.float64)
        return sums[None]
    n_items = scenario_index.shape[0]
    onto = csr_array((np.ones(n_items), (scenario_index, np.arange(n_items))), shape=(n_scenarios, n_items))
    result: FloatArray = (onto @ values.T).T
    return result


def scenario_items(scenario_index: IntArray, n_scenarios: int) -> list[IntArray]:
    """Positions of the items of each scenario."""
    order = np.argsort(scenario_index, kind="stable")
    ends = np.cumsum(np.bincount(scenario_index, minlength=n_scenarios))
    return np.split(order, ends[:-1])
