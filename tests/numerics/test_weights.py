import numpy as np
import pytest

from itembank.numerics.arrays import effective_items


def test_effective_items_by_hand():
    assert effective_items(np.full(8, 0.125)) == pytest.approx(8.0)
    assert effective_items(np.array([0.5, 0.25, 0.25])) == pytest.approx(1 / 0.375)
    assert np.isnan(effective_items(np.zeros(3)))
