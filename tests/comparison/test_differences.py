import dataclasses

import numpy as np
import pytest
from scipy.stats import t

from itembank.comparison.compare import compare
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.difference_tests import (
    Evidence,
    error_variance,
    intervals_and_tests,
    learn_errors,
    least_variance,
    past_errors,
)
from itembank.comparison.pairs import PairedDifferences, PairErrorModel, fit_pair_errors, model_pairs
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates
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


def test_intervals_by_hand_turn_round_with_their_limits():
    """Of a difference with Student's errors, and of one that is known."""
    numbers = ([0.9, 0.3], [0.02**2, 0.0], [0.0, 0.0], [0.0, 0.1], [0.9, 0.4], [9.0, 9.0], [1.3, 1.0])
    found = Evidence(*(np.array(one)[:, None] for one in numbers), is_of_run=True)
    scores, _ = intervals_and_tests(found, ComparisonSpec())
    half = np.array([1.3 * t.ppf(0.975, 9) * 0.02, 0.0])
    np.testing.assert_allclose(scores.low[:, 0], found.difference[:, 0] - half)
    np.testing.assert_allclose(scores.high[:, 0], found.difference[:, 0] + half)
    np.testing.assert_allclose(scores.standard_error[:, 0], [0.02, 0.0], atol=1e-12)
    limited = found._replace(least=0.88, most=0.91)
    np.testing.assert_allclose(np.array(limited.turned.bounds(0.95))[:, 0], [[-0.91], [-0.88]])


def test_errors_of_pairs_are_learnt_from_models_whose_errors_are_known(rng):
    size = rng.uniform(0.01, 0.1, (20, 1))
    errors, (first, second) = size * rng.normal(size=(20, 1)), model_pairs(20)
    disagreement, errors[3] = rng.random((first.size, 1)) * 0.01, np.nan
    (found,) = learn_errors(PastEstimates(0.0 * size, errors, size, size), disagreement, np.array([0]), level=0.95)
    usable = (first != 3) & (second != 3)
    independent = (size[first, 0] ** 2 + size[second, 0] ** 2)[usable]
    about = np.delete(errors[:, 0], 3), disagreement[usable, 0], *model_pairs(19)
    assert found == fit_pair_errors(*about, independent=independent, level=0.95)


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
