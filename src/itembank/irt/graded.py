"""The graded response model (Samejima 1969): likelihood, information and mean in the logit x, elementwise.

With ``S_k = sigmoid(x - s_k)``, ``S_0 = 1`` and ``S_(K+1) = 0`` a response has level k with the probability
``P_k = S_k - S_(k+1)``. With steps s below and u above the level,

    log P_k = log sigmoid(x - s) + log sigmoid(u - x) + log(1 - exp(s - u)),

a sum of log-sigmoids and a term without x: concave, without a difference of nearly equal numbers. The information is
``sum_k S_k (1 - S_k) (S_(k-1) - S_(k+1))``.
"""

# ruff: noqa: ARG002 (a family takes no notice of what it does not need)

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from itembank.irt.families import ResponseModel
from itembank.irt.logistic import LikelihoodTerms
from itembank.irt.parameters import Steps
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_slope, softplus

MOST_OF_LEVELS = 4.0 / 3.0
"""Information of ever more levels, in units of 1/4: 1/3 is that of a logistic variable itself."""


class GradedMean(NamedTuple):
    """Mean of a response, its slope in the logit, and the variance of the response about it."""

    mean: FloatArray
    slope: FloatArray
    variance: FloatArray


def mean_terms(x: FloatArray, steps: Steps) -> GradedMean:
    """Mean ``v_0 + sum_k h_k S_k`` of a response, h the heights of the steps, its slope and variance at logits x."""
    levels, heights = steps.levels, steps.heights
    reached, missed = steps.reached(x)
    mean = levels[0] + reached @ heights
    square = levels[0] ** 2 + reached @ np.diff(levels**2)
    return GradedMean(mean, (reached * missed) @ heights, np.maximum(square - mean**2, 0.0))


def log_likelihood_terms(x: FloatArray, responses: FloatArray, steps: Steps) -> FloatArray:
    """``log P_k`` of the level nearest to each response."""
    lower, upper = steps.ends(responses)
    result: FloatArray = -softplus(lower - x) - softplus(x - upper) + np.log(-np.expm1(lower - upper))
    return result


def likelihood_terms(x: FloatArray, responses: FloatArray, steps: Steps) -> LikelihoodTerms:
    """Log-likelihood, slope and curvature together; NaN where the response is."""
    lower, upper = steps.ends(responses)
    value = -softplus(lower - x) - softplus(x - upper) + np.log(-np.expm1(lower - upper))
    slope = expit(lower - x) - expit(x - upper)
    unknown = np.where(np.isnan(responses), np.nan, 0.0)
    return LikelihoodTerms(
        value + unknown, slope + unknown, sigmoid_slope(x - lower) + sigmoid_slope(x - upper) + unknown
    )


def curvature_slopes(x: FloatArray, responses: FloatArray, steps: Steps) -> FloatArray:
    """Differentiate the curvature in the logit."""
    lower, upper = steps.ends(responses)
    return _second(x - lower) + _second(x - upper)


def information_slopes(x: FloatArray, steps: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fisher information in the logit, with its first and second derivatives."""
    reached, missed = steps.reached(x)
    first = reached * missed
    second = first * (missed - reached)
    third = first * (1.0 - 6.0 * first)
    span = _span(reached, begin=1.0)
    rise, bend = _span(first, begin=0.0), _span(second, begin=0.0)
    return (
        np.sum(first * span, axis=-1),
        np.sum(second * span + first * rise, axis=-1),
        np.sum(third * span + 2.0 * second * rise + first * bend, axis=-1),
    )


def _span(values: FloatArray, *, begin: float) -> FloatArray:
    """Value of the step before less that of the step after; `begin` before the first, zero after the last."""
    ends = np.zeros((*values.shape[:-1], 1))
    whole = np.concatenate([ends + begin, values, ends], axis=-1)
    result: FloatArray = whole[..., :-2] - whole[..., 2:]
    return result


def _second(z: FloatArray) -> FloatArray:
    """Second derivative of the sigmoid; zero at infinity."""
    result: FloatArray = sigmoid_slope(z) * (expit(-z) - expit(z))
    return result


class GradedModel(ResponseModel):
    """A few ordered levels, with steps of every item."""

    __slots__ = ()

    @property
    def is_concave(self) -> bool:
        """A sum of log-sigmoids is."""
        return True

    def mean(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By `mean_terms`."""
        return mean_terms(x, self._steps)

    def relative_information(self, n_trials: FloatArray | None = None) -> FloatArray:
        """Return that of ever more levels."""
        return np.array(MOST_OF_LEVELS)

    def log_likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> FloatArray:
        """By the function of this name."""
        return log_likelihood_terms(x, responses, self._steps)

    def likelihood_terms(
        self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None
    ) -> LikelihoodTerms:
        """By the function of this name."""
        return likelihood_terms(x, responses, self._steps)

    def curvature_slopes(self, x: FloatArray, responses: FloatArray, n_trials: FloatArray | None = None) -> FloatArray:
        """By the function of this name."""
        return curvature_slopes(x, responses, self._steps)

    def information_slopes(
        self, x: FloatArray, n_trials: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By the function of this name."""
        return information_slopes(x, self._steps)

    @property
    def _steps(self) -> Steps:
        if self.steps is None:
            raise TypeError("this family has steps.")
        return self.steps
