"""Differences of every pair of models over the items that both answered, and a model of the errors of differences."""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import ROUNDING, t_reach
from itembank.numerics.newton import LEAST_VARIANCE_SHARE, fit_variance


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
    # (n_pairs, n_targets): What is left of it once all items are answered: that of other benchmarks of as many items.
    variance_of_all: FloatArray
    # (n_pairs, n_targets): Squared standard error of a mean of responses with variance one, as `variance_of_many` is.
    unit: FloatArray
    # (n_pairs, n_targets): Weighted fractions of the shared items that a alone, b alone answered rightly; of responses
    # other than 0 and 1 only where all differences of a scenario are equal: the mean fall, and rise.
    fell: FloatArray
    rose: FloatArray  # (n_pairs, n_targets)
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
    responses: FloatArray,  # (n_models, n_columns): NaN where missing
    weights: FloatArray,  # (n_columns,): w
    scenario_index: IntArray,  # (n_columns,)
    scenario_sizes: IntArray,  # (n_scenarios,): N: items of the whole benchmark
    # (n_targets, n_scenarios): t: weight of each scenario's score in each target; rows sum to one
    target_weights: FloatArray,
) -> PairedDifferences:
    """Mean differences of all pairs of models and their classical variance.

    With ``d_i = y_bi - y_ai`` over the n shared items of a scenario of N items and ``W = sum w_i``:

    ``dbar = sum w_i d_i / W``,
    ``V = (1 - n / N) n / (n - 1) sum w_i^2 (d_i - dbar)^2 / W^2``,

    which for equal weights is the textbook ``(1 - n / N) s_d^2 / n`` of a simple random sample (Cochran 1977,
    eq. 2.19), and for a target ``sum_t dbar_j`` and ``sum_t^2 V_j`` over scenarios (eq. 5.13). One shared item has
    no spread: its ``d_i`` is then not centred. Everything is sums of products, so pairs cost matrix products.
    """
    first, second = model_pairs(responses.shape[0])
    n_targets = target_weights.shape[0]
    shape = (first.shape[0], n_targets)
    difference, variance, of_many, of_all, unit, fell, rose = (np.zeros(shape) for _ in range(7))
    covered, n_shared, only_a, only_b = (np.zeros(shape) for _ in range(4))
    n_scenarios_shared = np.zeros(shape)
    for scenario in range(scenario_sizes.shape[0]):
        targets = np.flatnonzero(target_weights[:, scenario] > 0.0)
        columns = np.flatnonzero(scenario_index == scenario)
        if targets.size == 0 or columns.size == 0:
            continue
        sums = _scenario_sums(responses[:, columns], weights[columns])
        mean, spread, mass, lost, won, count, better_a, better_b = (values[first, second][:, None] for values in sums)
        weight, answered = target_weights[targets, scenario], count / scenario_sizes[scenario]
        difference[:, targets] += weight * mean
        of_many[:, targets] += weight**2 * spread
        of_all[:, targets] += weight**2 * spread * answered
        variance[:, targets] += weight**2 * spread * np.maximum(1.0 - answered, 0.0)
        unit[:, targets] += weight**2 * mass
        fell[:, targets] += weight * lost
        rose[:, targets] += weight * won
        covered[:, targets] += weight * (count > 0.0)
        n_shared[:, targets] += count
        n_scenarios_shared[:, targets] += count > 0.0
        only_a[:, targets] += better_a
        only_b[:, targets] += better_b
    # weights of the scenarios sum to one but for rounding; a scenario of less weight than 1e-9 may be missing
    is_whole = covered > 1.0 - 1e-9
    variance, of_many, of_all, unit = (
        np.divide(one, covered**2, out=np.full(shape, np.nan), where=covered > 0.0)
        for one in (variance, of_many, of_all, unit)
    )
    return PairedDifferences(
        np.where(is_whole, difference, np.nan),
        variance,
        of_many,
        of_all,
        unit,
        fell,
        rose,
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


def _scenario_sums(responses: FloatArray, weights: FloatArray) -> tuple[FloatArray, ...]:
    """Find sums over the items that two models share, each (n_models, n_models).

    Mean difference (column - row), its variance, that of responses with variance one, weighted fractions that the row's
    model alone, the column's alone answered rightly, shared items, and how many of them each alone answered rightly.
    """
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
    spread = np.where(several, centred, uncentred)
    is_even = spread <= ROUNDING * mass2  # all differences are equal: nothing corrects for their mean
    spread = np.where(is_even, 0.0, spread) * inflation / total**2
    unit = np.where(is_even, 1.0, inflation) * mass2 / total**2
    rose = np.where(is_even, np.maximum(mean, 0.0), (weighted - (y * w) @ y.T) / total)
    right = seen @ y.T  # of the column's model, over the items the row's model answered
    both_right = y @ y.T
    only_column = right - both_right
    return mean, spread, unit, rose.T, rose, count, only_column.T, only_column


NO_ERROR = 1e-9
"""Smaller errors count as none: past models that answered everything have exact estimates, from which nothing
is learnt about the errors of others."""


@dataclass(frozen=True, slots=True)
class PairErrorModel:
    """Distribution of the error of a difference, for one target."""

    constant: float  # Of ``E[(r_b - r_a)^2] = constant * independent + slope * disagreement``; both >= 0
    slope: float
    quantile: float  # Standardised errors stay within it with probability `level`, also for models not seen
    # Of the Student distribution that gives p-values and probabilities: its tails are as heavy as those of the
    # past models' errors.
    degrees: float
    level: float
    size: float  # Root mean square error of the score of one model

    @property
    def scale(self) -> float:
        """Factor of the Student distribution that puts `quantile` at `level`."""
        return self.quantile / t_reach(self.level, self.degrees)


def fit_pair_errors(
    errors: FloatArray,  # (n_models,): Of estimates that did not know the model
    disagreement: FloatArray,  # (n_pairs,): x, non-negative
    first: IntArray,  # (n_pairs,): Rows of the models of each pair
    second: IntArray,  # (n_pairs,)
    *,
    independent: FloatArray | None = None,  # (n_pairs,): u, positive; the same for all pairs by default
    level: float,
) -> PairErrorModel:
    """Learn how the error of a difference depends on the two models and on how differently they answered.

    Were the errors ``r = estimate - truth`` of two models independent, the expected squared error of their difference
    would be ``u_lm = s_l^2 + s_m^2``. They have in common what the same items do to both, the more so the more alike
    the models answered. All pairs (l, m) of past models give ``E[(r_l - r_m)^2] = a u_lm + b x_lm``, with x the
    classical variance of the paired difference: a and b >= 0 by the score equations of a normal likelihood (least
    squares weighted by the inverse square of the fit, repeated). The standardised errors' quantile is then corrected
    for the finite number of models, see `finite_quantile`.
    """
    squared, size = (errors[first] - errors[second]) ** 2, float(np.sqrt(np.mean(errors**2)))
    design = np.column_stack([np.ones_like(squared) if independent is None else independent, disagreement])
    # also where these models answered all of a target, of which past ones answered less in folds that chose items anew
    if np.sqrt(squared.mean()) < NO_ERROR or not design.any():
        degrees = errors.shape[0] - 1.0
        return PairErrorModel(0.0, 1.0, t_reach(level, degrees), degrees, level, size)
    constant, slope = fit_variance(squared, design)
    variance = np.maximum(design @ [constant, slope], LEAST_VARIANCE_SHARE * squared.mean())
    standardised = squared / variance
    quantile, n_models = finite_quantile(np.sqrt(standardised), first, second, errors.size, level=level), errors.size
    if n_models * (1.0 - level) < level:  # too few to have such a quantile: Student's at least, as for single scores
        by_size = t_reach(level, n_models - 1.0) * np.sqrt(np.mean(standardised) * (1.0 + 1.0 / n_models))
        quantile = max(quantile, float(by_size))
    # excess kurtosis of a Student distribution is 6 / (degrees - 4); that of the errors is m_4 / m_2^2 - 3, taken about
    # zero because the difference of a pair has either sign
    excess = float(np.mean(standardised**2) / np.mean(standardised) ** 2 - 3.0)
    degrees = min(4.0 + 6.0 / max(excess, 1e-9), n_models - 1.0)
    return PairErrorModel(constant, slope, quantile, degrees, level, size)


def finite_quantile(
    standardised: FloatArray,  # (n_pairs,): Absolute errors over their standard errors
    first: IntArray,  # (n_pairs,)
    second: IntArray,  # (n_pairs,)
    n_models: int,  # M
    *,
    level: float,
) -> float:
    """Quantile of pairs' absolute errors that covers a pair of new models at `level`.

    Conformal prediction takes the ``level (n + 1) / n`` quantile of n independent errors. Pairs are not
    independent, models are: n is the number of independent errors that would estimate the fraction inside
    the quantile as precisely as these pairs do. The variance of that fraction is ``4 / M`` times the variance over
    models of the fraction of a model's pairs inside (the first term of a U-statistic's variance, Hoeffding 1948).
    """
    inside = (standardised <= np.quantile(standardised, level)).astype(np.float64)
    inside_fraction = np.bincount(first, inside, n_models) + np.bincount(second, inside, n_models)
    inside_fraction = inside_fraction / np.maximum(
        np.bincount(first, minlength=n_models) + np.bincount(second, minlength=n_models), 1
    )
    variance = 4.0 / n_models * float(np.var(inside_fraction, ddof=1))
    # n = level (1 - level) / variance, the variance of a fraction of n independent errors solved for n. It is kept from
    # M / 4 to 2 M: a variance of few models is rough, and more than two independent errors a model is chance.
    n_effective = float(np.clip(level * (1.0 - level) / max(variance, 1e-300), n_models / 4.0, 2.0 * n_models))
    return float(np.quantile(standardised, min(level * (n_effective + 1.0) / n_effective, 1.0)))
