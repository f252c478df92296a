"""Scores of answer options against a plain loop over models, items and options."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from itembank.responses.choice_scores import (
    bits_per_byte,
    choice_accuracy,
    choice_probability,
    probability_per_character,
)

TEXTS = [["Paris", "Rome"], ["zwölf", "13", "fourteen"], ["a", "bb", "ccc"]]
CORRECT = np.array([1, 0, 2])


@pytest.fixture
def padded() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-likelihoods of 4 models (4, 3, 3), characters and bytes (3, 3)."""
    rng = np.random.default_rng(7)
    log_likelihood = -rng.exponential(4.0, (4, 3, 3))
    characters, n_bytes = np.full((3, 3), np.nan), np.full((3, 3), np.nan)
    for item, texts in enumerate(TEXTS):
        log_likelihood[:, item, len(texts) :] = np.nan
        characters[item, : len(texts)] = [len(text) for text in texts]
        n_bytes[item, : len(texts)] = [len(text.encode()) for text in texts]
    return log_likelihood, characters, n_bytes


def test_scores_are_those_of_a_loop_over_the_options(padded: tuple[np.ndarray, ...]) -> None:
    log_likelihood, characters, n_bytes = padded
    found = (
        choice_accuracy(log_likelihood, CORRECT),
        choice_accuracy(log_likelihood, CORRECT, characters),
        choice_probability(log_likelihood, CORRECT),
        probability_per_character(log_likelihood, CORRECT, characters),
        bits_per_byte(log_likelihood, CORRECT, n_bytes),
    )
    for model in range(4):
        for item, (texts, right) in enumerate(zip(TEXTS, CORRECT.tolist(), strict=True)):
            values = log_likelihood[model, item, : len(texts)].tolist()
            per_character = [value / len(text) for value, text in zip(values, texts, strict=True)]
            expected = (
                float(values.index(max(values)) == right),
                float(per_character.index(max(per_character)) == right),
                softmax(values)[right],
                math.exp(per_character[right]),
                -values[right] / math.log(2.0) / len(texts[right].encode()),
            )
            assert [score[model, item] for score in found] == pytest.approx(expected, rel=1e-13)


def test_uniform_models_fair_coins_and_ties_by_hand():
    log_likelihood = np.array([[-3.0, -3.0, np.nan], [-700.0, -700.0, -700.0]])
    assert choice_probability(log_likelihood, np.array([1, 2])) == pytest.approx([1 / 2, 1 / 3])
    log_likelihood = np.array([[5 * math.log(0.5)]])
    assert bits_per_byte(log_likelihood, np.array([0]), np.array([[5.0]])) == pytest.approx([1.0])
    assert probability_per_character(log_likelihood, np.array([0]), np.array([[5.0]])) == pytest.approx([0.5])
    log_likelihood = np.array([[-1.0, -1.0]])
    assert choice_accuracy(log_likelihood, np.array([0])).tolist() == [1.0]
    assert choice_accuracy(log_likelihood, np.array([1])).tolist() == [0.0]


def test_softmax_stands_far_from_zero_and_at_impossible_options() -> None:
    log_likelihood = np.array([[-5000.0, -5001.0], [-np.inf, -2.0], [-np.inf, -np.inf]])
    found = choice_probability(log_likelihood, np.array([0, 0, 0]))
    assert found[:2] == pytest.approx([1 / (1 + math.exp(-1)), 0.0])
    assert np.isnan(found[2])


def test_of_several_right_options_probabilities_add_and_the_best_text_counts() -> None:
    log_likelihood = np.log([[0.5, 0.2, 0.3]])
    right = np.array([[False, True, True]])
    ones = np.ones((1, 3))
    assert choice_probability(log_likelihood, right) == pytest.approx([0.5])
    assert choice_accuracy(log_likelihood, right) == pytest.approx([0.0])
    assert probability_per_character(log_likelihood, right, ones) == pytest.approx([0.3])
    assert bits_per_byte(log_likelihood, right, ones) == pytest.approx([-math.log2(0.3)])


def test_an_unknown_right_option_is_missing_not_wrong() -> None:
    log_likelihood = np.array([[-1.0, -2.0], [-1.0, np.nan]])
    correct = np.array([-1, 1])
    lengths = np.ones((2, 2))
    for score in (
        choice_accuracy(log_likelihood, correct),
        choice_probability(log_likelihood, correct),
        probability_per_character(log_likelihood, correct, lengths),
        bits_per_byte(log_likelihood, correct, lengths),
    ):
        assert np.isnan(score).all()


def test_single_precision_stays_and_nothing_given_changes(padded: tuple[np.ndarray, ...]) -> None:
    log_likelihood, characters, _ = padded
    single = log_likelihood.astype(np.float32)
    before = single.copy()
    for score, reference in (
        (choice_accuracy(single, CORRECT), choice_accuracy(log_likelihood, CORRECT)),
        (choice_probability(single, CORRECT), choice_probability(log_likelihood, CORRECT)),
        (
            probability_per_character(single, CORRECT, characters.astype(np.float32)),
            probability_per_character(log_likelihood, CORRECT, characters),
        ),
    ):
        assert score.dtype == np.float32
        assert score == pytest.approx(reference, rel=2e-6)
    assert np.array_equal(single, before, equal_nan=True)
