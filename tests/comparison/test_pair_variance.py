import numpy as np
import pytest

from itembank.comparison.compare import compare
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.pair_variance import pair_variance
from itembank.comparison.pairs import model_pairs
from itembank.errors import DataError
from itembank.estimation.observations import observe
from tests.estimation.simulated import new_models, shared_bank
from tests.estimation.test_estimands import attempted


def test_of_complete_answers_it_is_the_squared_standard_error_of_a_mean_difference():
    bank = shared_bank()
    answers = new_models(bank)
    found = pair_variance("items-like-these", bank, observe(bank, answers, None), answers)
    first, second = model_pairs(answers.n_models)
    differences = answers.responses[second] - answers.responses[first]
    for scenario, size in enumerate(bank.targets.scenario_sizes):
        items = bank.targets.scenario_index == scenario
        textbook = differences[:, items].var(axis=1, ddof=1) / size
        least = 2.0 * (size + 1.0) / size / (size + 2.0) ** 2
        np.testing.assert_allclose(found[:, scenario], np.maximum(textbook, least))
    np.testing.assert_allclose(found[:, -1], found[:, :-1] @ bank.targets.scenario_weights**2)


def test_runs_of_two_models_are_independent():
    bank = shared_bank()
    answers, _, _ = attempted(bank, 5, n_models=3)
    found = pair_variance("expected", bank, observe(bank, answers, None), answers)
    # the variances of the three models, from those of their three pairs
    single = np.linalg.solve([[1, 1, 0], [1, 0, 1], [0, 1, 1]], found[:, -1])
    rates = answers.responses
    weights = bank.targets.target("overall").weights
    np.testing.assert_allclose(single, (rates * (1.0 - rates) / 4.0) @ weights**2, rtol=0.3)


def test_models_that_answered_everything_differ_for_certain_only_in_this_run():
    bank = shared_bank()
    answers, _, _ = attempted(bank, 5, n_models=4)
    spread = {}
    for estimand in ("run", "expected", "items-like-these"):
        found = compare(bank, answers, method="paired", spec=ComparisonSpec(estimand=estimand, n_bootstrap=0))
        spread[estimand] = found.difference.high - found.difference.low
        assert found.rows()[0]["estimand"] == estimand
    assert np.all(spread["run"] < spread["expected"])
    assert np.all(spread["expected"] < spread["items-like-these"])


def test_without_repeated_attempts_expected_scores_are_not_compared():
    bank = shared_bank()
    with pytest.raises(DataError, match="repeated attempts"):
        compare(bank, new_models(bank), spec=ComparisonSpec(estimand="expected"))
