"""Variational calibration (tinyBenchmarks 4.4): start, ascent, result."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import digamma, expit, polygamma

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import START_PRECISION, Ascent, Fit, FitData, Point, reordered, standardise
from itembank.calibration.start import ROUGH_TOLERANCE, advice, better_start, start_values
from itembank.calibration.variational.ascent import Reached, ascend
from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import LARGEST_LOGIT, BetaRule, Few, Table, make_table
from itembank.calibration.variational.blocks import (
    Blocks,
    ResponseBlocks,
    UncopiedBlocks,
    is_small,
    make_blocks,
    table_groups,
)
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.passes import CellRule, item_statistics, logit_moments
from itembank.calibration.variational.precision import learn
from itembank.calibration.variational.scale import in_general_axes, rescale
from itembank.calibration.variational.state import Posterior, start_posterior
from itembank.calibration.variational.updates import note_of_least_slopes, start_tasks, update_items
from itembank.irt.family_names import WITH_PRECISION
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.stable import softplus
from itembank.progress import ProgressCallback, silent

FIRST_SWEEPS = 5
"""By the bound that cannot overshoot, from an only start. With 3 to 6 the fit takes as long, and a third less than
with an ascent until that bound hardly rises."""


def from_nothing(
    blocks: ResponseBlocks, data: FitData, spec: Variational, rule: CellRule
) -> tuple[Ascent[Reached], bool]:
    """Go part of the way from the better of two starts, or a few sweeps from the only one; see `better_start`."""
    climb = partial(_part_of_the_way, blocks, data, spec, rule, max_sweeps=spec.max_iterations)
    few = partial(climb, max_sweeps=min(FIRST_SWEEPS, spec.max_iterations))
    return better_start(
        climb,
        lambda reached: Point(reached.posterior.item_mean, reached.posterior.ability_mean),
        start_values(data),
        data.observed,
        n_dims=spec.n_dims,
        climb_alone=few,
    )


def _part_of_the_way(
    blocks: ResponseBlocks, data: FitData, spec: Variational, rule: CellRule, abilities: FloatArray, *, max_sweeps: int
) -> Ascent[Reached]:
    """Ascend from these abilities, (n_models, n_dims), until the end is near."""
    # Of the abilities at the start: anything up to the prior's variance, one. From 0.01 to 1 the ends are the same.
    start_variance = 0.1
    covariance = np.tile(start_variance * np.eye(spec.n_dims), (len(abilities), 1, 1))
    start = start_posterior(
        abilities,
        covariance,
        blocks.n_items,
        has_common_slope=spec.item_model == "1pl",
        is_nested=spec.item_model == "nested",
        is_positive=spec.positive_discrimination,
        tasks=start_tasks(data.task_index, spec.n_dims + 1),
    )
    return ascend(
        blocks,
        start,
        rule,
        tolerance=max(ROUGH_TOLERANCE, spec.tolerance),
        max_sweeps=max_sweeps,
        progress=silent,
        is_rough=True,
    )


MOST_SDS = 5.0
"""Distance from its expectation at which a logit counts as outlying."""


def draw_in(blocks: Blocks, posterior: Posterior, rule: BetaRule) -> tuple[Blocks, int]:
    """Draw probabilities far outside what their Beta expects in to the edge of it (Winsor's way with outliers).

    The log-likelihood of a probability y is linear in its logit L, so the gradient of a y near zero has no limit:
    clipped at 1e-6 one such cell weighs as much as thousands of others where the precision is high, though all it says
    is "too small to distinguish from zero". Beyond five standard deviations L counts as if it were there; the
    uncertainty of the item model's own logits counts as spread. True draws of a Beta go that far once in 400 at worst
    (p phi near 0, where -L is nearly exponential).

    Returns the responses, and how many of them were moved.
    """
    # The nearest node of a logit is near enough: limits may be off by 1 % of a standard deviation.
    nodes_per_unit = 32
    half, dtype = round(LARGEST_LOGIT * nodes_per_unit), blocks.values.dtype
    nodes = np.arange(-half, half + 1) / nodes_per_unit
    tabulated = [
        [column.astype(dtype) for column in _expected(nodes, table.precision, table.lower_asymptote)]
        if isinstance(table, Table)
        else None
        for table in rule.tables
    ]
    values, sums, n_cells = blocks.values, blocks.sums, 0
    for part, mean, variance in logit_moments(blocks, posterior):
        group, within = blocks.group_at(part), np.clip(mean, -LARGEST_LOGIT, LARGEST_LOGIT)
        of_group = tabulated[group] if isinstance(group, int) else None
        if of_group is None:
            of_item = np.broadcast_to(group, mean.shape[:1])
            precision, lower = (array[of_item][:, None] for array in (rule.precision, rule.lower_asymptote))
            expected, slope, given_logit = _expected(within.astype(np.float64), precision, lower)
        else:
            index = np.rint((within + LARGEST_LOGIT) * nodes_per_unit).astype(np.intp)
            expected, slope, given_logit = (column.take(index) for column in of_group)
        distance = blocks.values[part] - expected
        # Variance of L given the logit, and that of its mean because the logit is uncertain (delta method).
        spread = given_logit + variance * slope**2
        is_far = distance**2 > MOST_SDS**2 * spread
        if blocks.weights is not None:
            is_far &= blocks.weights[part] > 0.0
        if not is_far.any():
            continue
        if n_cells == 0:  # what was given stays as it is
            values, sums = values.copy(), None if sums is None else sums.copy()
        n_cells += int(is_far.sum())
        rows, columns = np.nonzero(is_far)
        before = blocks.values[part][is_far]
        excess = np.sign(distance) * (np.abs(distance) - MOST_SDS * np.sqrt(spread))
        after = before - excess[is_far]
        values[part][rows, columns] = after
        if sums is not None:
            np.add.at(sums, rows + part.start, _constants(after) - _constants(before))
    return blocks if n_cells == 0 else replace(blocks, values=values, sums=sums), n_cells


def _expected(
    logits: FloatArray, precision: FloatArray | float, lower: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give what the item model expects of L at logits: its mean ``psi(a) - psi(b)``, the slope of that, its variance.

    ``a = p phi`` and ``b = (1 - p) phi``; the variance is ``psi1(a) + psi1(b)``.
    """
    height = 1.0 - lower
    sigmoid, complement = expit(logits), expit(-logits)
    a = precision * (lower + height * sigmoid)
    b = precision * height * complement
    variance = polygamma(1, a) + polygamma(1, b)
    slope = precision * height * sigmoid * complement * variance
    return digamma(a) - digamma(b), slope, variance


def _constants(log_odds: FloatArray) -> FloatArray:
    """``log(1 - y)`` and ``-log(y (1 - y))``, (n, 2), as `Blocks.sums` has them."""
    log_odds = log_odds.astype(np.float64)
    below, above = softplus(-log_odds), softplus(log_odds)
    return np.column_stack([-above, above + below])


SUBSET_SIZE = 3000
"""Of many items, so many are fitted first: they determine abilities well enough for the others to need few sweeps."""
ITEM_ROUNDS = 5
"""Updates of all items, from zero, before abilities move again. In simulations one to five take as long to the same
end: the sweeps afterwards do what they leave."""
LARGE = 5_000_000
"""Cells from which on logits are taken to be known well: the expectation is expanded about their means."""


def fit_variational(data: FitData, spec: Variational, *, progress: ProgressCallback) -> Fit:
    """Fit item parameters and abilities by variational Bayes.

    The ascent starts with the Jaakkola-Jordan bound, whose updates cannot overshoot, and ends with the expected
    log-likelihood itself (see `cells`). Of more than 4,500 items, 3,000 are fitted first.

    Returns
    -------
    Fit
        Abilities with mean 0 and unit second moment over the models, on the principal axes of the loadings. Nested:
        mean 0 and variance 1, the general one first and then by the size of the loadings; the prior is the
        distribution of the past models' abilities.
        `history` is the bound on the log evidence of all responses; in float64 it never falls.
    """
    if data.family not in WITH_PRECISION:
        return _fit_in_order(data, spec, normal_expectation, None, progress)
    group, precision_of_group = table_groups(data)
    order = np.argsort(group, kind="stable")
    if np.any(np.diff(order) < 0):
        data = data.take_items(order)
    group = group[order]
    # at the given precision, or at the one to start with
    precision = START_PRECISION if isinstance(spec.precision, str) else float(spec.precision)
    lower = data.lower_asymptote[np.unique(group, return_index=True)[1]]
    rule: CellRule
    if data.family == "beta":
        dtype: np.dtype[np.floating] = np.dtype(np.float32) if _is_single(data, spec) else np.dtype(np.float64)
        few = is_small(group, precision_of_group, data.responses.shape[0])
        tables = tuple(
            Few(precision, float(least)) if small else make_table(precision, float(least), dtype)
            for least, small in zip(lower, few, strict=True)
        )
        rule = BetaRule(tables, is_narrow=data.responses.size > LARGE)
    else:
        rule = BetaBinomialRule(np.full(lower.shape, precision), lower)
    learned = precision_of_group if isinstance(spec.precision, str) else None
    fit, back = _fit_in_order(data, spec, rule, learned, progress), np.argsort(order, kind="stable")
    return replace(
        fit,
        loadings=fit.loadings[back],
        intercept=fit.intercept[back],
        item_covariance=fit.item_covariance[back],
        precision=None if fit.precision is None else fit.precision[back],
        log_precision_error=None if fit.log_precision_error is None else fit.log_precision_error[back],
    )


def _rough(rule: CellRule) -> CellRule:
    """Return the rule of the first sweeps of an ascent by a rule."""
    return rule if isinstance(rule, BetaRule | BetaBinomialRule) else jaakkola_jordan


def _fit_in_order(
    data: FitData,
    spec: Variational,
    rule: CellRule,
    learned: IntArray | None,  # (n_groups,): Which precision each group of items has, where these are learned
    progress: ProgressCallback,
) -> Fit:
    """Fit items that are in the order of their precisions."""
    is_single = _is_single(data, spec)
    if data.columns is not None:
        dtype: np.dtype[np.floating] = np.dtype(np.float32 if is_single else np.float64)
        uncopied = UncopiedBlocks(data.responses, data.columns, data.lower_asymptote, dtype)
        return _fit_some_first(data, uncopied, spec, rule, learned, progress=progress)
    blocks = make_blocks(data, single_precision=is_single)
    # little is saved where the subset would be most of the items
    if blocks.n_items > 1.5 * SUBSET_SIZE:
        return _fit_some_first(data, blocks, spec, rule, learned, progress=progress)
    rough, is_determined = from_nothing(blocks, data, spec, _rough(rule))
    ascent = _to_the_end(blocks, Reached(rough.end.posterior, rule), spec, learned, _stage(progress, "fit", 0.1, 1.0))
    history = [*rough.history, *ascent.history]
    return _finished(blocks, ascent, history, spec, learned, n_sweeps=len(history), is_determined=is_determined)


def _fit_some_first(
    data: FitData,
    blocks: ResponseBlocks,
    spec: Variational,
    rule: CellRule,
    learned: IntArray | None,  # As of `_fit_in_order`
    *,
    progress: ProgressCallback,
) -> Fit:
    """Fit some items, then all of them from the abilities found."""
    size = SUBSET_SIZE
    if data.columns is not None:
        # of very many models fewer items: the start holds their cells as several matrices of numbers
        size = min(max(12_000_000 // int(data.responses.shape[0]), 1000), size, data.columns.size)
    chosen = spread_over_difficulty(blocks.mean_values(), size)
    some = data.take_items(chosen)
    of_some: ResponseBlocks = blocks.take_items(chosen)
    if some.columns is not None:
        some = some.copied()
        of_some = make_blocks(some, single_precision=_is_single(data, spec))
    rough, is_determined = from_nothing(of_some, some, spec, _rough(rule))
    name = f"fit {of_some.n_items} items"
    start = Reached(rough.end.posterior, rule)
    first = _to_the_end(of_some, start, spec, learned, _stage(progress, name, 0.1, 0.5))
    del some, of_some  # room for the sweeps over all items
    posterior, rule = first.end
    start = Reached(all_items(blocks, posterior, data, _rough(rule)), rule)
    ascent = _to_the_end(blocks, start, spec, learned, _stage(progress, "fit all items", 0.5, 1.0))
    n_sweeps = len(rough.history) + len(first.history) + ITEM_ROUNDS + len(ascent.history)
    return _finished(blocks, ascent, ascent.history, spec, learned, n_sweeps=n_sweeps, is_determined=is_determined)


def _is_single(data: FitData, spec: Variational) -> bool:
    """Whether the passes are float32."""
    # Cells up to which passes are float64, unless asked otherwise: they cost little, and float32 sums are each
    # processor's own. The ascent magnifies an error in their seventh digit to the second digit of loadings that the
    # responses hardly determine.
    double_up_to = 1_000_000
    is_large = data.n_cells > double_up_to
    return is_large if isinstance(spec.single_precision, str) else spec.single_precision


def spread_over_difficulty(mean: FloatArray, size: int) -> IntArray:
    """Choose `size` items at equal steps along the order of their mean response (n_items,), in their own order."""
    order = np.argsort(mean, kind="stable")
    # items of every difficulty, so that weak and strong models are measured, too
    steps = np.linspace(0, mean.size - 1, size).astype(np.int64)
    return np.sort(order[steps]).astype(np.int64)


def all_items(blocks: ResponseBlocks, of_some: Posterior, data: FitData, rule: CellRule = jaakkola_jordan) -> Posterior:
    """Give a posterior of all items, each from nothing, given the abilities found from some of them."""
    posterior = start_posterior(
        of_some.ability_mean,
        of_some.ability_covariance,
        blocks.n_items,
        has_common_slope=of_some.has_common_slope,
        is_nested=of_some.is_nested,
        is_positive=of_some.is_positive,
        tasks=start_tasks(data.task_index, of_some.n_dims + 1),
    )
    for _ in range(ITEM_ROUNDS):
        statistics = item_statistics(blocks, posterior, rule)
        posterior = update_items(posterior, statistics, np.ones(posterior.n_items))
    return rescale(posterior)


def _to_the_end(
    blocks: ResponseBlocks, start: Reached, spec: Variational, learned: IntArray | None, progress: ProgressCallback
) -> Ascent[Reached]:
    return ascend(
        blocks,
        *start,
        tolerance=spec.tolerance,
        max_sweeps=spec.max_iterations,
        progress=progress,
        precision_of_group=learned,
    )


def _stage(progress: ProgressCallback, name: str, first: float, last: float) -> ProgressCallback:
    return lambda message, fraction: progress(f"{name} ({message})", first + fraction * (last - first))


def _finished(
    blocks: ResponseBlocks,
    ascent: Ascent[Reached],
    history: list[float],  # Of all ascents so far
    spec: Variational,
    learned: IntArray | None,
    *,
    n_sweeps: int,
    is_determined: bool,
) -> Fit:
    """Draw outlying probabilities in and go on from there, where precisions are learned; pack the result."""
    n_outlying = 0
    if isinstance(ascent.end.rule, BetaRule) and learned is not None and isinstance(blocks, Blocks):
        given = blocks  # each round draws in anew what was given
        # two rounds, but of many responses: outliers distort the precisions, which the first round corrects
        for _ in range(1 if blocks.n_cells > LARGE else 2):
            drawn, n_drawn = draw_in(given, ascent.end.posterior, ascent.end.rule)
            if n_drawn == n_outlying:
                break
            blocks, n_outlying = drawn, n_drawn
            ascent = _to_the_end(blocks, ascent.end, spec, learned, silent)
            history = ascent.history
    posterior, rule = ascent.end
    n_sweeps += len(history) if n_outlying else 0
    message = f"the bound rose by less than {spec.tolerance:g} of its size after {n_sweeps} sweeps"
    if not ascent.converged:
        message = (
            f"the bound still rose by more than {spec.tolerance:g} of its size after {n_sweeps} sweeps, or a parameter "
            "still moved by more than its standard error. Raise max_iterations, or accept a larger tolerance."
        )
    if n_outlying:
        message += (
            f"; {n_outlying} of {blocks.n_cells} responses lie further than {MOST_SDS:g} standard deviations from "
            "what the items expect and count as if at that distance"
        )
    message += note_of_least_slopes(posterior)
    if not is_determined:
        message += advice(n_dims=spec.n_dims, may_be_positive=True)
    axes = in_general_axes(posterior) if posterior.is_nested else posterior
    fit = Fit(
        *(axes.item_mean[:, :-1], axes.item_mean[:, -1], axes.item_covariance),
        *(axes.ability_mean, axes.ability_covariance),
        prior=AbilityPrior.standard(posterior.n_dims),
        converged=ascent.converged and is_determined,
        n_iterations=n_sweeps,
        message=message,
        history=np.asarray(history),
        **_precisions(blocks, posterior, rule, learned),
    )
    if not posterior.is_nested:
        return standardise(fit)
    sizes = np.sum(fit.loadings[:, 1:] ** 2, axis=0)
    return reordered(fit, np.append(0, 1 + np.argsort(-sizes, kind="stable")))


def _precisions(
    blocks: ResponseBlocks, posterior: Posterior, rule: CellRule, learned: IntArray | None
) -> dict[str, Any]:
    """Precision of each item, and the standard error of its logarithm where it was learned."""
    if not isinstance(rule, BetaRule | BetaBinomialRule) or not isinstance(blocks, Blocks) or blocks.group is None:
        return {}
    if learned is None:
        return {"precision": rule.precision[blocks.group]}
    # Cells of each precision gone through at the end: they determine it to sqrt(2 / cells), 3 parts in 10,000.
    last_cells = 20_000_000
    # for once with (nearly) all cells
    log_precision, _, _, error = learn(blocks, posterior, rule, learned, most_cells=last_cells)
    of_item = learned[blocks.group]
    return {"precision": np.exp(log_precision)[of_item], "log_precision_error": error[of_item]}
