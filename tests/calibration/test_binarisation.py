import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.calibration.families import best_threshold, scenario_thresholds


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0).map(lambda value: round(value, 2)), min_size=1, max_size=40))
def test_no_other_threshold_keeps_the_total_better(values):
    values = np.array(values)
    misfit = abs(np.sum(values >= best_threshold(values)) - values.sum())
    others = np.abs(np.sum(values >= np.linspace(0.0, 1.01, 1200)[:, None], axis=1) - values.sum())
    assert misfit <= others.min()


def test_paper_example_of_a_continuous_score():
    values = np.array([0.1, 0.2, 0.6, 0.7, 0.9])  # the sum is 2.5: two or three ones are equally close
    assert best_threshold(values) == 0.7


def test_only_scenarios_with_fractions_get_a_threshold():
    responses = np.array([[0.0, 1.0, 0.2, 0.9], [1.0, np.nan, 0.8, np.nan]])
    thresholds = scenario_thresholds(responses, ["binary", "binary", "graded", "graded"])
    assert thresholds == {"graded": pytest.approx(0.8)}


def test_responses_all_alike_below_one_half_become_wrong():
    assert best_threshold(np.full(4, 0.3)) > 0.3
