"""Evidence on items, abilities and statistics of fit: against sums written out, by hand, and by simulated faults."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp
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
from itembank.auditing.item_evidence import (
    INTERCEPTS,
    NEAREST,
    SLOPES,
    _log_weights,
    _weighed,
    adjusted_scores,
    best_models,
    curves_at,
    defect_probability,
    fit_defect_weights,
    item_evidence,
    item_rest_correlations,
    item_worth,
    out_of_fold,
    panel_of,
    rank_quality,
    share_right,
)
from itembank.errors import DataError
from itembank.irt.linear_gaussian import FactorModel
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import make_answers


def test_ratios_are_those_of_marginal_likelihoods_summed_over_the_grid():
    rng = np.random.default_rng(0)
    theta, values = rng.standard_normal(7), (rng.random((7, 2)) < 0.5).astype(float)
    observed = np.array([[True, False]] + [[True, True]] * 6)
    log_prior = rng.standard_normal(SLOPES.size * INTERCEPTS.size)
    log_prior -= logsumexp(log_prior)
    slope, error, intercept, top, _, key_ratio, noise_ratio = _weighed(
        curves_at(theta), values, observed, log_prior, 1.6
    )
    points = [(a, b) for a in SLOPES for b in INTERCEPTS]
    for item in range(2):
        rows = np.flatnonzero(observed[:, item])
        p = np.array([np.clip(expit(a * theta[rows] + b), NEAREST, 1.0 - NEAREST) for a, b in points])
        is_right = values[rows, item] == 1.0

        def likelihood(p, is_right=is_right):
            return np.log(np.where(is_right, p, 1.0 - p)).sum(axis=1)

        keyed = likelihood(p) + log_prior
        other = logsumexp([*(likelihood(1.0 - p) + log_prior), *(likelihood((1.0 - p) / 3.0) + log_prior)]) - np.log(2)
        flat = np.array([a == 0.0 for a, _ in points])
        unrelated, posterior = logsumexp(keyed[flat]) - logsumexp(log_prior[flat]), np.exp(keyed - logsumexp(keyed))
        a, b = np.array(points).T
        assert key_ratio[item] == pytest.approx(other - logsumexp(keyed))
        assert noise_ratio[item] == pytest.approx(unrelated - logsumexp(keyed))
        assert slope[item] == pytest.approx(posterior @ a)
        assert error[item] == pytest.approx(np.sqrt(posterior @ (a - posterior @ a) ** 2))
        assert top[item] == pytest.approx(1.6 * (posterior @ a) + posterior @ b)
        assert intercept[item] == pytest.approx(posterior @ b)


def test_the_distribution_of_curves_is_learnt_from_the_items():
    rng = np.random.default_rng(3)
    theta = rng.standard_normal(300)
    slope, ease = 1.2 + 0.3 * rng.standard_normal(400), 0.8 + 1.2 * rng.standard_normal(400)
    p = expit(theta[:, None] * slope + ease)
    values = (rng.random(p.shape) < p).astype(float)
    right, wrong, _ = curves_at(theta)
    weights = np.exp(_log_weights(values.T @ right + (1.0 - values.T) @ wrong))
    a, b = (one.ravel() for one in np.meshgrid(SLOPES, INTERCEPTS, indexing="ij"))
    assert weights.sum() == pytest.approx(1.0)
    assert (weights @ a, weights @ b) == pytest.approx((1.2, 0.8), abs=0.12)
    assert np.sqrt(weights @ (b - weights @ b) ** 2) == pytest.approx(1.2, abs=0.15)


def test_wrong_keys_are_found_and_missing_answers_do_not_matter_much():
    values, theta = make_answers(n_models=80, n_items=300, seed=2)
    is_bad, rng = np.arange(300) < 15, np.random.default_rng(5)
    values[:, is_bad] = (1.0 - values[:, is_bad]) * (rng.random((80, 15)) < 1.0 / 3.0)
    found = item_evidence(panel_of(ResponseMatrix.create(values)))
    assert rank_quality(found["key_ratio"].to_numpy(), is_bad) > 0.97
    assert rank_quality(found["suspicion"].to_numpy(), is_bad) > 0.9
    sparse = np.where(rng.random(values.shape) < 0.5, values, np.nan)
    half = item_evidence(panel_of(ResponseMatrix.create(sparse)))
    assert rank_quality(half["key_ratio"].to_numpy(), is_bad) > 0.9
    strong = theta > 1.0
    assert np.corrcoef(expit(found["top_logit"].to_numpy()), values[strong].mean(axis=0))[0, 1] > 0.85


def test_an_item_without_an_answer_has_the_curve_of_the_average_item():
    values, _ = make_answers(n_models=30, n_items=40)
    values[:, 7] = np.nan
    found = item_evidence(panel_of(ResponseMatrix.create(values)))
    assert (found["key_ratio"][7], found["noise_ratio"][7]) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_item_rest_correlation_of_a_small_table_worked_by_hand():
    values = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    # item 0: right for rests (2, 1), wrong for (1, 0). Means 1.5 and 0.5, sd of all four 0.7071: r = 1 / 0.7071 x 0.5
    found = item_rest_correlations(values, np.ones((4, 3), dtype=bool))
    assert found[0] == pytest.approx((1.5 - 0.5) / np.sqrt(0.5) * 0.5)
    # one that all answer alike has none
    assert item_rest_correlations(np.eye(3) * [1.0, 1.0, 0.0], np.ones((3, 3), dtype=bool))[2] == 0.0


def test_item_rest_correlation_with_answers_missing_is_that_over_the_models_that_answered():
    values, _ = make_answers(n_models=40, n_items=12)
    observed = np.random.default_rng(1).random(values.shape) < 0.7
    found = item_rest_correlations(np.where(observed, values, 0.0), observed)
    for item in range(12):
        others, rows = np.delete(np.arange(12), item), np.flatnonzero(observed[:, item])
        rest = [values[i, others][observed[i, others]].mean() for i in rows]
        assert found[item] == pytest.approx(np.corrcoef(values[rows, item], rest)[0, 1])


def test_worth_is_the_loss_of_like_items_by_alpha_without_the_item():
    values, _ = make_answers(n_models=80, n_items=10)

    def signal_to_noise(some):
        n = some.shape[1]
        alpha = n / (n - 1) * (1.0 - some.var(axis=0).sum() / some.sum(axis=1).var())
        return alpha / (1.0 - alpha)

    whole = signal_to_noise(values)
    expected = [(whole - signal_to_noise(np.delete(values, j, axis=1))) / (whole / 10) for j in range(10)]
    assert item_worth(values, np.ones(values.shape, dtype=bool)) == pytest.approx(expected)
    # an item with a wrong key harms the ranking
    values, _ = make_answers(n_models=200, n_items=40)
    values[:, 3] = 1.0 - values[:, 3]
    worth = item_worth(values, np.ones(values.shape, dtype=bool))
    assert worth.argmin() == 3
    assert worth[3] < 0.0
    assert np.delete(worth, 3).mean() == pytest.approx(1.0, abs=0.25)


def test_the_best_models_are_those_that_answered():
    observed = np.array([[True, False], [True, True], [True, True], [True, True], [True, True]])
    marked = best_models(np.array([5.0, 4.0, 1.0, 2.0, 3.0]), observed)
    assert (np.flatnonzero(marked[:, 0]).tolist(), np.flatnonzero(marked[:, 1]).tolist()) == ([0, 1, 4], [1, 3, 4])


def test_one_group_of_items_against_another_gives_the_difference_of_log_odds():
    # 300 of 1,000 against 100 of 1,000: log(3 / 7) - log(1 / 9) = 1.350; the prior draws it in by less than 0.02
    mark = np.repeat([1.0, 0.0], 1000)[:, None]
    weights = fit_defect_weights(mark, np.concatenate([np.arange(1000) < 300, np.arange(1000) < 100]))
    assert weights[1] == pytest.approx(np.log(27 / 7), abs=0.02)
    assert defect_probability(mark, weights)[[0, 1500]] == pytest.approx([0.3, 0.1], abs=0.002)


def test_probabilities_out_of_fold_do_not_see_the_labels_of_their_fold():
    rng, fold = np.random.default_rng(0), np.arange(200) % 2
    features, is_bad = rng.standard_normal((200, 2)), rng.random(200) < 0.3
    other = np.where(fold == 0, ~is_bad, is_bad)  # all labels of the first fold are turned
    first, second = out_of_fold(features, is_bad, fold), out_of_fold(features, other, fold)
    assert first[fold == 0] == pytest.approx(second[fold == 0])
    assert not np.allclose(first[fold == 1], second[fold == 1])


def test_area_under_the_curve_counts_pairs_and_ties_half():
    score, is_bad = np.array([3.0, 1.0, 2.0, 1.0, 0.0]), np.array([True, True, False, False, False])
    pairs = [(1.0 if a > b else 0.5 if a == b else 0.0) for a in score[is_bad] for b in score[~is_bad]]
    assert rank_quality(score, is_bad) == pytest.approx(np.mean(pairs))


def test_the_share_right_among_the_first_does_not_depend_on_the_order_of_equals():
    # one clear first, bad; then one of four equals, two of which are bad
    score, is_bad = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 2.0]), np.array([True, True, False, True, False, True])
    assert share_right(score, is_bad, 2) == pytest.approx((1.0 + 0.5) / 2)
    assert share_right(score[::-1], is_bad[::-1], 2) == share_right(score, is_bad, 2)
    assert share_right(score, is_bad, 100) == pytest.approx(4 / 6)


def test_scores_of_models_that_answered_other_items_are_those_on_all_items():
    ability, ease = np.array([0.1, 0.3, 0.5, 0.2]), np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    values = ability[:, None] + ease
    observed = np.ones_like(values, dtype=bool)
    observed[0, :3] = observed[1, 3:] = observed[2, 0] = False  # the first model was asked easy items only
    assert adjusted_scores(np.where(observed, values, np.nan), observed) == pytest.approx(values.mean(axis=1), abs=1e-6)
    assert adjusted_scores(values, np.zeros_like(observed)).tolist() == [0.0] * 4
    assert adjusted_scores(values, np.ones_like(observed)) == pytest.approx(values.mean(axis=1))


def test_subscenarios_of_enough_items_are_groups_of_their_own_and_an_audit_needs_five_models():
    names = ["large"] * 20 + ["small"] * 5 + [None] * 5
    items = pl.DataFrame({"item_id": [f"i{j}" for j in range(30)], "scenario": "all", "subscenario": names})
    values = (np.random.default_rng(0).random((9, 30)) < 0.6).astype(float)
    panel = panel_of(ResponseMatrix.create(values, items=items))
    assert panel.theta.shape == (9, 2)
    assert [len(set(panel.group[rows])) for rows in (slice(20), slice(20, None))] == [1, 1]
    assert panel.theta.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert panel.theta.std(axis=0) == pytest.approx([1.0, 1.0])
    with pytest.raises(DataError, match="at least 5 models with answers, got 4"):
        panel_of(ResponseMatrix.create(np.eye(4)))


def test_abilities_by_wrong_answers_are_those_by_right_ones_turned_round():
    values = (np.random.default_rng(0).random((9, 30)) < 0.8).astype(float)
    right, wrong = (panel_of(ResponseMatrix.create(one)).theta for one in (values, 1.0 - values))
    np.testing.assert_allclose(wrong, -right, atol=1e-12)


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
    groups, false_alarms = (SCENARIO, SCENARIO, SCENARIO, NAMED), np.zeros(3)
    for _ in range(n_draws):
        overall, of_groups, _ = fit_p_values(statistics(rng, n_new), statistics(rng, n_past), groups)
        assert_allclose(of_groups[:, :3].min(axis=1) >= 0.01, True)
        named, any_scenario = of_groups[:, 3] <= 0.05, of_groups[:, :3].min(axis=1) <= 0.05
        false_alarms += [np.sum(overall <= 0.05), named.sum(), any_scenario.sum()]
    # each draw has one set of past models, which makes counts vary twice as much as independent ones
    low, high = (binom.ppf(q, n_draws * n_new, 0.05) for q in (0.0005, 0.9995))
    middle = 0.05 * n_draws * n_new
    assert np.all((false_alarms > middle - 2.0 * (middle - low)) & (false_alarms < middle + 2.0 * (high - middle)))


def test_detectable_rises_are_found_nine_times_in_ten(rng):
    past, new = statistics(rng, 4000, 1), statistics(rng, 4000, 1)
    raised = new._replace(deviation=new.deviation + 10.0 * detectable_rises(past))
    _, of_groups, _ = fit_p_values(raised, past, (NAMED,))
    assert np.mean(of_groups <= 0.05) == pytest.approx(0.9, abs=0.03)


def test_outfit_by_hand():
    answers, expected = np.array([[1.0, 0.0, 1.0]]), np.array([[0.5, 0.2, 0.001]])
    assert_allclose(mean_square(answers, expected), [(1.0 + 0.2 / 0.8 + 0.98 / 0.02) / 3.0])


def test_groups_of_too_few_answers_are_not_examined(rng):
    model, items = FactorModel(np.full(40, 0.5), np.zeros((40, 0)), np.full(40, 0.25)), np.arange(20)
    groups = tuple(ItemGroup("g", "named", one, ~one) for one in (np.arange(40) < 4, np.arange(40) < 10))
    answers = rng.integers(0, 2, (3, 20)).astype(float)
    found = fit_statistics(model, items, answers, groups, is_ordered=False)
    assert np.isnan(found.difference[:, 0]).all()
    assert_allclose(found.difference[:, 1], answers[:, :10].mean(axis=1) - 0.5)
    assert_allclose(found.deviation[:, 1], found.difference[:, 1] / np.sqrt(0.25 / 10))
    assert_allclose(found.misfit, 1.0)  # every answer is one standard deviation from one half
    assert np.isnan(found.cusum).all()
    assert_array_equal(np.isnan(fit_statistics(model, items, answers, groups, is_ordered=True).cusum), False)
