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

CELLS_AT_ONCE = 2**22
"""Of samples and columns times pairs: 32 MiB an array, whatever the number of pairs."""


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
    result: FloatArray = np.where(
        np.isnan(difference), np.nan, 2.0 * stdtr(degrees, -np.abs(standardised(difference, scale)))
    )
    return result


def standardised(difference: FloatArray, scale: FloatArray) -> FloatArray:
    """``difference / scale``; with scale 0 it is 0 where the difference is 0, else infinite."""
    # 1e-12: a difference of two means of the same responses is zero but for rounding
    exact = np.where(np.abs(difference) > 1e-12, np.copysign(np.inf, difference), 0.0)
    result: FloatArray = np.divide(difference, scale, out=exact, where=scale > 0.0)
    return result


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


def bootstrap_intervals(
    # (n_models, n_columns): NaN where missing; a pair's difference is over the items both answered
    responses: FloatArray,
    first: IntArray,  # (n_pairs,)
    second: IntArray,  # (n_pairs,)
    *,
    weights: FloatArray,  # (n_columns,)
    scenario_index: IntArray,  # (n_columns,)
    target_weights: FloatArray,  # (n_targets, n_scenarios)
    level: float,
    n_samples: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Percentile intervals of raw differences (second - first), items resampled within each scenario.

    Returns (n_pairs, n_targets): NaN where the pair shares no item of a scenario that the target counts.
    """
    counts = _resampled_counts(scenario_index, n_samples, rng)  # (n_samples, n_columns)
    counts *= weights
    n_targets = target_weights.shape[0]
    bounds = np.full((2, first.shape[0], n_targets), np.nan)
    n_block = max(1, CELLS_AT_ONCE // (n_samples + responses.shape[1]))
    tails = [0.5 - level / 2.0, 0.5 + level / 2.0]
    for start in range(0, first.shape[0], n_block):
        block = slice(start, start + n_block)
        d = (responses[second[block]] - responses[first[block]]).T  # (n_columns, n_block)
        for target in range(n_targets):
            resampled = np.zeros((n_samples, d.shape[1]))
            for scenario in np.flatnonzero(target_weights[target] > 0.0):
                columns = scenario_index == scenario
                resampled += target_weights[target, scenario] * _means(counts[:, columns], d[columns], weights[columns])
            bounds[:, block, target] = np.quantile(resampled, tails, axis=0)
    return bounds[0], bounds[1]


def _resampled_counts(scenario_index: IntArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Count the draws of each item in samples of every scenario's size, with replacement, (n_samples, n_columns)."""
    counts = np.zeros((n_samples, scenario_index.shape[0]))
    for scenario in np.unique(scenario_index):
        columns = np.flatnonzero(scenario_index == scenario)
        n = columns.shape[0]
        counts[:, columns] = rng.multinomial(n, np.full(n, 1.0 / n), size=n_samples)
    return counts


def _means(counts: FloatArray, d: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted means of d over the items drawn, (n_samples, n_block); over all shared items where none was drawn."""
    shared = ~np.isnan(d)
    d = np.where(shared, d, 0.0)
    with np.errstate(invalid="ignore"):
        plain = (weights @ d) / (weights @ shared)  # NaN without a shared item
    mass = counts @ shared.astype(np.float64)
    result: FloatArray = np.divide(counts @ d, mass, out=np.broadcast_to(plain, mass.shape).copy(), where=mass > 0.0)
    return result


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
