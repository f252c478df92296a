import dataclasses

import numpy as np
import pytest

from itembank.comparison.compare import compare
from itembank.comparison.difference_tests import error_variance, least_variance, past_errors
from itembank.comparison.pairs import PairedDifferences, PairErrorModel
from itembank.estimation.asked import Asked
from itembank.estimation.estimator_specs import GPIRT, Factor
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.bank.banks import make_bank


def test_the_error_of_a_difference_lies_between_that_on_the_same_and_on_other_items():
    """``a (s_a^2 + s_b^2) + b V`` on the same items, ``s_a^2 + s_b^2`` on others, by their fraction between."""
    sizes = np.array([[0.03], [0.04]])
    variance, apart = 0.05, 0.03**2 + 0.04**2
    together = 0.5 * apart + 2.0 * variance
    errors = PairErrorModel(0.5, 2.0, 1.9, 8.0, 0.95, 0.05)
    for n_shared, expected in ((10, together), (5, together / 3.0 + apart * 2.0 / 3.0), (0, apart)):
        number = np.array([[n_shared]])
        nothing = np.zeros((1, 1))
        known = (nothing, np.full((1, 1), variance), *[nothing] * 5)
        pairs = PairedDifferences(*known, number, number, nothing, nothing)
        counts = np.array([[10], [10]]), np.array([100])
        assert error_variance(pairs, *counts, sizes, errors, target=0) == pytest.approx([expected])


def test_a_difference_that_no_item_shows_is_not_impossible():
    assert least_variance(np.array([8, 0]), 10) == pytest.approx([0.2 * 2.0 / 100.0, 2.0 / 4.0])


pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=40, n_items=150)


@pytest.fixture(scope="module")
def anchors(bank):
    return select(bank, 20, method="anchor-correctness", rng=0)


def errors_of(bank, selection, spec):
    asked = Asked.of_past(bank, selection)
    return past_errors(asked, np.ones(asked.observations.positions.size, dtype=bool), spec)


def test_of_many_models_500_from_first_to_last_are_taken():
    many = make_bank(n_models=600, n_items=60)
    drawn = select(many, 60, method="random", rng=0)
    answers = Asked.of_past(many, drawn).observations.responses
    places = [np.flatnonzero((answers == row).all(axis=1))[0] for row in errors_of(many, drawn, GPIRT())[1]]
    assert len(places) == 500
    assert (places[0], places[-1]) == (0, 599)
    assert np.diff(places).max() == 2


def test_where_the_selection_says_how_every_fold_chooses_its_own_items_which_widens_intervals():
    few = make_bank(n_models=30, n_items=150, seed=2)
    chosen = select(few, 20, method="v-optimal", rng=0)
    both = (chosen, dataclasses.replace(chosen, recipe=None))
    (honest, by_honest), (flattered, by_flattered) = (errors_of(few, one, Factor()) for one in both)
    assert honest.error[:, -1].std() > 1.3 * flattered.error[:, -1].std()
    np.testing.assert_array_equal(by_honest, by_flattered)
    items = few.responses.items[few.responses.item_indices(chosen.item_ids)]
    matrix = ResponseMatrix.create((np.random.default_rng(0).random((2, 20)) < 0.5).astype(float), items=items)
    wide, narrow = (compare(few, matrix, selection=one, method="factor").difference for one in both)
    assert (wide.high - wide.low)[0, 0] > 1.2 * (narrow.high - narrow.low)[0, 0]


def test_standard_errors_differ_by_model_and_are_as_large_as_the_errors(bank, anchors):
    found, _ = errors_of(bank, anchors, GPIRT())
    assert np.ptp(found.standard_error[:, -1]) > 0.0
    ratios = found.error / found.standard_error
    np.testing.assert_allclose(np.mean(ratios**2, axis=0), 1.0)


def test_models_without_a_known_score_teach_nothing(bank):
    values = bank.responses.responses.copy()
    values[9:, 50:] = np.nan
    few = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))
    assert errors_of(few, select(few, 20, method="random", rng=0), GPIRT()) is None
    values[9:30] = bank.responses.responses[9:30]
    more = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))
    found, _ = errors_of(more, select(more, 20, method="random", rng=0), GPIRT())
    assert found.error.shape[0] == 30
    assert not np.isnan(found.error).any()
    small = make_bank(n_models=9)
    assert errors_of(small, select(small, 6, method="random", rng=0), GPIRT()) is None
