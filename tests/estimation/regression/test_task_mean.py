"""The calibration models' mean score, alone and with few responses."""

import numpy as np
from scipy import stats

from itembank.estimation.regressions import predict_task_mean, predict_task_mean_eb

SCORES = np.array([[0.2, 0.6, 0.4], [0.4, np.nan, 0.5], [0.6, 0.8, 0.7]])
SCENARIO = np.array([0, 1, 0, 1, 1, 1])
NEW = np.array([[1.0, 1.0, 1.0, 0.0, 1.0, 1.0], [0.0, np.nan, np.nan, np.nan, np.nan, np.nan]])


def test_task_mean_is_the_mean_of_the_known_scores_for_everyone():
    found = predict_task_mean(np.zeros((3, 6)), SCORES, NEW)
    np.testing.assert_allclose(found, np.tile([0.4, 0.7, 1.6 / 3.0], (2, 1)))


def test_empirical_bayes_is_the_mean_of_the_beta_posterior():
    strength, weights = 5.0, np.array([0.25, 0.75])
    found = predict_task_mean_eb(
        np.zeros((3, 6)), SCORES, NEW, scenario_index=SCENARIO, scenario_weights=weights, strength=strength
    )
    expected = np.empty((2, 2))
    for model in range(2):
        for scenario, mean in enumerate((0.4, 0.7)):
            own = NEW[model, scenario == SCENARIO]
            own = own[~np.isnan(own)]
            right, wrong = own.sum(), own.size - own.sum()
            expected[model, scenario] = stats.beta(strength * mean + right, strength * (1.0 - mean) + wrong).mean()
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-12)
    np.testing.assert_allclose(found[:, 2], expected @ weights)


def test_empirical_bayes_by_hand():
    found = predict_task_mean_eb(
        np.zeros((3, 6)), SCORES, NEW, scenario_index=SCENARIO, scenario_weights=np.array([0.5, 0.5])
    )
    np.testing.assert_allclose(found[0, :2], [(2.0 + 2.0) / 7.0, (3.0 + 3.5) / 9.0])
    np.testing.assert_allclose(found[1, :2], [(0.0 + 2.0) / 6.0, 0.7])  # nothing of the second: its mean


def test_an_unknown_scenario_that_does_not_weigh_leaves_the_overall_score_known():
    scores = SCORES.copy()
    scores[:, 1] = np.nan
    found = predict_task_mean_eb(
        np.zeros((3, 6)), scores, NEW, scenario_index=SCENARIO, scenario_weights=np.array([1.0, 0.0])
    )
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_allclose(found[:, 2], found[:, 0])
