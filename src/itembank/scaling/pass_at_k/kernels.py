"""Kernels of pass@k: the probability that at least one of k samples is right.

Every one of them is one minus a probability that all k fail. The logarithms of these are public too: where pass@k is
near one, its complement keeps no digits.

`KnownAbove` is of items that were not left out for being solved too rarely. Items are left out by all their samples, of
which an estimate may have seen few. Where these samples are many, the item has a pass rate above the limit. Where they
are so few that a single right one is above the limit, one of those not seen was right, if none of the others was.

With p of one item ~ Beta(a, b), m further samples give c right ones with the beta-binomial probability of (a, b), and
leave the variance of ``(1 - p)^k`` under Beta(a + c, b + m - c). Its expectation over c falls with m.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincc, betainccinv, gammaln

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, Numbers
from itembank.numerics.gamma import log_beta, log_gamma_second_difference
from itembank.numerics.ties import rounded


def unbiased_pass_at_k(n_trials: Numbers, n_correct: Numbers, k: Numbers) -> FloatArray:
    """Unbiased estimate ``1 - C(n - c, k) / C(n, k)`` from c right of n samples; NaN where k > n.

    Parameters
    ----------
    n_trials, n_correct, k : arrays that broadcast
        Whole numbers; typically (n_items, 1), (n_items, 1) and (n_k,).

    Returns
    -------
    array of the broadcast shape

    Notes
    -----
    Chen et al. 2021 (arXiv 2107.03374), eq. 1, whose product over n - c + 1 .. n takes one step a sample. Here the
    four log-gammas are one second difference (`log_gamma_second_difference`), at the same cost for any n.
    """
    result: FloatArray = -np.expm1(log_unbiased_failure(n_trials, n_correct, k))
    return result


def log_unbiased_failure(n_trials: Numbers, n_correct: Numbers, k: Numbers) -> FloatArray:
    """Log of ``C(n - c, k) / C(n, k)``: minus infinity where n - c < k, NaN where k > n."""
    n, c, k = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in (n_trials, n_correct, k)))
    n_beyond = n - c - k
    result = log_gamma_second_difference(np.maximum(n_beyond, 0.0) + 1.0, c, k)
    result = np.where(n_beyond < 0.0, -np.inf, result)
    return np.where(k > n, np.nan, result)


def plug_in_pass_at_k(rate: Numbers, k: Numbers) -> FloatArray:
    """``1 - (1 - p)^k``, the pass@k of a known pass rate p (IRSL eq. 2); arrays that broadcast."""
    result: FloatArray = -np.expm1(log_plug_in_failure(rate, k))
    return result


def log_plug_in_failure(rate: Numbers, k: Numbers) -> FloatArray:
    """``k log(1 - p)``; minus infinity at p = 1."""
    with np.errstate(divide="ignore"):
        result: FloatArray = np.asarray(k) * np.log1p(-np.asarray(rate, dtype=np.float64))
    return result


def plug_in_pass_at_k_of_counts(n_trials: Numbers, n_correct: Numbers, k: Numbers) -> FloatArray:
    """`plug_in_pass_at_k` of the observed rate ``c / n``; NaN without samples."""
    return plug_in_pass_at_k(np.asarray(n_correct) / np.asarray(n_trials), k)


def jeffreys_pass_at_k(n_trials: Numbers, n_correct: Numbers, k: Numbers) -> FloatArray:
    """`plug_in_pass_at_k` of ``(c + 1/2) / (n + 1)``, the posterior mean under Jeffreys' prior, never 0 or 1."""
    n_trials = np.asarray(n_trials)
    rate = (np.asarray(n_correct) + 0.5) / (n_trials + 1.0)
    return plug_in_pass_at_k(np.where(n_trials > 0.0, rate, np.nan), k)


def beta_pass_at_k(a: Numbers, b: Numbers, k: Numbers) -> FloatArray:
    """Mean of ``1 - (1 - p)^k`` over p ~ Beta(a, b): ``1 - B(a, b + k) / B(a, b)``; arrays that broadcast, a, b > 0."""
    result: FloatArray = -np.expm1(log_beta_failure(a, b, k))
    return result


def log_beta_failure(a: Numbers, b: Numbers, k: Numbers) -> FloatArray:
    """Log of the mean of ``(1 - p)^k`` over p ~ Beta(a, b): ``log B(a, b + k) - log B(a, b)``."""
    return log_gamma_second_difference(b, a, k)


def beta_failure_variance(a: Numbers, b: Numbers, k: Numbers) -> FloatArray:
    """Variance of ``(1 - p)^k`` over p ~ Beta(a, b); arrays that broadcast.

    ``E[(1-p)^2k] - E[(1-p)^k]^2 = -E[(1-p)^2k] (e^g - 1)`` with ``g = 2 log E[(1-p)^k] - log E[(1-p)^2k] <= 0``.
    """
    once, twice = log_beta_failure(a, b, k), log_beta_failure(a, b, 2.0 * np.asarray(k, dtype=np.float64))
    result: FloatArray = -np.exp(twice) * np.expm1(np.minimum(2.0 * once - twice, 0.0))
    return result


_TINY = 1e-300
"""Smaller probabilities are zero to rounding: nothing is divided by them."""


@dataclass(frozen=True, slots=True)
class KnownAbove:
    """What is known of n_items items, for pass rates of Beta(a, b), arrays (n_draws, n_items)."""

    floor: float  # Pass rates lie above it
    # (n_items,): ... or, where this is not NaN, at least one of so many further samples was right; 0 where nothing is
    # known.
    n_unseen: FloatArray

    @property
    def _is_rate(self) -> BoolArray:
        """Where the pass rate is known to lie above the floor, (n_items,)."""
        return np.isnan(self.n_unseen)

    def take(self, indices: IntArray) -> "KnownAbove":
        """Return what is known of the items at `indices`."""
        return KnownAbove(self.floor, self.n_unseen[indices])

    def share(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Probability of what is known, S: of p above the floor, or ``1 - E[(1 - p)^m]``; 1 for nothing."""
        result = np.ones_like(a)
        rate, unseen = self._is_rate, np.nan_to_num(self.n_unseen) > 0.0
        result[:, rate] = betaincc(a[:, rate], b[:, rate], self.floor)
        result[:, unseen] = -np.expm1(log_beta_failure(a[:, unseen], b[:, unseen], self.n_unseen[unseen]))
        return result

    def failure(self, a: FloatArray, b: FloatArray, k: float, share: FloatArray) -> FloatArray:
        """Mean of ``(1 - p)^k`` given what is known: over a cut Beta, or ``E[(1-p)^k - (1-p)^(k+m)] / S``."""
        part = np.exp(log_beta_failure(a, b, k))
        rate, unseen = self._is_rate, np.nan_to_num(self.n_unseen) > 0.0
        part[:, rate] *= betaincc(a[:, rate], b[:, rate] + k, self.floor)
        part[:, unseen] -= np.exp(log_beta_failure(a[:, unseen], b[:, unseen], k + self.n_unseen[unseen]))
        # where S is zero to rounding, the rates above the floor lie at the floor
        least = np.broadcast_to(np.exp(log_plug_in_failure(self.floor, k)), part.shape).copy()
        result: FloatArray = np.divide(part, share, out=least, where=share > _TINY)
        return result

    def redrawn(
        self, rates: FloatArray, a: FloatArray, b: FloatArray, share: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw again those of the rates that contradict what is known."""
        result = rates.copy()
        below = self._is_rate & (rates < self.floor)
        # inverse of the survival function at a uniform fraction of S: a draw of the Beta cut at the floor
        quantile = share[below] * rng.random(int(below.sum()))
        above = np.maximum(betainccinv(a[below], b[below], quantile), self.floor)
        result[below] = np.where(share[below] > _TINY, above, self.floor)
        m = np.broadcast_to(np.nan_to_num(self.n_unseen), rates.shape)
        at = np.nonzero(m > 0.0)
        # a rate at which one of the m samples is right, drawn along with it, stays as it is
        fails = rng.random(at[0].size) < np.exp(log_plug_in_failure(rates[at], m[at]))
        at = tuple(indices[fails] for indices in at)
        # j - 1 wrong samples and then a right one leave Beta(a + 1, b + j - 1)
        result[at] = rng.beta(a[at] + 1.0, b[at] + _first_right(a[at], b[at], m[at], share[at], rng) - 1.0)
        return result


def _first_right(
    a: FloatArray, b: FloatArray, m: FloatArray, share: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw which of m samples is the first right one, given that one is: it is among j with ``(1 - E[(1-p)^j]) / S``.

    The inverse of this distribution at a uniform number, by bisection: exact also where S is tiny.
    """
    quantile = share * rng.random(a.size)
    low, high = np.zeros_like(m), m  # the first right one comes after `low` and not after `high`
    for _ in range(int(m.max(initial=0.0)).bit_length()):
        middle = np.floor((low + high) / 2.0)
        is_among = -np.expm1(log_beta_failure(a, b, middle)) > quantile
        low, high = np.where(is_among, low, middle), np.where(is_among, middle, high)
    return high


_EVERY = 24
"""Counts that are summed one by one at either end; those between are summed by a trapezoid rule."""

_N_BETWEEN = 40
"""Nodes between, half of them from either end. The expected variance after 10,000 samples is then off by 0.3 % of the
largest item's; with half as many by 1.5 %, with twice both numbers by 0.06 %."""


class ExpectedVariances(NamedTuple):
    """What is left of an item's uncertainty after further samples, (n_steps, n_items) each."""

    within: FloatArray  # variance of ``(1 - p)^k`` given ability and precision
    between: FloatArray


def expected_variances(
    a: FloatArray,  # (n_draws, n_items): Equally likely draws
    b: FloatArray,  # (n_draws, n_items)
    k: float,
    n_more: IntArray,  # (n_steps,): Numbers of further samples
) -> ExpectedVariances:
    """Find the expected variance of ``(1 - p)^k`` after further samples of p ~ Beta(a, b)."""
    both = np.stack([_expected_variance(a, b, k, int(m)) for m in n_more])  # (n_steps, 2, n_items)
    return ExpectedVariances(both[:, 0], both[:, 1])


def _expected_variance(a: FloatArray, b: FloatArray, k: float, m: int) -> FloatArray:
    """Sum over the counts of m samples, (2, n_items)."""
    counts, weights = count_nodes(m)
    c = counts[:, None, None]  # (n_counts, n_draws, n_items)
    log_ways = gammaln(m + 1.0) - gammaln(counts + 1.0) - gammaln(m - counts + 1.0)
    probability = np.exp(log_ways[:, None, None] + log_beta(a + c, b + m - c) - log_beta(a, b))
    probability *= weights[:, None, None]
    # the trapezoid weights make the sum one only approximately
    probability /= probability.sum(axis=0)
    left = beta_failure_variance(a + c, b + m - c, k)
    within = np.sum(probability * left, axis=0).mean(axis=0)
    means = np.exp(log_beta_failure(a + c, b + m - c, k))
    # variance of the mean over draws, for each count, weighted by the probability of the count over all draws
    between = np.sum(probability.mean(axis=1) * means.var(axis=1), axis=0)
    return np.stack([within, between])


def count_nodes(m: int) -> tuple[FloatArray, FloatArray]:
    """Return counts from 0 to m, with the weights that sum a function of them linearly between neighbours.

    All of them when they are few; else those near 0 and near m, where one more right sample says most, and ever wider
    steps between.
    """
    if m <= 2 * _EVERY + _N_BETWEEN:
        return np.arange(m + 1.0), np.ones(m + 1)
    # symmetric about m / 2: close nodes at both ends, a geometric progression towards the middle
    steps = np.geomspace(_EVERY, m / 2.0, _N_BETWEEN // 2).round()
    low = np.unique(np.concatenate([np.arange(_EVERY), steps]))
    counts = np.unique(np.concatenate([low, m - low]))
    gaps = np.diff(counts)
    weights = np.zeros(counts.size)
    weights[:-1] += 0.5 * gaps
    weights[1:] += 0.5 * gaps
    # the trapezoid rule integrates; a sum over integers has half a term more at either end
    weights[[0, -1]] += 0.5
    return counts, weights


def best_purchases(
    variances: FloatArray,  # (n_steps, n_items): Variance left in each item after `n_more` further samples, falling
    n_more: IntArray,  # (n_steps,): Rising from 0
) -> tuple[IntArray, IntArray]:
    """Order purchases by the variance they take away a sample, the most first.

    A purchase takes one item from one step to a later one: to that which takes away most a sample from where it stands
    (the corners of the curve's lower convex hull). No other way of spending what a leading part of the list costs
    leaves less variance in all.

    Returns items, steps : (n_purchases,): Which item, and to which step.
    """
    rise = np.subtract.outer(n_more, n_more).T.astype(np.float64)  # (from, to)
    drop = variances[:, None, :] - variances[None, :, :]  # (from, to, n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(rise[:, :, None] > 0.0, drop / rise[:, :, None], -np.inf)
    target = rate.argmax(axis=1)  # (n_steps, n_items)
    last = n_more.size - 1
    step = np.zeros(variances.shape[1], dtype=np.int64)
    items, steps, rates = [], [], []
    for _ in range(last):
        moving = np.flatnonzero(step < last)
        after = target[step[moving], moving]
        items.append(moving)
        steps.append(after)
        rates.append(rate[step[moving], after, moving])
        step[moving] = after
    order = np.argsort(-rounded(np.concatenate(rates)), kind="stable")
    return np.concatenate(items)[order], np.concatenate(steps)[order]
