"""Symmetric matrices kept as their upper triangle, so that weighted sums of outer products are one GEMM."""

from functools import lru_cache

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray


def packed_products(vectors: FloatArray) -> FloatArray:
    """Pack the unique entries of ``v v'`` for vectors (n, n_dims): (n, n_dims (n_dims + 1) / 2)."""
    first, second = triangle(vectors.shape[1])
    result: FloatArray = vectors.take(first, axis=1)  # in rows, unlike vectors[:, first], which takes ten times as long
    result *= vectors.take(second, axis=1)
    return result


def unpack(packed: FloatArray, n_dims: int) -> FloatArray:
    """Full symmetric matrices (..., n_dims, n_dims) from their packed upper triangles."""
    return packed.take(_positions(n_dims), axis=-1)


MATRICES_AT_ONCE = 768
"""They stay in the cache of a processor."""


def inverse_and_log_determinant(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverses (n, size, size) and log determinants (n,) of positive definite matrices (n, size, size).

    By sweeping pivot after pivot (Beaton 1964), of many small matrices at once.
    """
    n, size = matrices.shape[:2]
    # Rows up to which sweeping is faster than LAPACK, by a third to five times.
    largest_swept = 16
    if size > largest_swept:
        return np.linalg.inv(matrices), np.linalg.slogdet(matrices)[1]
    inverse, log_determinant = np.empty(matrices.shape), np.zeros(n)
    for first in range(0, n, MATRICES_AT_ONCE):
        part = slice(first, first + MATRICES_AT_ONCE)
        swept = np.array(matrices[part].transpose(1, 2, 0), order="C")
        product = np.empty_like(swept)
        for k in range(size):
            pivot = swept[k, k].copy()
            log_determinant[part] += np.log(np.abs(pivot))
            ratio = swept[k] / pivot
            swept -= np.multiply(swept[k][:, None], ratio, out=product)
            swept[k], swept[:, k], swept[k, k] = ratio, ratio, -1.0 / pivot
        inverse[part] = -swept.transpose(2, 0, 1)
    return inverse, log_determinant


@lru_cache(maxsize=64)
def triangle(size: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of an upper triangle, in the order of ``numpy.triu_indices``, which takes longer to call."""
    rows, columns = np.triu_indices(size)
    # All callers share the cached arrays, so that none may write into them.
    rows.setflags(write=False)
    columns.setflags(write=False)
    return rows, columns


@lru_cache(maxsize=64)
def _positions(n_dims: int) -> IntArray:
    """Where each entry of the full matrix lies in the packed one, (n_dims, n_dims)."""
    positions = np.empty((n_dims, n_dims), dtype=np.int64)
    upper = triangle(n_dims)
    positions[upper] = np.arange(len(upper[0]))
    positions.T[upper] = positions[upper]
    positions.setflags(write=False)
    return positions
