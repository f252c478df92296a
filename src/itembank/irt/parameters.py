"""Item parameters and the prior of ability, in the one parameterisation used everywhere.

``logit = loadings . theta + intercept`` and
``probability = lower + (upper - lower) * sigmoid(logit)``.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.checks import check_one_of
from itembank.errors import ParameterError, shown
from itembank.irt.family_names import FAMILIES, GRADED, WITH_PRECISION, Family
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.stable import sigmoid_pair
from itembank.tabular import Compact


@dataclass(frozen=True, slots=True)
class Steps:
    """Levels v_0 < ... < v_K that a response may have, and the steps between them.

    A response reaches level k with the probability ``P(Y >= v_k) = sigmoid(x - s_k)`` at logit x (Samejima 1969).

    Raises
    ------
    ParameterError
        When levels or places cannot be such.
    """

    levels: FloatArray  # (n_steps + 1,): In [0, 1], rising; the same for all items
    # (n_items, n_steps): s_k, which never fall: where two are equal the item has no level between them; it never has
    # those above a step at infinity, and always more than those below one at minus infinity. The finite ones of an item
    # have mean zero. Padded layouts have an axis of models before.
    places: FloatArray

    def __post_init__(self) -> None:
        """Check levels and steps."""
        levels, places = self.levels, self.places
        is_rising = levels.ndim == 1 and levels.size >= 2 and bool(np.all(np.diff(levels) > 0.0))
        if not (is_rising and levels[0] >= 0.0 and levels[-1] <= 1.0):
            raise ParameterError(f"levels of responses must rise within [0, 1], got {shown(levels.ravel().tolist())}.")
        if places.shape[-1:] != (levels.size - 1,):
            raise ParameterError(
                f"{levels.size} levels have {levels.size - 1} steps an item, got an array of shape {places.shape}."
            )
        if not np.all(places[..., 1:] >= places[..., :-1]) or np.isnan(places).any():
            raise ParameterError("steps of an item must be numbers and must not fall from one level to the next.")
        if not np.isfinite(places).any(axis=-1).all():
            raise ParameterError("every item must have a finite step: two levels that it may have.")

    @property
    def heights(self) -> FloatArray:
        """Rise of the response with each step, (n_steps,)."""
        return np.diff(self.levels)

    def take(self, indices: "IntArray | slice | tuple[slice, IntArray]") -> "Steps":
        """Return the steps of the items, or rows, at `indices`."""
        return Steps(self.levels, self.places[indices])

    def nearest(self, responses: FloatArray) -> IntArray:
        """Return the number of the level that is nearest to each response, among those its item has.

        Parameters
        ----------
        responses : (n_models, n_items)
            NaN counts as the lowest level.
        """
        distance = np.where(self.has, np.abs(np.nan_to_num(responses)[..., None] - self.levels), np.inf)
        result: IntArray = np.argmin(distance, axis=-1)
        return result

    def ends(self, responses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the steps below and above the level of each response: infinite at the ends of the scale."""
        number = self.nearest(responses)
        lower, upper = (np.broadcast_to(one, (*number.shape, self.levels.size)) for one in self._ends)
        at = number[..., None]
        return np.take_along_axis(lower, at, -1)[..., 0], np.take_along_axis(upper, at, -1)[..., 0]

    def reached(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``P(Y >= v_k)`` and its complement at logits x (..., n_items), each (..., n_items, n_steps)."""
        return sigmoid_pair(x[..., None] - self.places)

    @property
    def has(self) -> BoolArray:
        """Which levels every item has, (n_items, n_steps + 1)."""
        lower, upper = self._ends
        return np.less(lower, upper)

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Steps below and above every level, each (n_items, n_steps + 1)."""
        end = np.full((*self.places.shape[:-1], 1), np.inf)
        return np.concatenate([-end, self.places], axis=-1), np.concatenate([self.places, end], axis=-1)


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
    family : {'bernoulli', 'binomial', 'beta', 'beta-binomial', 'graded'}
        Distribution of a response with mean p = probability: right or wrong; right answers among n_trials; a
        probability itself, ``Beta(p phi, (1 - p) phi)``; right answers among n_trials whose own probability is drawn
        from that Beta; ordered levels, each reached where the logit is above its step (`Steps`).
    precision : (n_items,) or None
        phi > 0 of 'beta' and 'beta-binomial', None for the others.
    steps : Steps or None
        Levels and steps of 'graded', None for the others.

    Raises
    ------
    ParameterError
        When there is no such family, or precision or steps do not fit it.
    """

    loadings: FloatArray
    intercept: FloatArray
    lower_asymptote: FloatArray
    upper_asymptote: FloatArray
    family: Family = "bernoulli"
    precision: FloatArray | None = None
    steps: Steps | None = None

    def __post_init__(self) -> None:
        """Check that family, precision and steps fit each other."""
        check_one_of("family", self.family, FAMILIES)
        self._check_steps()
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

    def _check_steps(self) -> None:
        """Check that a graded item has its steps and no asymptotes, and no other has steps."""
        if (self.steps is None) == (self.family == GRADED):
            raise ParameterError(
                f"family {GRADED!r} has steps and no other, got {'none' if self.steps is None else 'some'} with family "
                f"{self.family!r}."
            )
        if self.steps is None:
            return
        if self.steps.places.shape[0] != self.n_items:
            raise ParameterError(f"steps must be of {self.n_items} items, got {self.steps.places.shape[0]}.")
        if np.any(self.lower_asymptote != 0.0) or np.any(self.upper_asymptote != 1.0):
            raise ParameterError(f"family {GRADED!r} has no asymptotes: leave guessing out.")

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
        steps: Steps | None = None,
    ) -> Self:
        """Build from arrays; asymptotes and precision may be one number for all items."""
        loadings = np.asarray(loadings, dtype=np.float64)
        intercept = np.asarray(intercept, dtype=np.float64)
        shape = intercept.shape
        lower = np.broadcast_to(np.asarray(lower_asymptote, dtype=np.float64), shape).copy()
        upper = np.broadcast_to(np.asarray(upper_asymptote, dtype=np.float64), shape).copy()
        if precision is not None:
            precision = np.broadcast_to(np.asarray(precision, dtype=np.float64), shape).copy()
        return cls(loadings.reshape(shape[0], -1), intercept, lower, upper, family, precision, steps)

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
            None if self.steps is None else self.steps.take(indices),
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
