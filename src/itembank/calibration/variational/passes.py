"""The passes over all responses: what the updates need of them, one block of items at a time.

Everything is a matrix product: with ``x = (theta, 1)`` the logit has mean ``E[beta] . E[x]`` and variance
``E[x]' S_i E[x] + tr(E[a a'] C_l)`` (S_i, C_l the posterior covariances of item and ability); the sums of weighted
outer products that the updates need are products with the unique entries of the outer products.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import BetaRule
from itembank.calibration.variational.blocks import Blocks, Part, ResponseBlocks
from itembank.calibration.variational.cells import Cells, LogisticRule, guessing_terms
from itembank.calibration.variational.state import Posterior
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.symmetric import packed_products, triangle

CellRule: TypeAlias = LogisticRule | BetaRule | BetaBinomialRule


class Block(NamedTuple):
    """What the rule gives for a block of items."""

    items: slice  # Which items
    models: slice | IntArray  # slice or (n_columns,): Which models, all or as in `Part`
    extended: FloatArray  # (n_columns, n_dims + 1): Abilities of these models, with a one
    moment: FloatArray  # (n_columns, (n_dims + 1)(n_dims + 2) / 2): ``E[x x']`` of them, upper triangles
    mean: FloatArray  # (n_block, n_columns): Expected logit; ``y - 1/2 + t`` and w, zero where not observed
    linear: FloatArray  # (n_block, n_columns)
    curvature: FloatArray  # (n_block, n_columns)
    likelihood: FloatArray  # (n_block,): Expected log-likelihood of each item's responses


class Statistics(NamedTuple):
    """What the update of the items, or of the abilities, needs."""

    # Upper triangles. (n_items, (n_dims + 1)(n_dims + 2) / 2): ``sum_l w_il E[x_l x_l']``, or
    # (n_models, n_dims (n_dims + 1) / 2): ``sum_i w_il E[a_i a_i']``
    precision: FloatArray
    # (n_items, n_dims + 1): ``sum_l (y_il - 1/2 + t_il) E[x_l]``, or
    # (n_models, n_dims): ``sum_i (y_il - 1/2 + t_il) E[a_i] - w_il E[a_i c_i]``
    linear: FloatArray
    likelihood: FloatArray  # (n_items,): Expected log-likelihood of each item's responses
    # Where a coupled step is to follow, of each cell, (n_items, n_models) each: w, and the residual, linear - w * mean.
    cross: tuple[FloatArray, FloatArray] | None = None


def item_statistics(blocks: ResponseBlocks, posterior: Posterior, rule: CellRule) -> Statistics:
    """Go over all responses for the update of the items.

    Items do not depend on each other given the abilities: the statistics of some items are those rows of all.
    """
    n_dims = posterior.n_dims
    precision = np.empty((blocks.n_items, (n_dims + 1) * (n_dims + 2) // 2))
    linear = np.empty((blocks.n_items, n_dims + 1))
    likelihood = np.empty(blocks.n_items)
    for block in cells(blocks, posterior, rule):
        precision[block.items] = block.curvature @ block.moment
        linear[block.items] = block.linear @ block.extended
        likelihood[block.items] = block.likelihood
    return Statistics(precision, linear, likelihood)


def ability_statistics(
    blocks: ResponseBlocks, posterior: Posterior, rule: CellRule, *, with_cross: bool = False
) -> Statistics:
    """Go over all responses for the update of the abilities; `with_cross` keeps what a coupled step needs.

    The statistics of all items are the sums of those of parts of the items, with each part's likelihood in its place.
    """
    n_models, n_dims = posterior.ability_mean.shape
    loadings, covariance = posterior.item_mean[:, :n_dims], posterior.item_covariance
    # With the logit a . theta + c the update needs the weighted sums of E[a a'] and E[a c]: one product gives both.
    squares = packed_products(loadings) + _upper(covariance[:, :n_dims, :n_dims])
    slope_times_intercept = loadings * posterior.item_mean[:, n_dims:] + covariance[:, :n_dims, n_dims]
    features = np.column_stack([squares, slope_times_intercept]).astype(blocks.dtype)
    loadings = loadings.astype(blocks.dtype)
    curved = np.zeros((n_models, features.shape[1]))
    linear = np.zeros((n_models, n_dims))
    likelihood = np.empty(blocks.n_items)
    shape = (blocks.n_items, n_models)
    cross = (np.empty(shape, blocks.dtype), np.empty(shape, blocks.dtype)) if with_cross else None
    for block in cells(blocks, posterior, rule):
        curved[block.models] += block.curvature.T @ features[block.items]
        linear[block.models] += block.linear.T @ loadings[block.items]
        likelihood[block.items] = block.likelihood
        if cross is not None:
            cross[0][block.items] = block.curvature
            residual = cross[1][block.items]
            np.multiply(block.curvature, block.mean, out=residual)
            np.subtract(block.linear, residual, out=residual)
    return Statistics(curved[:, :-n_dims], linear - curved[:, -n_dims:], likelihood, cross)


def cells(blocks: ResponseBlocks, posterior: Posterior, rule: CellRule) -> Iterator[Block]:
    """Go over the responses block by block."""
    can_guess = bool(blocks.lower_asymptote.any())
    constants = constants_of(blocks, rule)
    for part, of_models, mean, variance in _moments(blocks, posterior):
        if isinstance(rule, BetaRule | BetaBinomialRule):
            expected = rule.evaluate(
                part.values,
                part.weights,
                (blocks.group_at(part.items) if isinstance(blocks, Blocks) else 0),
                mean,
                variance,
            )
        else:
            lower = blocks.lower_asymptote[part.items] if can_guess else None
            expected = _logistic_cells(part, rule, mean, variance, lower)
        likelihood = expected.value.sum(axis=1) + constants[part.items]
        models = slice(None) if part.models is None else part.models
        yield Block(part.items, models, *of_models, mean, expected.linear, expected.curvature, likelihood)


def _logistic_cells(
    part: Part, rule: LogisticRule, mean: FloatArray, variance: FloatArray, lower_asymptote: FloatArray | None
) -> Cells:
    """Apply a rule to binary responses, and to counts, where a weight is the number of trials.

    A function of its own, so that its temporaries are gone before the next block and the processor's cache has room.
    """
    centred = part.values
    correction, curvature, log_cosh = rule(mean, variance)
    if lower_asymptote is not None:
        centred, value = guessing_terms(mean, centred, lower_asymptote[:, None].astype(mean.dtype))
    else:
        value = centred * mean
    value -= log_cosh
    linear = centred if correction is None else centred + correction
    if part.weights is not None:
        linear, curvature, value = linear * part.weights, curvature * part.weights, value * part.weights
    return Cells(linear, curvature, value)


def logit_moments(blocks: Blocks, posterior: Posterior) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Mean and variance of the logits, (n_block, n_models), block by block."""
    for part, _, mean, variance in _moments(blocks, posterior):
        yield part.items, mean, variance


def _moments(
    blocks: ResponseBlocks, posterior: Posterior
) -> Iterator[tuple[Part, tuple[FloatArray, FloatArray], FloatArray, FloatArray]]:
    """Give each block, its models' extended abilities and their moments, and mean and variance of its logits."""
    dtype = blocks.dtype
    n_dims, covariance = posterior.n_dims, posterior.item_covariance
    # x' S_i x and tr(E[a a'] C_l) are sums over the entries of two matrices each: one product gives both.
    squares = packed_products(posterior.item_mean[:, :n_dims]) + _upper(covariance[:, :n_dims, :n_dims])
    of_items = np.column_stack([_doubled(_upper(covariance), n_dims + 1), _doubled(squares, n_dims)]).astype(dtype)
    item_mean = posterior.item_mean.astype(dtype)
    abilities = extended(posterior.ability_mean)
    products, uncertainty = packed_products(abilities), _upper(posterior.ability_covariance)
    # E[x x'] adds the covariance of theta; the one in x is certain.
    moment = products.copy()
    rows, columns = triangle(n_dims + 1)
    moment[:, (rows < n_dims) & (columns < n_dims)] += uncertainty
    # ``x x'`` and the covariances, upper triangles one after the other
    whole = tuple(array.astype(dtype) for array in (abilities, moment, np.column_stack([products, uncertainty])))
    for part in blocks.parts():
        own, moments, squares = whole if part.models is None else (array[part.models] for array in whole)
        yield part, (own, moments), item_mean[part.items] @ own.T, of_items[part.items] @ squares.T


def constants_of(blocks: ResponseBlocks, rule: CellRule) -> FloatArray:
    """Return the part of each item's log-likelihood that no logit enters, (n_items,)."""
    if not isinstance(rule, BetaRule) or blocks.sums is None:
        return np.zeros(blocks.n_items)
    return rule.precision[blocks.group] * blocks.sums[:, 0] + blocks.sums[:, 1]


def extended(ability_mean: FloatArray) -> FloatArray:
    """Abilities with a one for the intercept, (n_models, n_dims + 1)."""
    return np.column_stack([ability_mean, np.ones(ability_mean.shape[0])])


def _upper(matrices: FloatArray) -> FloatArray:
    """Upper triangles of symmetric matrices, (n, size, size) to (n, size (size + 1) / 2)."""
    size = matrices.shape[1]
    rows, columns = triangle(size)
    result: FloatArray = matrices.reshape(-1, size**2).take(rows * size + columns, axis=1)
    return result


def _doubled(packed: FloatArray, size: int) -> FloatArray:
    """Upper triangles with the off-diagonals doubled: its product with another one sums over the whole matrix."""
    rows, columns = triangle(size)
    return packed * np.where(rows == columns, 1.0, 2.0)
