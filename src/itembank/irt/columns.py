"""Responses of which some items at a time are numbers in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from itembank.numerics.arrays import FloatArray, IntArray

Part = tuple[slice, FloatArray]
"""Items, and the responses (n_models, n) to these; NaN where missing."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Responses of models to items, read some items at a time, and again whenever they are gone over."""

    n_models: int
    n_items: int
    read: Callable[[slice], FloatArray]  # Gives the responses (n_models, n) to the items of a slice; NaN where missing
    width: int  # Items that are read at a time

    @classmethod
    def of(cls, responses: FloatArray) -> Self:
        """Go over an array (n_models, n_items) as one part."""
        n_models, n_items = responses.shape
        return cls(n_models, n_items, lambda place: responses[:, place], max(n_items, 1))

    @property
    def is_one_part(self) -> bool:
        """Whether all items are read at once."""
        return self.width >= self.n_items

    def parts(self) -> Iterator[Part]:
        """Give the parts in order."""
        for first in range(0, self.n_items, self.width):
            place = slice(first, min(first + self.width, self.n_items))
            yield place, self.read(place)

    def of_models(self, rows: IntArray) -> "Columns":
        """Return the responses of these models, in this order."""
        return Columns(rows.size, self.n_items, lambda place: self.read(place)[rows], self.width).kept()

    def changed(self, change: Callable[[slice, FloatArray], FloatArray]) -> "Columns":
        """Return what a function makes of each part, given its items and its responses."""
        read = self.read
        return Columns(self.n_models, self.n_items, lambda place: change(place, read(place)), self.width).kept()

    def kept(self) -> "Columns":
        """Read one part now, so that it is not made again; leave several as they are."""
        return Columns.of(self.read(slice(0, self.n_items))) if self.is_one_part else self
