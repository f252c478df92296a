"""How much wider intervals of pass@k must be than the item model says, seen on models whose samples are known.

Models that calibrate the items are given as few samples as those asked about, and the intervals found from these are
compared with what all their samples say.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.sampling.pass_at_k_curve import N_SETS, Curve, pass_at_k_curve
from itembank.scaling.sampling.pass_at_k_specs import PassAtKSpec
from itembank.scaling.sampling.sample_counts import SampleCounts, cut_down
from itembank.scaling.sampling.sampled_scenarios import SampledScenario

MOST_TRIED = 30
FEWEST_TRIED = 5
"""Models on which intervals are tried; fewer than five say too little."""

TIMES_AS_MANY = 2
"""All samples of a model that is tried must be at least so many times those it is given."""

MOST_CELLS = 15_000
FEWEST_OF_MANY_ITEMS = 10
"""Models times items that are tried, but ten models where items are many."""

N_K = 8
REACH = 3
"""Numbers of samples that are tried, and neighbours on either side that a factor is pooled over."""

N_DRAWS = 400
"""Behind each interval that is tried."""

CLOSEST = 1e-5
"""pass@k nearer to 0 or 1 than this says nothing of widths."""


@dataclass(frozen=True, slots=True)
class IntervalFactors:
    """By what factor intervals must be wider, on the logit of pass@k.

    Attributes
    ----------
    k : (n_tried_k,)
        Rising.
    factors : (n_sets, n_tried_k)
        One at least; NaN for a set of items on which nothing tells.
    n_models : int
        Models they rest on.
    """

    k: FloatArray
    factors: FloatArray
    n_models: int

    def at(self, k: FloatArray) -> FloatArray:
        """Factors at other k, (n_sets, n_k): straight lines in log k, level beyond; one where nothing tells."""
        lines = [np.interp(np.log(k), np.log(self.k), one) for one in self.factors]
        return np.where(np.isnan(lines), 1.0, lines)


def interval_factors(
    scenario: SampledScenario,
    known: SampleCounts,
    rows: IntArray,
    *,
    budget: int,
    spec: PassAtKSpec,
    rng: np.random.Generator,
) -> IntervalFactors | None:
    """Find by what factor intervals must be wider; None when too few models can tell.

    Parameters
    ----------
    scenario : SampledScenario
    known : SampleCounts
        All samples of models that calibrated the items.
    rows : (n_candidates,)
        Those of them that may be tried.
    budget : int
        Samples of an item that the models asked about have.
    """
    trials = known.n_trials[np.ix_(rows, scenario.columns)]
    fewest = np.where(trials > 0, trials, np.iinfo(np.int64).max).min(axis=1)
    is_fit = (trials > 0).any(axis=1) & (fewest >= TIMES_AS_MANY * budget)
    fit = rows[is_fit]
    most_tried = min(max(MOST_CELLS // scenario.columns.size, FEWEST_OF_MANY_ITEMS), MOST_TRIED)
    tried = fit if fit.size <= most_tried else np.sort(rng.choice(fit, most_tried, replace=False))
    if tried.size < FEWEST_TRIED:
        return None
    most = float(np.median(trials[is_fit]))  # where samples do not reach, the truth is left out
    k = np.unique(np.geomspace(1.0, max(most / 5.0, 2.0), N_K).astype(np.int64)).astype(np.float64)
    as_asked = replace(scenario, truth=known, used=cut_down(known, tried, budget, rng))
    n_draws = min(spec.n_draws, N_DRAWS)
    plain = replace(spec, methods=("irsl",), budget=budget, include_unsampled=False, n_draws=n_draws)
    curves = [pass_at_k_curve(as_asked, row, k, plain, rng) for row in tried.tolist()]
    factors = np.stack([_factors(curves, which, spec.level) for which in range(N_SETS)])
    return None if np.isnan(factors[0]).any() else IntervalFactors(k, factors, int(tried.size))


def widened(curve: Curve, middle: FloatArray, times: FloatArray) -> Curve:
    """Return a curve with intervals wider by a factor on the logit of pass@k.

    Parameters
    ----------
    curve : Curve
    middle, times : (n_sets, n_k)
        Its estimates by IRSL, and the factors.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (expit(logit(middle) + times * (logit(end) - logit(middle))) for end in (curve.low, curve.high))
    return replace(
        curve,
        low=np.where(np.isnan(low), curve.low, low),
        high=np.where(np.isnan(high), curve.high, high),
    )


def _factors(curves: list[Curve], which: int, level: float) -> FloatArray:
    """Quantile of how many half-widths the truth lies from the estimate, around each k, (n_k,); 1 at least."""
    middle = np.stack([one.values[0, which] for one in curves])  # (n_tried, n_k)
    low, high = np.stack([one.low[which] for one in curves]), np.stack([one.high[which] for one in curves])
    truth = np.stack([one.truth[which] for one in curves])
    edge = np.where(truth > middle, high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (logit(truth) - logit(middle)) / (logit(edge) - logit(middle))
    is_told = (middle > CLOSEST) & (middle < 1.0 - CLOSEST) & (truth > 0.0) & (truth < 1.0) & ~np.isnan(away)
    away = np.where(is_told, away, np.nan)  # where no sample of any item was right, nothing is known of a logit
    found = np.full(middle.shape[1], np.nan)
    for j in range(found.size):
        near = away[:, max(j - REACH, 0) : j + REACH + 1]
        if np.sum(~np.isnan(near).all(axis=1)) >= FEWEST_TRIED:
            found[j] = max(np.nanquantile(near, level), 1.0)
    known = np.flatnonzero(~np.isnan(found))
    return np.interp(np.arange(found.size), known, found[known]) if known.size else found
