"""The E-step: posterior of every model's ability on the grid, given item parameters.

All in logs. Without guessing, ``sum_i log P(y_li | theta) = theta . sum_i y_li a_i + sum_i y_li c_i
- sum_i n_li log(1 + e^(a_i theta + c_i))`` with y right answers of n trials, so a complete matrix of single answers
needs one product of its responses with the parameters and one sum of curves for all models together. The binomial
coefficients of counts, which no parameter enters, are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml.grid import AbilityGrid
from itembank.irt.logistic import asymptotes_of, log_probabilities
from itembank.numerics.arrays import FloatArray
from itembank.numerics.quadrature import log_sum_exp
from itembank.numerics.stable import softplus
from itembank.numerics.symmetric import packed_products, unpack

BLOCK_CELLS = 1 << 17
"""Cells of a block of items times curve nodes: what stays in a processor's cache."""

POSTERIOR_CELLS = 1 << 22
"""Cells of a block of models times nodes: 32 MiB an array."""


@dataclass(frozen=True, slots=True)
class AbilityPosterior:
    """What the M-step and the results need of the posteriors."""

    log_likelihood: FloatArray  # (n_models,): Log marginal likelihood of each model's responses
    # (n_models, n_curve_nodes): Posterior weights moved to the curve nodes; may be slightly negative where they were
    # interpolated.
    curve_weights: FloatArray
    mean: FloatArray  # (n_models, 1): Expected a posteriori ability
    covariance: FloatArray  # (n_models, 1, 1)


def item_blocks(n_items: int, n_nodes: int) -> Iterator[slice]:
    """Slices of items, each small enough that items times nodes stays in cache."""
    # 512 at most, for `softplus_sum`
    size = int(np.clip(BLOCK_CELLS // n_nodes, 64, 512))
    for first in range(0, n_items, size):
        yield slice(first, min(first + size, n_items))


def ability_posterior(data: FitData, items: FloatArray, grid: AbilityGrid) -> AbilityPosterior:
    """Posterior of every ability.

    Parameters
    ----------
    data : FitData
    items : (n_items, 2)
        Loading, then intercept.
    grid : AbilityGrid
    """
    squares = packed_products(grid.nodes)
    parts = []
    for _, log_likelihood, weights in posterior_weights(data, items, grid):
        parts.append((log_likelihood, grid.gather(weights), weights @ grid.nodes, weights @ squares))
    log_likelihood, curve_weights, mean, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    # E[theta theta'] - E[theta] E[theta]'.
    covariance = unpack(second, 1) - mean[:, :, None] * mean[:, None, :]
    return AbilityPosterior(log_likelihood, curve_weights, mean, covariance)


def posterior_weights(
    data: FitData, items: FloatArray, grid: AbilityGrid
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Give, block of models by block, its rows, their log marginal likelihoods and weights on the nodes.

    The weights (n_rows, n_quadrature) of each model sum to one.
    """
    slopes, curves = _log_likelihood_parts(data, items, grid)
    design = np.column_stack([grid.nodes, np.ones(len(grid.nodes))])
    for rows in _model_blocks(len(slopes), len(design)):
        log_joint = grid.refine(curves[rows] if len(curves) > 1 else curves) + grid.log_weights
        log_joint = log_joint + slopes[rows] @ design.T  # (n_rows, n_quadrature)
        log_likelihood = log_sum_exp(log_joint)
        yield rows, log_likelihood, np.exp(log_joint - log_likelihood[:, None])


def _model_blocks(n_models: int, n_nodes: int) -> Iterator[slice]:
    """Slices of models of bounded memory on the fine grid."""
    size = max(POSTERIOR_CELLS // n_nodes, 1)
    for first in range(0, n_models, size):
        yield slice(first, min(first + size, n_models))


def _log_likelihood_parts(data: FitData, items: FloatArray, grid: AbilityGrid) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood as a part linear in ability and a part on the curve nodes.

    Shapes (n_models, 2), and (n_models, n_curve_nodes) or (1, n_curve_nodes) when common.
    """
    n_models, n_items = data.responses.shape
    n_nodes = len(grid.curve_nodes)
    has_guessing = bool(np.any(data.lower_asymptote))
    is_shared = data.weights is None and not has_guessing
    curves = np.zeros((1 if is_shared else n_models, n_nodes))
    slopes = np.zeros((n_models, 2))
    if not has_guessing:
        slopes += right_answers(data, slice(None)) @ items.astype(data.responses.dtype, copy=False)
    for block in item_blocks(n_items, n_nodes):
        x = items[block, :-1] @ grid.curve_nodes.T + items[block, -1:]  # (n_items, n_curve_nodes)
        if is_shared:
            curves[0] -= softplus_sum(x)
        elif has_guessing:
            curves += _guessing_curves(data, block, x)
        else:
            curves -= trials(data, block) @ softplus(x)
    return slopes, curves


def _guessing_curves(data: FitData, block: slice, x: FloatArray) -> FloatArray:
    """Log-likelihood of a block of items with lower asymptotes, (n_models, n_curve_nodes)."""
    lower = data.lower_asymptote[block, None]
    log_p, log_q = log_probabilities(x, asymptotes_of(lower, np.ones_like(lower)))
    right: FloatArray = right_answers(data, block).astype(np.float64) @ (log_p - log_q)
    return right + (log_q.sum(axis=0) if data.weights is None else trials(data, block) @ log_q)


def right_answers(data: FitData, block: slice) -> FloatArray:
    """How many answers of each cell of the block were right, (n_models, n_block)."""
    responses = data.responses[:, block]
    return responses if data.n_trials is None else responses * data.n_trials[:, block]


def trials(data: FitData, block: slice) -> FloatArray:
    """How many answers there are in each cell of the block, (n_models, n_block); 0 where not observed."""
    if data.weights is None:
        return np.ones((data.responses.shape[0], block.stop - block.start))
    return data.weights[:, block].astype(np.float64)


def softplus_sum(x: FloatArray) -> FloatArray:
    """``sum_i log(1 + e^x_ij)`` over at most 512 rows, (n_columns,).

    The logs of a product of numbers in [1, 2]: 512 of them stay far below the largest float.
    """
    result: FloatArray = np.maximum(x, 0.0).sum(axis=0)
    result += np.log(np.multiply.reduce(1.0 + np.exp(-np.abs(x)), axis=0))
    return result
