import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.errors import DataError, ParameterError
from itembank.responses.score_names import without_only_scenario
from itembank.responses.targets import ScoreTargets, mean_win_rate

ITEMS = pl.DataFrame(
    {
        "item_id": list("abcdef"),
        "scenario": ["math", "math", "math", "code", "code", "math"],
        "subscenario": ["algebra", "algebra", "geometry", None, None, "algebra"],
        "weight": [1.0, 2.0, 3.0, 1.0, 3.0, 0.0],
    }
)
RESPONSES = np.array([[1.0, 0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]])


def test_scores_are_means_plain_by_subscenario_or_by_weight():
    targets = ScoreTargets.create(ITEMS)
    scores = targets.scenario_means(RESPONSES)
    np.testing.assert_allclose(scores, [[0.5, 0.5], [0.5, 1.0]])
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
    with_overall = targets.with_overall(targets.scenario_means(RESPONSES))
    np.testing.assert_allclose(with_overall[:, -1], expected)
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
    with pytest.raises(DataError, match="'overall'"):
        ScoreTargets.create(ITEMS.with_columns(scenario=pl.lit("overall")))
    with pytest.raises(DataError, match="'weight'"):
        ScoreTargets.create(ITEMS.drop("weight"), within="custom")
    with pytest.raises(DataError, match="'b'"):
        ScoreTargets.create(ITEMS.with_columns(weight=pl.Series([1.0, -1.0, 1, 1, 1, 1])), within="custom")
    with pytest.raises(DataError, match="'code'"):
        ScoreTargets.create(ITEMS.with_columns(weight=pl.Series([1.0, 1.0, 1, 0, 0, 1])), within="custom")
    with pytest.raises(ParameterError, match="within must be one of 'micro', 'macro', 'custom'"):
        ScoreTargets.create(ITEMS, within="mean")
    with pytest.raises(ParameterError, match="'physics'"):
        ScoreTargets.create(ITEMS).target("physics")


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
