"""Item parameters and the prior of ability, in the one parameterisation used everywhere.

``logit = loadings . theta + intercept`` and
``probability = lower + (upper - lower) * sigmoid(logit)``.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.checks import check_one_of
from itembank.errors import ParameterError, shown
from itembank.irt.family_names import FAMILIES, WITH_PRECISION, Family
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.tabular import Compact


@dataclass(frozen=True, slots=True, repr=False)
class ItemParameters(Compact):
    """Parameters of n_items items in n_dims dimensions.

    Attributes
    ----------
    loadings : (n_items, n_dims)
        Slopes of the logit on ability (tinyBenchmarks eq. 4.1 writes alpha).
    intercept : (n_items,)
        Logit at ability zero (tinyBenchmarks writes -beta).
    lower_asymptote, upper_asymptote : (n_items,)
        Probability of a correct response at ability minus and plus infinity.
    family : {'bernoulli', 'binomial', 'beta', 'beta-binomial'}
        Distribution of a response with mean p = probability: right or wrong; right answers among n_trials; a
        probability itself, ``Beta(p phi, (1 - p) phi)``; right answers among n_trials whose own probability is drawn
        from that Beta.
    precision : (n_items,) or None
        phi > 0 of 'beta' and 'beta-binomial', None for the others.

    Raises
    ------
    ParameterError
        When there is no such family, or precision does not fit it.
    """

    loadings: FloatArray
    intercept: FloatArray
    lower_asymptote: FloatArray
    upper_asymptote: FloatArray
    family: Family = "bernoulli"
    precision: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check that family and precision fit each other."""
        check_one_of("family", self.family, FAMILIES)
        if self.family not in WITH_PRECISION:
            if self.precision is not None:
                raise ParameterError(
                    f"only {shown(WITH_PRECISION)} have a precision, got one with family {self.family!r}."
                )
            return
        if self.precision is None:
            raise ParameterError(f"family {self.family!r} needs a precision for every item, got None.")
        if self.precision.shape != self.intercept.shape:
            raise ParameterError(
                f"precision must have one number for each of {self.n_items} items, got shape {self.precision.shape}."
            )
        wrong = np.flatnonzero(~(np.isfinite(self.precision) & (self.precision > 0.0)))
        if wrong.size:
            raise ParameterError(
                f"precision must be positive and finite, got {self.precision[wrong[0]]} for item number {wrong[0]} and "
                f"{wrong.size} such in all. Take 'binomial' where trials do not vary more than by chance."
            )

    @classmethod
    def create(
        cls,
        loadings: FloatArray,
        intercept: FloatArray,
        lower_asymptote: FloatArray | float = 0.0,
        upper_asymptote: FloatArray | float = 1.0,
        *,
        family: Family = "bernoulli",
        precision: FloatArray | float | None = None,
    ) -> Self:
        """Build from arrays; asymptotes and precision may be one number for all items."""
        loadings = np.asarray(loadings, dtype=np.float64)
        intercept = np.asarray(intercept, dtype=np.float64)
        shape = intercept.shape
        lower = np.broadcast_to(np.asarray(lower_asymptote, dtype=np.float64), shape).copy()
        upper = np.broadcast_to(np.asarray(upper_asymptote, dtype=np.float64), shape).copy()
        if precision is not None:
            precision = np.broadcast_to(np.asarray(precision, dtype=np.float64), shape).copy()
        return cls(loadings.reshape(shape[0], -1), intercept, lower, upper, family, precision)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.intercept.shape[0])

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.loadings.shape[1])

    @property
    def discrimination(self) -> FloatArray:
        """Multidimensional discrimination, the length of the loadings, (n_items,) (Reckase 1985)."""
        result: FloatArray = np.sqrt(np.sum(self.loadings**2, axis=1))
        return result

    @property
    def difficulty(self) -> FloatArray:
        """Signed distance from the origin at which the logit is zero, (n_items,); NaN without loadings.

        With one dimension and positive loading this is the usual ``b = -intercept / loading``.
        A negative loading in one dimension keeps that formula, so that the difficulty stays on the ability scale.
        """
        slope = self.loadings[:, 0] if self.n_dims == 1 else self.discrimination
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(slope == 0.0, np.nan, -self.intercept / slope)

    def take(self, indices: IntArray) -> "ItemParameters":
        """Return the parameters of the items at `indices`, in that order."""
        return ItemParameters(
            self.loadings[indices],
            self.intercept[indices],
            self.lower_asymptote[indices],
            self.upper_asymptote[indices],
            self.family,
            None if self.precision is None else self.precision[indices],
        )


@dataclass(frozen=True, slots=True, repr=False)
class AbilityPrior(Compact):
    """Normal prior of ability.

    Attributes
    ----------
    mean : (n_dims,)
    covariance : (n_dims, n_dims)
    """

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def standard(cls, n_dims: int) -> Self:
        """Zero mean and unit covariance."""
        return cls(np.zeros(n_dims), np.eye(n_dims))

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.mean.shape[0])
