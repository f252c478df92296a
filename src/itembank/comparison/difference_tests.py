"""Intervals, p-values and probabilities of differences."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.differences import ItemCounts, TargetErrors, error_variance
from itembank.comparison.pairs import PairedDifferences
from itembank.comparison.reference_tests import holm, standardised, two_sided
from itembank.estimation.scores import Scores
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_quantile, t_reach


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
        quantile, scale, degrees = _distribution(error, pairs.degrees[:, target], spec.level)
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


def _distribution(
    errors: TargetErrors | None, degrees: IntArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quantile, scale and degrees of freedom of each pair's standardised error; the t-test's without a model."""
    if errors is not None:
        model = errors.model
        quantile, scale, freedom = (np.full(degrees.shape, x) for x in (model.quantile, model.scale, model.degrees))
        return quantile, scale, freedom
    return t_reach(level, degrees.astype(np.float64)), np.ones(degrees.shape), degrees.astype(np.float64)
