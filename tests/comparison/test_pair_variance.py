import numpy as np
import pytest

from itembank.comparison.compare import compare, pair_variance
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.errors import DataError
from itembank.estimation.observations import observe
from tests.estimation.simulated import new_models, shared_bank
from tests.estimation.test_estimands import attempted


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
    for estimand in ("run", "expected"):
        found = compare(bank, answers, method="paired", spec=ComparisonSpec(estimand=estimand, n_bootstrap=0))
        spread[estimand] = found.difference.high - found.difference.low
        assert found.rows()[0]["estimand"] == estimand
    assert np.all(spread["run"] < spread["expected"])


def test_without_repeated_attempts_expected_scores_are_not_compared():
    bank = shared_bank()
    with pytest.raises(DataError, match="repeated attempts"):
        compare(bank, new_models(bank), spec=ComparisonSpec(estimand="expected"))
