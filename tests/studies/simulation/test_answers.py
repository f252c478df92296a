import numpy as np
import pytest

from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.studies.simulation import answers
from itembank.studies.simulation.answers import draw_answers, draw_missing


def items(n_items=300, seed=0):
    rng = np.random.default_rng(seed)
    return ItemParameters.create(rng.normal(size=(n_items, 2)), rng.normal(size=n_items), 0.2)


def test_responses_do_not_depend_on_the_blocks(monkeypatch):
    theta, first = np.random.default_rng(1).normal(size=(7, 2)), np.array([0, 100])
    whole = draw_answers(items(), theta, first, np.random.default_rng(2))
    monkeypatch.setattr(answers, "BLOCK_CELLS", 600)
    for one, other in zip(whole, draw_answers(items(), theta, first, np.random.default_rng(2)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_true_scores_are_mean_probabilities():
    theta = np.random.default_rng(1).normal(size=(7, 2))
    _, scores = draw_answers(items(), theta, np.array([0, 100, 101]), np.random.default_rng(2))
    chances = probability(items(), theta)
    expected = np.column_stack([chances[:, :100].mean(axis=1), chances[:, 100], chances[:, 101:].mean(axis=1)])
    np.testing.assert_allclose(scores, expected, rtol=1e-13)


def test_responses_are_as_often_right_as_their_probability_says():
    theta = np.random.default_rng(1).normal(size=(2000, 2))
    responses, _ = draw_answers(items(), theta, np.array([0]), np.random.default_rng(2))
    chances = probability(items(), theta)
    bins = np.digitize(chances, np.linspace(0.2, 1.0, 9)[1:-1])
    for one in range(8):
        told, p = responses[bins == one], chances[bins == one]
        error = np.sqrt((p * (1 - p)).sum()) / len(p)
        assert abs(told.mean() - p.mean()) < 4.5 * error


def test_as_many_are_missing_as_were_asked_for():
    missing = draw_missing(200, 3000, 0.3, np.random.default_rng(0))
    assert missing.mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 600_000))


def test_every_model_and_item_keeps_a_response():
    missing = draw_missing(4, 50, 0.99, np.random.default_rng(0))
    assert not missing.all(axis=0).any()
    assert not missing.all(axis=1).any()
    missing = draw_missing(50, 2, 0.99, np.random.default_rng(0))
    assert not missing.all(axis=1).any()
