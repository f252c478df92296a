"""Statistics of fit against hand computation, published rules and what chance does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom

from itembank.auditing.fit_statistics import (
    FitStatistics,
    ItemGroup,
    cumulative_sums,
    detectable_rises,
    fit_p_values,
    fit_statistics,
    joint_p_value,
    mean_square,
    onset,
    upper_p_values,
)
from itembank.irt.linear_gaussian import FactorModel

NOTHING = np.zeros(0, dtype=bool)
SCENARIO, NAMED = (ItemGroup(kind, kind, NOTHING, NOTHING) for kind in ("scenario", "named"))


def test_cumulative_sums_by_hand():
    upper, lower = cumulative_sums(np.array([[1.0, -0.5, 2.0, -3.0, -0.25]]))
    assert_allclose(upper, [[0.75, 0.0, 1.75, 0.0, 0.0]])
    assert_allclose(lower, [[0.0, -0.25, 0.0, -2.75, -2.75]])


@pytest.mark.parametrize(
    ("residuals", "first", "got_better"),
    [([0.1, 0.0, -1.0, -1.0, -1.0], 3, False), ([2.0, 2.0, 0.0], 1, True), ([0.0, -9.0, 1.0, 1.0], 2, False)],
)
def test_the_onset_is_the_first_answer_of_the_largest_excursion(residuals, first, got_better):
    assert onset(cumulative_sums(np.array([residuals]))[:, 0]) == (first, got_better)


def test_p_values_count_the_past_models_that_are_as_unusual():
    past = np.array([1.0, 2.0, 2.0, 3.0, np.nan])
    assert_allclose(upper_p_values(np.array([0.0, 2.0, 2.5, 9.0, np.nan]), past), [1.0, 0.8, 0.4, 0.2, np.nan])
    assert np.isnan(upper_p_values(np.ones(2), np.full(3, np.nan))).all()


def test_joint_p_values_are_those_of_simes():
    assert joint_p_value([0.01, 0.5, 0.02, 0.9]) == pytest.approx(min(4 * 0.01, 4 * 0.02 / 2, 4 * 0.5 / 3, 0.9))
    assert joint_p_value([0.04]) == 0.04
    assert joint_p_value([float("nan")]) == joint_p_value([]) == 1.0


def statistics(rng, n_models, n_groups=4):
    """Statistics of models that are all alike; groups and misfit go together, as they do in answers."""
    common = rng.normal(size=(n_models, 1))
    deviation = 3.0 * (common + rng.normal(size=(n_models, n_groups)))
    misfit = np.exp(0.3 * common[:, 0] + 0.2 * rng.normal(size=n_models))
    outfit = misfit * rng.uniform(0.8, 1.2, n_models)
    return FitStatistics(misfit, outfit, 0.1 * deviation, deviation, np.abs(rng.normal(size=n_models)))


def test_models_like_the_past_ones_are_called_unusual_as_often_as_said(rng):
    n_past, n_new, n_draws = 99, 20, 60
    groups = (SCENARIO, SCENARIO, SCENARIO, NAMED)
    false_alarms = np.zeros(3)
    for _ in range(n_draws):
        overall, of_groups, _ = fit_p_values(statistics(rng, n_new), statistics(rng, n_past), groups)
        assert_allclose(of_groups[:, :3].min(axis=1) >= 0.01, True)
        named, any_scenario = of_groups[:, 3] <= 0.05, of_groups[:, :3].min(axis=1) <= 0.05
        false_alarms += [np.sum(overall <= 0.05), named.sum(), any_scenario.sum()]
    # each draw has one set of past models, which makes counts vary twice as much as independent ones
    low, high = (binom.ppf(q, n_draws * n_new, 0.05) for q in (0.0005, 0.9995))
    middle = 0.05 * n_draws * n_new
    assert np.all(false_alarms > middle - 2.0 * (middle - low))
    assert np.all(false_alarms < middle + 2.0 * (high - middle))


def test_detectable_rises_are_found_nine_times_in_ten(rng):
    groups = (NAMED,)
    past, new = statistics(rng, 4000, 1), statistics(rng, 4000, 1)
    rise = detectable_rises(past)
    raised = new._replace(deviation=new.deviation + 10.0 * rise)
    _, of_groups, _ = fit_p_values(raised, past, groups)
    assert np.mean(of_groups <= 0.05) == pytest.approx(0.9, abs=0.03)


def test_outfit_by_hand():
    answers, expected = np.array([[1.0, 0.0, 1.0]]), np.array([[0.5, 0.2, 0.001]])
    assert_allclose(mean_square(answers, expected), [(1.0 + 0.2 / 0.8 + 0.98 / 0.02) / 3.0])


def test_groups_of_too_few_answers_are_not_examined(rng):
    model = FactorModel(np.full(40, 0.5), np.zeros((40, 0)), np.full(40, 0.25))
    items = np.arange(20)
    is_first, is_second = np.arange(40) < 4, np.arange(40) < 10
    groups = tuple(ItemGroup("g", "named", one, ~one) for one in (is_first, is_second))
    answers = rng.integers(0, 2, (3, 20)).astype(float)
    found = fit_statistics(model, items, answers, groups, is_ordered=False)
    assert np.isnan(found.difference[:, 0]).all()
    assert_allclose(found.difference[:, 1], answers[:, :10].mean(axis=1) - 0.5)
    assert_allclose(found.deviation[:, 1], found.difference[:, 1] / np.sqrt(0.25 / 10))
    assert_allclose(found.misfit, 1.0)  # every answer is one standard deviation from one half
    assert np.isnan(found.cusum).all()
    assert_array_equal(np.isnan(fit_statistics(model, items, answers, groups, is_ordered=True).cusum), False)
