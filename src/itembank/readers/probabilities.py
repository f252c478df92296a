"""Responses that are probabilities, kept off 0 and 1, where a Beta density is not finite."""

from dataclasses import dataclass

import numpy as np

from itembank.errors import ParameterError
from itembank.irt.beta import EPSILON
from itembank.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class ClippedProbabilities:
    """Probabilities within [epsilon, 1 - epsilon], and how many were moved."""

    values: FloatArray  # NaN stays NaN, float32 stays float32
    n_known: int  # Responses that are not missing
    n_zero: int  # Responses of exactly 0 and of exactly 1
    n_one: int
    n_clipped: int  # All that were moved, those included
    epsilon: float

    @property
    def note(self) -> str:
        """Sentence for a warning; empty when nothing was moved."""
        if self.n_clipped == 0:
            return ""
        return (
            f"{self.n_clipped} of {self.n_known} probabilities lie outside [{self.epsilon:g}, 1 - {self.epsilon:g}] "
            f"and are clipped to it ({self.n_zero} are exactly 0, {self.n_one} exactly 1)."
        )


def clip_probabilities(responses: FloatArray, epsilon: float = EPSILON) -> ClippedProbabilities:
    """Clip probabilities to [epsilon, 1 - epsilon] and count what was clipped.

    NaN stays. `ParameterError` when `epsilon` is not between 0 and 0.5, or is lost in the precision of the array
    (float32 near 1: below 6e-8).
    """
    one = responses.dtype.type(1.0)
    low, high = responses.dtype.type(epsilon), one - responses.dtype.type(epsilon)
    if not 0.0 < epsilon < 0.5 or high == one:
        raise ParameterError(
            f"epsilon must lie between 0 and 0.5, and 1 - epsilon be below 1 in {responses.dtype}, got {epsilon!r}."
        )
    with np.errstate(invalid="ignore"):
        n_clipped = int(np.count_nonzero(responses < low) + np.count_nonzero(responses > high))
    return ClippedProbabilities(
        np.clip(responses, low, high),
        int(responses.size - np.count_nonzero(np.isnan(responses))),
        int(np.count_nonzero(responses == 0.0)),
        int(np.count_nonzero(responses == 1.0)),
        n_clipped,
        epsilon,
    )
