"""Intervals and tests of differences, textbook tests for reference, and corrections for many pairs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, stdtr

from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.pairs import NO_ERROR, PairedDifferences
from itembank.estimation.estimates import Scores
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import t_quantile, t_reach
from itembank.numerics.looks import lower_bound, null_variance, upper_bound

SAME = 1e-12
"""A difference of two means of the same responses is zero but for this, which is rounding."""


def mcnemar_exact(only_a: FloatArray, only_b: FloatArray) -> FloatArray:
    """Two-sided exact p-value of McNemar's test, elementwise: are the discordant items even? 1 without any.

    ``min(1, 2 P[Binomial(b + c, 1/2) <= min(b, c)])`` with b, c the discordant counts (McNemar 1947).
    """
    smaller, larger = np.minimum(only_a, only_b), np.maximum(only_a, only_b)
    # P[Binomial(b + c, 1/2) <= min] is this incomplete beta integral; without discordant items it stands for 1/2
    result: FloatArray = np.minimum(2.0 * betainc(np.maximum(larger, 1.0), smaller + 1.0, 0.5), 1.0)
    return result


def paired_t(difference: FloatArray, variance: FloatArray, degrees: IntArray) -> FloatArray:
    """Two-sided p-value of the paired t-test, elementwise; NaN where the difference is."""
    return two_sided(difference, np.sqrt(variance), degrees.astype(np.float64))


def two_sided(difference: FloatArray, scale: FloatArray, degrees: FloatArray) -> FloatArray:
    """Two-sided p-value of a Student variable; with scale 0 it is 1 where the difference is 0, else 0."""
    return np.where(np.isnan(difference), np.nan, 2.0 * stdtr(degrees, -np.abs(standardised(difference, scale))))


def standardised(difference: FloatArray, scale: FloatArray) -> FloatArray:
    """``difference / scale``; with scale 0 it is 0 where the difference is 0, else infinite."""
    exact = np.where(np.abs(difference) > SAME, np.copysign(np.inf, difference), 0.0)
    return np.divide(difference, scale, out=exact, where=scale > 0.0)


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p-values (n_pairs, n_targets) for the pairs of each target; NaN stays and does not count (Holm 1979).

    The k-th smallest of m is multiplied by ``m - k + 1``; no adjusted value is below one of a smaller p.
    """
    order = np.argsort(p_values, axis=0)  # NaN last
    known = ~np.isnan(p_values)
    factor = np.maximum(known.sum(axis=0) - np.arange(p_values.shape[0])[:, None], 1)
    stepped = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=0) * factor, axis=0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1.0), axis=0)
    return np.where(known, adjusted, np.nan)


@dataclass(frozen=True, slots=True)
class DifferenceTests:
    """Tests of differences, each (n_pairs, n_targets); NaN where a difference is known exactly, or not at all.

    Attributes
    ----------
    probability_b_better
        That b scores higher, were every difference as likely beforehand; 0, 1/2 or 1 of exact differences.
    p_value, p_holm
        Two-sided, of no difference; as it is, and adjusted for all pairs of the target (Holm 1979).
    joint_low, joint_high
        Interval adjusted for all pairs as Holm's p-value is: it leaves out 0 just if `p_holm` is below ``1 - level``.
    smallest_detectable_difference
        True difference that these items show as significant with the power that was asked for.
    """

    probability_b_better: FloatArray
    p_value: FloatArray
    p_holm: FloatArray
    joint_low: FloatArray
    joint_high: FloatArray
    smallest_detectable_difference: FloatArray


class Evidence(NamedTuple):
    """Differences, and how far they may be off, each (n_pairs, n_targets): arguments of `lower_bound`."""

    difference: FloatArray
    variance: FloatArray  # Squared standard error
    unit: FloatArray
    fell: FloatArray
    rose: FloatArray
    degrees: FloatArray  # Of freedom of the Student distribution of errors
    scale: FloatArray  # And its scale c, 1 of the t-test
    is_of_run: bool  # Whether the difference of just these runs is meant
    least: FloatArray | float = -1.0  # What the answers leave possible
    most: FloatArray | float = 1.0

    @property
    def is_exact(self) -> BoolArray:
        """Whether nothing is left to chance, (n_pairs, n_targets)."""
        return self.is_of_run & (self.variance <= 0.0) & (self.unit <= 0.0)

    def take(self, pairs: IntArray) -> "Evidence":
        """Return that of some pairs."""
        return self._replace(**{name: one[pairs] for name, one in self._asdict().items() if np.ndim(one)})

    @property
    def turned(self) -> "Evidence":
        """Return that of the differences a - b."""
        ends = self._replace(least=-self.most, most=-self.least)
        return ends._replace(difference=-self.difference, fell=self.rose, rose=self.fell)

    def probability(self, side: int) -> FloatArray:
        """Probability that the difference is above zero (1) or below (-1), were every one as likely beforehand."""
        d = self.difference
        at_zero = self.unit * null_variance(np.zeros(d.shape), (self.fell, self.rose))
        z = standardised(d, self.scale * np.sqrt(np.maximum(self.variance, at_zero)))
        probability = np.where(np.isnan(d), np.nan, stdtr(self.degrees, side * z))
        is_certain = (np.asarray(self.least) > 0.0) | (np.asarray(self.most) < 0.0)
        return np.where(is_certain, np.asarray(side * d > 0.0, dtype=np.float64), probability)

    def bounds(self, level: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return intervals at a level, or at one for each difference, within what is possible."""
        boundary = self.scale * t_reach(level, self.degrees)
        known = self.difference, self.variance, self.unit, (self.fell, self.rose), boundary
        low, high = (np.clip(bound(*known), self.least, self.most) for bound in (lower_bound, upper_bound))
        return low, high


def intervals_and_tests(
    found: Evidence, spec: ComparisonSpec, ends: tuple[Evidence, Evidence] | None = None
) -> tuple[Scores, DifferenceTests]:
    """Give differences their intervals and tests: with `ends`, those that hold from the lowest to the highest.

    A difference d is rejected if the estimate is c F^-1(0.5 + level / 2) standard errors from it or more, F the Student
    distribution and c its scale. So the p-value, ``2 F(-|z| / c)`` of the standard error at d = 0, is below ``1 -
    level`` just where the interval leaves out 0. The smallest detectable difference is the half-width, and ``c
    F^-1(power)`` standard errors more.
    """
    lowest, highest = (found, found) if ends is None else ends
    d, is_exact = found.difference, found.is_exact & (lowest.difference == highest.difference)
    low, high = lowest.bounds(spec.level)[0], highest.bounds(spec.level)[1]
    above, below = (
        np.clip(0.5, one.probability(side), other.probability(side))
        for side, one, other in ((1, lowest, highest), (-1, highest, lowest))
    )
    p = np.where(is_exact, np.nan, 2.0 * np.minimum(above, below))
    adjusted = holm(p)
    joint = 1.0 - (1.0 - spec.level) / holm_factors(p, adjusted < 1.0 - spec.level)
    joint_low, joint_high = lowest.bounds(joint)[0], highest.bounds(joint)[1]
    reach = t_reach(spec.level, found.degrees)
    half_width = np.maximum(d - low, high - d)
    detectable = half_width * (1.0 + t_quantile(spec.power, found.degrees) / reach)
    error = np.where(is_exact, 0.0, half_width / (found.scale * reach))
    tests = DifferenceTests(above, p, adjusted, joint_low, joint_high, np.where(is_exact, np.nan, detectable))
    return Scores(d, error, low, high), tests


def holm_factors(p_values: FloatArray, is_rejected: BoolArray) -> FloatArray:
    """Return what Holm's procedure multiplies the p-value of each pair by at the step that decides on it.

    Of m pairs of a target the k-th smallest p-value, rejected, has ``m - k + 1``. All that are not have the factor of
    the step that stopped. NaN does not count, and has 1.
    """
    known = ~np.isnan(p_values)
    place = np.argsort(np.argsort(p_values, axis=0), axis=0)
    last = np.where(is_rejected, place, is_rejected.sum(axis=0))
    return np.where(known, np.maximum(known.sum(axis=0) - last, 1), 1).astype(np.float64)


def with_chance(
    found: Evidence,  # On the bank's items, of these runs
    pairs: PairedDifferences,
    *,
    chance: FloatArray,
    has_unit: bool,
    is_of_run: bool,
) -> Evidence:
    """Add what leaves a difference uncertain when it is known over all items.

    `chance` (n_pairs, n_targets) is the variance of the difference over all items around the one that is meant. If all
    items are answered it is all that there is: then the degrees of freedom are those of the items, and right and wrong
    answers have a `unit` (`has_unit`).
    """
    is_whole = found.variance <= NO_ERROR**2
    found = found._replace(
        variance=np.where(is_whole, 0.0, found.variance) + chance,
        unit=np.where(has_unit & is_whole, pairs.unit, 0.0),
        degrees=np.where(is_whole, pairs.degrees.astype(np.float64), found.degrees),
        scale=np.where(is_whole, 1.0, found.scale),
        is_of_run=is_of_run,
    )
    # other items, or other runs, may show what these answers leave impossible
    return found if is_of_run else found._replace(least=-1.0, most=1.0)
