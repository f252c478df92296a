import numpy as np
import pytest

from itembank.irt.parameters import ItemParameters
from itembank.living.stocking_lord import ScaleLink, stocking_lord
from tests.living.answers import items_of


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.6, 1.1), (2.3, -0.8)])
def test_a_transform_without_noise_is_recovered(rng, slope, intercept):
    old = items_of(rng, 20)
    old = ItemParameters.create(old.loadings, old.intercept, rng.uniform(0.0, 0.3, 20))
    # theta_old = A theta_free + B: a_free = A a, c_free = c + a B
    free = ItemParameters.create(
        slope * old.loadings, old.intercept + intercept * old.loadings[:, 0], old.lower_asymptote
    )
    theta = np.linspace(-4.0, 4.0, 41)
    link = stocking_lord(old, free, theta, np.exp(-0.5 * theta**2))
    assert link == pytest.approx((slope, intercept), abs=1e-6)
    loadings, moved = link.apply(free.loadings, free.intercept)
    np.testing.assert_allclose(loadings, old.loadings, atol=1e-5)
    np.testing.assert_allclose(moved, old.intercept, atol=1e-5)


def test_a_link_moves_items_as_it_moves_abilities(rng):
    items, theta = items_of(rng, 5), rng.normal(size=4)
    link = ScaleLink(0.7, 0.4)
    loadings, intercept = link.apply(items.loadings, items.intercept)
    np.testing.assert_allclose(
        np.outer(0.7 * theta + 0.4, loadings[:, 0]) + intercept, np.outer(theta, items.loadings[:, 0]) + items.intercept
    )
