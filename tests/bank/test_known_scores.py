import itertools

import numpy as np
import polars as pl
import pytest

from itembank.bank.known_scores import ENOUGH, KnownScores, fraction_answered, sampling_variance
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from tests.bank.banks import make_bank


def targets_of(*sizes, weights=None):
    scenario = [f"s{j}" for j, size in enumerate(sizes) for _ in range(size)]
    items = pl.DataFrame({"item_id": [str(i) for i in range(len(scenario))], "scenario": scenario, "subscenario": None})
    if weights is None:
        return ScoreTargets.create(items)
    return ScoreTargets.create(items.with_columns(weight=pl.Series(weights)), within="custom")


def test_all_scores_of_complete_models_are_known_exactly():
    bank = make_bank(n_models=4)
    found = bank.known_scores
    np.testing.assert_array_equal(found.value, bank.targets.with_overall(bank.scenario_scores))
    np.testing.assert_array_equal(found.variance, 0.0)
    np.testing.assert_array_equal(found.models, np.arange(4))


def test_sampling_variance_is_unbiased_over_all_draws_of_items(rng):
    responses, n = rng.random(7), 4
    drawn = np.full((35, 7), np.nan)
    for row, columns in enumerate(itertools.combinations(range(7), n)):
        drawn[row, columns] = responses[list(columns)]
    means = np.nanmean(drawn, axis=1)
    found = sampling_variance(drawn, targets_of(7))[:, 0]
    assert found.mean() == pytest.approx(np.mean((means - responses.mean()) ** 2))


def test_items_that_do_not_count_need_no_answer():
    targets = targets_of(4, weights=[0.1, 0.2, 0.7, 0.0])
    responses = np.array([[1.0, 0.0, 1.0, np.nan], [1.0, np.nan, 1.0, 0.0]])
    np.testing.assert_allclose(fraction_answered(responses, targets)[:, 0], [1.0, 0.8])
    assert sampling_variance(responses, targets)[0, 0] == 0.0
    assert sampling_variance(responses, targets)[1, 0] == 0.0  # both answers alike


def test_a_score_is_known_scenario_by_scenario():
    responses = np.tile([1.0, 0.0], (ENOUGH + 3, 10))
    responses[ENOUGH, 10:] = np.nan  # nothing of the second scenario
    responses[ENOUGH + 1, :4] = np.nan  # six tenths of the first
    responses[ENOUGH + 2, :2] = np.nan  # eight tenths
    found = KnownScores.of(ResponseMatrix.create(responses), targets_of(10, 10))
    assert found.is_known[ENOUGH:].tolist() == [[True, False, False], [False, True, False], [True, True, True]]
    assert found.n_known.tolist() == [ENOUGH + 2, ENOUGH + 2, ENOUGH + 1]
    of_scenario = 0.2 * (2.0 / 7.0) / 8.0  # (1 - f) S^2 / n
    np.testing.assert_allclose(found.variance[-1], [of_scenario, 0.0, of_scenario / 4.0])


def test_with_few_complete_models_half_of_the_items_are_enough():
    responses = np.tile([1.0, 0.0], (ENOUGH + 2, 10))
    responses[ENOUGH - 1 :, :8] = np.nan
    responses[-1, :12] = np.nan
    found = KnownScores.of(ResponseMatrix.create(responses), targets_of(20))
    np.testing.assert_array_equal(found.models, np.arange(ENOUGH + 1))


def test_one_answer_of_two_tells_no_variance_and_no_score():
    found = KnownScores.of(ResponseMatrix.create(np.array([[1.0, np.nan], [1.0, 0.0]])), targets_of(2))
    assert found.is_known.tolist() == [[False, False], [True, True]]
