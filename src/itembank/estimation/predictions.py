"""What the item model says of weighted sums of responses, scenario by scenario."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itembank.estimation.scenario_sums import scenario_items
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class PredictedSums:
    """Moments of ``sum_i omega_i Y_i`` over some items of each scenario, given ability.

    Attributes
    ----------
    mean : (n_models, n_scenarios)
        ``sum_i omega_i p_i``.
    noise : (n_models, n_scenarios)
        Variance given ability, ``sum_i omega_i^2 p_i (1 - p_i)``: responses are independent given ability.
    gradient : (n_models, n_scenarios, n_dims)
        ``sum_i omega_i dp_i / dtheta``.
    """

    mean: FloatArray
    noise: FloatArray
    gradient: FloatArray

    def __sub__(self, other: "PredictedSums") -> "PredictedSums":
        """Moments of the sum over the items that are in this one and not in the other."""
        return PredictedSums(
            self.mean - other.mean,
            np.maximum(self.noise - other.noise, 0.0),
            self.gradient - other.gradient,
        )


def predicted_sums(
    parameters: ItemParameters,
    weights: FloatArray,
    scenario_index: IntArray,
    n_scenarios: int,
    theta: FloatArray,
    *,
    mask: BoolArray | None = None,
) -> PredictedSums:
    """Moments of the weighted sums of responses over each scenario.

    With ``s = sigmoid(a . theta + c)``: ``p = g + (u - g) s`` and ``dp/dtheta = (u - g) s (1 - s) a``.

    Parameters
    ----------
    parameters : ItemParameters
        Of n_items items.
    weights : (n_items,)
        omega.
    scenario_index : (n_items,)
    n_scenarios : int
    theta : (n_models, n_dims)
    mask : (n_models, n_items), optional
        Which items to sum over; all by default.
    """
    n_models, n_dims = theta.shape
    mean = np.zeros((n_models, n_scenarios))
    noise = np.zeros((n_models, n_scenarios))
    gradient = np.zeros((n_models, n_scenarios, n_dims))
    for scenario, items in enumerate(scenario_items(scenario_index, n_scenarios)):
        loadings, omega = parameters.loadings[items], weights[items]
        lower, upper = parameters.lower_asymptote[items], parameters.upper_asymptote[items]
        share = expit(theta @ loadings.T + parameters.intercept[items])  # (n_models, n_items)
        p = lower + (upper - lower) * share
        slope = (upper - lower) * share * (1.0 - share)
        spread = p * (1.0 - p)
        if mask is not None:
            seen = mask[:, items]
            p, slope, spread = p * seen, slope * seen, spread * seen
        mean[:, scenario] = p @ omega
        noise[:, scenario] = spread @ omega**2
        gradient[:, scenario] = slope @ (omega[:, None] * loadings)
    return PredictedSums(mean, noise, gradient)
