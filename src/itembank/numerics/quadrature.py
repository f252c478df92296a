"""Integrals over a normal variable: equally spaced grids for abilities, and three nodes."""

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray

THREE_NODES = ((0.0, 4.0 / 6.0), (1.0, 1.0 / 6.0), (-1.0, 1.0 / 6.0))
"""Gauss and Hermite's places, in steps of sqrt(3) standard deviations from the mean, and weights."""


def normal_grid(
    n_nodes: int,  # Nodes per dimension, at least two
    *,
    bounds: tuple[float, float] = (-6.0, 6.0),  # First and last node of each dimension
    n_dims: int = 1,  # Dimensions; the grid is the product of one grid per dimension, the last one varying fastest
) -> tuple[FloatArray, FloatArray]:
    """Equally spaced nodes with standard normal weights that sum to one on the nodes.

    For a smooth integrand this trapezoid rule errs by about ``2 exp(-2 pi^2 (s / h)^2)``, with h the
    spacing and s the width of the narrowest normal factor (Trefethen and Weideman 2014): a sharp
    posterior needs a fine grid.

    Returns nodes, (n_quadrature, n_dims) with n_quadrature = n_nodes ** n_dims, and log weights, (n_quadrature,), since
    weights far out underflow before their products with likelihoods matter.

    Raises `ParameterError` when the bounds do not increase, or there are fewer than two nodes or over a million in all.
    """
    if n_nodes < 2 or n_dims < 1 or not bounds[0] < bounds[1]:
        raise ParameterError(
            "a quadrature grid needs at least 2 nodes, 1 dimension and increasing bounds, got "
            f"n_nodes={n_nodes}, n_dims={n_dims}, bounds={bounds}."
        )
    # A product grid larger than this is refused: its E-step would not fit in memory.
    most_nodes = 1_000_000
    if n_nodes**n_dims > most_nodes:
        raise ParameterError(
            f"a quadrature grid may have at most {most_nodes:,} nodes, got {n_nodes} ** {n_dims} = "
            f"{n_nodes**n_dims:,}. Take fewer nodes per dimension, or a method without quadrature."
        )
    # Beyond the default bounds lie 2e-9 of a standard normal.
    line = np.linspace(bounds[0], bounds[1], n_nodes)
    log_density = -0.5 * line**2
    # Over their own sum, not times the spacing: weights then sum to one also where the bounds cut the density off.
    log_density -= log_sum_exp(log_density[None, :])[0]
    axes = np.meshgrid(*[line] * n_dims, indexing="ij")
    nodes = np.stack([axis.ravel() for axis in axes], axis=1)
    weights = np.meshgrid(*[log_density] * n_dims, indexing="ij")
    return nodes, np.sum([axis.ravel() for axis in weights], axis=0)


def log_sum_exp(values: FloatArray) -> FloatArray:
    """Log of the sum of exponentials along the last axis, shifted so that none overflows."""
    highest = values.max(axis=-1, keepdims=True)
    result: FloatArray = np.log(np.exp(values - highest).sum(axis=-1)) + highest[..., 0]
    return result
