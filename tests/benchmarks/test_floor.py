import numpy as np
import pytest

import itembank as ib
from benchmarks.panel.floor import sampling_errors, times_tested
from itembank_studies.split_specs import LeaveOneOut, RandomShare
from itembank_studies.splits import make_folds
from tests.studies.simulated import make_responses

RESPONSES = make_responses(n_scenarios=1)


@pytest.fixture(scope="module")
def bank():
    return ib.build_bank(RESPONSES, "map")


def test_random_sampling_errs_as_much_as_the_formula_of_simple_random_sampling_says(bank):
    n_items, answers = 20, RESPONSES.responses
    variance = answers.var(axis=1, ddof=1) / n_items * (1.0 - n_items / RESPONSES.n_items)  # Cochran 1977, eq. 2.8
    found = sampling_errors(bank, n_items, 400)
    assert found.mean() == pytest.approx(np.sqrt(2.0 * variance / np.pi).mean(), rel=0.1)


def test_a_sample_of_all_items_has_no_error(bank):
    np.testing.assert_allclose(sampling_errors(bank, bank.n_items, 2), 0.0, atol=1e-12)


def test_models_count_as_often_as_a_split_tests_them():
    models = RESPONSES.models
    assert times_tested(make_folds(LeaveOneOut(), models, 3, 0), models.height).tolist() == [3] * models.height
    drawn = times_tested(make_folds(RandomShare(), models, 3, 0), models.height)
    assert drawn.sum() == 3 * round(RandomShare().test_share * models.height)
    assert drawn.max() <= 3
