import numpy as np

from itembank.estimation.estimates import Scores


def numbered(n_models, n_targets, start=0.0):
    """Scores whose every number is another."""
    size = n_models * n_targets
    return Scores(*(start + 100.0 * k + np.arange(size).reshape(n_models, n_targets) for k in range(4)))


def test_groups_of_models_come_together():
    whole = numbered(3, 2)
    parts = [Scores(*(array[rows] for array in whole)) for rows in (slice(0, 1), slice(1, 3))]
    np.testing.assert_array_equal(np.array(Scores.joined(parts)), np.array(whole))
    placed = Scores.unknown(3, 2)
    assert np.isnan(np.array(placed)).all()
    placed.set_rows(np.array([0, 2]), Scores(*(array[[0, 2]] for array in whole)))
    np.testing.assert_array_equal(placed.high[[0, 2]], whole.high[[0, 2]])
    assert all(np.isnan(array[1]).all() for array in placed)


def test_targets_come_behind_each_other():
    whole, more = numbered(3, 4), numbered(3, 1, start=0.5)
    both = whole.with_targets(more)
    np.testing.assert_array_equal(np.array(both.targets(slice(0, 4))), np.array(whole))
    np.testing.assert_array_equal(np.array(both.targets(np.array([4]))), np.array(more))
