"""Making responses in [0, 1] binary, scenario by scenario, so that totals stay about the same (tinyBenchmarks 4.3)."""

from collections.abc import Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray


def scenario_thresholds(responses: FloatArray, scenarios: Sequence[str]) -> dict[str, float]:
    """Threshold of every scenario that has a response other than 0 and 1.

    Parameters
    ----------
    responses : (n_models, n_items)
        In [0, 1], NaN where missing.
    scenarios : n_items names

    Returns
    -------
    dict of scenario to threshold
        Empty for binary responses. A scenario that is binary as it stands has no entry.
    """
    names = np.asarray(scenarios, dtype=object)
    thresholds = {}
    for name in dict.fromkeys(scenarios):
        values = responses[:, names == name]
        values = values[~np.isnan(values)]
        if np.any((values != 0.0) & (values != 1.0)):
            thresholds[name] = best_threshold(values)
    return thresholds


def best_threshold(values: FloatArray) -> float:
    """Threshold c whose count of values >= c is closest to the sum of the values (tinyBenchmarks 4.3).

    The candidates are the distinct values and one just above the largest; of equally good ones the largest wins.
    """
    distinct, counts = np.unique(values, return_counts=True)
    candidates = np.append(distinct, np.nextafter(distinct[-1], np.inf))
    at_or_above = np.append(np.cumsum(counts[::-1])[::-1], 0)
    misfit = np.abs(at_or_above - values.sum())
    return float(candidates[np.flatnonzero(misfit == misfit.min())[-1]])
