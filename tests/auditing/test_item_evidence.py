"""Evidence on keys against sums over the grid written out, and simulated faults."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from itembank.auditing.item_evidence import (
    INTERCEPTS,
    NEAREST,
    SLOPES,
    _log_weights,
    _weighed,
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
        unrelated = logsumexp(keyed[flat]) - logsumexp(log_prior[flat])
        posterior = np.exp(keyed - logsumexp(keyed))
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
    is_bad = np.arange(300) < 15
    rng = np.random.default_rng(5)
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
    assert found["key_ratio"][7] == pytest.approx(0.0, abs=1e-9)
    assert found["noise_ratio"][7] == pytest.approx(0.0, abs=1e-9)


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


def test_one_group_of_items_against_another_gives_the_difference_of_log_odds():
    # 300 of 1,000 against 100 of 1,000: log(3 / 7) - log(1 / 9) = 1.350; the prior draws it in by less than 0.02
    mark = np.repeat([1.0, 0.0], 1000)[:, None]
    is_bad = np.concatenate([np.arange(1000) < 300, np.arange(1000) < 100])
    weights = fit_defect_weights(mark, is_bad)
    assert weights[1] == pytest.approx(np.log(27 / 7), abs=0.02)
    assert defect_probability(mark, weights)[[0, 1500]] == pytest.approx([0.3, 0.1], abs=0.002)


def test_probabilities_out_of_fold_do_not_see_the_labels_of_their_fold():
    rng = np.random.default_rng(0)
    features, fold = rng.standard_normal((200, 2)), np.arange(200) % 2
    is_bad = rng.random(200) < 0.3
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
