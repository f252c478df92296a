"""One slope for all items (1PL): the joint normal posterior of the slope and all intercepts.

The joint precision is an arrow: p for the slope, couplings k_i between slope and intercept i, d_i for intercept i.
Elimination of the intercepts gives ``1 / var(a) = p - sum_i k_i^2 / d_i``,
``cov(a, c_i) = -var(a) k_i / d_i`` and ``var(c_i) = 1 / d_i + var(a) (k_i / d_i)^2``.
"""

from dataclasses import dataclass, replace

import numpy as np

from itembank.calibration.variational.state import HYPER_MEAN_VARIANCE, Covariances, Posterior
from itembank.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Arrow:
    """Natural parameters: precision p, k (n_items,), d (n_items,); precision times mean for slope and intercepts."""

    slope_precision: float
    coupling: FloatArray
    intercept_precision: FloatArray
    slope_linear: float
    intercept_linear: FloatArray

    def toward(self, other: "Arrow", step: float) -> "Arrow":
        """Go a step of the way to another one."""
        return Arrow(
            self.slope_precision + step * (other.slope_precision - self.slope_precision),
            self.coupling + step * (other.coupling - self.coupling),
            self.intercept_precision + step * (other.intercept_precision - self.intercept_precision),
            self.slope_linear + step * (other.slope_linear - self.slope_linear),
            self.intercept_linear + step * (other.intercept_linear - self.intercept_linear),
        )


def update_common_slope(posterior: Posterior, precision: FloatArray, linear: FloatArray, step: float) -> Posterior:
    """Find the joint posterior of slope and intercepts.

    Parameters
    ----------
    posterior : Posterior
    precision : (n_items, 2, 2)
        Without the prior.
    linear : (n_items, 2)
    step : float
        In (0, 1].
    """
    prior = posterior.item_prior
    new = Arrow(
        precision[:, 0, 0].sum() + 1.0 / HYPER_MEAN_VARIANCE,
        precision[:, 0, 1],
        precision[:, 1, 1] + prior.precision[1],
        linear[:, 0].sum(),
        linear[:, 1] + prior.precision[1] * prior.centre[..., 1],
    )
    arrow = new if step == 1.0 else _arrow_of(posterior).toward(new, step)
    # Eliminate the intercepts from the arrow, solve for the slope, and put it back into them.
    ratio = arrow.coupling / arrow.intercept_precision
    variance = 1.0 / (arrow.slope_precision - np.sum(ratio * arrow.coupling))
    slope = variance * (arrow.slope_linear - np.sum(ratio * arrow.intercept_linear))
    intercept = arrow.intercept_linear / arrow.intercept_precision - ratio * slope
    covariance = np.empty((ratio.shape[0], 2, 2))
    covariance[:, 0, 0] = variance
    covariance[:, 0, 1] = covariance[:, 1, 0] = -variance * ratio
    covariance[:, 1, 1] = 1.0 / arrow.intercept_precision + variance * ratio**2
    mean = np.column_stack([np.full(ratio.shape, slope), intercept])
    return replace(posterior, item_mean=mean, items_spread=Covariances.of(covariance))


def _arrow_of(posterior: Posterior) -> Arrow:
    """Natural parameters of a posterior, from its means and the covariances of slope and each intercept."""
    covariance, mean = posterior.item_covariance, posterior.item_mean
    variance = covariance[0, 0, 0]
    # The formulas of the module, solved for k and d: k_i / d_i = -cov(a, c_i) / var(a).
    ratio = -covariance[:, 0, 1] / variance
    intercept_precision = 1.0 / (covariance[:, 1, 1] - variance * ratio**2)
    coupling = ratio * intercept_precision
    slope_precision = 1.0 / variance + np.sum(ratio * coupling)
    slope = mean[0, 0]
    return Arrow(
        slope_precision,
        coupling,
        intercept_precision,
        slope_precision * slope + np.sum(coupling * mean[:, 1]),
        coupling * slope + intercept_precision * mean[:, 1],
    )
