"""Covariance of local trends in log FLOP, and the scales on which scores follow them.

Above chance the score of recipe r in scenario s follows ``z = log((p - c) / (1 - p))``, with c the floor that guessing
leaves, and z is a Gaussian process in log FLOP x (Rasmussen and Williams 2006, ch. 2)::

    z_sr(x) = t_s + mu x + m_s (a_s x + W_s(x) + t_sr + a_sr x + W_sr(x))

with t the levels, a the slopes, W integrated Wiener processes, whose slope wanders (local linear trends; Wahba 1978),
and m_s how lively the scenario is. Terms of a scenario are common to its recipes, so that a skill that one recipe
shows is expected sooner of the others.

A score differs from its trend by a noise of variance ``n_s^2 s^2 p (1 - p) + d^2``, with s the noise of all scenarios,
n_s how noisy this one is (few items, or many) and d the distance that scores are kept from 0 and 1.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

LEVEL_VARIANCE = 100.0
"""Prior variance of a scenario's level: any score is as likely beforehand."""
SMALLEST_SCORE = 0.005
"""Scores are kept this far from 0 and 1, where logits would be infinite."""
FLOOR_WIDTH = 0.03
"""Distance in score over which the logit above a floor goes over into a straight line, so that scores below the floor
have a place too: about the sampling error of a hundred answers."""
N_SPREADS = 5
"""Slopes and wanderings of scenarios, and levels, slopes and wanderings of recipes."""


@dataclass(frozen=True, slots=True)
class TrendPoints:
    """Finished models of n_scenarios scenarios, up to n_points in each."""

    x: FloatArray  # (n_scenarios, n_points): Log FLOP above the origin of all, zero where there is no model
    recipe: IntArray  # (n_scenarios, n_points)
    is_known: BoolArray  # (n_scenarios, n_points)

    def take(self, scenarios: IntArray) -> "TrendPoints":
        """Return the points of these scenarios."""
        return TrendPoints(self.x[scenarios], self.recipe[scenarios], self.is_known[scenarios])


def integrated_wiener(first: FloatArray, second: FloatArray) -> FloatArray:
    """Covariance of an integrated Wiener process that starts at zero: ``m^2 (3 M - m) / 6``, m the smaller."""
    smaller, larger = np.minimum(first, second), np.maximum(first, second)
    result: FloatArray = smaller**2 * (3.0 * larger - smaller) / 6.0
    return result


def covariance_parts(first: TrendPoints, second: TrendPoints) -> FloatArray:
    """Covariances of unit spread between points, (N_SPREADS, n_scenarios, n_first, n_second); zero where none is."""
    x, other = first.x[:, :, None], second.x[:, None, :]
    both = (first.is_known[:, :, None] & second.is_known[:, None, :]).astype(np.float64)
    same = both * (first.recipe[:, :, None] == second.recipe[:, None, :])
    product, wandering = x * other, integrated_wiener(x, other)
    return np.stack([both * product, both * wandering, same, same * product, same * wandering])


def prior_variances(points: TrendPoints) -> FloatArray:
    """Diagonal of `covariance_parts` of points with themselves, (N_SPREADS, n_scenarios, n_points)."""
    one = points.is_known.astype(np.float64)
    return np.stack([one * points.x**2, one * points.x**3 / 3.0, one, one * points.x**2, one * points.x**3 / 3.0])


def above_floor(scores: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Trend scale of scores and its derivative, for floors that broadcast; the plain logit where the floor is zero.

    ``log(w softplus((p - c) / w)) - log(1 - p)``, w the width of the floor: ``log((p - c) / (1 - p))`` well above c,
    and a straight line below, so that noise below the floor is not taken for infinitely bad.
    """
    place = (scores - floor) / FLOOR_WIDTH
    above = np.where(floor > 0.0, FLOOR_WIDTH * np.logaddexp(0.0, place), scores)
    rise = np.where(floor > 0.0, expit(place), 1.0)
    return np.log(above) - np.log1p(-scores), rise / above + 1.0 / (1.0 - scores)


def score_of(z: FloatArray, floor: FloatArray | float) -> FloatArray:
    """Score on the trend scale: ``c + (1 - c) sigmoid(z)``, of ``z = log((p - c) / (1 - p))``."""
    result: FloatArray = floor + (1.0 - floor) * expit(z)
    return result
