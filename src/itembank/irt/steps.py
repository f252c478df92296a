"""The steps of graded items: ordered levels of a response, and where on the logit each begins."""

from dataclasses import dataclass

import numpy as np

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.stable import sigmoid_pair


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
