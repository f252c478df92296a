"""Principal components of the calibration models' responses."""

import numpy as np

from itembank.numerics.arrays import FloatArray

RANK_TOLERANCE = 1e-12
"""Eigenvalues below this fraction of the largest count as zero: their vectors are rounding."""


def decomposed(centred: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decompose ``X = U diag(sqrt(e)) V'`` by the smaller Gram matrix, a few times faster than by singular values.

    Parameters
    ----------
    centred : (n_models, n_columns)

    Returns
    -------
    left : (n_models, rank)
        U.
    eigenvalues : (rank,)
        e, descending.
    right : (n_columns, rank)
        V.
    """
    is_wide = centred.shape[0] <= centred.shape[1]
    eigenvalues, vectors = np.linalg.eigh(centred @ centred.T if is_wide else centred.T @ centred)
    is_positive = eigenvalues > RANK_TOLERANCE * eigenvalues.max(initial=0.0)
    eigenvalues, vectors = eigenvalues[is_positive][::-1], vectors[:, is_positive][:, ::-1]
    # V = X'U / sqrt(e), or U = XV / sqrt(e): only the smaller side needs an eigendecomposition
    other = (centred.T if is_wide else centred) @ vectors / np.sqrt(eigenvalues)
    return (vectors, eigenvalues, other) if is_wide else (other, eigenvalues, vectors)


def principal_components(train: FloatArray, new: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Project both on the leading principal components of `train`, at most so many, (n, n_components)."""
    centre = train.mean(axis=0)
    _, _, directions = decomposed(train - centre)
    return (train - centre) @ directions[:, :most], (new - centre) @ directions[:, :most]
