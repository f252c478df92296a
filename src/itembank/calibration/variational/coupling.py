"""A step of the abilities that knows how the items will follow.

Updating abilities and items in turn is slow where they depend on each other: where a group of models separates a group
of items perfectly, both must grow together. With P_l and P_i the precisions of ability and item, and
``C_il = w_il x_l a_i' - r_il [I; 0]`` the cross derivatives of the objective (r the residual, x = (theta, 1)), Newton's
step for both at once, from items that are already at their best, is
``(P_theta - C' P_beta^-1 C) d_theta = g`` and ``d_beta = -P_beta^-1 C d_theta``.
A few conjugate gradient iterations, each six matrix products, get close enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from itembank.calibration.variational.blocks import CELLS_PER_BLOCK
from itembank.calibration.variational.passes import AbilityStatistics, CrossTerms, extended
from itembank.calibration.variational.state import Covariances, Posterior
from itembank.numerics.arrays import FloatArray
from itembank.numerics.symmetric import unpack

MAX_ITERATIONS = 10
"""Two to thirty lead simulated fits to the same end."""
RELATIVE_RESIDUAL = 0.3
"""Of the preconditioned residual's norm, at which to stop: a rough step is enough, since the next sweep corrects it."""
LEAST_CURVATURE = 1e-3
"""Fraction of the curvature without coupling: below it the objective is nearly straight, and its quadratic no guide."""


@dataclass(frozen=True, slots=True)
class Coupling:
    """Cross derivatives of the objective in items and abilities at one point."""

    cross: CrossTerms  # w and r
    extended: FloatArray  # (n_models, n_dims + 1): Abilities with a one
    loadings: FloatArray  # (n_items, n_dims)
    item_covariance: FloatArray  # (n_items, n_dims + 1, n_dims + 1): Inverse of P_beta

    @classmethod
    def at(cls, posterior: Posterior, cross: CrossTerms) -> "Coupling":
        """Take them where a pass over the responses has been."""
        dtype = cross.curvature.dtype
        return cls(
            cross,
            extended(posterior.ability_mean).astype(dtype),
            posterior.item_mean[:, : posterior.n_dims].astype(dtype),
            posterior.item_covariance,
        )

    def items_follow(self, ability_step: FloatArray) -> FloatArray:
        """``P_beta^-1 C d_theta``, (n_items, n_dims + 1): minus how the items answer a step of the abilities."""
        step = ability_step.astype(self.loadings.dtype)
        return np.concatenate([self._items_of(part, step) for part in self._slices()])

    def abilities_follow_items(self, ability_step: FloatArray) -> FloatArray:
        """``C' P_beta^-1 C d_theta``, (n_models, n_dims): what the items' answer does to the abilities."""
        dtype = self.loadings.dtype
        step, n_dims = ability_step.astype(dtype), self.loadings.shape[1]
        product = np.zeros(ability_step.shape, dtype)
        for part in self._slices():
            items = self._items_of(part, step).astype(dtype)
            weighted = items @ self.extended.T
            weighted *= self.cross.curvature[part]
            product += weighted.T @ self.loadings[part]
            product -= self.cross.residual[part].T @ items[:, :n_dims]
        return product

    def _items_of(self, part: slice, step: FloatArray) -> FloatArray:
        """Find how some of the items follow, (n_part, n_dims + 1)."""
        weighted = self.loadings[part] @ step.T
        weighted *= self.cross.curvature[part]
        product: FloatArray = weighted @ self.extended
        product[:, : step.shape[1]] -= self.cross.residual[part] @ step
        return times(self.item_covariance[part], product)

    def _slices(self) -> Iterator[slice]:
        """Cut the items into blocks that stay in the cache."""
        n_items, n_models = self.cross.curvature.shape
        n_block = max(1, CELLS_PER_BLOCK // n_models)
        return (slice(first, first + n_block) for first in range(0, n_items, n_block))


def coupled_step(
    posterior: Posterior, statistics: AbilityStatistics, cross: CrossTerms, spread: Covariances
) -> Posterior:
    """Move the means of abilities and items together, from items just updated given these abilities.

    `spread` holds the covariances of the abilities by these statistics, which have a closed form.
    """
    coupling = Coupling.at(posterior, cross)
    precision = unpack(statistics.precision, posterior.n_dims) + np.eye(posterior.n_dims)
    gradient = statistics.linear - times(precision, posterior.ability_mean)
    step = _conjugate_gradients(coupling, precision, spread.matrices, gradient)
    return replace(
        posterior,
        ability_mean=posterior.ability_mean + step,
        abilities_spread=spread,
        item_mean=posterior.item_mean - coupling.items_follow(step),
    )


def _conjugate_gradients(
    coupling: Coupling, precision: FloatArray, covariance: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Solve for the abilities' step roughly, preconditioned by their own precision; stop where the curvature ends."""
    step = np.zeros_like(gradient)
    residual = gradient
    steepest = times(covariance, residual)
    direction, size = steepest, float(np.sum(residual * steepest))
    enough = RELATIVE_RESIDUAL**2 * size
    for iteration in range(MAX_ITERATIONS):
        alone = times(precision, direction)
        curved = alone - coupling.abilities_follow_items(direction)
        curvature = float(np.sum(direction * curved))
        # P_theta - C' P_beta^-1 C need not be positive definite away from a maximum.
        if curvature <= LEAST_CURVATURE * float(np.sum(direction * alone)):
            return steepest if iteration == 0 else step
        step = step + size / curvature * direction
        residual = residual - size / curvature * curved
        steepest = times(covariance, residual)
        size, before = float(np.sum(residual * steepest)), size
        if size < enough:
            break
        direction = steepest + size / before * direction
    return step


def times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Matrix times vector, row by row: (n, j, k) and (n, k) to (n, j)."""
    result: FloatArray = np.einsum("ljk,lk->lj", matrices, vectors)
    return result
