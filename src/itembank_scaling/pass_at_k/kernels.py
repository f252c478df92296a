"""Kernels of pass@k: the probability that at least one of k samples is right.

Every one of them is one minus a probability that all k fail. The logarithms of these are public too: where pass@k is
near one, its complement keeps no digits.

`KnownAbove` is of items that were not left out for being solved too rarely. Items are left out by all their samples, of
which an estimate may have seen few. Where these samples are many, the item has a pass rate above the limit. Where they
are so few that a single right one is above the limit, one of those not seen was right, if none of the others was.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincc, betainccinv

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, Numbers
from itembank.numerics.gamma import log_gamma_second_difference


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
    return -np.expm1(log_unbiased_failure(n_trials, n_correct, k))


def log_unbiased_failure(n_trials: Numbers, n_correct: Numbers, k: Numbers) -> FloatArray:
    """Log of ``C(n - c, k) / C(n, k)``: minus infinity where n - c < k, NaN where k > n."""
    n, c, k = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in (n_trials, n_correct, k)))
    n_beyond = n - c - k
    result = log_gamma_second_difference(np.maximum(n_beyond, 0.0) + 1.0, c, k)
    result = np.where(n_beyond < 0.0, -np.inf, result)
    return np.where(k > n, np.nan, result)


def plug_in_pass_at_k(rate: Numbers, k: Numbers) -> FloatArray:
    """``1 - (1 - p)^k``, the pass@k of a known pass rate p (IRSL eq. 2); arrays that broadcast."""
    return -np.expm1(log_plug_in_failure(rate, k))


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
    return -np.expm1(log_beta_failure(a, b, k))


def log_beta_failure(a: Numbers, b: Numbers, k: Numbers) -> FloatArray:
    """Log of the mean of ``(1 - p)^k`` over p ~ Beta(a, b): ``log B(a, b + k) - log B(a, b)``."""
    return log_gamma_second_difference(b, a, k)


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
        a, b, m = a[at], b[at], m[at]
        # which of m samples is the first right one, given that one is: it is among j with (1 - E[(1-p)^j]) / S. The
        # inverse of this distribution at a uniform number, by bisection: exact also where S is tiny
        quantile = share[at] * rng.random(a.size)
        low, high = np.zeros_like(m), m  # the first right one comes after `low` and not after `high`
        for _ in range(int(m.max(initial=0.0)).bit_length()):
            middle = np.floor((low + high) / 2.0)
            is_among = -np.expm1(log_beta_failure(a, b, middle)) > quantile
            low, high = np.where(is_among, low, middle), np.where(is_among, middle, high)
        # j - 1 wrong samples and then a right one leave Beta(a + 1, b + j - 1)
        result[at] = rng.beta(a + 1.0, b + high - 1.0)
        return result
