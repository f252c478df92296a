"""Factor by which intervals of pass@k must be wider than the item model says, from models with known samples.

Models are given fewer samples than they have, and the intervals found from these are compared with what all their
samples say. Best are models that nobody asks about, with many samples: they are given as few as those asked about.
Where there are none, models asked about are given a tenth of their samples, and item models that have not seen them;
what is widened is then the hull of two shapes of pass rates (`thin_tails`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit, logit

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank_scaling.pass_at_k.curve import N_SETS, Curve, pass_at_k_curve
from itembank_scaling.pass_at_k.samples import SampleCounts, SampledScenario, ScenarioItemModel, cut_down
from itembank_scaling.pass_at_k.specs import PassAtKSpec

FEWEST_TRIED = 5
"""Models on which intervals are tried; fewer than five are not enough for a quantile."""

REACH = 5
"""All samples give the truth precisely up to k of a fifth of them."""


@dataclass(frozen=True, slots=True)
class IntervalFactors:
    """By what factor intervals must be wider, on the logit of pass@k."""

    k: FloatArray  # (n_tried_k,): Rising
    factors: FloatArray  # (n_sets, n_tried_k): One at least; NaN for a set of items on which nothing tells
    n_models: int  # Models they rest on
    rest_on: Literal["others", "asked", "none"] = "others"  # The models that they come from

    @property
    def largest_k(self) -> float:
        """The largest k at which samples of other models show how wide intervals must be; 0 where none do."""
        return float(self.k[-1]) if self.rest_on == "others" else 0.0

    def at(self, k: FloatArray) -> FloatArray:
        """Factors at other k, (n_sets, n_k): straight lines in log k, level beyond; one where nothing tells."""
        lines = np.array([np.interp(np.log(k), np.log(self.k), factors) for factors in self.factors])
        return np.where(np.isnan(lines), 1.0, lines)


Refit: TypeAlias = Callable[[IntArray], ScenarioItemModel | None]
"""Fits the item model without the models at some rows; None where that cannot be done."""


def interval_factors(
    scenario: SampledScenario,
    known: SampleCounts,  # All samples of models that calibrated the items
    rows: IntArray,  # (n_candidates,): Those of them that may be tried
    *,
    budget: int,  # Samples of an item that they are given
    spec: PassAtKSpec,
    rng: np.random.Generator,
    refit: Refit | None = None,  # Fits item models that have not seen the models tried; the scenario's own by default
    reach: int = REACH,  # The largest k that is tried is the samples over this
) -> IntervalFactors | None:
    """Find by what factor intervals must be wider; None when too few models can tell."""
    n_draws = min(spec.n_draws, 400)  # behind each interval that is tried
    plain = replace(spec, methods=("irsl",), budget=budget, include_unsampled=False, n_draws=n_draws)
    found = _tried_curves(scenario, known, rows, spec=plain, rng=rng, refit=refit, reach=reach)
    if found is None:
        return None
    k, curves = found
    factors = np.stack([_factors(curves, which, spec.level) for which in range(N_SETS)])
    # the second set, without rarely solved items, may be empty; without the first nothing is known
    return None if np.isnan(factors[0]).any() else IntervalFactors(k, factors, len(curves))


def _tried_curves(
    scenario: SampledScenario,
    known: SampleCounts,
    rows: IntArray,
    *,
    spec: PassAtKSpec,
    rng: np.random.Generator,
    refit: Refit | None,
    reach: int,
) -> tuple[FloatArray, list[Curve]] | None:
    """Find pass@k (n_tried_k,) of models that are given few of their samples; None when there are too few of them."""
    budget = spec.budget or 1
    trials = known.n_trials[np.ix_(rows, scenario.columns)]
    fewest = np.where(trials > 0, trials, np.iinfo(np.int64).max).min(axis=1)
    # all samples of a model that is tried must be at least twice those it is given
    is_fit = (trials > 0).any(axis=1) & (fewest >= 2 * budget)
    fit = rows[is_fit]
    # at most 15,000 cells, but ten models where items are many. Of thirty factors the one asked for lies halfway
    # between the two largest, and one odd model decides; of sixty it is the third largest
    most_tried = min(max(15_000 // scenario.columns.size, 10), 60)
    tried = fit if fit.size <= most_tried else np.sort(rng.choice(fit, most_tried, replace=False))
    if tried.size < FEWEST_TRIED:
        return None
    usual = float(np.median(trials[is_fit]))  # where samples do not reach, the truth is left out
    # even steps in log k, as curves of pass@k are smooth there; factors in between are interpolated
    k = np.unique(np.geomspace(1.0, max(usual / reach, 2.0), 8).astype(np.int64)).astype(np.float64)
    as_asked = replace(scenario, truth=known, used=cut_down(known, tried, budget, rng, columns=scenario.columns))
    curves = [
        pass_at_k_curve(part_scenario, row, k, spec, rng)
        for part_scenario, part in ([(as_asked, tried)] if refit is None else _parts_without(as_asked, tried, refit))
        for row in part.tolist()
        if part_scenario.used.n_trials[row, part_scenario.columns].any()
    ]
    return (k, curves) if len(curves) >= FEWEST_TRIED else None


def _parts_without(
    scenario: SampledScenario, tried: IntArray, refit: Refit
) -> Iterator[tuple[SampledScenario, IntArray]]:
    """Give the models that are tried in parts, each with an item model that was fitted without them."""
    n_folds = 5  # parts of the models asked about that item models are fitted without
    for number in range(n_folds):
        part = tried[number::n_folds]
        item_model = refit(part)
        if item_model is not None:
            columns = np.intersect1d(scenario.columns, item_model.columns)
            yield replace(scenario, item_model=item_model, columns=columns), part


def factors_within(
    scenario: SampledScenario,  # As for `interval_factors`
    rows: IntArray,  # (n_candidates,): Of the models
    *,
    budget: int,  # Samples of an item that they have
    spec: PassAtKSpec,
    rng: np.random.Generator,
    refit: Refit | None,
) -> IntervalFactors:
    """Find the factors on the models asked about; none but one when too few of these can tell.

    They are given a tenth of their samples: all of them say what comes up to five times as far as these reach. What is
    found at so many times the samples given stands for as many times the samples there are.
    """
    given = max(budget // 10, 1)
    # as many more samples were hidden than given, they give the truth up to k of a half of them
    factors = interval_factors(scenario, scenario.used, rows, budget=given, spec=spec, rng=rng, refit=refit, reach=2)
    if factors is None:
        return IntervalFactors(np.ones(1), np.full((N_SETS, 1), np.nan), 0, "none")
    return replace(factors, k=factors.k * (budget / given), rest_on="asked")


def widened(
    curve: Curve,
    middle: FloatArray,  # (n_sets, n_k): Its estimates by IRSL, and the factors
    times: FloatArray,  # (n_sets, n_k)
) -> Curve:
    """Return a curve with intervals wider by a factor on the logit of pass@k."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (expit(logit(middle) + times * (logit(end) - logit(middle))) for end in (curve.low, curve.high))
    return replace(curve, low=np.where(np.isnan(low), curve.low, low), high=np.where(np.isnan(high), curve.high, high))


def lowered(
    curve: Curve,
    is_unchecked: BoolArray,  # (n_k,): Where no samples of other models show how wide intervals must be
) -> Curve:
    """Return a curve whose low ends count no item as solved that is out of its samples' reach, at unchecked k.

    Nor do they fall with k, as no pass@k does: near 1 a factor on the logit moves an end of the hull almost to 0.
    """
    low = np.where(is_unchecked, np.minimum(curve.low, curve.within_reach), curve.low)
    return replace(curve, low=np.maximum.accumulate(low, axis=1))


def share_within(n_models: int, level: float) -> float:
    """Share of the values of some models that a further model's value exceeds with probability ``1 - level``.

    Of n + 1 alike values the last is at most the r-th smallest of the others with probability ``r / (n + 1)``, so that
    ``r = (n + 1) level``: at position ``r - 1`` of ``n - 1`` as `numpy.quantile` counts (Weibull's plotting position).
    The quantile of n values at `level` itself would hold less often, at 95 % by 3 points for 30 models. With fewer
    models than ``level / (1 - level)`` it is the largest value.
    """
    return min(((n_models + 1) * level - 1.0) / (n_models - 1), 1.0)


def _factors(curves: list[Curve], which: int, level: float) -> FloatArray:
    """Quantile of how many half-widths the truth lies from the estimate, around each k, (n_k,); 1 at least."""
    middle = np.stack([curve.values[0, which] for curve in curves])  # (n_tried, n_k)
    low, high = np.stack([curve.low[which] for curve in curves]), np.stack([curve.high[which] for curve in curves])
    truth = np.stack([curve.truth[which] for curve in curves])
    edge = np.where(truth > middle, high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (logit(truth) - logit(middle)) / (logit(edge) - logit(middle))
    closest = 1e-5  # pass@k nearer to 0 or 1 than this takes no part in the factors: it says nothing about widths
    is_known = (middle > closest) & (middle < 1.0 - closest) & (truth > 0.0) & (truth < 1.0) & ~np.isnan(away)
    away = np.where(is_known, away, np.nan)  # where no sample of any item was right, nothing is known of a logit
    factors = np.full(middle.shape[1], np.nan)
    for j in range(factors.size):
        # pooled over three neighbours on either side, as neighbouring k have nearly the same factor, and the 95 %
        # quantile of five models is their largest
        near = away[:, max(j - 3, 0) : j + 3 + 1]
        n_known = int(np.sum(~np.isnan(near).all(axis=1)))
        if n_known >= FEWEST_TRIED:
            factors[j] = max(np.nanquantile(near, share_within(n_known, level)), 1.0)
    known = np.flatnonzero(~np.isnan(factors))
    return np.interp(np.arange(factors.size), known, factors[known]) if known.size else factors
