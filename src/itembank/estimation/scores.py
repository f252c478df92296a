"""`Scores`: estimated scores with their standard errors and intervals."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray


class Scores(NamedTuple):
    """Scores of n_models models, or differences of pairs of models, on n_targets targets; NaN where one is unknown."""

    # (n_models, n_targets): Estimates and the ends of their intervals lie in [0, 1], differences in [-1, 1].
    value: FloatArray
    standard_error: FloatArray  # (n_models, n_targets)
    low: FloatArray  # (n_models, n_targets)
    high: FloatArray  # (n_models, n_targets)

    @classmethod
    def unknown(cls, n_models: int, n_targets: int) -> Self:
        """Return scores that are all unknown (NaN)."""
        return cls(*(np.full((n_models, n_targets), np.nan) for _ in cls._fields))

    @classmethod
    def joined(cls, parts: Sequence["Scores"]) -> Self:
        """Put the scores of several groups of models together, in their order."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def set_rows(self, rows: IntArray, scores: "Scores") -> None:
        """Write the scores of some of the models in place."""
        for ours, theirs in zip(self, scores, strict=True):
            ours[rows] = theirs

    def targets(self, columns: slice | IntArray) -> "Scores":
        """Return the scores on some of the targets."""
        return Scores(*(array[:, columns] for array in self))

    def with_targets(self, more: "Scores") -> "Scores":
        """Return these scores with those on further targets behind them."""
        return Scores(*(np.column_stack(pair) for pair in zip(self, more, strict=True)))
