"""What a comparison says of its pairs of models, in words and as matrices."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.comparison.comparisons import Comparison
from itembank.numerics.arrays import FloatArray
from itembank.pages.theme import level_words, points

SURE = 0.995
"""Probability from which no second decimal is left to say."""


@dataclass(frozen=True, slots=True)
class PairFinding:
    """One pair of models on one target, the better one first."""

    better: str
    worse: str
    # Score of the better less that of the worse, and its interval; NaN where there are too few responses.
    difference: float
    low: float
    high: float
    probability: float  # That the better one is better on the full benchmark
    is_clear: bool  # Whether the two can be told apart at the comparison's level, after Holm's adjustment for all pairs
    detectable: float  # Smallest true difference that these items would show
    n_items: int  # Items that both answered
    level: float  # Of the interval, and with which `detectable` would be found
    power: float

    @classmethod
    def of(cls, comparison: Comparison, pair: int, target: int) -> Self:
        """Take one pair from a comparison and put the better model first."""
        names = [comparison.model_ids[side[pair]] for side in (comparison.pairs.first, comparison.pairs.second)]
        found, tests, at = comparison.difference, comparison.tests, (pair, target)
        value, low, high = (float(one[at]) for one in (found.value, found.low, found.high))
        probability = float(tests.probability_b_better[at])
        is_turned = value < 0.0
        if is_turned:
            value, low, high, probability = -value, -high, -low, 1.0 - probability
        return cls(
            names[0] if is_turned else names[1],
            names[1] if is_turned else names[0],
            value,
            low,
            high,
            probability,
            bool(tests.p_holm[at] < 1.0 - comparison.spec.level),
            float(tests.smallest_detectable_difference[at]),
            int(comparison.pairs.n_shared_items[at]),
            comparison.spec.level,
            comparison.spec.power,
        )

    @property
    def interval_words(self) -> str:
        """The interval: '0.4 to 3.8 points, 95 % interval'."""
        low, high = (points(end).removesuffix(" points") for end in (self.low, self.high))
        return f"{low} to {high} points, {level_words(self.level)} interval" if math.isfinite(self.low) else ""

    def sentence(self, of_what: str) -> str:
        """Say which is better, by how much and how surely."""
        if not math.isfinite(self.difference):
            return f"{self.worse} and {self.better} cannot be compared on {of_what}: there are not enough responses."
        chance = f"the probability that it is better is {probability_words(self.probability)}"
        if self.is_clear:
            by = f"{points(self.difference)} on {of_what} ({self.interval_words})"
            return f"{self.better} beats {self.worse} by {by}; {chance}."
        lead = f"{self.better} is ahead by {points(self.difference)} on {of_what} ({self.interval_words}), but {chance}"
        if self.difference == 0.0:
            lead = f"Their scores on {of_what} are equal ({self.interval_words})"
        return f"{self.better} and {self.worse} cannot be told apart. {lead}."

    @property
    def detectable_words(self) -> str:
        """Say how large a difference these items would show."""
        if not math.isfinite(self.detectable):
            return ""
        return (
            f"On these items a true difference of {points(self.detectable)} would be found "
            f"{level_words(self.power)} of the time."
        )


def probability_words(probability: float) -> str:
    """Write a probability; one that is nearly sure as 'above 0.99'."""
    if not math.isfinite(probability):
        return "unknown"
    return "above 0.99" if probability >= SURE else f"{probability:.2f}"


def pair_number(comparison: Comparison, one: int, other: int) -> int:
    """Return which pair two models are; each stands once, the earlier model first."""
    low, high = sorted((one, other))
    n_models = len(comparison.model_ids)
    return low * n_models - low * (low + 1) // 2 + high - low - 1


def square(comparison: Comparison, values: FloatArray, turned: FloatArray) -> FloatArray:
    """Return values of pairs (n_pairs,) as (n_models, n_models): row against column, NaN on the diagonal.

    `values` are of the second model against the first, `turned` of the first against the second.
    """
    n_models = len(comparison.model_ids)
    result = np.full((n_models, n_models), np.nan)
    first, second = comparison.pairs.first, comparison.pairs.second
    result[second, first], result[first, second] = values, turned
    return result
