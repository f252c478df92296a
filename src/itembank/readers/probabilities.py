"""Responses that are probabilities, kept off 0 and 1, where a Beta density is not finite."""

import numpy as np

from itembank.errors import ParameterError
from itembank.irt.beta import EPSILON
from itembank.numerics.arrays import FloatArray


def clip_probabilities(responses: FloatArray, epsilon: float = EPSILON) -> tuple[FloatArray, str]:
    """Clip probabilities to [epsilon, 1 - epsilon]; return them, and what was clipped in a sentence, empty for nothing.

    NaN stays NaN, and float32 float32. `ParameterError` when `epsilon` is not between 0 and 0.5, or is lost in the
    precision of the array (float32 near 1: below 6e-8).
    """
    one = responses.dtype.type(1.0)
    low, high = responses.dtype.type(epsilon), one - responses.dtype.type(epsilon)
    if not 0.0 < epsilon < 0.5 or high == one:
        raise ParameterError(
            f"epsilon must lie between 0 and 0.5, and 1 - epsilon be below 1 in {responses.dtype}, got {epsilon!r}."
        )
    with np.errstate(invalid="ignore"):
        n_clipped = int(np.count_nonzero(responses < low) + np.count_nonzero(responses > high))
    clipped = np.clip(responses, low, high)
    if not n_clipped:
        return clipped, ""
    n_known = int(responses.size - np.count_nonzero(np.isnan(responses)))
    n_zero, n_one = int(np.count_nonzero(responses == 0.0)), int(np.count_nonzero(responses == 1.0))
    return clipped, (
        f"{n_clipped} of {n_known} probabilities lie outside [{epsilon:g}, 1 - {epsilon:g}] and are clipped to it "
        f"({n_zero} are exactly 0, {n_one} exactly 1)."
    )
