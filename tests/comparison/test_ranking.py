import numpy as np

from itembank.comparison.comparisons import square, tied_groups


def groups(scores, gap):
    """Groups where models differ significantly when their scores are `gap` apart."""
    scores = np.array(scores)
    return tied_groups(scores, np.abs(scores[:, None] - scores) >= gap)


def test_a_group_ends_where_the_best_is_significantly_better():
    order, group = groups([0.5, 0.9, 0.84, 0.79, 0.7], 0.1)
    assert order.tolist() == [1, 2, 3, 4, 0]
    # 0.79 differs from 0.9 and begins a group; 0.7 is within 0.1 of it, 0.5 is not
    assert group.tolist() == [3, 1, 1, 2, 2]


def test_all_tied_and_all_apart():
    assert groups([0.1, 0.2, 0.3], 1.0)[1].tolist() == [1, 1, 1]
    assert groups([0.1, 0.2, 0.3], 0.05)[1].tolist() == [3, 2, 1]


def test_unknown_scores_come_last():
    order, group = tied_groups(np.array([np.nan, 0.2]), np.zeros((2, 2), bool))
    assert order.tolist() == [1, 0]
    assert group.tolist() == [1, 1]


def test_square_is_symmetric():
    found = square(np.array([True, False, True]), np.array([0, 0, 1]), np.array([1, 2, 2]), 3)
    assert found.tolist() == [[False, True, False], [True, False, True], [False, True, False]]
