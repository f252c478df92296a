"""Intervals and tests of differences, textbook tests for reference, and corrections for many pairs."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, stdtr

from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.differences import ItemCounts, TargetErrors, error_variance
from itembank.comparison.pairs import PairedDifferences
from itembank.estimation.estimates import Scores
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_quantile, t_reach


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
    # 1e-12: a difference of two means of the same responses is zero but for rounding
    exact = np.where(np.abs(difference) > 1e-12, np.copysign(np.inf, difference), 0.0)
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
    """Tests of differences, each (n_pairs, n_targets).

    Attributes
    ----------
    probability_b_better
        That b scores higher than a on the full benchmark, were every difference as likely beforehand.
    p_value, p_holm
        Two-sided, of no difference on the full benchmark; as it is, and adjusted for all pairs of the target.
    smallest_detectable_difference
        True difference that these items show as significant with the power that was asked for.
    """

    probability_b_better: FloatArray
    p_value: FloatArray
    p_holm: FloatArray
    smallest_detectable_difference: FloatArray


def tested_differences(
    difference: FloatArray,
    pairs: PairedDifferences,
    counts: ItemCounts,
    standard_errors: FloatArray,
    errors: list[TargetErrors | None],
    *,
    chance: FloatArray,
    spec: ComparisonSpec,
) -> tuple[Scores, DifferenceTests]:
    """Give differences (n_pairs, n_targets) their intervals and tests, by the error model of each target.

    `standard_errors` (n_models, n_targets) are those of the models' own scores; `chance` (n_pairs, n_targets) is the
    variance of a difference in one run around the one that is meant.

    With the standard error s of a pair, the error model's quantile q at `level` and its Student distribution F
    of scale c: the interval is ``d +- q s``, the p-value ``2 F(-|d| / (c s))``, so that it is below ``1 - level``
    just when the interval leaves out 0; the smallest detectable difference is ``(q + c F^-1(power)) s``.
    """
    columns = []
    for target, error in enumerate(errors):
        degrees = pairs.degrees[:, target].astype(np.float64)
        quantile, scale = t_reach(spec.level, degrees), np.ones(degrees.shape)  # of the t-test, without a model
        if error is not None:
            model = error.model
            quantile, scale, degrees = (
                np.full(degrees.shape, value) for value in (model.quantile, model.scale, model.degrees)
            )
        standard_error = np.sqrt(error_variance(pairs, counts, standard_errors, error, target) + chance[:, target])
        # c = q / F^-1(0.5 + level / 2), so that p < 1 - level exactly where 0 lies outside of d +- q s
        d, half_width = difference[:, target], quantile * standard_error
        columns.append(
            (
                standard_error,
                np.maximum(d - half_width, -1.0),
                np.minimum(d + half_width, 1.0),
                np.where(np.isnan(d), np.nan, stdtr(degrees, standardised(d, scale * standard_error))),
                two_sided(d, scale * standard_error, degrees),
                half_width + t_quantile(spec.power, degrees) * scale * standard_error,
            )
        )
    standard_error, low, high, probability, p_value, detectable = (
        np.column_stack(part) for part in zip(*columns, strict=True)
    )
    tests = DifferenceTests(probability, p_value, holm(p_value), detectable)
    return Scores(difference, standard_error, low, high), tests
