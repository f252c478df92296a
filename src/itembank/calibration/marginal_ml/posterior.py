"""The E-step: posterior of every model's ability on the grid, given item parameters.

All in logs. Without guessing, ``sum_i log P(y_li | theta) = theta . sum_i y_li a_i + sum_i y_li c_i
- sum_i n_li log(1 + e^(a_i theta + c_i))`` with y right answers of n trials, so a complete matrix of single answers
needs one product of its responses with the parameters and one sum of curves for all models together. The binomial
coefficients of counts, which no parameter enters, are left out.

The two grids of marginal ML: a fine one for the posteriors of ability, a coarse one for the item curves.

At benchmark scale the posterior of an ability is far narrower than any item curve. The curves are
therefore evaluated on few nodes and interpolated (by a spline, a fixed matrix) to the many nodes on
which posteriors are summed: the costly axis, n_items, never meets the fine grid.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_interp_spline

from itembank.calibration.fits import FitData
from itembank.irt.bernoulli import information_weights, weighted_information
from itembank.irt.logistic import asymptotes_of, log_probabilities
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.quadrature import log_sum_exp, normal_grid
from itembank.numerics.stable import softplus
from itembank.numerics.symmetric import packed_products, unpack

SPLINE_DEGREE = 7
"""With 400 models and 200 items the log-likelihood is off by 0.01 with 3, by 1e-5 with 5, and no more with 7."""

WIDEST_SLOPE_TIMES_SPACING = 1.0
"""Steepest loading times the spacing of curve nodes that is tolerated; 0.75 is chosen.

The error of an interpolated log-probability is 4e-5 and 2e-6 at its worst ability (tested). It falls as the spacing
to the power of `SPLINE_DEGREE` + 1, so cells of many answers get nodes that much closer.
"""

WIDEST_SPACING_TO_SD = 1.5
"""Spacing of nodes over the posterior sd of the sharpest ability that is tolerated; 1.2 is chosen, and 4 refused.

A posterior's sum errs by ``2 exp(-2 pi^2 / ratio^2)``: 3e-4, 2e-6 and 0.6.
"""


@dataclass(frozen=True, slots=True)
class AbilityGrid:
    """Nodes of ability."""

    curve_nodes: FloatArray  # (n_curve_nodes, 1): Where item curves are evaluated
    nodes: FloatArray  # (n_quadrature, 1): Where posteriors of ability are summed
    log_weights: FloatArray  # (n_quadrature,): Log of the population's density, renormalised to one on the nodes
    # (n_quadrature, n_curve_nodes): From curve nodes to nodes; None when both grids are one.
    interpolation: FloatArray | None
    spacing: float  # Distance of neighbouring nodes

    def refine(self, values: FloatArray) -> FloatArray:
        """Interpolate rows of values at the curve nodes to the nodes, (n_rows, n_quadrature)."""
        if self.interpolation is None:
            return values
        return values @ self.interpolation.T

    def gather(self, weights: FloatArray) -> FloatArray:
        """Move rows of weights on the nodes to the curve nodes, (n_rows, n_curve_nodes).

        The transpose of `refine`: sums of any interpolated curve keep their value.
        """
        if self.interpolation is None:
            return weights
        return weights @ self.interpolation


def ability_grid(n_nodes: int, n_curve_nodes: int, *, bounds: tuple[float, float]) -> AbilityGrid:
    """Make both grids, one in fact when there would be as many curve nodes as nodes."""
    nodes, log_weights = normal_grid(n_nodes, bounds=bounds)
    spacing = (bounds[1] - bounds[0]) / (n_nodes - 1)
    if n_curve_nodes >= n_nodes:
        return AbilityGrid(nodes, nodes, log_weights, None, spacing)
    curve_nodes, _ = normal_grid(n_curve_nodes, bounds=bounds)
    coarse = np.linspace(*bounds, n_curve_nodes)
    spline = make_interp_spline(coarse, np.eye(n_curve_nodes), k=SPLINE_DEGREE)
    interpolation: FloatArray = spline(np.linspace(*bounds, n_nodes))
    return AbilityGrid(curve_nodes, nodes, log_weights, interpolation, spacing)


def adaptive_grid(
    sharpest: float, steepest: float, *, bounds: tuple[float, float], n_trials: float = 1.0
) -> AbilityGrid:
    """Make a grid for the sharpest posterior sd of ability and the steepest loading expected, n_trials to a cell."""
    widest = 0.2  # for any test, however short
    n_nodes = nodes_for_spacing(min(widest, 1.2 * sharpest), bounds)
    n_curve_nodes = nodes_for_spacing(min(widest, 0.75 / (steepest * _closer(n_trials))), bounds)
    return ability_grid(n_nodes, n_curve_nodes, bounds=bounds)


def is_fine_enough(grid: AbilityGrid, sharpest: float, steepest: float, *, n_trials: float = 1.0) -> bool:
    """Whether the grid resolves the sharpest posterior and the steepest curve, n_trials to a cell."""
    has_own_curves = grid.interpolation is not None
    curve_spacing = float(np.diff(grid.curve_nodes[:2, -1])[0]) if has_own_curves else 0.0
    largest = WIDEST_SLOPE_TIMES_SPACING / _closer(n_trials)
    return grid.spacing <= WIDEST_SPACING_TO_SD * sharpest and steepest * curve_spacing <= largest


def _closer(n_trials: float) -> float:
    """How much closer curve nodes must lie for the error of a cell to be that of a single answer."""
    return float(n_trials ** (1.0 / (SPLINE_DEGREE + 1)))


def sharpest_sd(items: FloatArray, abilities: FloatArray, n_trials: FloatArray | None = None) -> float:
    """Smallest posterior sd of any ability, by the test information at the abilities.

    The grid's own posteriors cannot tell: on a grid that is too coarse they have no width. Guessing and
    missing cells are left out; both only widen posteriors. Trials (n_models, n_items) count as answers.
    """
    parameters = ItemParameters.create(items[:, :-1], items[:, -1])
    largest = 0.0
    for rows in row_blocks(len(abilities), len(items), times=2):
        weights = information_weights(parameters, abilities[rows])
        information = weighted_information(items[:, :-1], weights if n_trials is None else weights * n_trials[rows])
        largest = max(largest, float(np.linalg.eigvalsh(information)[:, -1].max()))
    return float(1.0 / np.sqrt(1.0 + largest))


def nodes_for_spacing(spacing: float, bounds: tuple[float, float]) -> int:
    """Fewest nodes whose distance is at most `spacing`."""
    return max(int(np.ceil((bounds[1] - bounds[0]) / spacing)) + 1, 2)


BLOCK_CELLS = 1 << 17
"""Cells of a block of items times curve nodes: what stays in a processor's cache."""


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
    # log-likelihoods are a part linear in ability, (n_models, 2), and one on the curve nodes, a single row where common
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
            lower = data.lower_asymptote[block, None]
            log_p, log_q = log_probabilities(x, asymptotes_of(lower, np.ones_like(lower)))
            right: FloatArray = right_answers(data, block).astype(np.float64) @ (log_p - log_q)
            curves += right + (log_q.sum(axis=0) if data.weights is None else trials(data, block) @ log_q)
        else:
            curves -= trials(data, block) @ softplus(x)
    design = np.column_stack([grid.nodes, np.ones(len(grid.nodes))])
    for rows in row_blocks(len(slopes), len(design), times=4):
        log_joint = grid.refine(curves[rows] if len(curves) > 1 else curves) + grid.log_weights
        log_joint = log_joint + slopes[rows] @ design.T  # (n_rows, n_quadrature)
        log_likelihood = log_sum_exp(log_joint)
        yield rows, log_likelihood, np.exp(log_joint - log_likelihood[:, None])


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
