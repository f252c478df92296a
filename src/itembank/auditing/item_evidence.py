"""What the answers say for and against each item's key: kernels on arrays.

Every item has a logistic curve in ability, ``P = 1 / (1 + exp(-(a theta + b)))``, whose slope may be negative. The
curves of all items are drawn from one bivariate normal distribution of (a, b), which is fitted to them (empirical
Bayes), and integrals over it are sums over a grid. Three explanations of an item's answers are then compared by their
marginal likelihoods: the key is right (P); some other answer is (``c (1 - P)``: a model that knows the true answer is
called wrong, and one that errs hits the key with probability c); answers have nothing to do with ability (a = 0).
Responses between 0 and 1 enter as that many right answers of one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itembank.auditing.panel import Panel
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

SLOPES = np.arange(-1.5, 4.01, 0.25)
INTERCEPTS = np.arange(-7.0, 7.01, 0.5)
NEAREST = 1e-4
"""Probabilities lie so far from 0 and 1 at least: nobody is so good that he never slips."""
HIT_SHARES = (1.0, 1.0 / 3.0)
"""Chance that a model which errs hits the wrong key: of two options, and of one wrong option that attracts many."""
START_MEAN, START_SPREAD = (1.0, 0.0), (0.5, 4.0)
"""Slope and intercept: means and variances that the distribution of curves starts from."""
START_WEIGHT = 10.0
"""Items that these count as."""
N_LEARNT_FROM, N_PASSES = 2000, 30
"""Items, evenly spread, and passes that the distribution of curves is fitted with."""
BLOCK = 4096
"""Items whose grids are in memory at once: 22 MB each."""
TOP = 0.95
"""Quantile of ability of a top model."""
BEYOND = 0.5
"""How far beyond it `suspicion` looks, in standard deviations of ability: models that come next."""
OWN_GROUP = 10.0
"""Items of a group at which its own mean and that of all items count alike."""


@dataclass(frozen=True, slots=True)
class ItemEvidence:
    """What the answers say of each item's curve and key."""

    # (n_items,): Posterior mean and standard deviation of the slope, in log-odds a standard deviation of ability; any
    # sign.
    slope: FloatArray
    slope_error: FloatArray  # (n_items,)
    intercept: FloatArray  # (n_items,): Posterior mean of the log-odds at mean ability
    top_logit: FloatArray  # (n_items,): Log-odds that a model at the 95th percentile of ability is right
    # (n_items,): How much lower the log-odds of a model half a standard deviation above that percentile are than they
    # are on average in the item's group; large where the best fail on an item among easy ones.
    suspicion: FloatArray
    key_lr: FloatArray  # (n_items,): Log-likelihood ratio: another answer is the right one, against the key
    noise_lr: FloatArray  # (n_items,): Log-likelihood ratio: answers have nothing to do with ability, against the key


@dataclass(frozen=True, slots=True)
class Curves:
    """Log-probabilities on the grid for the abilities in one group, each (n_models, n_grid)."""

    right: FloatArray
    wrong: FloatArray
    not_hit: FloatArray

    @classmethod
    def at(cls, theta: FloatArray) -> "Curves":
        """Compute them at abilities (n_models,)."""
        slope, intercept = _grid()
        p = np.clip(expit(theta[:, None] * slope + intercept), NEAREST, 1.0 - NEAREST)
        return cls(np.log(p), np.log1p(-p), np.log1p(-HIT_SHARES[1] * (1.0 - p)))


def item_evidence(panel: Panel) -> ItemEvidence:
    """Weigh the key of each item against the abilities of the models."""
    curves = [Curves.at(theta) for theta in panel.theta.T]
    sample = np.unique(np.linspace(0, panel.group.size - 1, N_LEARNT_FROM).astype(np.int64))
    likelihood = np.empty((sample.size, _grid()[0].size))
    for number, curve in enumerate(curves):
        mine = panel.group[sample] == number
        items = sample[mine]
        likelihood[mine] = _log_likelihoods(curve, panel.values[:, items], panel.observed[:, items])[0]
    log_weights = _log_weights(likelihood)
    found = np.empty((7, panel.group.size))
    top = np.quantile(panel.theta, TOP, axis=0)
    for number, curve in enumerate(curves):
        items = np.flatnonzero(panel.group == number)
        for start in range(0, items.size, BLOCK):
            block = items[start : start + BLOCK]
            found[:, block] = _weighed(
                curve, panel.values[:, block], panel.observed[:, block], log_weights, float(top[number])
            )
    slope, error, intercept, top_logit, beyond, key_lr, noise_lr = found
    return ItemEvidence(
        slope, error, intercept, top_logit, _group_means(beyond, panel.group) - beyond, key_lr, noise_lr
    )


def _grid() -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of each point of the grid, each (n_grid,)."""
    slope, intercept = np.meshgrid(SLOPES, INTERCEPTS, indexing="ij")
    return slope.ravel(), intercept.ravel()


def _log_likelihoods(curve: Curves, values: FloatArray, observed: BoolArray) -> tuple[FloatArray, list[FloatArray]]:
    """Log-likelihoods (n_items, n_grid) if the key is right, and for each of `HIT_SHARES` if it is not."""
    right = np.where(observed, values, 0.0).T
    as_keyed, swapped = right @ (curve.right - curve.wrong), right @ (curve.wrong - curve.right)
    hit = right @ (curve.wrong - curve.not_hit) + np.log(HIT_SHARES[1]) * right.sum(axis=1, keepdims=True)
    if observed.all():
        all_wrong = [log_p.sum(axis=0) for log_p in (curve.wrong, curve.right, curve.not_hit)]
    else:
        known = observed.T.astype(np.float64)
        all_wrong = [known @ log_p for log_p in (curve.wrong, curve.right, curve.not_hit)]
    return as_keyed + all_wrong[0], [swapped + all_wrong[1], hit + all_wrong[2]]


def _log_weights(likelihood: FloatArray) -> FloatArray:
    """Fit a bivariate normal distribution of (slope, intercept) by EM; log-weights of the grid (n_grid,)."""
    points = np.stack(_grid(), axis=1)
    mean, covariance = np.array(START_MEAN), np.diag(START_SPREAD)
    relative = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    n_items = relative.shape[0]
    for _ in range(N_PASSES):
        weights = np.exp(_normal(points, mean, covariance))
        # the posterior of every item, summed over items, takes two products and no matrix of its own
        counts = weights * ((1.0 / (relative @ weights)) @ relative)
        mean = (counts @ points + START_WEIGHT * np.array(START_MEAN)) / (n_items + START_WEIGHT)
        centred = points - mean
        scatter = (centred * counts[:, None]).T @ centred + START_WEIGHT * np.diag(START_SPREAD)
        covariance = scatter / (n_items + START_WEIGHT)
    return _normal(points, mean, covariance)


def _normal(points: FloatArray, mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """Log of a normal density at points (n_grid, 2), normed to a sum of 1 over them."""
    centred = points - mean
    log_density = -0.5 * np.sum(centred @ np.linalg.inv(covariance) * centred, axis=1)
    return np.asarray(log_density - log_density.max() - np.log(np.exp(log_density - log_density.max()).sum()))


def _weighed(
    curve: Curves, values: FloatArray, observed: BoolArray, log_weights: FloatArray, top: float
) -> tuple[FloatArray, ...]:
    """Return the seven rows of evidence on a block of items of one group, each (n_items,)."""
    slope, intercept = _grid()
    as_keyed, others = _log_likelihoods(curve, values, observed)
    is_flat = slope == 0.0
    flat = _log_mean(as_keyed[:, is_flat], log_weights[is_flat]) - np.log(np.exp(log_weights[is_flat]).sum())
    other = np.logaddexp(*(_log_mean(one, log_weights) for one in others)) - np.log(len(HIT_SHARES))
    as_keyed += log_weights
    most = as_keyed.max(axis=1, keepdims=True)
    posterior = np.exp(as_keyed - most, out=as_keyed)
    sums = posterior @ np.stack([np.ones_like(slope), slope, slope**2, intercept], axis=1)
    keyed = most[:, 0] + np.log(sums[:, 0])
    mean_slope, square, mean_intercept = (sums[:, 1:] / sums[:, :1]).T
    error = np.sqrt(np.maximum(square - mean_slope**2, 0.0))
    at_top = mean_slope * top + mean_intercept
    return mean_slope, error, mean_intercept, at_top, at_top + BEYOND * mean_slope, other - keyed, flat - keyed


def _log_mean(log_likelihood: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Logarithm of the likelihood averaged over the grid, (n_items,)."""
    most = log_likelihood.max(axis=1, keepdims=True)
    result: FloatArray = most[:, 0] + np.log(np.exp(log_likelihood - most) @ np.exp(log_weights))
    return result


def _group_means(values: FloatArray, group: IntArray) -> FloatArray:
    """Mean of each item's group, drawn to that of all items where the group is small, (n_items,)."""
    counts = np.bincount(group)
    means = (np.bincount(group, values) + OWN_GROUP * values.mean()) / (counts + OWN_GROUP)
    result: FloatArray = means[group]
    return result
