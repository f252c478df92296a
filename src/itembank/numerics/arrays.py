"""Names for the array types used throughout, and the mean of numbers some of which are missing."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.signedinteger[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = FloatArray | IntArray | float


def mean_where_known(values: FloatArray, axis: int = 0) -> FloatArray:
    """Mean along an axis of the values that are not NaN; NaN where there is none."""
    is_known = ~np.isnan(values)
    count = is_known.sum(axis=axis)
    total = np.where(is_known, values, 0.0).sum(axis=axis)
    result: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return result


def effective_items(weights: FloatArray) -> float:
    """Kish's effective sample size of weights (n_items,), ``(sum w)^2 / sum w^2``; NaN without weight."""
    squares = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / squares if squares > 0.0 else float("nan")
