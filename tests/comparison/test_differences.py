import numpy as np
import pytest

from itembank.comparison.differences import ItemCounts, TargetErrors, error_variance, least_variance
from itembank.comparison.pairs import PairedDifferences, PairErrorModel


def test_the_error_of_a_difference_lies_between_that_on_the_same_and_on_other_items():
    """``a (s_a^2 + s_b^2) + b V`` on the same items, ``s_a^2 + s_b^2`` on others, by their fraction between."""
    sizes = np.array([[0.03], [0.04]])
    variance, apart = 0.05, 0.03**2 + 0.04**2
    together = 0.5 * apart + 2.0 * variance
    errors = TargetErrors(PairErrorModel(0.5, 2.0, 1.9, 8.0, 0.95), 0.05)
    for n_shared, expected in ((10, together), (5, together / 3.0 + apart * 2.0 / 3.0), (0, apart)):
        number = np.array([[n_shared]])
        nothing = np.zeros((1, 1))
        pairs = PairedDifferences(nothing, np.full((1, 1), variance), nothing, number, number, nothing, nothing)
        counts = ItemCounts(np.array([[10], [10]]), np.array([10]), np.array([100]))
        assert error_variance(pairs, counts, sizes, errors, 0) == pytest.approx([expected])


def test_a_difference_that_no_item_shows_is_not_impossible():
    assert least_variance(np.array([8, 0]), 10) == pytest.approx([0.2 * 2.0 / 100.0, 2.0 / 4.0])
