"""Expected log-likelihood of a count whose trials agree more than chance: the beta-binomial distribution.

For c right of n, ``log f = lgamma(c + a) - lgamma(a) + lgamma(n - c + b) - lgamma(b) + lgamma(phi) - lgamma(n + phi)``
with ``a = p phi``, ``b = (1 - p) phi``, up to the number of orders. One trial is a Bernoulli response, and the limit of
large phi the binomial.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, expit, gammaln

from itembank.calibration.variational.cells import Cells, node_step
from itembank.numerics.arrays import FloatArray, IntArray

LARGEST_LOGIT = 300.0
"""Up to this logit a probability is above zero. Only trial steps that are refused lead further."""


@dataclass(frozen=True, slots=True)
class BetaBinomialRule:
    """The expectation by three nodes ``m, m +- sqrt(3 v)``, with its own derivatives, by the special functions."""

    precision: FloatArray  # (n_groups,)
    lower_asymptote: FloatArray  # (n_groups,)

    def evaluate(
        self,
        values: FloatArray,  # (n_block, n_models): Fraction of right answers
        weights: FloatArray | None,  # (n_block, n_models): Trials, zero where missing
        table: int | IntArray,  # (n_block,), or one for the whole block: The group of each item
        mean: FloatArray,  # (n_block, n_models): Of the logits, as the variance
        variance: FloatArray,
    ) -> Cells:
        """Give linear term, curvature and value of a block of cells."""
        right, trials = counts_of(values, weights)
        precision, lower = self.of(table)
        half_step = node_step(variance)
        value, slope = terms(mean, right, trials, precision, lower)
        above, slope_above = terms(mean + half_step, right, trials, precision, lower)
        below, slope_below = terms(mean - half_step, right, trials, precision, lower)
        # Minus twice the derivative by v of the three nodes' sum, as in `beta_cells`.
        curvature = np.maximum(
            (slope_below - slope_above) / (2.0 * half_step), least_curvature(mean, trials, precision, lower)
        )
        linear = (4.0 * slope + slope_above + slope_below) / 6.0 + curvature * mean
        value = (4.0 * value + above + below) / 6.0 + log_normaliser(trials, precision)
        return Cells(linear, curvature, value)

    def of(self, table: int | IntArray) -> tuple[FloatArray | float, FloatArray | float]:
        """Return precision and lower asymptote of a group; of one for each item, (n_block, 1) each."""
        if isinstance(table, int):
            return float(self.precision[table]), float(self.lower_asymptote[table])
        return self.precision[table][:, None], self.lower_asymptote[table][:, None]

    def with_precision(self, precision: FloatArray) -> "BetaBinomialRule":
        """Return the rule with another precision of each group."""
        return replace(self, precision=precision)


def counts_of(values: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return how many answers are right and how many trials there are, of fractions and of trials or None for one."""
    trials = np.ones_like(values) if weights is None else weights
    return np.round(values * trials), trials


def terms(
    logits: FloatArray, right: FloatArray, trials: FloatArray, precision: FloatArray | float, lower: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood less `log_normaliser`, and its derivative in the logit; zero without trials."""
    logits = np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)
    above, complement = (1.0 - lower) * expit(logits), expit(-logits)
    value, slope = _rising(right, precision * (lower + above))
    value_wrong, slope_wrong = _rising(trials - right, precision * (1.0 - lower) * complement)
    value += value_wrong
    slope -= slope_wrong
    slope *= precision * above * complement
    return value, slope


def log_normaliser(trials: FloatArray, precision: FloatArray | float) -> FloatArray:
    """``lgamma(phi) - lgamma(n + phi)``, which no logit enters."""
    result: FloatArray = gammaln(precision) - gammaln(trials + precision)
    return result


def least_curvature(
    logits: FloatArray, trials: FloatArray, precision: FloatArray | float, lower: FloatArray | float
) -> FloatArray:
    """Return a fraction of the information of the mean, ``p'^2 / Var(c / n)``."""
    logits = np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)
    above, complement = (1.0 - lower) * expit(logits), expit(-logits)
    worth = trials * (precision + 1.0) / (precision + np.maximum(trials, 1.0))  # 1 / Var(c / n) times p q
    fraction = 0.2  # the log-likelihood of a count far from its expectation is convex there
    # p'^2 / (p q) with p = g + (1 - g) s, q = (1 - g) (1 - s) and p' = (1 - g) s (1 - s): no division by q.
    result: FloatArray = fraction * worth * complement * (above / (lower + above)) * (above / (1.0 - lower))
    return result


def _rising(count: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``lgamma(k + a) - lgamma(a)`` and its derivative in a: zero where k is, as it often is."""
    value, slope = np.zeros_like(start), np.zeros_like(start)
    some, one = count > 1.0, count == 1.0
    value[one], slope[one] = np.log(start[one]), 1.0 / start[one]
    first, last = start[some], start[some] + count[some]
    value[some] = gammaln(last) - gammaln(first)
    slope[some] = digamma(last) - digamma(first)
    return value, slope
