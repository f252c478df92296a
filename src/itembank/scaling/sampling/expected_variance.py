"""Kernels: how much of pass@k's uncertainty further samples are expected to take away, and where they do so most.

With p of one item ~ Beta(a, b), m further samples give c right ones with the beta-binomial probability of (a, b), and
leave the variance of ``(1 - p)^k`` under Beta(a + c, b + m - c). Its expectation over c falls with m.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.gamma import log_beta
from itembank.numerics.ties import rounded
from itembank.scaling.sampling.pass_at_k import beta_failure_variance, log_beta_failure

_EVERY = 24
"""Counts that are summed one by one at either end; those between are summed by a trapezoid rule."""

_N_BETWEEN = 40
"""Nodes between, half of them from either end. The expected variance after 10,000 samples is then off by 0.3 % of the
largest item's; with half as many by 1.5 %, with twice both numbers by 0.06 %."""


class ExpectedVariances(NamedTuple):
    """What is left of an item's uncertainty after further samples, (n_steps, n_items) each."""

    within: FloatArray  # variance of ``(1 - p)^k`` given ability and precision
    between: FloatArray


def expected_variances(a: FloatArray, b: FloatArray, k: float, n_more: IntArray) -> ExpectedVariances:
    """Find the expected variance of ``(1 - p)^k`` after further samples of p ~ Beta(a, b).

    Parameters
    ----------
    a, b : (n_draws, n_items)
        Equally likely draws.
    k : float
    n_more : (n_steps,)
        Numbers of further samples.
    """
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


def best_purchases(variances: FloatArray, n_more: IntArray) -> tuple[IntArray, IntArray]:
    """Order purchases by the variance they take away a sample, the most first.

    A purchase takes one item from one step to a later one: to that which takes away most a sample from where it stands
    (the corners of the curve's lower convex hull). No other way of spending what a leading part of the list costs
    leaves less variance in all.

    Parameters
    ----------
    variances : (n_steps, n_items)
        Variance left in each item after `n_more` further samples, falling.
    n_more : (n_steps,)
        Rising from 0.

    Returns
    -------
    items, steps : (n_purchases,)
        Which item, and to which step.
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
