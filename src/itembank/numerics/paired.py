"""The difference of two models from answers to the same items, and the order in which items stand for all."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

PRIOR_ITEMS = 1000.0
"""What probabilities say of the accuracy difference is as sure as this many answers that are right or wrong.

Where the probabilities of both models are known, the difference of accuracies is predicted to be that of their means,
but for an unknown constant. Its prior has the precision of so many residuals. It was learnt on half of the built-in
language models, where it came out as 1,170 (`benchmarks/gates.py` has the others)."""
PRIOR_CHANGES = 10.0
"""What the baseline's answers tell of the changes is learnt as if so many more had changed, of which they tell nothing.

Among few changes it is chance: if the only one is at one of few items that the baseline had wrong, regression tells all
of it. Simulated candidates that were worse by the margin, and had right what the baseline had wrong, passed in up to
21 % of gates in stages without this where 5 % was asked for, and in 4 to 6 % with it (also with 8 or 12; baselines of
90 to 98 points)."""
CROWDED_CHANGES = 2.0
"""What changes tell of clusters is learnt as if so many more had changed, each with its whole cluster.

Few changes do not tell that they come one by one. Of simulated candidates with a drop in a tenth of 8, 20 and 50
clusters that were worse by the margin 36, 15 and 11 % passed without this where 5 % was asked for, and 0, 1 and 5 %
with it; of healthy ones on 50 clusters of ten 97 %."""
AGREEMENT = 0.005
"""How far a response may be from n_correct / n_trials: responses are often written with two decimals."""
DECIMALS = 6
"""Most decimals that a response was rounded to."""
SINGLE = 1e-7
"""How far numbers between 0 and 1 of single precision may be from what they were."""
ALIKE = 1e-12
"""Differences this near to each other are the same but for rounding."""


@dataclass(frozen=True, slots=True)
class PairedLook:
    """What the items that both models answered say of the difference, candidate less baseline."""

    difference: float
    variance: float  # Squared standard error; 0 where the difference is known exactly
    # Squared standard error of a mean of responses with variance one, times the size of a change: then the variance of
    # rare changes is that of right and wrong answers. 0 where their spread tells enough.
    unit: float
    degrees: float  # Of freedom of the variance
    flips: tuple[float, float] = (0.0, 0.0)  # Mean fall and mean rise of an item: of right and wrong the fractions
    is_exact: bool = False  # Whether all items are answered, and their difference is what is asked for
    ahead: Callable[[int], "PairedLook"] | None = field(default=None, repr=False, compare=False)
    """What so many items would say, were the shares of answers that change those of these items."""


class _Items(NamedTuple):
    """What items say of a difference, as parts of its variance that do not depend on their number."""

    n: int
    total: int
    n_groups: int
    n_columns: int  # Of the regression
    is_finite: bool
    value: float
    flips: tuple[float, float]
    residual: float  # Mean square of an item
    of_accuracy: float | None  # The same of what probabilities leave of it
    # Usual size of a change, mean square of a difference by clusters, and by items; None if spread tells enough
    of_one: tuple[float, float, float] | None
    crowd: float  # Items in the cluster of an item, on average
    chance: float | None

    def look(self, m: int) -> PairedLook:
        """With m items that change as these do; beyond all items there are so many of them."""
        of_all = max(self.total, m)
        per_item = max(1.0 / m - (1.0 / of_all if self.is_finite else 0.0), 0.0)
        groups = self.n_groups * m / self.n
        degrees = float(max(groups - self.n_columns, 1))
        variance = self.residual * groups / degrees * per_item
        if self.of_accuracy is not None:
            left = (1.0 - m / of_all) if self.is_finite else 1.0
            unseen = left / of_all if self.is_finite else 0.0
            variance += self.of_accuracy * groups / degrees * (left**2 / (m + PRIOR_ITEMS) + unseen)
        if self.chance is not None:
            variance += self.chance / of_all
            per_item += 1.0 / of_all
        unit = 0.0
        if self.of_one is not None:
            size, spread, by_items = self.of_one
            one, few_groups = size**2 / m, groups / degrees if by_items > 0.0 else 1.0
            plain = spread * few_groups * per_item
            prior = 0.0 if self.of_accuracy is not None else PRIOR_CHANGES * one * per_item
            told = min((variance + prior) / (plain + prior), 1.0) if plain > 0.0 else 1.0
            few = CROWDED_CHANGES * one
            together = few_groups * (spread + few * self.crowd) / (by_items + few)
            unit = size * per_item * told * max(together, 1.0)
        is_exact = self.is_finite and m == of_all and self.chance is None
        return PairedLook(self.value, variance, unit, degrees, self.flips, is_exact=is_exact)


def paired_look(
    baseline: FloatArray,  # (n_items,): Responses to all items of the benchmark
    candidate: FloatArray,  # (n_items,): NaN where there is none
    *,
    probabilities: FloatArray | None = None,  # (2, n_items): Of the right options: baseline, candidate
    clusters: IntArray | None = None,  # (n_items,): Items of a cluster are drawn together
    is_finite: bool = True,  # Whether the difference over just these items is asked for
    chance: float | None = None,  # Variance of one item's difference from run to run, where repeated runs are meant
) -> PairedLook:
    """Estimate the difference from a random sample of the items, and its variance over samples.

    With ``d_i`` the differences of the n answers to N items: the items without an answer are predicted by regression
    of d on the baseline's responses (and probabilities), which are known of all: ``D = (sum_S d_i + sum_U q_i) / N``,
    the regression estimator of survey sampling (Cochran 1977, ch. 7), with variance ``(1/n - 1/N) sum_S e_i^2 / (n -
    p)``, e the residuals. Clusters add up their residuals before these are squared.

    Where probabilities are known, ``d = g + r`` with g their difference. The mean of g is estimated as above. r, whose
    spread is that of right and wrong answers, has a mean near zero: over the unseen items it is predicted to be ``n /
    (n + PRIOR_ITEMS)`` of its mean over the seen ones, with variance ``s_r^2 (f^2 / (n + PRIOR_ITEMS) + f / N)``, ``f =
    1 - n / N``. So accuracy stays what is estimated, and with many items the answers alone decide.

    Changes of graded answers that are rare (of their usual size, at less than a quarter of the items) count as those of
    right and wrong ones do, whose variance is never taken for less than few of them can tell (`unit`).

    Over other items like these (`is_finite` false) ``1/N`` is zero and nothing is predicted: that is the paired t-test.
    Over repeated runs on the N items the variance has one part more, ``W / N``, W the part of chance in one difference.
    """
    asked = np.flatnonzero(~np.isnan(baseline))
    y, answers = baseline[asked], candidate[asked]
    seen: BoolArray = np.logical_not(np.isnan(answers))
    n, total = int(seen.sum()), asked.size
    p = None if probabilities is None else probabilities[:, asked]
    if p is not None and np.isnan(p[:, seen]).any():  # of some items there are none: right and wrong say all
        p = None
    is_sample = is_finite and n < total
    left = (1.0 - n / total) if is_finite else 1.0  # part of the items that is predicted
    columns: list[FloatArray] = [np.ones(total)]
    if is_sample:
        columns.append(y)
        if p is not None and not np.isnan(p[0]).any():
            columns.append(p[0])
    design = np.stack(columns, axis=1)
    x = design[seen]
    ahead = design[~seen].mean(axis=0) if is_sample else x.mean(axis=0)
    project = np.linalg.solve(x.T @ x + np.diag([0.0] + [1.0] * (len(columns) - 1)), x.T)
    group = np.arange(n) if clusters is None else np.unique(clusters[asked][seen], return_inverse=True)[1]
    n_groups = int(group.max()) + 1

    def square(residuals: FloatArray) -> float:
        """Mean square of an item, or what it would be had the sums of clusters come from single items."""
        sums = np.bincount(group, weights=residuals)
        return float(sums @ sums) / n

    d = answers[seen] - y[seen]
    if p is None:
        coefficients = project @ d
        predicted = float(ahead @ coefficients)
        of_g, of_r = square(d - x @ coefficients), None
    else:
        g = p[1][seen] - p[0][seen]
        r = d - g
        by_g, by_r = project @ g, project @ r
        predicted = float(ahead @ (by_g + n / (n + PRIOR_ITEMS) * by_r))
        of_g, of_r = square(g - x @ by_g), square(r - x @ by_r)
    value = (1.0 - left) * float(d.mean()) + left * predicted
    changed = (float(np.mean(np.maximum(-d, 0.0))), float(np.mean(np.maximum(d, 0.0))))
    of_one, change = None, float(np.abs(d).sum())
    is_plain = np.isin(answers[seen], (0.0, 1.0)).all() and np.isin(y[seen], (0.0, 1.0)).all()
    if np.ptp(d) <= ALIKE or (n_groups == 1 and chance is None):  # nothing tells of a spread
        of_one = 1.0, 0.0, 0.0
    elif is_plain or (chance is None and 4.0 * change**2 < n * float(d @ d)):
        one = 1.0 / np.sum(np.abs(d) > ALIKE)  # few small changes do not tell that there are no large ones
        size = (float(d @ d) + one) / (change + one)
        of_one = size, square(d - d.mean()), float(np.mean((d - d.mean()) ** 2))
    crowd = float(np.mean(np.bincount(group)[group]))
    items = _Items(n, total, n_groups, len(columns), is_finite, value, changed, of_g, of_r, of_one, crowd, chance)
    return replace(items.look(n), ahead=items.look)


def is_count(responses: FloatArray, n_trials: FloatArray | IntArray) -> BoolArray:
    """Whether responses, rounded to two decimals at most, are shares of right attempts among so many, of any one shape.

    A response may be off by half of its last decimal, and one with more than `DECIMALS` by nothing: two decimals are a
    share of 100 attempts or more, whatever they are. Means of graded attempts are none: ``y (1 - y)`` is only the most
    that their attempts can vary.
    """
    right = responses * n_trials
    off = np.abs(right - np.rint(right)) / np.maximum(n_trials, 1)
    result: BoolArray = off <= np.where(np.asarray(n_trials) > 1, 2.0 * SINGLE, 1e-3)
    near = ~result & (np.asarray(n_trials) > 1) & (off <= 0.5e-2 + SINGLE)  # of what is neither, decimals say nothing
    if near.any():
        values, off, is_near = responses[near], off[near], np.zeros(int(near.sum()), dtype=bool)
        for decimals in range(2, DECIMALS + 1):
            scaled = values * 10.0**decimals
            is_rounded = np.abs(scaled - np.rint(scaled)) <= SINGLE * 10.0**decimals
            is_near |= is_rounded & (off <= 0.5 / 10.0**decimals + SINGLE)
        result[near] = is_near
    return result


def run_chance(
    responses: FloatArray,  # (2, n_items): Of two models, NaN where there is none
    n_trials: IntArray,  # (2, n_items): Attempts behind each
) -> float | None:
    """Variance of the difference at one item from run to run, on average; None without repeated attempts, or of graded.

    Of k attempts at an item of which a fraction p is right the mean has the variance ``p (1 - p) / (k - 1)``. One
    attempt varies as the other model's do, where that made several at the item; else as those at other items.
    """
    seen = ~np.isnan(responses).any(axis=0)
    values, k = responses[:, seen], n_trials[:, seen].astype(np.float64)
    single = np.where(k > 1.0, values * (1.0 - values) * k / np.maximum(k - 1.0, 1.0), np.nan)
    single = np.where(np.isnan(single), single[::-1], single)
    if np.isnan(single).all() or not is_count(values, k)[k > 1.0].all():
        return None
    single = np.where(np.isnan(single), np.nanmean(single, axis=1, keepdims=True), single)
    return float(np.mean((single / np.maximum(k, 1.0)).sum(axis=0)))


def flips(baseline: FloatArray, candidate: FloatArray) -> tuple[int, int]:
    """Items that turned from right to wrong, and from wrong to right; of other responses, that fell and rose."""
    with np.errstate(invalid="ignore"):
        return int((candidate < baseline).sum()), int((candidate > baseline).sum())


def balanced_order(
    scenarios: IntArray,  # (n_items,)
    known: FloatArray,  # (n_items,): What is known of each item: the baseline's response, or its probability
    rng: np.random.Generator,
    clusters: IntArray | None = None,  # (n_items,): Items of a cluster stay together
) -> IntArray:
    """Order items by chance so that every beginning of the list stands for all of them, (n_items,).

    Items are sorted by scenario and by what is known of them, and taken in the order of a van der Corput sequence with
    nested uniform scrambling (Owen 1995): of any half, quarter, ... of the sorted list each beginning holds its part to
    within one, and every item is equally likely to come first.
    """
    units = np.arange(scenarios.size) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(units)
    first = np.zeros(sizes.size, dtype=np.int64)
    first[units] = np.arange(units.size)
    mean = np.bincount(units, weights=known) / sizes
    n_units, n_bits = sizes.size, max(int(sizes.size - 1).bit_length(), 1)
    # ties by chance
    ranks = np.argsort(np.lexsort((rng.random(n_units), mean, scenarios[first])), kind="stable")
    places = (ranks * 2**n_bits) // n_units
    keys = np.zeros(n_units, dtype=np.int64)
    for level in range(n_bits):
        bit = (places >> (n_bits - 1 - level)) & 1
        swapped = rng.integers(2, size=2**level)[places >> (n_bits - level)]
        keys |= (bit ^ swapped) << level
    return np.lexsort((units, keys[units])).astype(np.int64)
