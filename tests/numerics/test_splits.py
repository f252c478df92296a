import numpy as np
import pytest
from numpy.testing import assert_array_equal

from itembank.numerics.splits import (
    Split,
    dealt_out,
    first_of_each,
    first_tested,
    places_within,
    random_folds,
    splits_of,
)


def test_every_row_is_tested_once_and_trained_on_otherwise(rng):
    fold = rng.integers(0, 4, 30)
    fold[:4] = np.arange(4)
    splits = splits_of(fold)
    assert len(splits) == 4
    assert_array_equal(np.sort(np.concatenate([split.test for split in splits])), np.arange(30))
    for number, split in enumerate(splits):
        assert set(fold[split.test]) == {number}
        assert_array_equal(np.union1d(split.train, split.test), np.arange(30))
        assert np.intersect1d(split.train, split.test).size == 0
        assert np.all(np.diff(split.train) > 0)


def test_a_mask_marks_what_is_tested_and_an_order_the_first():
    split = Split.of(np.array([False, True, True, False]))
    assert (split.train.tolist(), split.test.tolist()) == ([0, 3], [1, 2])
    order = np.array([3, 0, 4, 1, 2])
    whole, small = first_tested(order, 2), first_tested(order, 2, 1)
    assert (whole.test.tolist(), whole.train.tolist()) == ([0, 3], [1, 2, 4])
    assert (small.test.tolist(), small.train.tolist()) == ([0, 3], [4])


def test_rounds_are_dealt_in_different_orders_and_folds_differ_in_size_by_one_at_most(rng):
    rounds = dealt_out(np.arange(200), 5, rng).reshape(40, 5)
    assert len(np.unique(rounds, axis=0)) > 20
    assert np.bincount(random_folds(23, 5, rng)).tolist() == [5, 5, 5, 4, 4]
    assert dealt_out(np.array([2, 0, 1, 4, 3]), 2).tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize(("n", "n_folds"), [(20, 5), (23, 5), (7, 10)])
def test_with_chance_each_round_of_an_order_has_every_fold_once(n, n_folds, rng):
    order = rng.permutation(n)
    fold = dealt_out(order, n_folds, rng)
    for start in range(0, n, n_folds):
        part = fold[order[start : start + n_folds]].tolist()
        assert len(set(part)) == len(part)
        assert set(part) <= set(range(n_folds))


def test_the_first_of_each_group_are_those_that_a_loop_would_take(rng):
    assert places_within(np.array([3, 0, 1, 2])).tolist() == [0, 1, 2, 0, 0, 1]
    group, order, counts = rng.integers(0, 5, 60), rng.permutation(60)[:45], np.array([0, 3, 100, 1, 5])
    expected = [row for k in range(5) for row in [row for row in order if group[row] == k][: counts[k]]]
    assert first_of_each(order, group, counts).tolist() == expected
