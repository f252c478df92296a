"""Scores of answer options and of scenarios against loops and by hand."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from itembank.errors import DataError, ParameterError
from itembank.responses.choice_scores import (
    bits_per_byte,
    choice_accuracy,
    choice_probability,
    probability_per_character,
)
from itembank.responses.score_names import without_only_scenario
from itembank.responses.targets import ScoreTargets, mean_win_rate
from tests.readers.reading import refuses

ITEMS = pl.DataFrame(
    {"item_id": list("abcdef"), "scenario": ["math", "math", "math", "code", "code", "math"],
        "subscenario": ["algebra", "algebra", "geometry", None, None, "algebra"],
        "weight": [1.0, 2.0, 3.0, 1.0, 3.0, 0.0]}
)  # fmt: skip
RESPONSES = np.array([[1.0, 0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]])


def test_scores_are_means_plain_by_subscenario_or_by_weight():
    np.testing.assert_allclose(ScoreTargets.create(ITEMS).scenario_means(RESPONSES), [[0.5, 0.5], [0.5, 1.0]])
    targets = ScoreTargets.create(ITEMS, within="macro")
    # math: algebra (a, b, f) and geometry (c), each counting half
    expected = [[(1 / 3 + 1) / 2, 0.5], [(1 / 3 + 1) / 2, 1.0]]
    np.testing.assert_allclose(targets.scenario_means(RESPONSES), expected)
    targets = ScoreTargets.create(ITEMS, within="custom", across="items")
    np.testing.assert_allclose(targets.scenario_means(RESPONSES)[0], [4 / 6, 1 / 4])
    np.testing.assert_allclose(targets.overall_weights, np.array([1, 2, 3, 1, 3, 0]) / 10)


@pytest.mark.parametrize(
    ("across", "expected"), [("scenarios", [0.5, 0.75]), ("items", RESPONSES.mean(axis=1).tolist())]
)
def test_overall_score_is_a_mean_over_scenarios_or_over_items(across, expected):
    targets = ScoreTargets.create(ITEMS, across=across)
    np.testing.assert_allclose(targets.with_overall(targets.scenario_means(RESPONSES))[:, -1], expected)
    np.testing.assert_allclose(RESPONSES @ targets.target("overall").weights, expected)


def test_missing_cells_are_left_out_and_the_rest_rescaled():
    responses = RESPONSES.copy()
    responses[0, 1] = np.nan
    responses[1, 3:5] = np.nan
    targets = ScoreTargets.create(ITEMS)
    np.testing.assert_allclose(targets.scenario_means(responses, missing=True), [[2 / 3, 0.5], [0.5, np.nan]])
    np.testing.assert_allclose(targets.scenario_means(responses), [[np.nan, 0.5], [0.5, np.nan]])


@pytest.mark.parametrize("within", ["micro", "macro", "custom"])
@pytest.mark.parametrize("across", ["scenarios", "items"])
def test_weights_sum_to_one_in_every_target(within, across):
    targets = ScoreTargets.create(ITEMS, within=within, across=across)
    for name in targets.names:
        assert targets.target(name).weights.sum() == pytest.approx(1.0)


@given(st.lists(st.integers(0, 10), min_size=2, max_size=12), st.lists(st.integers(0, 10), min_size=1, max_size=12))
def test_mean_win_rate_equals_counting_every_pair(first, reference):
    models = np.array(first)[:, np.newaxis] / 10
    others = np.array(reference)[:, np.newaxis] / 10
    counted = [np.mean([1.0 if m > o else 0.5 if m == o else 0.0 for o in reference]) for m in first]
    np.testing.assert_allclose(mean_win_rate(models, others), counted)


def test_micro_or_macro_is_said_where_it_makes_a_difference_and_win_rates_average_over_scenarios():
    unequal = pl.DataFrame({"item_id": list("abc"), "scenario": ["x", "x", "y"], "subscenario": [None] * 3})
    assert "(macro)" in ScoreTargets.create(unequal).overall_in_words
    weighted = unequal.with_columns(weight=pl.Series([1.0, 3.0, 1.0]))
    for within in ("micro", "macro", "custom"):
        targets = ScoreTargets.create(weighted, within=within, across="items")
        assert targets.overall_in_words.endswith(f"({within})")
        assert targets.overall_is == within
    assert ScoreTargets.create(unequal[1:]).overall_in_words == ""
    scores = np.array([[0.9, 0.1]])
    reference = np.array([[0.5, 0.5], [0.6, 0.1]])
    # wins both in the first scenario; loses one and ties one in the second
    np.testing.assert_allclose(mean_win_rate(scores, reference), [(1.0 + 0.25) / 2])


def test_names_and_weights_that_give_no_score_are_refused():
    refuses("'overall'", ScoreTargets.create, ITEMS.with_columns(scenario=pl.lit("overall")))
    refuses("'weight'", ScoreTargets.create, ITEMS.drop("weight"), within="custom")
    refuses("'b'", ScoreTargets.create, ITEMS.with_columns(weight=pl.Series([1.0, -1.0, 1, 1, 1, 1])), within="custom")
    with pytest.raises(DataError, match="'code'"):
        ScoreTargets.create(ITEMS.with_columns(weight=pl.Series([1.0, 1.0, 1, 0, 0, 1])), within="custom")
    refuses("be one of 'micro', 'macro', 'custom'", ScoreTargets.create, ITEMS, within="mean", error=ParameterError)
    refuses("'physics'", ScoreTargets.create(ITEMS).target, "physics", error=ParameterError)


def test_over_items_the_overall_score_is_what_harnesses_weight_by_size():
    """The mean of task scores weighted by their sizes, as lm-evaluation-harness makes the score of a group."""
    sizes, rng = [7, 1, 30], np.random.default_rng(0)
    names = np.repeat(["a", "b", "c"], sizes)
    items = pl.DataFrame({"item_id": [f"{j}" for j in range(38)], "scenario": names, "subscenario": [None] * 38})
    responses = rng.integers(0, 2, (4, 38)).astype(float)
    targets = ScoreTargets.create(items, across="items")
    by_task = np.column_stack([responses[:, names == name].mean(axis=1) for name in "abc"])
    by_size = np.average(by_task, axis=1, weights=sizes)
    overall = targets.with_overall(targets.scenario_means(responses))[:, -1]
    np.testing.assert_allclose(overall, by_size, rtol=0, atol=1e-12)


def rows(**values):
    return [{"model_id": model, "target": name, "value": value} for model in "ab" for name, value in values.items()]


def test_only_an_only_scenario_whose_score_is_the_overall_one_has_no_row_of_its_own():
    kept = without_only_scenario(rows(quiz=0.5, overall=0.5 + 1e-12))
    assert [row["target"] for row in kept] == ["overall", "overall"]
    kept = without_only_scenario(rows(quiz=0.5, overall=0.5, custom=0.7))
    assert [row["target"] for row in kept] == ["overall", "custom"] * 2
    assert len(without_only_scenario(rows(quiz=math.nan, overall=math.nan))) == 2
    for table in (rows(quiz=0.5, overall=0.6), rows(one=0.5, two=0.5, overall=0.5), rows(quiz=0.5), rows(overall=0.5)):
        assert without_only_scenario(table) == table


TEXTS = [["Paris", "Rome"], ["zwölf", "13", "fourteen"], ["a", "bb", "ccc"]]
CORRECT = np.array([1, 0, 2])


@pytest.fixture
def padded() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-likelihoods of 4 models (4, 3, 3), characters and bytes (3, 3)."""
    log_likelihood = -np.random.default_rng(7).exponential(4.0, (4, 3, 3))
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


def test_hand_computed_scores_of_uniform_models_and_several_right_options():
    log_likelihood = np.array([[-3.0, -3.0, np.nan], [-700.0, -700.0, -700.0]])
    assert choice_probability(log_likelihood, np.array([1, 2])) == pytest.approx([1 / 2, 1 / 3])
    log_likelihood = np.array([[5 * math.log(0.5)]])
    assert bits_per_byte(log_likelihood, np.array([0]), np.array([[5.0]])) == pytest.approx([1.0])
    assert probability_per_character(log_likelihood, np.array([0]), np.array([[5.0]])) == pytest.approx([0.5])
    log_likelihood = np.array([[-1.0, -1.0]])
    assert choice_accuracy(log_likelihood, np.array([0])).tolist() == [1.0]
    assert choice_accuracy(log_likelihood, np.array([1])).tolist() == [0.0]
    log_likelihood = np.log([[0.5, 0.2, 0.3]])
    right = np.array([[False, True, True]])
    ones = np.ones((1, 3))
    assert choice_probability(log_likelihood, right) == pytest.approx([0.5])
    assert choice_accuracy(log_likelihood, right) == pytest.approx([0.0])
    assert probability_per_character(log_likelihood, right, ones) == pytest.approx([0.3])
    assert bits_per_byte(log_likelihood, right, ones) == pytest.approx([-math.log2(0.3)])


def test_softmax_is_far_from_zero_and_an_unknown_right_option_is_missing():
    found = choice_probability(np.array([[-5000.0, -5001.0], [-np.inf, -2.0], [-np.inf, -np.inf]]), np.array([0, 0, 0]))
    assert found[:2] == pytest.approx([1 / (1 + math.exp(-1)), 0.0])
    assert np.isnan(found[2])
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
