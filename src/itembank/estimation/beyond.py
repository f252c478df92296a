"""Models better than all past ones: two sets of stack weights, and the place of a model between them.

Random folds teach what estimates are worth for models like past ones. Folds beyond (`folds_beyond`) teach it for models
better than all that they are judged by, from past models that were. A logistic of one variable says which of the two a
new model is: where its score is relative to the best past model's, in units of that one's distance from the middle.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from itembank.estimation.regressions import combined
from itembank.numerics.arrays import FloatArray

LEAST_DISTANCE = 0.02
"""Of the best past model from the middle one, in scores: no smaller one is a unit."""
FARTHEST = (-4.0, 3.0)
"""Places that count as such: -1 is the middle of past models, 0 the best one, 1 as far beyond."""
RIDGE, STEPS = 1.0, 30
SMALLEST_STEP = 1e-10
"""Of Newton's, after which the next would be rounding."""


class Place(NamedTuple):
    """Where past models are, and from what place on a model counts as better than all of them."""

    best: float  # Known overall score of the best past model
    middle: float  # Of the median one
    line: FloatArray  # (2,): Of the log odds of being beyond, in the place

    @classmethod
    def of(cls, scores: FloatArray, line: FloatArray) -> Self:
        """Take past models' overall scores (n_models,); NaN where unknown."""
        return cls(*best_and_middle(scores), line)

    def beyond(self, score: FloatArray) -> FloatArray:
        """How surely models of these scores (n_models,) are better than all past ones, from 0 to 1."""
        return share_beyond(self.line, places(score, np.array(self.best), np.array(self.middle)))


class StackWeights(NamedTuple):
    """Weights of the members of 'stacked', (n_members, n_targets)."""

    usual: FloatArray
    beyond: FloatArray | None = None  # For models better than all past ones; None where nothing is known of such
    line: FloatArray | None = None  # (2,): As of `Place`

    def combine(
        self,
        values: FloatArray,  # (n_members, n_models, n_targets): The overall score last
        reference: FloatArray | None,  # (2, n_models) or (2, 1): Score of the best and of the middle past model
    ) -> FloatArray:
        """Weigh the members as for models like past ones, and the better a model is, as for those beyond.

        Returns (n_models, n_targets).
        """
        value = combined(values, self.usual)
        if self.beyond is None or self.line is None or reference is None:
            return value
        share = share_beyond(self.line, places(value[:, -1], *reference))[:, None]
        share = np.where(np.isnan(share), 0.0, share)
        far = combined(values, self.beyond)
        return np.where(np.isnan(far), value, (1.0 - share) * value + share * far)


def best_and_middle(scores: FloatArray) -> tuple[float, float]:
    """Return the largest and the median of models' scores (n_models,), as far as they are known; NaN without any."""
    known = scores[~np.isnan(scores)]
    return (float(known.max()), float(np.median(known))) if known.size else (np.nan, np.nan)


def places(score: FloatArray, best: FloatArray, middle: FloatArray) -> FloatArray:
    """Where scores lie: -1 at the middle of past models, 0 at the best one."""
    return np.clip((score - best) / np.maximum(best - middle, LEAST_DISTANCE), *FARTHEST)


def share_beyond(line: FloatArray, place: FloatArray) -> FloatArray:
    """Probability of being beyond at a place."""
    result: FloatArray = expit(line[0] + line[1] * place)
    return result


def learn_line(usual: FloatArray, beyond: FloatArray) -> FloatArray:
    """Logistic regression of being beyond on the place, (2,): intercept and slope.

    Both kinds of models weigh alike, however many they are; the slope in units of the places' standard deviation has
    a ridge of 1.
    """
    usual, beyond = usual[~np.isnan(usual)], beyond[~np.isnan(beyond)]
    place = np.concatenate([usual, beyond])
    is_beyond = np.repeat([0.0, 1.0], [usual.size, beyond.size])
    if not (usual.size and beyond.size):
        return np.array([-np.inf if not beyond.size else np.inf, 0.0])
    centre, unit = place.mean(), place.std() + 1e-6
    columns = np.column_stack([np.ones(place.size), (place - centre) / unit])
    weights = 0.5 * place.size * np.where(is_beyond > 0.0, 1.0 / beyond.size, 1.0 / usual.size)
    penalty, line = np.diag([0.0, RIDGE]), np.zeros(2)
    for _ in range(STEPS):
        probability = expit(columns @ line)
        slope = columns.T @ (weights * (is_beyond - probability)) - penalty @ line
        curvature = (columns * (weights * probability * (1.0 - probability))[:, None]).T @ columns + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(2), slope)
        line = line + step
        if np.abs(step).max() < SMALLEST_STEP:
            break
    return np.array([line[0] - line[1] * centre / unit, line[1] / unit])
