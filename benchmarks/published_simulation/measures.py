"""How far found items are from the true ones, once both are on one scale."""

from typing import NamedTuple

import numpy as np

from benchmarks.published_simulation.draws import Truth
from itembank.numerics.arrays import FloatArray

LEAST_SLOPE = 1e-3


class Found(NamedTuple):
    """Discriminations and difficulties that a method found, each (n_items,), on its own scale."""

    discrimination: FloatArray
    difficulty: FloatArray


class Errors(NamedTuple):
    """Root mean squared errors over the items, and correlations.

    Attributes
    ----------
    difficulty : float
        Both centred; in the 2PL on the scale where found discriminations have geometric mean 1. That is what the
        published objective aims at, and needs no truth.
    difficulty_fitted : float
        After the shift and the scale that fit the true difficulties best.
    discrimination : float
        On the scale of `difficulty`; 0 in the 1PL.
    correlation : float
        Of difficulties.
    """

    difficulty: float
    difficulty_fitted: float
    discrimination: float
    correlation: float


def errors(found: Found, truth: Truth, *, has_slopes: bool) -> Errors:
    """Compare with the truth; in the 1PL all discriminations are one number, which sets the scale."""
    positive = found.discrimination > LEAST_SLOPE
    scale = float(np.exp(np.mean(np.log(found.discrimination[positive])))) if positive.any() else 1.0
    difficulty, true = _centred(found.difficulty * scale), _centred(truth.difficulty)
    along = float(difficulty @ true) / max(float(difficulty @ difficulty), 1e-300)
    slopes = found.discrimination / scale if has_slopes else np.ones(len(true))
    return Errors(
        _root_mean_square(difficulty - true),
        _root_mean_square(along * difficulty - true),
        _root_mean_square(slopes - truth.discrimination),
        float(np.corrcoef(difficulty, true)[0, 1]),
    )


def _centred(values: FloatArray) -> FloatArray:
    result: FloatArray = values - values.mean()
    return result


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
