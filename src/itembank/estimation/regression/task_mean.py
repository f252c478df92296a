"""What the calibration models scored: the estimate without, or with few, responses of the new model."""

import numpy as np

from itembank.estimation.sample_means import sample_mean
from itembank.estimation.scenario_sums import scenario_sums
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known


def predict_task_mean(
    train_responses: FloatArray,  # noqa: ARG001 - every regression estimator takes the same three
    train_scores: FloatArray,
    new_responses: FloatArray,
) -> FloatArray:
    """Mean score of the calibration models, for every new model alike (the floor, WILD 6.4).

    Parameters
    ----------
    train_responses : (n_train, n_columns)
        Not used.
    train_scores : (n_train, n_targets)
        NaN where a score is not known.
    new_responses : (n_new, n_columns)
        Only counted.

    Returns
    -------
    (n_new, n_targets)
        NaN for a target that no calibration model has a score for.
    """
    return np.repeat(mean_where_known(train_scores)[None, :], new_responses.shape[0], axis=0)


def predict_task_mean_eb(
    train_responses: FloatArray,  # noqa: ARG001 - every regression estimator takes the same three
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    scenario_index: IntArray,
    scenario_weights: FloatArray,
    strength: float = 5.0,
) -> FloatArray:
    """Mean of a Beta-binomial posterior whose prior is the calibration models' mean score.

    ``theta_t = (lambda mu_t + sum_R y) / (lambda + |R|)`` with mu_t the mean score of scenario t over the calibration
    models and R the new model's observed responses of that scenario: WILD eq. 15, where alpha = lambda mu_t and
    beta = lambda (1 - mu_t). The overall score is the weighted sum of the scenarios'.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
        Not used: the prior is made of full scores.
    train_scores : (n_train, n_scenarios + 1)
        The overall score last. NaN where a score is not known.
    new_responses : (n_new, n_columns)
        NaN where missing.
    scenario_index : (n_columns,)
        Scenario of each column.
    scenario_weights : (n_scenarios,)
        Of the overall score; they sum to one.
    strength : float
        lambda.

    Returns
    -------
    (n_new, n_scenarios + 1)
        NaN for a scenario without any known score, and so for the overall score if that scenario weighs.
    """
    n_scenarios = scenario_weights.size
    prior = mean_where_known(train_scores[:, :n_scenarios])
    observed = ~np.isnan(new_responses)
    count = scenario_sums(observed.astype(np.float64), scenario_index, n_scenarios)
    mean = np.nan_to_num(sample_mean(new_responses, scenario_index, n_scenarios))
    scenarios = (strength * prior + count * mean) / (strength + count)
    weighing = scenario_weights > 0.0
    overall = scenarios[:, weighing] @ scenario_weights[weighing]
    return np.asarray(np.clip(np.column_stack([scenarios, overall]), 0.0, 1.0))
