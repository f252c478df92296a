"""Item drift: planted drift is found, shifts move no item, marking stops."""

import dataclasses
import datetime

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from scipy.stats import t as student

from itembank.auditing.check import check_models
from itembank.auditing.item_drift import (
    ItemDrift,
    PastResiduals,
    find_drift,
    item_drift,
    leverages,
    marked_by_chance,
    standardised_sums,
    surest_variance,
)
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import bank, clean

pytestmark = pytest.mark.usefixtures("few_folds")


def test_sums_by_hand_have_students_distribution():
    past = PastResiduals(np.array([0.5, 0.0]), np.array([2.0, np.nan]), np.array([12, 3]))
    deviation = np.array([[1.5, 1.0], [2.5, 1.0], [3.5, 1.0], [np.nan, 1.0]])
    z, n_models = standardised_sums(deviation, past, np.array([1.5, 1.0]))
    t = (1.0 + 2.0 + 3.0) / (2.0 * np.sqrt(3 * (1 + 1.5 * 3 / 12)))
    assert_allclose(z, [norm.isf(student.sf(t, 11)), np.nan])
    assert n_models.tolist() == [3, 4]
    opposite, _ = standardised_sums(1.0 - deviation, past, np.array([1.5, 1.0]))
    assert_allclose(opposite, -z)


@pytest.mark.parametrize("n_past", [10, 20, 50])
def test_z_of_a_regression_learnt_from_few_models_is_normal(n_past):
    """Residuals from the line through few past models, of new models of another ability."""
    rng = np.random.default_rng(n_past)
    n_items, n_new = 4000, 8
    factor = rng.normal(size=n_past)
    factor = (factor - factor.mean()) / factor.std()
    answers = rng.normal(size=(n_past, n_items))
    slope = factor @ answers / n_past
    residual = answers - answers.mean(axis=0) - np.outer(factor, slope)
    # spread without the fitted line and mean, as models left out show it
    residual *= np.sqrt((n_past - 1) / (n_past - 2))
    past = PastResiduals.of(residual, np.zeros(n_items))
    new_factor = 1.2 + 0.3 * rng.normal(size=(n_new, 1))
    deviation = rng.normal(size=(n_new, n_items)) - answers.mean(axis=0) - new_factor * slope
    h = leverages(new_factor, np.ones((n_new, n_items), dtype=bool))
    z, _ = standardised_sums(deviation, past, h)
    assert np.mean(np.abs(z) > 2.5) == pytest.approx(2 * norm.sf(2.5), abs=0.008)
    assert z.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("n_new", [5, 30])
def test_by_chance_as_many_items_are_marked_as_normal_deviates_are_beyond_the_bound(n_new):
    """Also where as many new models are examined as there are past ones, whose residuals sum to nothing."""
    rng, n_items = np.random.default_rng(n_new), 3000
    residuals, seen = rng.normal(size=(30, n_items)), np.ones((n_new, n_items), dtype=bool)
    found = marked_by_chance(residuals, residuals, np.zeros(n_items), seen, n_draws=40)
    assert found / n_items == pytest.approx(2 * norm.sf(2.5), abs=0.004)


def test_past_residuals_are_means_and_spreads_where_enough_is_known():
    residuals = np.column_stack([np.arange(12.0), np.r_[np.full(5, np.nan), np.arange(7.0)], np.ones(12)])
    past = PastResiduals.of(residuals, np.zeros(3))
    assert_allclose(past.mean, [5.5, np.nan, np.nan])
    assert_allclose(past.spread, [np.std(np.arange(12.0), ddof=1), np.nan, np.nan])


def test_few_models_that_all_solve_an_item_do_not_make_it_sure():
    """By hand: twelve solved it, three of five new models fail it."""
    assert_allclose(surest_variance(np.array([12])), [1 / 14 * 13 / 14])
    hardly_spread = np.r_[np.zeros(11), 1e-3][:, None]
    past = PastResiduals.of(hardly_spread, np.ones(1))
    assert past.spread == [1.0]
    model = FactorModel(np.array([1.0]), np.zeros((1, 1)), np.array([1e-6]))
    found = find_drift(model, np.arange(1), np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), past, n_learnt=1)
    deviation = -3 / np.sqrt(1 / 14 * 13 / 14) - 5e-3 / 12
    assert_allclose(found.z, norm.isf(student.sf(deviation / np.sqrt(5 * (1 + 5 / 12)), 11)), rtol=1e-6)


def test_items_are_judged_by_those_that_are_not_marked():
    """One factor: the items that all new models fail are marked, and the others are judged without them."""
    rng = np.random.default_rng(0)
    n, n_models = 60, 30
    model = FactorModel(np.full(n, 0.6), np.full((n, 1), 0.2), np.full(n, 0.2))
    answers = 0.6 + 0.2 * rng.normal(size=(n_models, 1)) + np.sqrt(0.2) * rng.normal(size=(n_models, n))
    answers[:, :8] -= 0.8
    past = PastResiduals(np.zeros(n), np.ones(n), np.full(n, 10_000))
    found = find_drift(model, np.arange(n), answers, past, n_learnt=1)
    assert found.is_marked[:8].all()
    assert found.is_marked[8:].sum() <= 2
    alone = find_drift(model, np.arange(8, n), answers[:, 8:], PastResiduals(*(one[8:] for one in past)), n_learnt=1)
    np.testing.assert_array_equal(found.is_marked[8:], alone.is_marked)
    assert_allclose(found.z[8:], alone.z)


@pytest.fixture(scope="module")
def many():
    return clean(30, 7)


def failing(matrix, columns):
    values = matrix.responses.copy()
    values[:, columns] = 0.0
    return dataclasses.replace(matrix, responses=values)


def test_planted_drift_is_found_and_little_else(many):
    easy = np.argsort(-many.responses.mean(axis=0))[:6]
    found = item_drift(bank(), failing(many, easy))
    planted = {many.item_ids[i] for i in easy}
    marked = {one.item_id: one for one in found.drifted}
    assert planted <= set(marked)
    assert len(marked) <= 12
    assert all(marked[item].difference < -0.2 and marked[item].z < -2.5 for item in planted)
    assert "itembank bank retire" in found.verdicts[0]
    assert not found.is_limited


def test_clean_models_mark_about_as_many_items_as_chance(many):
    found = item_drift(bank(), many)
    assert len(found.items) >= 100
    assert len(found.drifted) <= 9
    assert 0.5 <= found.by_chance <= 4.0
    assert f"(about {found.by_chance:.0f} by chance)" in found.verdicts[0]


@pytest.mark.parametrize(
    ("n_marked", "by_chance", "expected"),
    [
        (0, 0.0, False),
        (1, 0.0, True),
        (1, 0.3, False),
        (2, 0.3, True),
        (3, 1.0, False),
        (4, 1.0, True),
        (30, 20.0, False),
    ],
)
def test_a_marked_item_is_beyond_chance_only_if_so_many_are_rare(n_marked, by_chance, expected):
    table = pl.DataFrame({"item_id": [f"q{k}" for k in range(n_marked)], "verdict": ["easier"] * n_marked})
    assert ItemDrift("bank", 10, "", table, by_chance, is_limited=False).is_beyond_chance is expected


def test_better_or_worse_models_move_no_item():
    rng, parameters = np.random.default_rng(3), bank().parameters
    theta = rng.normal(size=(30, parameters.n_dims)) - 0.7
    values = (rng.random((30, 120)) < probability(parameters, theta)).astype(float)
    found = item_drift(bank(), ResponseMatrix.create(values, items=bank().responses.items))
    assert len(found.drifted) <= 10


def test_no_more_than_a_fifth_is_marked_and_that_is_said(many):
    half = np.argsort(-many.responses.mean(axis=0))[:50]
    found = item_drift(bank(), failing(many, half))
    assert found.is_limited
    assert len(found.drifted) <= 24
    assert "the run or the models changed" in found.verdicts[0]
    checked = check_models(bank(), failing(many, half), only="drift")
    assert checked.suits
    assert checked.sentence.startswith("Nothing but drift was found")
    assert check_models(bank(), many, only="drift").sentence.startswith("Nothing was found")


def test_no_item_drifts_by_more_than_all_points(many):
    """Copies of one model that solves all but the easiest item, of which more than all of it is expected."""
    easiest = int(np.argmax(many.responses.mean(axis=0)))
    solved = dataclasses.replace(many, responses=np.ones(many.responses.shape))
    found = item_drift(bank(), failing(solved, [easiest]))
    assert min(one.difference for one in found.items) == -1.0


def test_one_odd_answer_moves_no_item(many):
    """An item that every model of the bank solves, and one new model does not."""
    values = bank().responses.responses.copy()
    values[:, 0] = 1.0
    known = dataclasses.replace(
        bank(), bank_id="easy", responses=dataclasses.replace(bank().responses, responses=values)
    )
    answers = many.responses.copy()
    answers[:, 0] = 1.0
    answers[0, 0] = 0.0
    found = item_drift(known, dataclasses.replace(many, responses=answers))
    assert many.item_ids[0] not in {one.item_id for one in found.drifted}


def test_only_models_since_a_day_count(many):
    days = [datetime.date(2025, 1, 1) + datetime.timedelta(days=k) for k in range(30)]
    by_type = dataclasses.replace(many, models=many.models.with_columns(released=pl.Series(days)))
    as_text = dataclasses.replace(many, models=many.models.with_columns(released=pl.Series(map(str, days))))
    expected = item_drift(bank(), many.take(models=np.arange(10, 30))).rows()
    for dated in (by_type, as_text):
        found = item_drift(bank(), dated, since="2025-01-11")
        assert found.rows() == expected
        assert (found.n_models, found.since) == (20, "2025-01-11")
    with pytest.raises(DataError, match="the newest is of 2025-01-30"):
        item_drift(bank(), by_type, since="2026-01-01")
    with pytest.raises(ParameterError, match="YYYY-MM-DD"):
        item_drift(bank(), by_type, since="January")
    with pytest.raises(ParameterError, match="got none among 'model_id'"):
        item_drift(bank(), many, since="2025-01-11")
    twice = dataclasses.replace(by_type, models=by_type.models.with_columns(seen="released"))
    assert item_drift(bank(), twice, since="2025-01-11").rows() == expected  # by the clearest name
    assert item_drift(bank(), twice, since="2025-01-11", date_column="seen").rows() == expected
    with pytest.raises(ParameterError, match="got noise among"):
        item_drift(bank(), twice, since="2025-01-11", date_column="noise")


def test_graded_answers_beside_right_and_wrong_ones_are_refused(many):
    graded = dataclasses.replace(many, responses=np.clip(many.responses, 0.3, 1.0))
    with pytest.raises(DataError, match=r"right or wrong .* 120 of 120 items have others"):
        item_drift(bank(), graded)


def test_with_two_models_there_is_nothing_to_examine(many):
    found = item_drift(bank(), many.take(models=np.arange(2)))
    assert found.items == ()
    assert "no item was answered by enough" in found.verdicts[0]
