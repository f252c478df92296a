"""Anderson acceleration of the sweeps: extrapolating the means from the last few steps.

Where many dimensions meet few models, some directions gain a thousandth of what is left in each sweep. With
``f_k = g(z_k) - z_k`` the step a sweep makes from z_k, the next point is the combination of the last few ``g(z_k)``
(weights summing to one) that would make the same combination of the steps smallest (Anderson 1965; Walker & Ni 2011).
The ascent takes it only when the bound does not fall.
"""

from dataclasses import replace

import numpy as np

from itembank.calibration.variational_state import Posterior
from itembank.numerics.arrays import FloatArray

MEMORY = 8
RIDGE = 1e-8


class StepMemory:
    """The last few steps: where each started, and where the sweep led."""

    def __init__(self) -> None:
        self._reached: list[FloatArray] = []
        self._steps: list[FloatArray] = []

    def clear(self) -> None:
        """Forget all steps."""
        self._reached, self._steps = [], []

    def extrapolate(self, before: Posterior, after: Posterior) -> Posterior:
        """Remember the step from `before` to `after` and give the point the remembered steps lead to."""
        scale = _scale(after)
        reached = _means(after)
        self._reached = [*self._reached[-MEMORY:], reached]
        self._steps = [*self._steps[-MEMORY:], reached - _means(before)]
        if len(self._steps) < 2:
            return after
        differences = np.diff(np.stack(self._steps), axis=0)
        weighted = differences / scale
        gram = weighted @ weighted.T
        gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram)
        share = np.linalg.solve(gram, weighted @ (self._steps[-1] / scale))
        point = reached - share @ np.diff(np.stack(self._reached), axis=0)
        return _with_means(after, point)


def _means(posterior: Posterior) -> FloatArray:
    """All means in one vector."""
    return np.concatenate([posterior.item_mean.ravel(), posterior.ability_mean.ravel()])


def _scale(posterior: Posterior) -> FloatArray:
    """Posterior standard deviations of all means in one vector."""
    items = np.einsum("ijj->ij", posterior.item_covariance)
    abilities = np.einsum("ljj->lj", posterior.ability_covariance)
    result: FloatArray = np.sqrt(np.concatenate([items.ravel(), abilities.ravel()]))
    return result


def _with_means(posterior: Posterior, means: FloatArray) -> Posterior:
    """Undo `_means`."""
    cut = posterior.item_mean.size
    return replace(
        posterior,
        item_mean=means[:cut].reshape(posterior.item_mean.shape),
        ability_mean=means[cut:].reshape(posterior.ability_mean.shape),
    )
