"""Intervals, p-values and probabilities of differences."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from itembank.comparison.differences import ItemCounts, TargetErrors, error_variance
from itembank.comparison.pairs import PairedDifferences
from itembank.comparison.reference_tests import standardised, two_sided
from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Judgement:
    """Uncertainty of differences, each (n_pairs, n_targets)."""

    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    probability_b_better: FloatArray
    p_value: FloatArray
    smallest_detectable: FloatArray


def judge(
    difference: FloatArray,
    pairs: PairedDifferences,
    counts: ItemCounts,
    learnt: list[TargetErrors | None],
    *,
    level: float,
    power: float,
) -> Judgement:
    """Judge differences (n_pairs, n_targets) by the error model of each target.

    With the standard error s of a pair, the error model's quantile q at `level` and its Student distribution F
    of scale c: the interval is ``d +- q s``, the p-value ``2 F(-|d| / (c s))``, so that it is below ``1 - level``
    just when the interval leaves out 0; the smallest detectable difference is ``(q + c F^-1(power)) s``.
    """
    columns = []
    for target, errors in enumerate(learnt):
        quantile, scale, degrees = _distribution(errors, pairs.degrees[:, target], level)
        standard_error = np.sqrt(error_variance(pairs, counts, errors, target))
        d, half_width = difference[:, target], quantile * standard_error
        columns.append(
            (
                standard_error,
                np.maximum(d - half_width, -1.0),
                np.minimum(d + half_width, 1.0),
                np.where(np.isnan(d), np.nan, stdtr(degrees, standardised(d, scale * standard_error))),
                two_sided(d, scale * standard_error, degrees),
                half_width + stdtrit(degrees, power) * scale * standard_error,
            )
        )
    return Judgement(*(np.column_stack(part) for part in zip(*columns, strict=True)))


def _distribution(
    errors: TargetErrors | None, degrees: IntArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quantile, scale and degrees of freedom of each pair's standardised error; the t-test's without a model."""
    if errors is not None:
        model, one = errors.model, np.ones(degrees.shape)
        return model.quantile * one, model.scale * one, model.degrees * one
    return stdtrit(degrees, 0.5 + level / 2.0), np.ones(degrees.shape), degrees.astype(np.float64)
