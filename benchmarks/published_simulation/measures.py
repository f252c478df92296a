"""How far found items are from the true ones, once both are on one scale."""

from typing import NamedTuple

import numpy as np

from benchmarks.published_simulation.draws import Truth
from itembank.numerics.arrays import FloatArray

LARGEST_LOG_SLOPE = 1.5
"""Published bound of log discriminations: smaller ones (and negative ones) count as this in the mean."""


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
        published objective's ridge aims at, and needs no truth.
    difficulty_centred : float
        Both centred, no more: what IRSL reports.
    difficulty_fitted : float
        After the shift and the scale that fit the true difficulties best.
    discrimination : float
        On the scale of `difficulty`; 0 in the 1PL.
    correlation : float
        Of difficulties.
    """

    difficulty: float
    difficulty_centred: float
    difficulty_fitted: float
    discrimination: float
    correlation: float


def errors(found: Found, truth: Truth, *, has_slopes: bool) -> Errors:
    """Compare with the truth; in the 1PL all discriminations are one number, which sets the scale."""
    scale = _scale(found.discrimination)
    difficulty, true = _centred(found.difficulty * scale), _centred(truth.difficulty)
    along = float(difficulty @ true) / max(float(difficulty @ difficulty), 1e-300)
    slopes = found.discrimination / scale if has_slopes else np.ones(len(true))
    return Errors(
        _root_mean_square(difficulty - true),
        _root_mean_square(_centred(found.difficulty) - true),
        _root_mean_square(along * difficulty - true),
        _root_mean_square(slopes - truth.discrimination),
        _correlation(difficulty, true),
    )


def _scale(discrimination: FloatArray) -> float:
    """Geometric mean, around the median."""
    middle = float(np.median(discrimination))
    if middle <= 0.0:
        return 1.0
    least = np.exp(-LARGEST_LOG_SLOPE)
    inside = np.log(np.clip(discrimination / middle, least, 1.0 / least))
    return middle * float(np.exp(inside.mean()))


def _centred(values: FloatArray) -> FloatArray:
    result: FloatArray = values - values.mean()
    return result


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """Of centred values; NaN where all are alike."""
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 1e-12 else np.nan


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
