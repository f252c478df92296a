"""The plain mean of the observed responses."""

import numpy as np

from itembank.estimation.scenario_sums import scenario_sums
from itembank.numerics.arrays import FloatArray, IntArray


def sample_mean(responses: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Mean of the observed responses in each scenario: ``sum_S Y_i / n_j``.

    It estimates the micro score whatever the target's weights are.

    Parameters
    ----------
    responses : (n_models, n_items)
        Raw; NaN where missing.
    scenario_index : (n_items,)
    n_scenarios : int

    Returns
    -------
    (n_models, n_scenarios)
        NaN where nothing was observed.
    """
    observed = ~np.isnan(responses)
    total = scenario_sums(np.where(observed, responses, 0.0), scenario_index, n_scenarios)
    count = scenario_sums(observed.astype(np.float64), scenario_index, n_scenarios)
    result: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0.0)
    return result
