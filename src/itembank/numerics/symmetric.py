"""Symmetric matrices kept as their upper triangle, so that weighted sums of outer products are one GEMM."""

from functools import lru_cache

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray


def packed_products(vectors: FloatArray) -> FloatArray:
    """Pack the unique entries of ``v v'`` for vectors (n, n_dims): (n, n_dims (n_dims + 1) / 2)."""
    first, second = triangle(vectors.shape[1])
    return vectors[:, first] * vectors[:, second]


def unpack(packed: FloatArray, n_dims: int) -> FloatArray:
    """Full symmetric matrices (..., n_dims, n_dims) from their packed upper triangles."""
    return packed[..., _positions(n_dims)]


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
