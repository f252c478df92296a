"""Sums over the items of each scenario."""

import numpy as np
import scipy

from itembank.numerics.arrays import FloatArray, IntArray

FEW_VALUES = 2**16
"""Up to so many values, building the sparse matrix takes longer than the sums themselves."""


def scenario_sums(values: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Sum values (n_models, n_items) over the items of each scenario, (n_models, n_scenarios)."""
    n_models, n_items = values.shape
    if values.size <= FEW_VALUES:
        cell = n_scenarios * np.arange(n_models)[:, None] + scenario_index
        sums = np.bincount(cell.ravel(), weights=values.ravel(), minlength=n_models * n_scenarios)
        return sums.reshape(n_models, n_scenarios).astype(np.float64)
    onto = scipy.sparse.csr_array(
        (np.ones(n_items), (scenario_index, np.arange(n_items))), shape=(n_scenarios, n_items)
    )
    result: FloatArray = (onto @ values.T).T
    return result


def scenario_items(scenario_index: IntArray, n_scenarios: int) -> list[IntArray]:
    """Positions of the items of each scenario."""
    order = np.argsort(scenario_index, kind="stable")
    ends = np.cumsum(np.bincount(scenario_index, minlength=n_scenarios))
    return np.split(order, ends[:-1])
