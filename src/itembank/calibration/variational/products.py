"""Products of a block of cells with numbers of its items and of its models, whichever models the block has.

A block has all models, some models for all of its items, or a list of models for each of its items. The first two are
matrix products; the lists are gathered, and what they add to the models is a sparse matrix product.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.symmetric import triangle


class ModelNumbers(NamedTuple):
    """Numbers of the models that the passes multiply with."""

    extended: FloatArray  # (n_models, n_dims + 1): Abilities with a one
    # (n_models, (n_dims + 1)^2): ``x x'`` of the extended abilities and the covariances of the abilities, upper
    # triangles one after the other.
    squares: FloatArray
    moment: FloatArray  # (n_models, (n_dims + 1)(n_dims + 2) / 2): ``E[x x']``, upper triangles

    def of(self, models: IntArray | None) -> "ModelNumbers | Gathered":
        """Return the numbers of a block's models."""
        if models is None:
            return self
        if models.ndim == 1:
            return ModelNumbers(self.extended[models], self.squares[models], self.moment[models])
        return Gathered(self.squares.take(models, axis=0), self.extended.shape[1] - 1)

    def logits(self, item_mean: FloatArray, of_items: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the logits of items, (n_block, n_columns) each.

        Parameters
        ----------
        item_mean : (n_block, n_dims + 1)
        of_items : (n_block, (n_dims + 1)^2)
            What `squares` are multiplied with.
        """
        return item_mean @ self.extended.T, of_items @ self.squares.T

    def item_sums(self, curvature: FloatArray, linear: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum ``w E[x x']`` and ``linear E[x]`` over the models, of cells (n_block, n_columns)."""
        return curvature @ self.moment, linear @ self.extended


class Gathered(NamedTuple):
    """Numbers of the models of each item of a block."""

    squares: FloatArray  # (n_block, n_columns, (n_dims + 1)^2): Those of `ModelNumbers`, which hold all others
    n_dims: int

    def logits(self, item_mean: FloatArray, of_items: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As that of `ModelNumbers`."""
        weights = np.zeros((of_items.shape[0], 2, of_items.shape[1]), dtype=of_items.dtype)
        weights[:, 0, with_one(self.n_dims)] = item_mean
        weights[:, 1] = of_items
        found = weights @ self.squares.swapaxes(1, 2)
        return found[:, 0], found[:, 1]

    def item_sums(self, curvature: FloatArray, linear: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As that of `ModelNumbers`."""
        sums = np.stack([curvature, linear], axis=1) @ self.squares
        n_products = triangle(self.n_dims + 1)[0].shape[0]
        precision = sums[:, 0, :n_products]
        precision[:, slope_pairs(self.n_dims)] += sums[:, 0, n_products:]
        return precision, sums[:, 1, with_one(self.n_dims)]


def add_to_models(total: FloatArray, cells: FloatArray, of_items: FloatArray, models: IntArray | None) -> None:
    """Add ``cells' of_items`` to the totals of the models of a block.

    Parameters
    ----------
    total : (n_models, n_numbers)
        Changed in place.
    cells : (n_block, n_columns)
    of_items : (n_block, n_numbers)
    models : None, (n_columns,) or (n_block, n_columns)
        Which models the columns are; a list of an item may name a model again where its cell is zero.
    """
    if models is None:
        total += cells.T @ of_items
    elif models.ndim == 1:
        total[models] += cells.T @ of_items
    else:
        n_block, n_columns = cells.shape
        starts = np.arange(0, cells.size + 1, n_columns)
        sparse = csr_array((cells.ravel(), models.ravel(), starts), shape=(n_block, total.shape[0]))
        total += sparse.T @ of_items


def slope_pairs(n_dims: int) -> IntArray:
    """Which upper-triangle entries of ``x x'`` do not involve the one, in the order of a triangle of n_dims."""
    rows, columns = triangle(n_dims + 1)
    return np.flatnonzero((rows < n_dims) & (columns < n_dims))


def with_one(n_dims: int) -> IntArray:
    """Which upper-triangle entries of ``x x'`` are the entries of x times its one, in the order of x."""
    return np.flatnonzero(triangle(n_dims + 1)[1] == n_dims)
