"""A model's own price level: what it costs beside what the past models cost, learnt from its answers so far."""

import math
from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray

LEAST_MODELS = 3
"""Past models from which it is learnt how far prices lie apart."""
SPREAD, NOISE = 1.0, 1.0
"""Taken where there are fewer: one model in three then costs more than 2.7 times, or less than a third of, another."""
LEAST_SPREAD, LEAST_NOISE = 0.04, 0.04
"""A new model, and each of its answers, may cost a fifth more or less, even where all past models cost the same."""
LEAST_RATIO = 1e-3
"""Of costs to expected costs; answers that cost nothing do not make all others free."""
NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class PriceLevel:
    """How many times the expected costs a model costs: lognormal, by its answers and the past models."""

    value: float  # Mean; 1 before the first answer
    variance: float  # Of its logarithm


@dataclass(frozen=True, slots=True)
class PastPrices:
    """What past models paid in one unit: ``cost = level of the model * expected cost of the item * noise``."""

    expected: FloatArray  # (n_items,): Mean over past models; where none is known, the mean of the other items
    spread: float  # Variance over models of the logarithm of the level
    noise: float  # Variance of the noise, whose mean is 1

    @classmethod
    def of_costs(cls, costs: FloatArray) -> "PastPrices":
        """Learn from costs (n_models, n_items), NaN where unknown, each model beside the mean of all others."""
        known = np.isfinite(costs)
        n_known, total = known.sum(axis=0), np.where(known, costs, 0.0).sum(axis=0)
        mean = np.divide(total, n_known, out=np.full(n_known.shape, np.nan), where=n_known > 0)
        expected = np.where(n_known > 0, mean, mean[n_known > 0].mean() if n_known.any() else np.nan)
        logs, errors, sizes = [], 0.0, 0.0
        for own, has_own in zip(costs, known, strict=True):
            shared = has_own & (n_known > 1)
            others = (total[shared] - own[shared]) / (n_known[shared] - 1)
            if not own[shared].sum() > 0.0 or not others.sum() > 0.0:
                continue
            level = own[shared].sum() / others.sum()
            logs.append(math.log(level))
            errors += float(((own[shared] / level - others) ** 2).sum())
            sizes += float((others**2).sum())
        if len(logs) < LEAST_MODELS:
            return cls(expected, SPREAD, NOISE)
        return cls(expected, max(float(np.var(logs, ddof=1)), LEAST_SPREAD), max(errors / sizes, LEAST_NOISE))

    def level(self, items: IntArray, amounts: FloatArray) -> PriceLevel:
        """Return a model's price level, given what some items cost it.

        The ratio of the sums, spent to expected, is lognormal around the level with ``v = log(1 + noise * sum(e^2) /
        sum(e)^2)``; the level is lognormal over models with mean 1. Both are multiplied.

        Parameters
        ----------
        items : (n_told,)
        amounts : (n_told,)
        """
        expected = self.expected[items]
        if not expected.sum() > 0.0:
            return PriceLevel(1.0, self.spread)
        doubt = self._doubt(expected)
        seen = math.log(max(float(amounts.sum() / expected.sum()), LEAST_RATIO)) + 0.5 * doubt
        variance = 1.0 / (1.0 / doubt + 1.0 / self.spread)
        mean = variance * (seen / doubt - 0.5)
        return PriceLevel(math.exp(mean + 0.5 * variance), variance)

    def cost_of(self, level: PriceLevel, items: IntArray) -> tuple[float, float, float]:
        """Return what some items will cost together, and the ends of the 95 % interval."""
        expected = self.expected[items]
        if not expected.sum() > 0.0:
            return 0.0, 0.0, 0.0
        value, variance = level.value * float(expected.sum()), level.variance + self._doubt(expected)
        ends = (math.exp(-0.5 * variance + sign * NORMAL_95 * math.sqrt(variance)) for sign in (-1.0, 1.0))
        low, high = (value * end for end in ends)
        return value, low, high

    def _doubt(self, expected: FloatArray) -> float:
        """Variance of the logarithm of the cost of these items together at a known level."""
        return math.log1p(self.noise * float((expected**2).sum()) / float(expected.sum()) ** 2)
