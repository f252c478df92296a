"""A choice between candidates whose errors are known on the same models."""

from collections.abc import Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray


def clearly_best(errors: Sequence[FloatArray]) -> int:
    """Return the number of the first candidate, unless another is better by more than a standard error.

    Of the mean of paired differences: all candidates have errors on the same models.

    Parameters
    ----------
    errors : sequence of (n_models,)
        Absolute errors of each candidate, or other losses; NaN where unknown.
    """
    best = int(np.argmin([_mean(each) for each in errors]))
    saving = errors[0] - errors[best]
    known = saving[~np.isnan(saving)]
    if known.size < 2:
        return best
    doubt = float(np.std(known, ddof=1) / np.sqrt(known.size))
    return best if float(known.mean()) > doubt else 0


def _mean(errors: FloatArray) -> float:
    """Mean of the errors that are known; infinite where none is."""
    known = errors[~np.isnan(errors)]
    return float(known.mean()) if known.size else np.inf
