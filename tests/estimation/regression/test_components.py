"""Principal components against the singular value decomposition and scikit-learn."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from itembank.estimation.regression.components import decomposed, principal_components


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (8, 8)])
def test_decomposition_equals_singular_values(rng, shape):
    centred = rng.normal(size=shape)
    centred -= centred.mean(axis=0)
    left, eigenvalues, right = decomposed(centred)
    rank = min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(np.sqrt(eigenvalues), np.linalg.svd(centred, compute_uv=False)[:rank])
    np.testing.assert_allclose(left * np.sqrt(eigenvalues) @ right.T, centred, atol=1e-10)
    np.testing.assert_allclose(left.T @ left, np.eye(rank), atol=1e-10)
    np.testing.assert_allclose(right.T @ right, np.eye(rank), atol=1e-10)


def test_components_equal_sklearns_up_to_sign(rng):
    train, new = rng.normal(size=(30, 8)), rng.normal(size=(5, 8))
    reference = PCA(3, svd_solver="full").fit(train)
    found = principal_components(train, new, 3)
    np.testing.assert_allclose(np.abs(found[0]), np.abs(reference.transform(train)), atol=1e-10)
    np.testing.assert_allclose(np.abs(found[1]), np.abs(reference.transform(new)), atol=1e-10)


def test_columns_that_say_the_same_have_one_component(rng):
    train = np.repeat(rng.normal(size=(9, 1)), 4, axis=1)
    assert principal_components(train, train[:2], 3)[1].shape == (2, 1)
    assert principal_components(np.ones((9, 4)), np.ones((2, 4)), 3)[1].shape == (2, 0)
