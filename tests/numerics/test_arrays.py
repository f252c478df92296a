import numpy as np
import pytest

from itembank.numerics.arrays import effective_items, mean_where_known


@pytest.mark.parametrize("axis", [0, 1])
def test_the_mean_is_over_what_is_known_along_an_axis(axis):
    values = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [3.0, np.nan, 0.5]])
    expected = [[2.0, np.nan, 0.25], [0.5, np.nan, 1.75]][axis]
    np.testing.assert_array_equal(mean_where_known(values, axis), expected)


def test_effective_items_by_hand():
    assert effective_items(np.full(8, 0.125)) == pytest.approx(8.0)
    assert effective_items(np.array([0.5, 0.25, 0.25])) == pytest.approx(1 / 0.375)
    assert np.isnan(effective_items(np.zeros(3)))
