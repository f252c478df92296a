"""Sums over the items that two models share, for every pair of models at once."""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class PairedDifferences:
    """Differences of the responses of model pairs (a, b), all signed b - a, over the items both answered."""

    # (n_pairs, n_targets): Weighted mean difference; NaN where the pair shares no item of a scenario that the target
    # counts.
    difference: FloatArray
    # (n_pairs, n_targets): Its classical squared standard error, items sampled within scenarios without replacement;
    # over the scenarios that are shared.
    variance: FloatArray
    # (n_pairs, n_targets): The same without the finite-population correction, as if the benchmark were endless.
    variance_of_many: FloatArray
    n_shared: IntArray  # (n_pairs, n_targets)
    degrees: IntArray  # (n_pairs, n_targets): Shared items less shared scenarios, at least one
    # (n_pairs, n_targets): Shared items that a alone, b alone answered rightly; meaningful for responses of 0 and 1.
    only_a: FloatArray
    only_b: FloatArray  # (n_pairs, n_targets)


def model_pairs(n_models: int) -> tuple[IntArray, IntArray]:
    """Rows of the first and the second model of every pair, each (n_pairs,), first < second."""
    first, second = np.triu_indices(n_models, 1)
    return first.astype(np.int64), second.astype(np.int64)


def paired_differences(
    responses: FloatArray,
    weights: FloatArray,
    scenario_index: IntArray,
    scenario_sizes: IntArray,
    target_weights: FloatArray,
) -> PairedDifferences:
    """Mean differences of all pairs of models and their classical variance.

    With ``d_i = y_bi - y_ai`` over the n shared items of a scenario of N items and ``W = sum w_i``:

    ``dbar = sum w_i d_i / W``,
    ``V = (1 - n / N) n / (n - 1) sum w_i^2 (d_i - dbar)^2 / W^2``,

    which for equal weights is the textbook ``(1 - n / N) s_d^2 / n`` of a simple random sample (Cochran 1977,
    eq. 2.19), and for a target ``sum_t dbar_j`` and ``sum_t^2 V_j`` over scenarios (eq. 5.13). One shared item has
    no spread: its ``d_i`` is then not centred. Everything is sums of products, so pairs cost matrix products.

    Parameters
    ----------
    responses : (n_models, n_columns)
        NaN where missing.
    weights : (n_columns,)
        w.
    scenario_index : (n_columns,)
    scenario_sizes : (n_scenarios,)
        N: items of the whole benchmark.
    target_weights : (n_targets, n_scenarios)
        t: weight of each scenario's score in each target; rows sum to one.
    """
    first, second = model_pairs(responses.shape[0])
    n_targets = target_weights.shape[0]
    shape = (first.shape[0], n_targets)
    difference, variance, of_many, covered, n_shared, only_a, only_b = (np.zeros(shape) for _ in range(7))
    n_scenarios_shared = np.zeros(shape)
    for scenario in range(scenario_sizes.shape[0]):
        targets = np.flatnonzero(target_weights[:, scenario] > 0.0)
        columns = np.flatnonzero(scenario_index == scenario)
        if targets.size == 0 or columns.size == 0:
            continue
        sums = _scenario_sums(responses[:, columns], weights[columns])
        mean, spread, count, better_a, better_b = (values[first, second][:, None] for values in sums)
        weight = target_weights[targets, scenario]
        difference[:, targets] += weight * mean
        of_many[:, targets] += weight**2 * spread
        variance[:, targets] += weight**2 * spread * np.maximum(1.0 - count / scenario_sizes[scenario], 0.0)
        covered[:, targets] += weight * (count > 0.0)
        n_shared[:, targets] += count
        n_scenarios_shared[:, targets] += count > 0.0
        only_a[:, targets] += better_a
        only_b[:, targets] += better_b
    # weights of the scenarios sum to one but for rounding; a scenario of less weight than 1e-9 may be missing
    is_whole = covered > 1.0 - 1e-9
    return PairedDifferences(
        np.where(is_whole, difference, np.nan),
        np.divide(variance, covered**2, out=np.full(shape, np.nan), where=covered > 0.0),
        np.divide(of_many, covered**2, out=np.full(shape, np.nan), where=covered > 0.0),
        n_shared.astype(np.int64),
        np.maximum(n_shared - n_scenarios_shared, 1.0).astype(np.int64),
        only_a,
        only_b,
    )


def shared_counts(observed: BoolArray) -> IntArray:
    """Items both models of each pair answered, (n_pairs,)."""
    first, second = model_pairs(observed.shape[0])
    seen = observed.astype(np.float64)
    return (seen @ seen.T)[first, second].astype(np.int64)


def _scenario_sums(
    responses: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean difference (column - row), its variance, shared items, one-sided successes: (n_models, n_models)."""
    observed = ~np.isnan(responses)
    seen = observed.astype(np.float64)
    y = np.where(observed, responses, 0.0)
    w, w2 = weights, weights**2
    count = seen @ seen.T
    mass, mass2 = (seen * w) @ seen.T, (seen * w2) @ seen.T
    weighted, squared = (seen * w) @ y.T, (seen * w2) @ y.T
    square_sum = (seen * w2) @ (y**2).T
    total = np.where(mass > 0.0, mass, 1.0)
    mean = (weighted - weighted.T) / total
    # sum w^2 d^2 = sum w^2 (y_b^2 + y_a^2 - 2 y_a y_b), over shared items; then sum w^2 (d - dbar)^2 expanded
    uncentred = square_sum + square_sum.T - 2.0 * (y * w2) @ y.T
    centred = uncentred - 2.0 * mean * (squared - squared.T) + mean**2 * mass2
    # n / (n - 1) corrects for the estimated mean; one shared item has no spread around its own mean
    several = count > 1.0
    inflation = np.divide(count, count - 1.0, out=np.ones(count.shape), where=several)
    spread = np.maximum(np.where(several, centred, uncentred), 0.0) * inflation / total**2
    right = seen @ y.T  # of the column's model, over the items the row's model answered
    both_right = y @ y.T
    only_column = right - both_right
    return mean, spread, count, only_column.T, only_column
