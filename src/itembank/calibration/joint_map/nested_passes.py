"""Passes over all responses for nested item models: both logits of every cell, and their derivatives.

``eta = alpha (theta_g + K . theta) + c`` and the general logit ``alpha theta_g + c`` (WILD 5.1, its ``-alpha delta``
is our c).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from itembank.calibration.joint_map.passes import BLOCK_CELLS, Terms, Weights, guessing_terms
from itembank.irt.logistic import asymptotes_of
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.symmetric import packed_products, unpack


class Group(NamedTuple):
    """Items next to each other that depend on the same abilities."""

    items: slice
    dims: IntArray  # (n_active,): Abilities that count, the general one first


class NestedData(NamedTuple):
    """Responses with items in the order of their groups."""

    # (n_models, n_items): 0 or 1, or fractions of right answers; the type of its numbers is that of the passes.
    responses: FloatArray
    observed: BoolArray | None  # (n_models, n_items)
    weights: Weights  # (n_models, n_items): How often each response counts, 0 where not observed; None for once each
    lower_asymptote: FloatArray  # (n_items,)
    groups: tuple[Group, ...]  # Cover all items in order
    general_weight: float  # Of the general logit's log-likelihood


class NestedDerivatives(NamedTuple):
    """Weighted log-likelihood of both logits, with derivatives in one set of parameters."""

    log_likelihood: float
    gradient: FloatArray  # (n_items, n_dims + 1) in (alpha, K, c), or (n_models, n_dims) in abilities
    # (n_items, n_dims + 1, n_dims + 1) or (n_models, n_dims, n_dims): Minus the expected second derivatives.
    precision: FloatArray


class _Block(NamedTuple):
    """Some items of a group, with the terms of both logits; the general ones None when they weigh nothing."""

    items: slice
    whole: Terms
    general: Terms | None


def canonical(items: FloatArray) -> FloatArray:
    """Give loadings and intercepts ``(alpha, alpha K, c)`` of items ``(alpha, K, c)``, (n_items, n_dims + 1)."""
    result = items.copy()
    result[:, 1:-1] *= items[:, :1]
    return result


def item_derivatives(data: NestedData, items: FloatArray, abilities: FloatArray) -> list[NestedDerivatives]:
    """Differentiate in every item's (alpha, K, c), abilities given: of each group, in its active dimensions."""
    return [_group_derivatives(data, group, items, abilities) for group in data.groups]


def _group_derivatives(data: NestedData, group: Group, items: FloatArray, abilities: FloatArray) -> NestedDerivatives:
    active = active_items(items, group)
    design = np.column_stack([abilities[:, group.dims], np.ones(len(abilities))]).astype(data.responses.dtype)
    general_design = design[:, [0, -1]]
    squares, general_squares = packed_products(design), packed_products(general_design)
    slopes, packed, total = np.empty_like(active), np.empty((len(active), squares.shape[1])), 0.0
    general_slopes, general_packed = np.zeros((len(active), 2)), np.zeros((len(active), 3))
    for block in _blocks(data, group, active, design):
        rows = slice(block.items.start - group.items.start, block.items.stop - group.items.start)
        slopes[rows], packed[rows] = block.whole.slope.T @ design, block.whole.curvature.T @ squares
        total += block.whole.log_likelihood
        if block.general is not None:
            general_slopes[rows] = block.general.slope.T @ general_design
            general_packed[rows] = block.general.curvature.T @ general_squares
            total += data.general_weight * block.general.log_likelihood
    gradient, precision = _in_own_parameters(active, slopes, unpack(packed, design.shape[1]))
    ends = np.array([0, design.shape[1] - 1])
    gradient[:, ends] += data.general_weight * general_slopes
    precision[:, ends[:, None], ends] += data.general_weight * unpack(general_packed, 2)
    return NestedDerivatives(total, gradient, precision)


def _in_own_parameters(
    active: FloatArray, gradient: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Transform derivatives in (alpha, alpha K, c) into those in (alpha, K, c), by the chain rule."""
    slope, specific = active[:, 0], active[:, 1:-1]
    chain = np.zeros_like(precision)  # of each own parameter (row) on each canonical one
    chain[:, 0, 0] = chain[:, -1, -1] = 1.0
    chain[:, 0, 1:-1] = specific
    inner = np.arange(1, active.shape[1] - 1)
    chain[:, inner, inner] = slope[:, None]
    return np.einsum("ijk,ik->ij", chain, gradient), chain @ precision @ chain.swapaxes(1, 2)


def ability_derivatives(data: NestedData, items: FloatArray, abilities: FloatArray) -> NestedDerivatives:
    """Differentiate in every model's ability, items given."""
    n_models, n_dims = abilities.shape
    gradient, precision = np.zeros((n_models, n_dims)), np.zeros((n_models, n_dims, n_dims))
    total = 0.0
    for group in data.groups:
        active = active_items(items, group)
        loadings = canonical(active)[:, :-1].astype(data.responses.dtype)
        design = np.column_stack([abilities[:, group.dims], np.ones(n_models)]).astype(data.responses.dtype)
        squares, inside = packed_products(loadings), np.ix_(np.arange(n_models), group.dims, group.dims)
        packed = np.zeros((n_models, squares.shape[1]))
        for block in _blocks(data, group, active, design):
            rows = slice(block.items.start - group.items.start, block.items.stop - group.items.start)
            gradient[:, group.dims] += block.whole.slope @ loadings[rows]
            packed += block.whole.curvature @ squares[rows]
            total += block.whole.log_likelihood
            if block.general is not None:
                gradient[:, 0] += data.general_weight * (block.general.slope @ loadings[rows, 0])
                packed[:, 0] += data.general_weight * (block.general.curvature @ squares[rows, 0])
                total += data.general_weight * block.general.log_likelihood
        precision[inside] += unpack(packed, group.dims.size)
    return NestedDerivatives(total, gradient, precision)


def active_items(items: FloatArray, group: Group) -> FloatArray:
    """(alpha, K, c) of a group's items in its active dimensions, (n_group, n_active + 1)."""
    return items[group.items][:, np.append(group.dims, items.shape[1] - 1)]


def _blocks(data: NestedData, group: Group, active: FloatArray, design: FloatArray) -> Iterator[_Block]:
    """Give the terms of each block of a group's items."""
    coefficients = canonical(active).astype(design.dtype)
    size = max(BLOCK_CELLS // len(design), 16)
    for first in range(group.items.start, group.items.stop, size):
        block = slice(first, min(first + size, group.items.stop))
        rows = slice(block.start - group.items.start, block.stop - group.items.start)
        canonical_rows = coefficients[rows]
        whole = _terms(data, block, design @ canonical_rows.T)
        general = None
        if data.general_weight > 0.0:
            general = _terms(data, block, design[:, [0, -1]] @ canonical_rows[:, [0, -1]].T)
        yield _Block(block, whole, general)


def _terms(data: NestedData, block: slice, x: FloatArray) -> Terms:
    """Terms of a block of logits (n_models, n_block)."""
    responses = data.responses[:, block]
    weights = None if data.weights is None else data.weights[:, block]
    lower = data.lower_asymptote[block]
    if np.any(lower):
        return guessing_terms(x, responses, weights, asymptotes_of(lower, np.ones_like(lower)))
    # log P = y x - log(1 + e^x) = y x - max(x, 0) + log sigmoid(|x|).
    larger = 1.0 / (1.0 + np.exp(-np.abs(x)))  # sigmoid(|x|)
    sigmoid = np.where(x >= 0.0, larger, 1.0 - larger)
    curvature = sigmoid * (1.0 - sigmoid)
    # a log-likelihood of 0 in cells that were not observed: their response is 0
    cells = np.log(larger)
    cells -= np.maximum(x, 0.0)
    cells += responses * x
    slope = responses - sigmoid
    if weights is not None:
        cells, slope, curvature = cells * weights, slope * weights, curvature * weights
    return Terms(float(cells.sum(dtype=np.float64)), slope, curvature)
