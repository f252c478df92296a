"""Draws of pass@k under another shape of pass rates: normal on the logit around the item model, rather than Beta.

Few samples tell nothing of tiny rates: under a Beta they follow a power law, under a normal on the logit they are rare.
The logit of a pass rate is ``eta sqrt(1 + c s^2) + s z`` with eta the logit of the item model's mean, z standard normal
and s the model's own spread; the root keeps the mean (c = (16 sqrt(3) / (15 pi))^2, the normal approximation of the
logistic). Integrals over z are sums over even steps of the logit, which converge faster than any power of the step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtr

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank_scaling.pass_at_k.cell_posterior import CellPosterior, Counts, draws_around, mean_rates
from itembank_scaling.pass_at_k.kernels import KnownAbove

SPREADS = np.array([0.4, 0.65, 1.0, 1.6, 2.5, 4.0])
"""Of the logits of a model's pass rates around the item model, all as likely beforehand."""
STRETCH = np.sqrt(1.0 + (16.0 * np.sqrt(3.0) / (15.0 * np.pi)) ** 2 * SPREADS**2)
"""Of the item model's logits, so that pass rates so spread keep its means."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Logits of pass rates at even steps over all that the samples of an item leave possible, (n_items, n_nodes)."""

    logits: FloatArray
    weights: FloatArray  # (n_items, n_nodes): Step times likelihood
    is_never: BoolArray  # (n_items,): Whether all rates below the nodes are as likely, as no sample was right
    is_always: BoolArray

    def blocks(self, items: IntArray, n_points: int) -> Iterator[tuple[IntArray, "_Nodes"]]:
        """Yield these items and their nodes in parts whose densities at so many points are of one block's size."""
        for rows in row_blocks(items.size, n_points * self.logits.shape[1]):
            some = items[rows]
            yield some, _Nodes(self.logits[some], self.weights[some], self.is_never[some], self.is_always[some])

    def densities(self, centre: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Joint weights (n_points, n_items, n_nodes) of rates and samples, and those below and above all nodes."""
        away = (self.logits - centre[:, :, None]) / spread[:, None, None]
        at = np.exp(-0.5 * away**2) * (self.weights / (np.sqrt(2.0 * np.pi) * spread[:, None, None]))
        half = 0.5 * (self.logits[:, 1] - self.logits[:, 0])
        below = np.where(self.is_never, ndtr((self.logits[:, 0] - half - centre) / spread[:, None]), 0.0)
        above = np.where(self.is_always, ndtr((centre - self.logits[:, -1] - half) / spread[:, None]), 0.0)
        return at, below, above


def _nodes(counts: Counts, known: KnownAbove | None, is_known: BoolArray) -> _Nodes:
    """Nodes for counts (n_items,), given what is known besides of the items where `is_known`."""
    n_nodes = 32
    n, c = (values.astype(np.float64) for values in counts)
    negligible = 1e-7  # of the likelihood of a rate; below exp(-12) / n all rates are alike
    far = np.log(np.maximum(n, 1.0)) + 12.0
    least, most = (_logit_of_share(a, b, negligible) for a, b in ((c, n - c), (n - c, c)))
    low, high = np.where(c > 0.0, least, -far), np.where(c < n, -most, far)
    x = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, n_nodes)
    log_rate, log_failure = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
    share = np.divide(c, n, out=np.full(n.size, 0.5), where=n > 0.0)[:, None]
    c, n = c[:, None], n[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.where(c > 0, c * np.log(share), 0.0) + np.where(c < n, (n - c) * np.log1p(-share), 0.0)
    likelihood = np.exp(c * log_rate + (n - c) * log_failure - largest)
    is_never = c[:, 0] == 0.0
    if known is not None:
        m = np.nan_to_num(known.n_unseen)[:, None]
        of_known = np.where(m > 0.0, -np.expm1(m * log_failure[is_known]), 1.0)
        of_known[np.isnan(known.n_unseen)] *= log_rate[is_known][np.isnan(known.n_unseen)] > np.log(known.floor)
        likelihood[is_known] *= of_known
        is_never[is_known] &= known.n_unseen == 0.0
    return _Nodes(x, likelihood * ((high - low) / (n_nodes - 1))[:, None], is_never, c[:, 0] == n[:, 0])


def _logit_of_share(a: FloatArray, b: FloatArray, share: float) -> FloatArray:
    """Logit below which a Beta(a, b) has so small a share; shapes of zero are raised to one half."""
    rate = betaincinv(np.maximum(a, 0.5), np.maximum(b, 0.5), share)
    result: FloatArray = np.log(rate) - np.log1p(-rate)
    return result


def thin_tailed_draws(
    problem: tuple[ItemParameters, AbilityPrior, Counts],
    posterior: CellPosterior,  # With Betas, of the same samples
    is_in: BoolArray,  # (n_items,): The items that pass@k is of
    known: KnownAbove | None,  # ... and what is known of them beyond the samples
    k: FloatArray,  # (n_k,)
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw pass@k from its posterior, (n_draws, n_k)."""
    n_abilities, n_chosen = 16, 128
    parameters, prior, counts = problem
    centre = posterior.weights @ posterior.theta
    away = posterior.theta - centre
    # one and a half times as wide as with Betas, as the ability may be another
    covariance = 2.25 * (away * posterior.weights[:, None]).T @ away
    theta, log_proposal = draws_around(centre, covariance, n_abilities, rng)
    distance = theta - prior.mean
    log_prior = -0.5 * np.sum(distance * np.linalg.solve(prior.covariance, distance.T).T, axis=1) - log_proposal
    mean, complement = mean_rates(parameters, theta)
    tiny = 1e-300  # of probabilities whose logarithm is taken
    logits = np.log(np.maximum(mean, tiny)) - np.log(np.maximum(complement, tiny))  # (n_abilities, n_items)
    nodes = _nodes(counts, known, is_in)
    logs = np.tile(log_prior, (SPREADS.size, 1))
    for items, part in nodes.blocks(np.arange(is_in.size), n_abilities):
        for place, spread in enumerate(SPREADS):
            at, below, above = part.densities(logits[:, items] * STRETCH[place], np.full(n_abilities, spread))
            logs[place] += np.log(np.maximum(at.sum(axis=2) + below + above, tiny)).sum(axis=1)
    weights = np.exp(logs - logs.max())
    # systematic resampling
    steps = (np.arange(n_chosen) + rng.random()) / n_chosen * weights.sum()
    of_spread, of_theta = np.unravel_index(np.searchsorted(np.cumsum(weights), steps), weights.shape)
    # mean and variance of the mean of (1 - p)^k over items
    means, variances = np.zeros((2, n_chosen, k.size))
    n_in = int(is_in.sum())
    for items, part in nodes.blocks(np.flatnonzero(is_in), n_chosen):
        centre = logits[np.ix_(of_theta, items)] * STRETCH[of_spread, None]
        at, below, above = part.densities(centre, SPREADS[of_spread])
        total = np.maximum(at.sum(axis=2) + below + above, tiny)
        failure = np.exp(-np.logaddexp(0.0, part.logits)[:, :, None] * k)  # (n_some, n_nodes, n_k)
        by_item, never = (at / total[:, :, None]).transpose(1, 0, 2), (below / total).T[:, :, None]
        first, second = by_item @ failure + never, by_item @ failure**2 + never  # (n_some, n_chosen, n_k)
        means += first.sum(axis=0) / n_in
        variances += (second - first**2).sum(axis=0) / n_in**2
    variances = np.maximum(variances, tiny)
    # the mean of many items, each drawn by itself, has nearly the Beta of its mean and variance
    precision = np.maximum(means * (1.0 - means) / variances - 1.0, 1e-3)
    rows = np.arange(n_draws) * n_chosen // n_draws  # evenly: chosen points are in the order of their spreads
    shapes = (np.maximum(part * precision, tiny)[rows] for part in (1.0 - means, means))
    result: FloatArray = rng.beta(*shapes)
    return result
