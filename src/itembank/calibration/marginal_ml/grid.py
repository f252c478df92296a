"""The two grids of marginal ML: a fine one for the posteriors of ability, a coarse one for the item curves.

At benchmark scale the posterior of an ability is far narrower than any item curve. The curves are
therefore evaluated on few nodes and interpolated (by a spline, a fixed matrix) to the many nodes on
which posteriors are summed: the costly axis, n_items, never meets the fine grid.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_interp_spline

from itembank.irt.bernoulli import information_weights, weighted_information
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.numerics.quadrature import normal_grid

SPLINE_DEGREE = 7
"""With 400 models and 200 items the log-likelihood is off by 0.01 with 3, by 1e-5 with 5, and no more with 7."""

SLOPE_TIMES_SPACING = 0.75
WIDEST_SLOPE_TIMES_SPACING = 1.0
"""Steepest loading times the spacing of curve nodes: chosen, and tolerated.

The error of an interpolated log-probability is 2e-6 and 4e-5 at its worst ability (tested). It falls as the spacing
to the power of `SPLINE_DEGREE` + 1, so cells of many answers get nodes that much closer.
"""

SPACING_TO_SD = 1.2
WIDEST_SPACING_TO_SD = 1.5
REFUSED_SPACING_TO_SD = 4.0
"""Spacing of nodes over the posterior sd of the sharpest ability: chosen, tolerated, and refused.

A posterior's sum errs by ``2 exp(-2 pi^2 / ratio^2)``: 2e-6, 3e-4 and 0.6.
"""

INFORMATION_CELLS = 1 << 21
"""Cells of a block of models times items: 16 MiB an array."""

WIDEST_SPACING = 0.2
"""Spacing that any test, however short, gets."""


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
    n_nodes = nodes_for_spacing(min(WIDEST_SPACING, SPACING_TO_SD * sharpest), bounds)
    n_curve_nodes = nodes_for_spacing(min(WIDEST_SPACING, SLOPE_TIMES_SPACING / (steepest * _closer(n_trials))), bounds)
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
    size = max(INFORMATION_CELLS // len(items), 1)
    for first in range(0, len(abilities), size):
        rows = slice(first, first + size)
        weights = information_weights(parameters, abilities[rows])
        information = weighted_information(items[:, :-1], weights if n_trials is None else weights * n_trials[rows])
        largest = max(largest, float(np.linalg.eigvalsh(information)[:, -1].max()))
    return float(1.0 / np.sqrt(1.0 + largest))


def nodes_for_spacing(spacing: float, bounds: tuple[float, float]) -> int:
    """Fewest nodes whose distance is at most `spacing`."""
    return max(int(np.ceil((bounds[1] - bounds[0]) / spacing)) + 1, 2)
