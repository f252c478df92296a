"""Differences of full scores and their errors, intervals and tests, and corrections for many pairs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, stdtr

from itembank.bank.banks import Bank
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.pairs import NO_ERROR, PairedDifferences, PairErrorModel, fit_pair_errors, model_pairs
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates, error_inflation
from itembank.estimation.estimates import Scores
from itembank.estimation.estimator_specs import PointSpec, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS
from itembank.estimation.method_trials import past_of
from itembank.estimation.response_summary import weighted_mean
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
    has_unit: BoolArray,
    is_of_run: bool,
) -> Evidence:
    """Add what leaves a difference uncertain when it is known over all items.

    `chance` (n_pairs, n_targets) is the variance of the difference over all items around the one that is meant. If all
    items are answered it is all that there is: then the degrees of freedom are those of the items, and right and wrong
    answers, and differences that are all alike, have a `unit` (`has_unit`).
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


MAXIMUM_MODELS = 500
"""At most this many past models are taken, spread evenly over the list. More of them give many more pairs but
hardly a better fit."""


def past_errors(
    asked: Asked,  # Of the models to compare
    columns: BoolArray,  # (n_columns,): Which of their items the past models are to answer
    spec: PointSpec | Stacked,  # Estimator, fitted without the model
) -> tuple[PastEstimates, FloatArray | None] | None:
    """Find the errors of up to 500 past models, had they answered the items in `columns`, and their answers to these.

    Standard errors are what is expected of a model's answers, times what past errors were to it, as `estimate` gives
    them. Answers are (n_models, n_columns), NaN where missing; None of a bank that was published without them. All is
    None with fewer than ten past models whose scores are known, or an estimator that cannot be fitted without some.
    """
    past = past_of(asked.take(models=np.arange(0), columns=np.flatnonzero(columns)), spec)
    if past is None:
        return None
    errors, scales, answers = past.error, past.scale, None
    if asked.kept_of(spec) is None:
        # evenly, not the first: models are often in order of date or score
        known = asked.bank.distinct_models
        places = np.linspace(0, known.size - 1, min(known.size, MAXIMUM_MODELS)).round().astype(np.int64)
        rows = known[np.unique(places)]
        errors, scales = errors[rows], scales[rows]
        answers = asked.bank.responses.of_items(asked.observations.positions[columns], models=rows)
    sizes = scales * error_inflation(errors, scales)
    return PastEstimates(np.zeros(errors.shape), errors, sizes, scales), answers


def raw_scores(bank: Bank, responses: FloatArray, positions: IntArray, weights: FloatArray) -> FloatArray:
    """Weighted means and the overall score made of them, (n_models, n_targets); NaN where a scenario has no item."""
    targets = bank.targets
    means = weighted_mean(responses, weights, targets.scenario_index[positions], targets.n_scenarios)
    return targets.with_overall(means)


def learn_errors(
    past: PastEstimates,
    # (n_pairs, n_targets): Classical variance of the paired difference of the past models' responses
    disagreement: FloatArray,
    targets: IntArray,  # (n_targets,): Places of the targets among those of the errors
    *,
    level: float,
) -> list[PairErrorModel | None]:
    """Return the error model of every target; None where too few past models have errors."""
    learnt: list[PairErrorModel | None] = []
    first, second = model_pairs(past.error.shape[0])
    for t, k in enumerate(targets.tolist()):
        errors, standard_errors = past.error[:, k], past.standard_error[:, k]
        known = ~(np.isnan(errors) | np.isnan(standard_errors))
        if known.sum() < MINIMUM_FOR_FOLDS:
            learnt.append(None)
            continue
        usable = known[first] & known[second] & ~np.isnan(disagreement[:, t])
        a, b = first[usable], second[usable]
        number = np.cumsum(known) - 1
        found = fit_pair_errors(
            errors[known],
            disagreement[usable, t],
            number[a],
            number[b],
            independent=standard_errors[a] ** 2 + standard_errors[b] ** 2,
            level=level,
        )
        learnt.append(found)
    return learnt


def error_variance(
    pairs: PairedDifferences,
    observed: IntArray,  # (n_models, n_targets): Items of the target that each model answered
    n_total: IntArray,  # (n_targets,): Items of the whole benchmark
    standard_errors: FloatArray,  # (n_models, n_targets)
    errors: PairErrorModel | None,
    *,
    target: int,
) -> FloatArray:
    """Return the expected squared error of each pair's difference on one target, (n_pairs,).

    On the same items it is ``a (s_a^2 + s_b^2) + b V`` (`fit_pair_errors`) with the standard errors of both models'
    scores, on different items ``s_a^2 + s_b^2``. With some items in common it is interpolated by
    their fraction. V is never below `least_variance`: models that answered all shared items alike, or all of them
    differently, may differ on the unseen items.
    """
    shared = pairs.n_shared[:, target]
    classical = np.maximum(pairs.variance[:, target], least_variance(shared, int(n_total[target])))
    if errors is None or errors.size < NO_ERROR:
        return np.where(shared > 0, classical, np.nan)
    first, second = model_pairs(observed.shape[0])
    square = standard_errors[:, target] ** 2
    apart = square[first] + square[second]
    together = errors.constant * apart + errors.slope * classical
    # Jaccard index: shared items over the items that at least one of the two answered
    answered = observed[:, target]
    in_common = shared / np.maximum(answered[first] + answered[second] - shared, 1)
    # without shared items V is infinite or unknown; its weight is zero, but 0 * inf would be NaN
    result: FloatArray = in_common * np.where(shared > 0, together, 0.0) + (1.0 - in_common) * apart
    return result


def least_variance(n_shared: IntArray, n_total: int) -> FloatArray:
    """Squared standard error of a difference that no shared item shows, (n_pairs,).

    ``(1 - n / N) 2 / (n + 2)^2``: that of n items answered alike with one more on which each model is better, as in
    the adjusted interval of Bonett and Price (2012, J. Educ. Behav. Stat. 37), for a finite population.
    """
    return np.maximum(1.0 - n_shared / n_total, 0.0) * 2.0 / (n_shared + 2.0) ** 2
