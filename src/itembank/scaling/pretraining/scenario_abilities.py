"""Scores and abilities of every model in one scenario, with the items that turn an ability back into a score."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.stable import sigmoid_slope

BLOCK_CELLS = 1 << 21
"""Abilities times items worked on at once: 16 MiB an array."""
WIDEST = 100.0
"""Largest variance of a measured ability, in units of the prior's: next to no weight in a line, yet a finite one."""


@dataclass(frozen=True, slots=True)
class ScenarioScores:
    """Observed scores of n_models models in one scenario."""

    scenario: str
    # (n_sampled,): Columns of the responses whose mean is the observed score: all items, or a random few under a
    # budget.
    sampled: IntArray
    observed: FloatArray  # (n_models,): Mean of the responses present to the sampled items, NaN without any
    # (n_models,): Whether the model answered any item of the scenario; those that did not take no part in its laws.
    is_present: BoolArray

    def take(self, models: IntArray) -> "ScenarioScores":
        """Return the models at these indices."""
        return replace(self, observed=self.observed[models], is_present=self.is_present[models])


@dataclass(frozen=True, slots=True)
class ScenarioAbilities:
    """Measured abilities of n_models models on n_items items of one scenario."""

    items: IntArray  # (n_items,): Columns of the responses
    parameters: ItemParameters  # One-dimensional
    item_covariance: FloatArray  # (n_items, 2, 2): Covariance of each item's loading and intercept
    # (n_models,): Ability from the responses alone, without the influence of a prior, and its sampling variance; NaN
    # for a model without responses.
    theta: FloatArray
    variance: FloatArray  # (n_models,)
    # (n_models,): Mean, over the items that theta rests on, of the responses less the probabilities at theta; as large
    # as it would be over all items of the scenario.
    gap: FloatArray

    def take(self, models: IntArray) -> "ScenarioAbilities":
        """Return the models at these indices."""
        return replace(self, theta=self.theta[models], variance=self.variance[models], gap=self.gap[models])


def without_prior(mean: FloatArray, variance: FloatArray, prior: AbilityPrior) -> tuple[FloatArray, FloatArray]:
    """Take a normal prior out of normal posteriors of ability (n_models,): mean and variance of the likelihood.

    ``1/v = 1/V - 1/V0`` and ``m/v = M/V - M0/V0``. A line through shrunken abilities would be too flat, and a
    forecast beyond the data too low. Where the responses hold hardly any information the variance is 100 times the
    prior's.
    """
    prior_mean, prior_variance = float(prior.mean[0]), float(prior.covariance[0, 0])
    # the difference of precisions is zero to rounding, or below, where responses hardly changed the prior
    precision = np.maximum(1.0 / variance - 1.0 / prior_variance, 1.0 / (WIDEST * prior_variance))
    result: FloatArray = (mean / variance - prior_mean / prior_variance) / precision
    return np.where(np.isfinite(result), result, mean), 1.0 / precision


def mean_probability(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Mean probability of a correct response over all items at abilities (n_points,): (n_points,)."""
    result = np.empty(len(theta))
    size = max(1, BLOCK_CELLS // max(1, parameters.n_items))
    for begin in range(0, len(theta), size):
        part = slice(begin, begin + size)
        result[part] = probability(parameters, theta[part, None]).mean(axis=1)
    return result


def item_variance(parameters: ItemParameters, covariance: FloatArray, theta: FloatArray) -> FloatArray:
    """Variance of `mean_probability` that uncertain items bring, (n_points,), to first order.

    ``sum_i (dp_i/dx)^2 (theta, 1) S_i (theta, 1)' / n^2`` with S_i the covariance of item i's loading and intercept,
    taken as independent of other items': beyond the abilities that calibrated them it grows.

    Parameters
    ----------
    parameters : ItemParameters
    covariance : (n_items, 2, 2)
    theta : (n_points,)
    """
    result = np.empty(len(theta))
    height = parameters.upper_asymptote - parameters.lower_asymptote
    size = max(1, BLOCK_CELLS // max(1, parameters.n_items))
    for begin in range(0, len(theta), size):
        at = theta[begin : begin + size, None]
        slope = height * sigmoid_slope(at * parameters.loadings[:, 0] + parameters.intercept)
        # (theta, 1) S_i (theta, 1)', written out: the variance of the logit that uncertain item parameters bring
        spread = at**2 * covariance[:, 0, 0] + 2.0 * at * covariance[:, 0, 1] + covariance[:, 1, 1]
        result[begin : begin + size] = np.sum(slope**2 * spread, axis=1) / parameters.n_items**2
    return result


def score_gap(parameters: ItemParameters, responses: FloatArray, theta: FloatArray) -> FloatArray:
    """Mean of responses less probabilities at each model's ability, (n_models,), over the items it answered.

    Scaled by ``sqrt(n_answered / n_items)``: what independent items leave of it over all items.
    """
    is_present = ~np.isnan(responses)
    count = is_present.sum(axis=1)
    result = np.full(len(responses), np.nan)
    size = max(1, BLOCK_CELLS // max(1, parameters.n_items))
    for begin in range(0, len(responses), size):
        part = slice(begin, begin + size)
        apart = np.where(is_present[part], responses[part] - probability(parameters, theta[part, None]), 0.0)
        known = np.maximum(count[part], 1)
        result[part] = apart.sum(axis=1) / known * np.sqrt(known / parameters.n_items)
    return np.where(count > 0, result, np.nan)
