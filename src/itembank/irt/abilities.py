"""What every scoring kernel gives: abilities of models without their ids.

Difficulties of items whose slope and intercept are known with errors, in one dimension.

The difficulty ``b = -c / a`` is a ratio: where a slope might be zero its plain value may be anything, a hundred as well
as one. Given mean and covariance S of (a, c), the ability at which the item's logit is nearest to zero,

    b  =  argmin E[(a b + c)^2]  =  -E[a c] / E[a^2]  =  -(a c + S_ac) / (a^2 + S_aa),

is ``-c / a`` where the slope is well known, and near the abilities that tell about the item where it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Abilities:
    """Abilities of n_models models with their uncertainty."""

    # (n_models, n_dims): Infinite where the likelihood has no finite maximum, NaN where nothing informs it.
    theta: FloatArray
    # (n_models, n_dims, n_dims): Inverse observed information of the maximised objective, or posterior covariance
    # (EAP); NaN at a bound.
    covariance: FloatArray
    at_bound: BoolArray  # (n_models,): Models whose responses put no finite maximum on ability
    converged: BoolArray  # (n_models,)
    method: str  # 'ml', 'map', 'eap' or 'wle'

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of every ability, (n_models, n_dims)."""
        result: FloatArray = np.sqrt(np.einsum("mdd->md", self.covariance))
        return result

    @property
    def n_models(self) -> int:
        """Number of models."""
        return int(self.theta.shape[0])

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.theta.shape[1])

    def row(self, number: int) -> "Abilities":
        """Return one model alone."""
        own = slice(number, number + 1)
        return Abilities(self.theta[own], self.covariance[own], self.at_bound[own], self.converged[own], self.method)


def join(runs: Sequence[Abilities]) -> Abilities:
    """Put runs of models together again."""
    if len(runs) == 1:
        return runs[0]
    return Abilities(
        np.concatenate([run.theta for run in runs]),
        np.concatenate([run.covariance for run in runs]),
        np.concatenate([run.at_bound for run in runs]),
        np.concatenate([run.converged for run in runs]),
        runs[0].method,
    )


class Difficulties(NamedTuple):
    """Estimates and standard errors of the items, each (n_items,)."""

    value: FloatArray
    standard_error: FloatArray


def expected_difficulties(
    slope: FloatArray,  # (n_items,): Not zero together with its error
    intercept: FloatArray,  # (n_items,)
    covariance: FloatArray,  # (n_items, 2, 2): Of (slope, intercept)
) -> Difficulties:
    """Estimate difficulties, with ``sqrt(min E[(a b + c)^2] / E[a^2])`` as their errors."""
    # E[(a b + c)^2] is a parabola in b: E[a^2] is its curvature, and both results come from its lowest point.
    square = slope**2 + covariance[:, 0, 0]
    value: FloatArray = -(slope * intercept + covariance[:, 0, 1]) / square
    spread = covariance[:, 1, 1] + 2.0 * value * covariance[:, 0, 1] + value**2 * covariance[:, 0, 0]
    return Difficulties(value, np.sqrt(((slope * value + intercept) ** 2 + spread) / square))
