import numpy as np
import pytest

from itembank.numerics.symmetric import packed_products, unpack


@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_unpacked_products_are_the_outer_products(rng, n_dims):
    vectors = rng.normal(size=(7, n_dims))
    packed = packed_products(vectors)
    assert packed.shape == (7, n_dims * (n_dims + 1) // 2)
    np.testing.assert_array_equal(unpack(packed, n_dims), vectors[:, :, None] * vectors[:, None, :])


def test_weighted_sum_of_packed_products_is_the_weighted_gram_matrix(rng):
    vectors, weights = rng.normal(size=(9, 3)), rng.normal(size=(4, 9))
    expected = np.stack([vectors.T @ np.diag(row) @ vectors for row in weights])
    np.testing.assert_allclose(unpack(weights @ packed_products(vectors), 3), expected, atol=1e-13)
