"""Classical statistics against their definitions, worked out item by item."""

import numpy as np
import pytest

from itembank.auditing.item_evidence import best_models, item_rest_correlations, item_worth
from tests.auditing.panels import make_answers


def test_item_rest_correlation_of_a_small_table_worked_by_hand():
    values = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    # item 0: right for rests (2, 1), wrong for (1, 0). Means 1.5 and 0.5, sd of all four 0.7071: r = 1 / 0.7071 x 0.5
    found = item_rest_correlations(values, np.ones((4, 3), dtype=bool))
    assert found[0] == pytest.approx((1.5 - 0.5) / np.sqrt(0.5) * 0.5)


def test_item_rest_correlation_with_answers_missing_is_that_over_the_models_that_answered():
    values, _ = make_answers(n_models=40, n_items=12)
    observed = np.random.default_rng(1).random(values.shape) < 0.7
    found = item_rest_correlations(np.where(observed, values, 0.0), observed)
    for item in range(12):
        others = np.delete(np.arange(12), item)
        rows = np.flatnonzero(observed[:, item])
        rest = [values[i, others][observed[i, others]].mean() for i in rows]
        assert found[item] == pytest.approx(np.corrcoef(values[rows, item], rest)[0, 1])


def test_an_item_that_all_answer_alike_has_no_correlation():
    assert item_rest_correlations(np.eye(3) * [1.0, 1.0, 0.0], np.ones((3, 3), dtype=bool))[2] == 0.0


def test_worth_is_the_loss_of_like_items_by_alpha_without_the_item():
    values, _ = make_answers(n_models=80, n_items=10)

    def signal_to_noise(some):
        n = some.shape[1]
        alpha = n / (n - 1) * (1.0 - some.var(axis=0).sum() / some.sum(axis=1).var())
        return alpha / (1.0 - alpha)

    whole = signal_to_noise(values)
    expected = [(whole - signal_to_noise(np.delete(values, j, axis=1))) / (whole / 10) for j in range(10)]
    assert item_worth(values, np.ones(values.shape, dtype=bool)) == pytest.approx(expected)


def test_an_item_with_a_wrong_key_harms_the_ranking():
    values, _ = make_answers(n_models=200, n_items=40)
    values[:, 3] = 1.0 - values[:, 3]
    worth = item_worth(values, np.ones(values.shape, dtype=bool))
    assert worth.argmin() == 3
    assert worth[3] < 0.0
    assert np.delete(worth, 3).mean() == pytest.approx(1.0, abs=0.25)


def test_the_best_models_are_those_that_answered():
    observed = np.array([[True, False], [True, True], [True, True], [True, True], [True, True]])
    marked = best_models(np.array([5.0, 4.0, 1.0, 2.0, 3.0]), observed)
    assert np.flatnonzero(marked[:, 0]).tolist() == [0, 1, 4]
    assert np.flatnonzero(marked[:, 1]).tolist() == [1, 3, 4]
