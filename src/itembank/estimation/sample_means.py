"""Means of the observed responses of each scenario."""

import numpy as np

from itembank.estimation.scenario_sums import scenario_sums
from itembank.numerics.arrays import FloatArray, IntArray


def weighted_mean(responses: FloatArray, weights: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Weighted mean of the observed responses in each scenario: ``sum_S w_i Y_i / sum_S w_i`` (tinyBenchmarks eq. 3.1).

    Parameters
    ----------
    responses : (n_models, n_items)
        Raw; NaN where missing: the weights of the others are rescaled, model by model.
    weights : (n_items,)
        Non-negative.
    scenario_index : (n_items,)
    n_scenarios : int

    Returns
    -------
    (n_models, n_scenarios)
        NaN where no weight was observed.
    """
    observed = ~np.isnan(responses)
    total = scenario_sums(np.where(observed, responses, 0.0) * weights, scenario_index, n_scenarios)
    mass = scenario_sums(observed * weights, scenario_index, n_scenarios)
    result: FloatArray = np.divide(total, mass, out=np.full(total.shape, np.nan), where=mass > 0.0)
    return result


def sample_mean(responses: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Plain mean of the observed responses in each scenario, ``sum_S Y_i / n_j``; see `weighted_mean`.

    It estimates the micro score whatever the target's weights are.
    """
    return weighted_mean(responses, np.ones(responses.shape[1]), scenario_index, n_scenarios)
