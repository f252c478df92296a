"""How unequal weights are."""

import numpy as np

from itembank.numerics.arrays import FloatArray


def effective_items(weights: FloatArray) -> float:
    """Kish's effective sample size of weights (n_items,), ``(sum w)^2 / sum w^2``; NaN without weight."""
    squares = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / squares if squares > 0.0 else float("nan")
