"""Standard error of the mean win rate, by simulation of the scenario scores."""

import numpy as np

from itembank.data.targets import mean_win_rate
from itembank.numerics.arrays import FloatArray

N_DRAWS = 400


def win_rate_standard_error(
    scenario_scores: FloatArray, covariance: FloatArray, reference_scores: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Root mean squared change of the mean win rate when scenario scores are drawn anew, (n_models,).

    The win rate is a step function of the scores, so its error is found by drawing from their joint normal
    instead of by a derivative.

    Parameters
    ----------
    scenario_scores : (n_models, n_scenarios)
    covariance : (n_models, n_scenarios, n_scenarios)
        Expected squared errors of the scenario scores and their products.
    reference_scores : (n_reference, n_scenarios)
    rng : Generator
    """
    n_models, n_scenarios = scenario_scores.shape
    eigenvalues, vectors = np.linalg.eigh(covariance)
    # a root by eigenvalues, not Cholesky: the covariance is singular where a scenario is known completely
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))[:, None, :]  # (n_models, n_scenarios, n_scenarios)
    normal = rng.standard_normal((N_DRAWS, n_scenarios))  # the same for all models: permuting them changes nothing
    draws = scenario_scores[:, None, :] + normal @ root.transpose(0, 2, 1)  # (n_models, n_draws, n_scenarios)
    sampled = mean_win_rate(np.clip(draws, 0.0, 1.0).reshape(-1, n_scenarios), reference_scores)
    centre = mean_win_rate(scenario_scores, reference_scores)
    result: FloatArray = np.sqrt(np.mean((sampled.reshape(n_models, N_DRAWS) - centre[:, None]) ** 2, axis=1))
    return result
