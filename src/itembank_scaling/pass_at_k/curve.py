"""pass@k of one model on one scenario, on all items and on those kept, by every method."""

from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any, NamedTuple

import numpy as np

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank_scaling.pass_at_k.cell_posterior import (
    CellPosterior,
    Counts,
    cell_posterior,
    draw_pass_at_k,
    expected_failure,
    pass_at_k_of_rates,
)
from itembank_scaling.pass_at_k.kernels import KnownAbove, plug_in_pass_at_k, unbiased_pass_at_k
from itembank_scaling.pass_at_k.samples import SampledScenario, alike_items, plug_in_rates
from itembank_scaling.pass_at_k.specs import FEWEST_DRAWS, METHODS, PassAtKSpec
from itembank_scaling.pass_at_k.thin_tails import thin_tailed_draws


class PosteriorCurves(NamedTuple):
    """Means and interval ends (n_k,), and the chance that all of the largest k fail, (n_items,)."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    failure: FloatArray


def counted_curves(
    method: str,
    n_trials: IntArray,  # (n_items,)
    n_correct: IntArray,  # (n_items,)
    k: FloatArray,  # (n_k,)
    sets: BoolArray,  # (n_sets, n_items): The items of each set
) -> FloatArray:
    """Mean pass@k over sets of items by a method that takes each item by itself.

    Returns (n_sets, n_k): NaN for a set with an item without samples, and (unbiased) with fewer than k, and for an
    empty set.
    """
    n, c = n_trials[:, None].astype(np.float64), n_correct[:, None].astype(np.float64)
    kernel = resolve_name(METHODS[method])
    with np.errstate(invalid="ignore", divide="ignore"):
        return set_means(kernel(n, c, k), sets)


def true_curves(n_trials: IntArray, n_correct: IntArray, k: FloatArray, sets: BoolArray) -> FloatArray:
    """Return pass@k by all samples, as the mean over sets of items; shapes as `counted_curves`.

    The unbiased estimate of each item up to its samples; beyond, its pass rate plugged in, and NaN where items so
    treated still fail so often that the mean rests on a guess.
    """
    n, c = n_trials[:, None].astype(np.float64), n_correct[:, None].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = plug_in_pass_at_k(c / n, k)
    is_beyond = k > n
    guessed = set_means(np.where(is_beyond, 1.0 - beyond, 0.0), sets)
    means = set_means(np.where(is_beyond, beyond, unbiased_pass_at_k(n, c, k)), sets)
    # pass@k that the truth may leave to items sampled less than k times: a fifth of a point, which no figure shows
    most_guessed = 0.002
    with np.errstate(invalid="ignore"):
        return np.where(guessed <= most_guessed, means, np.nan)


def set_means(values: FloatArray, sets: BoolArray) -> FloatArray:
    """Mean of values (n_items, n_k) over the items of each set, (n_sets, n_k); NaN where one of them is NaN."""
    is_known = ~np.isnan(values)
    sums = sets.astype(np.float64) @ np.where(is_known, values, 0.0)
    n_unknown = sets.astype(np.int64) @ (~is_known).astype(np.int64)
    sizes = sets.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n_unknown > 0, np.nan, sums / sizes)


def posterior_curves(
    posterior: CellPosterior,
    k: FloatArray,  # (n_k,)
    *,
    level: float,  # Of the intervals: equal tails of draws of all pass rates
    n_draws: int,
    rng: np.random.Generator,
) -> PosteriorCurves:
    """Posterior mean of pass@k over all items in closed form, and intervals by draws."""
    failure = expected_failure(posterior, k)  # (n_items, n_k)
    equal = np.full(failure.shape[0], 1.0 / failure.shape[0])
    drawn = draw_pass_at_k(posterior, k, equal, n_draws=n_draws, rng=rng)
    return PosteriorCurves(1.0 - failure.mean(axis=0), *_interval(drawn, level), failure[:, int(np.argmax(k))])


def curves_above(
    posterior: CellPosterior, kept: KnownAbove, k: FloatArray, *, level: float, n_draws: int, rng: np.random.Generator
) -> PosteriorCurves:
    """As `posterior_curves`, given what is known of items that were not left out for low pass rates.

    With S the probability of what is known under the Beta of an item, ``E[(1 - p)^k]`` becomes that of (1 - p)^k where
    it holds, over S; draws of the posterior gain the product of S over items as a weight.
    """
    above = kept.share(posterior.alpha, posterior.beta)  # (n_draws, n_items)
    tiny = 1e-300  # the logarithm of a weight of zero is taken of this: it counts for nothing among the others
    # in logs: the product of S over thousands of items underflows
    log_weights = np.log(np.maximum(posterior.weights, tiny)) + np.log(np.maximum(above, tiny)).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    cut = _few_draws(replace(posterior, weights=weights / weights.sum()))
    above = kept.share(cut.alpha, cut.beta)
    failure = expected_failure(cut, k)
    negligible = 1e-7  # of a pass rate's posterior below the floor: a smaller share changes nothing
    # only items for which the condition is not certain anyway need the corrected moments and new draws
    at = np.flatnonzero(above.min(axis=0) < 1.0 - negligible)
    known, alpha, beta = kept.take(at), cut.alpha[:, at], cut.beta[:, at]
    for j, samples in enumerate(k):
        failure[at, j] = cut.weights @ known.failure(alpha, beta, samples, above[:, at])
    chosen = rng.choice(cut.weights.size, size=n_draws, p=cut.weights)
    rates = rng.beta(cut.alpha[chosen], cut.beta[chosen])
    rates[:, at] = known.redrawn(rates[:, at], alpha[chosen], beta[chosen], above[np.ix_(chosen, at)], rng)
    drawn = pass_at_k_of_rates(rates, k, np.full(failure.shape[0], 1.0 / failure.shape[0]))
    return PosteriorCurves(1.0 - failure.mean(axis=0), *_interval(drawn, level), failure[:, int(np.argmax(k))])


def _few_draws(posterior: CellPosterior) -> CellPosterior:
    """Replace a posterior by fewer draws of equal weight, evenly spread over its abilities: cut Betas are costly."""
    n_few = 64  # draws that stand for a cut posterior: each costs incomplete beta functions of every item and k
    if posterior.weights.size <= n_few:
        return posterior
    order = np.argsort(posterior.theta[:, 0], kind="stable")
    # the draws at the middles of equal parts of the weight, in order of ability (systematic resampling)
    middles = (np.arange(n_few) + 0.5) / n_few
    chosen = order[np.searchsorted(np.cumsum(posterior.weights[order]), middles).clip(max=order.size - 1)]
    return replace(
        posterior,
        alpha=posterior.alpha[chosen],
        beta=posterior.beta[chosen],
        weights=np.full(n_few, 1.0 / n_few),
        theta=posterior.theta[chosen],
        log_precision=posterior.log_precision[chosen],
    )


def _interval(drawn: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Equal-tailed interval of draws (n_draws, n_k), (n_k,) each."""
    low, high = np.quantile(drawn, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
    return low, high


N_SETS = 2
"""All items, and those whose pass rate is not too low."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One model on one scenario; the two sets of items are all of them and those that are kept."""

    row: int  # The model
    scenario: str
    columns: IntArray  # (n_curve_items,): Its items among all
    n_items: IntArray  # (n_sets,)
    values: FloatArray  # (n_methods, n_sets, n_k)
    low: FloatArray  # (n_sets, n_k)
    high: FloatArray  # (n_sets, n_k)
    truth: FloatArray  # (n_sets, n_k)
    # (n_sets, n_k): Share of items that a sample solved, or that have k samples or more
    within_reach: FloatArray
    failure: FloatArray  # (n_curve_items,): Posterior probability that all of the largest k samples fail
    ability: float
    ability_sd: float

    def at(self, places: BoolArray) -> "Curve":
        """Return the same at some of its k."""
        names = ("values", "low", "high", "truth", "within_reach")
        return replace(self, **{name: getattr(self, name)[..., places] for name in names})


def pass_at_k_curve(
    scenario: SampledScenario,
    row: int,
    k: FloatArray,
    spec: PassAtKSpec,
    rng: np.random.Generator,
    *,
    checked: float = np.inf,
) -> Curve:
    """Find pass@k of the model at `row` on the items that it has samples of, or on all of the scenario.

    Above the k that is `checked`, intervals are the hull of those by both shapes of pass rates (`thin_tails`).
    """
    columns = scenario.columns
    if not spec.include_unsampled:
        columns = columns[scenario.used.n_trials[row, columns] > 0]
    counts = Counts(scenario.used.n_trials[row, columns], scenario.used.n_correct[row, columns])
    all_counts = Counts(scenario.truth.n_trials[row, columns], scenario.truth.n_correct[row, columns])
    sets, kept = _item_sets(counts, all_counts, spec)
    values = np.full((len(spec.methods), N_SETS, k.size), np.nan)
    low, high = np.full((2, N_SETS, k.size), np.nan)
    failure, ability, ability_sd = np.full(columns.size, np.nan), np.nan, np.nan
    for m, method in enumerate(spec.methods):
        if method == "beta-binomial":
            values[m] = _alike_curves(counts, sets, kept, k=k, spec=spec, rng=rng)
        elif METHODS[method]:
            values[m] = counted_curves(method, counts.n_trials, counts.n_correct, k, sets)
    known = scenario.item_model
    if known is not None:
        parameters = known.parameters.take(np.searchsorted(known.columns, columns))
        posterior = cell_posterior(parameters, known.prior, known.precision, counts, rng=rng)
        theta = posterior.weights @ posterior.theta  # (n_dims,)
        plugged = set_means(plug_in_pass_at_k(plug_in_rates(parameters, theta)[:, None], k), sets)
        curves = _set_curves(posterior, sets, kept, k=k, spec=spec, rng=rng)
        problem = parameters, known.prior, counts
        hulls = _hulls(curves, problem, posterior, sets, kept, k=k, beyond=k > checked, spec=spec, rng=rng)
        for which, one in enumerate(hulls):
            low[which], high[which] = one.low, one.high
            for m, method in enumerate(spec.methods):
                values[m, which] = {"irsl": one.mean, "irsl-plug-in": plugged[which]}.get(method, values[m, which])
        failure, ability = curves[0].failure, float(theta[0])
        ability_sd = float(np.sqrt(posterior.weights @ (posterior.theta[:, 0] - theta[0]) ** 2))
    # within reach are items that samples solved, or that k is not beyond; unsampled ones as the others
    is_sampled = counts.n_trials > 0
    n_trials = np.where(is_sampled, counts.n_trials, np.median(counts.n_trials[is_sampled]))
    is_near = k <= n_trials[:, None]
    return Curve(
        row,
        scenario.name,
        columns,
        sets.sum(axis=1),
        values,
        low,
        high,
        true_curves(all_counts.n_trials, all_counts.n_correct, k, sets),
        set_means((is_near | (counts.n_correct > 0)[:, None]).astype(np.float64), sets),
        failure,
        ability,
        ability_sd,
    )


def _alike_curves(
    counts: Counts,
    sets: BoolArray,
    kept: KnownAbove | None,
    *,
    k: FloatArray,
    spec: PassAtKSpec,
    rng: np.random.Generator,
) -> FloatArray:
    """Pass rates as a sample of one Beta, (n_sets, n_k); none for items without samples."""
    values = np.full((N_SETS, k.size), np.nan)
    if np.all(counts.n_trials > 0):
        alike = alike_items(counts.n_trials.size)
        # one slope and one difficulty for all: the "ability" is the logit of the mean pass rate
        posterior = cell_posterior(alike.parameters, alike.prior, alike.precision, counts, rng=rng)
        few = replace(spec, n_draws=FEWEST_DRAWS)  # means need none
        for which, curve in enumerate(_set_curves(posterior, sets, kept, k=k, spec=few, rng=rng)):
            values[which] = curve.mean
    return values


def _set_curves(
    posterior: CellPosterior,
    sets: BoolArray,
    kept: KnownAbove | None,
    *,
    k: FloatArray,
    spec: PassAtKSpec,
    rng: np.random.Generator,
) -> list[PosteriorCurves]:
    """Curves over all items, and over the kept ones where there are any."""
    how: dict[str, Any] = {"level": spec.level, "n_draws": spec.n_draws, "rng": rng}
    curves = [posterior_curves(posterior, k, **how)]
    is_solvable = sets[1]
    if is_solvable.all() and kept is None:
        curves.append(curves[0])
    elif is_solvable.any():
        part = replace(posterior, alpha=posterior.alpha[:, is_solvable], beta=posterior.beta[:, is_solvable])
        curves.append(posterior_curves(part, k, **how) if kept is None else curves_above(part, kept, k, **how))
    return curves


def _hulls(
    curves: list[PosteriorCurves],  # Of all items, and of the kept ones where there are any
    problem: tuple[ItemParameters, AbilityPrior, Counts],
    posterior: CellPosterior,
    sets: BoolArray,
    kept: KnownAbove | None,
    *,
    k: FloatArray,
    beyond: BoolArray,  # (n_k,): Where both shapes of pass rates count
    spec: PassAtKSpec,
    rng: np.random.Generator,
) -> list[PosteriorCurves]:
    """Widen intervals to the hull of those by Betas and by rates that are normal on the logit (`thin_tails`)."""
    found: list[PosteriorCurves] = []
    for which, one in enumerate(curves if beyond.any() else []):
        if which and one is curves[0]:
            return [found[0], found[0]]
        about = problem, posterior, sets[which], kept if which else None, k[beyond]
        thin = _interval(thin_tailed_draws(*about, n_draws=spec.n_draws, rng=rng), spec.level)
        low, high = one.low.copy(), one.high.copy()
        low[beyond], high[beyond] = np.minimum(low[beyond], thin[0]), np.maximum(high[beyond], thin[1])
        found.append(one._replace(low=low, high=high))
    return found or curves


def _item_sets(used: Counts, every: Counts, spec: PassAtKSpec) -> tuple[BoolArray, KnownAbove | None]:
    """All items and the kept ones, (n_sets, n_items), and what is known of the latter beyond the samples used.

    Kept are those of at least the minimum pass rate in all samples, or without any.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        is_low = every.n_correct / every.n_trials < spec.minimum_pass_rate
    masks = np.stack([np.ones(is_low.size, dtype=bool), ~is_low])
    if spec.budget is None or spec.minimum_pass_rate == 0.0:
        return masks, None  # the posterior has seen all that tells who is kept
    needs_one = every.n_trials * spec.minimum_pass_rate <= 1.0
    unseen = np.where(used.n_correct > 0, 0, every.n_trials - used.n_trials)
    known = KnownAbove(spec.minimum_pass_rate, np.where(needs_one, unseen, np.nan))
    return masks, known.take(np.flatnonzero(masks[1]))
