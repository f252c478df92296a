"""The logistic regression of faults, and how rankings are judged."""

import numpy as np
import pytest

from itembank.auditing.item_evidence import fit_defect_model, out_of_fold, rank_quality, share_right


def test_one_group_of_items_against_another_gives_the_difference_of_log_odds():
    # 300 of 1,000 against 100 of 1,000: log(3 / 7) - log(1 / 9) = 1.350; the prior draws it in by less than 0.02
    mark = np.repeat([1.0, 0.0], 1000)[:, None]
    is_bad = np.concatenate([np.arange(1000) < 300, np.arange(1000) < 100])
    model = fit_defect_model(mark, is_bad)
    assert model.weights[0] == pytest.approx(np.log(27 / 7), abs=0.02)
    assert model.probability(mark)[[0, 1500]] == pytest.approx([0.3, 0.1], abs=0.002)


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
