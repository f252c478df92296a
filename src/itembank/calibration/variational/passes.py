"""The passes over all responses: what the updates need of them, one block of items at a time.

Everything is a matrix product: with ``x = (theta, 1)`` the logit has mean ``E[beta] . E[x]`` and variance
``E[x]' S_i E[x] + tr(E[a a'] C_l)`` (S_i, C_l the posterior covariances of item and ability); the sums of weighted
outer products that the updates need are products with the unique entries of the outer products.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import BetaRule
from itembank.calibration.variational.blocks import Blocks
from itembank.calibration.variational.cells import Cells, LogisticRule, guessing_terms
from itembank.calibration.variational.state import Posterior
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.symmetric import packed_products, triangle

CellRule: TypeAlias = LogisticRule | BetaRule | BetaBinomialRule


class Block(NamedTuple):
    """What the rule gives for a block of items.

    Attributes
    ----------
    part : slice
        Which items.
    mean, linear, curvature : (n_block, n_models)
        Expected logit; ``y - 1/2 + t`` and w, zero where not observed.
    likelihood : (n_block,)
        Expected log-likelihood of each item's responses.
    """

    part: slice
    mean: FloatArray
    linear: FloatArray
    curvature: FloatArray
    likelihood: FloatArray


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """What the update of the items needs.

    Attributes
    ----------
    precision : (n_items, (n_dims + 1)(n_dims + 2) / 2)
        ``sum_l w_il E[x_l x_l']``, upper triangle.
    linear : (n_items, n_dims + 1)
        ``sum_l (y_il - 1/2 + t_il) E[x_l]``.
    likelihood : (n_items,)
        Expected log-likelihood of each item's responses.
    """

    precision: FloatArray
    linear: FloatArray
    likelihood: FloatArray


class CrossTerms(NamedTuple):
    """What a coupled step needs of each cell, (n_items, n_models) each: w, and the residual, linear - w * mean."""

    curvature: FloatArray
    residual: FloatArray

    @classmethod
    def empty_like(cls, values: FloatArray) -> "CrossTerms":
        """Make room for them."""
        return cls(np.empty_like(values), np.empty_like(values))

    def put(self, block: Block) -> None:
        """Write those of a block of items to their place."""
        self.curvature[block.part] = block.curvature
        residual = self.residual[block.part]
        np.multiply(block.curvature, block.mean, out=residual)
        np.subtract(block.linear, residual, out=residual)


@dataclass(frozen=True, slots=True)
class AbilityStatistics:
    """What the update of the abilities needs.

    Attributes
    ----------
    precision : (n_models, n_dims (n_dims + 1) / 2)
        ``sum_i w_il E[a_i a_i']``, upper triangle.
    linear : (n_models, n_dims)
        ``sum_i (y_il - 1/2 + t_il) E[a_i] - w_il E[a_i c_i]``.
    likelihood : (n_items,)
        Expected log-likelihood of each item's responses.
    cross : CrossTerms or None
        Where a coupled step is to follow.
    """

    precision: FloatArray
    linear: FloatArray
    likelihood: FloatArray
    cross: CrossTerms | None = None


def item_statistics(blocks: Blocks, posterior: Posterior, rule: CellRule) -> ItemStatistics:
    """Go over all responses for the update of the items."""
    abilities = extended(posterior.ability_mean)
    moment = packed_products(abilities)  # E[x x'], upper triangle
    n_dims = posterior.n_dims
    # E[x x'] adds the covariance of theta; the one in x is certain.
    moment[:, _is_slope_pair(n_dims)] += _upper(posterior.ability_covariance)
    moment, abilities = moment.astype(blocks.values.dtype), abilities.astype(blocks.values.dtype)
    precision = np.empty((blocks.n_items, moment.shape[1]))
    linear = np.empty((blocks.n_items, n_dims + 1))
    likelihood = np.empty(blocks.n_items)
    for block in cells(blocks, posterior, rule):
        precision[block.part] = block.curvature @ moment
        linear[block.part] = block.linear @ abilities
        likelihood[block.part] = block.likelihood
    return ItemStatistics(precision, linear, likelihood)


def ability_statistics(
    blocks: Blocks, posterior: Posterior, rule: CellRule, *, with_cross: bool = False
) -> AbilityStatistics:
    """Go over all responses for the update of the abilities; `with_cross` keeps what a coupled step needs."""
    n_models, n_dims = posterior.ability_mean.shape
    loadings, covariance = posterior.item_mean[:, :n_dims], posterior.item_covariance
    squares = packed_products(loadings) + _upper(covariance[:, :n_dims, :n_dims])
    slope_times_intercept = loadings * posterior.item_mean[:, n_dims:] + covariance[:, :n_dims, n_dims]  # E[a c]
    # With the logit a . theta + c, the update needs sum w E[a a'] and sum w E[a c]: one product for both.
    features = np.column_stack([squares, slope_times_intercept]).astype(blocks.values.dtype)
    loadings = loadings.astype(blocks.values.dtype)
    curved = np.zeros((n_models, features.shape[1]))
    linear = np.zeros((n_models, n_dims))
    likelihood = np.empty(blocks.n_items)
    cross = CrossTerms.empty_like(blocks.values) if with_cross else None
    for block in cells(blocks, posterior, rule):
        curved += block.curvature.T @ features[block.part]
        linear += block.linear.T @ loadings[block.part]
        likelihood[block.part] = block.likelihood
        if cross is not None:
            cross.put(block)
    return AbilityStatistics(curved[:, :-n_dims], linear - curved[:, -n_dims:], likelihood, cross)


def cells(blocks: Blocks, posterior: Posterior, rule: CellRule) -> Iterator[Block]:
    """Go over the responses block by block."""
    can_guess = bool(blocks.lower_asymptote.any())
    constants = constants_of(blocks, rule)
    for part, mean, variance in logit_moments(blocks, posterior):
        if isinstance(rule, BetaRule | BetaBinomialRule):
            weights = None if blocks.weights is None else blocks.weights[part]
            expected = rule.evaluate(blocks.values[part], weights, blocks.group_at(part), mean, variance)
        else:
            expected = _logistic_cells(blocks, part, rule, mean, variance, can_guess=can_guess)
        yield Block(part, mean, expected.linear, expected.curvature, expected.value.sum(axis=1) + constants[part])


def logit_moments(blocks: Blocks, posterior: Posterior) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Mean and variance of the logits, (n_block, n_models), block by block; each of one group of items."""
    dtype = blocks.values.dtype
    n_dims = posterior.n_dims
    abilities = extended(posterior.ability_mean)
    item_mean, covariance = posterior.item_mean, posterior.item_covariance
    squares = packed_products(item_mean[:, :n_dims]) + _upper(covariance[:, :n_dims, :n_dims])
    # x' S_i x and tr(E[a a'] C_l) are sums over the entries of two matrices each: one product gives both.
    of_items = np.column_stack([_doubled(_upper(covariance), n_dims + 1), _doubled(squares, n_dims)]).astype(dtype)
    of_models = np.column_stack([packed_products(abilities), _upper(posterior.ability_covariance)]).astype(dtype).T
    item_mean, abilities = item_mean.astype(dtype), abilities.astype(dtype).T
    for part in blocks.slices():
        yield part, item_mean[part] @ abilities, of_items[part] @ of_models


def _logistic_cells(
    blocks: Blocks, part: slice, rule: LogisticRule, mean: FloatArray, variance: FloatArray, *, can_guess: bool
) -> Cells:
    """Apply a rule to binary responses, and to counts, where a weight is the number of trials."""
    centred = blocks.values[part]
    correction, curvature, log_cosh = rule(mean, variance)
    if can_guess:
        centred, value = guessing_terms(mean, centred, blocks.lower_asymptote[part, None].astype(mean.dtype))
    else:
        value = centred * mean
    value -= log_cosh
    linear = centred if correction is None else centred + correction
    if blocks.weights is not None:
        weights = blocks.weights[part]
        linear, curvature, value = linear * weights, curvature * weights, value * weights
    return Cells(linear, curvature, value)


def constants_of(blocks: Blocks, rule: CellRule) -> FloatArray:
    """Return the part of each item's log-likelihood that no logit enters, (n_items,)."""
    if not isinstance(rule, BetaRule) or blocks.sums is None:
        return np.zeros(blocks.n_items)
    result: FloatArray = rule.precision[blocks.group] * blocks.sums[:, 0] + blocks.sums[:, 1]
    return result


def extended(ability_mean: FloatArray) -> FloatArray:
    """Abilities with a one for the intercept, (n_models, n_dims + 1)."""
    return np.column_stack([ability_mean, np.ones(ability_mean.shape[0])])


def _upper(matrices: FloatArray) -> FloatArray:
    """Upper triangles of symmetric matrices, (n, size, size) to (n, size (size + 1) / 2)."""
    rows, columns = triangle(matrices.shape[1])
    return matrices[:, rows, columns]


def _doubled(packed: FloatArray, size: int) -> FloatArray:
    """Upper triangles with the off-diagonals doubled: its product with another one sums over the whole matrix."""
    rows, columns = triangle(size)
    result: FloatArray = packed * np.where(rows == columns, 1.0, 2.0)
    return result


def _is_slope_pair(n_dims: int) -> BoolArray:
    """Which upper-triangle entries of E[x x'] do not involve the one, in the order of a triangle of n_dims."""
    rows, columns = triangle(n_dims + 1)
    result: BoolArray = (rows < n_dims) & (columns < n_dims)
    return result
