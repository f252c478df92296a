import numpy as np
import pytest

from itembank.numerics.symmetric import MATRICES_AT_ONCE, inverse_and_log_determinant, packed_products, unpack


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


@pytest.mark.parametrize("size", [1, 3, 8, 9])
def test_inverses_and_determinants_are_those_of_lapack(rng, size):
    roots = rng.normal(size=(MATRICES_AT_ONCE + 3, size + 2, size))
    matrices = roots.swapaxes(1, 2) @ roots
    inverse, log_determinant = inverse_and_log_determinant(matrices)
    np.testing.assert_allclose(inverse @ matrices, np.broadcast_to(np.eye(size), matrices.shape), atol=1e-6)
    np.testing.assert_allclose(log_determinant, np.linalg.slogdet(matrices)[1], rtol=1e-9, atol=1e-9)
