"""Start values of marginal ML: items fitted to the leading direction of the responses."""

import numpy as np

from itembank.calibration.calibration_specs import ItemPrior
from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml.grid import AbilityGrid
from itembank.calibration.marginal_ml.items import improve_items, item_derivatives
from itembank.calibration.marginal_ml.posterior import AbilityPosterior, right_answers
from itembank.calibration.start import start_abilities
from itembank.numerics.arrays import FloatArray
from itembank.numerics.quadrature import log_sum_exp

START_SD = 0.4
"""Width of the provisional posteriors of ability. From 0.1 to 0.8 the ends are the same."""

N_NEWTON_STEPS = 5
"""One to ten lead to the same end."""


def start_items(data: FitData, grid: AbilityGrid, *, has_common_slope: bool) -> FloatArray:
    """Item parameters (n_items, 2) given roughly known abilities, under the default prior."""
    items = np.column_stack([np.ones(data.responses.shape[1]), _intercepts(data)])
    posterior = _provisional(start_abilities(data.responses, data.observed, n_dims=1), grid)
    for _ in range(N_NEWTON_STEPS):
        derivatives = item_derivatives(data, items, posterior, grid)
        items = improve_items(items, derivatives, ItemPrior(), has_common_slope=has_common_slope)
    return items


def _intercepts(data: FitData) -> FloatArray:
    """Logit of each item's fraction of right answers above chance, kept from the extremes, (n_items,)."""
    counts = data.responses.shape[0] if data.weights is None else data.weights.sum(axis=0)
    fraction = (right_answers(data, slice(None)).sum(axis=0) + 0.5) / (counts + 1.0)
    # Kept off 0 and 1, where the logit is infinite.
    above = np.clip((fraction - data.lower_asymptote) / (1.0 - data.lower_asymptote), 0.02, 0.98)
    result: FloatArray = np.log(above / (1.0 - above))
    return result


def _provisional(abilities: FloatArray, grid: AbilityGrid) -> AbilityPosterior:
    """Make normal posteriors around given abilities, on the curve nodes."""
    distance = abilities[:, None, :] - grid.curve_nodes[None, :, :]  # (n_models, n_curve_nodes, 1)
    log_density = -0.5 * np.sum(distance**2, axis=2) / START_SD**2
    log_total = log_sum_exp(log_density)
    return AbilityPosterior(
        log_total,
        np.exp(log_density - log_total[:, None]),
        abilities,
        np.broadcast_to(START_SD**2, (len(abilities), 1, 1)),
    )
