"""Items that behave differently for a group of models of equal ability: kernels on arrays.

The score test asks whether a group's log-odds of being right differ once ability is accounted for. It needs one fit of
each item without the group (Rao 1948; for differential items Swaminathan & Rogers 1990), and that for all items at
once. The effect size of testing programmes beside it is the delta of Mantel and Haenszel (Holland & Thayer 1988):
``-2.35 log(odds ratio)`` pooled over strata of ability.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtr

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

RIDGE = 0.01
"""Precision of the prior of a curve's coefficients, so that items which nobody gets right have one."""


@dataclass(frozen=True, slots=True)
class ScoreTest:
    """Tests of one covariate for items, each (n_items,)."""

    # (n_items,): Positive where items are easier for the group, or for models with more of the covariate, than for
    # others of equal ability.
    z: FloatArray
    # (n_items,): Of both sides; 1 where an item tells nothing, NaN where there are too few clusters.
    p_value: FloatArray
    # (n_items,): Difference of the share of right answers at equal ability: the group less the others, or per standard
    # deviation of a covariate.
    effect: FloatArray


def score_test(
    values: FloatArray,  # (n_models, n_items): Responses in [0, 1], and where there is one
    observed: BoolArray,  # (n_models, n_items)
    design: FloatArray,  # (n_models, n_columns): A column of ones, and abilities
    covariate: FloatArray,  # (n_models,): 0 and 1 for a group, or numbers with standard deviation 1
    # (n_models,): Number of each model's cluster, from 0. A cluster counts as one model: its members share a weight of
    # 1, and the variance of the statistic is that of its clusters' sums, with as many degrees of freedom as the group
    # with fewer clusters has, less one
    clusters: IntArray | None = None,
) -> ScoreTest:
    """Test whether a covariate explains answers beyond ability."""
    weight = np.ones(covariate.size) if clusters is None else 1.0 / np.bincount(clusters)[clusters]
    answers, known = np.where(observed, values, 0.0), observed * weight[:, None]
    # probabilities of right answers by ability alone, by Newton's method: six passes reach the sixth digit, and items
    # that ability tells apart completely, whose steps are bounded, take more
    share = (np.sum(known * answers, axis=0) + 0.5) / (known.sum(axis=0) + 1.0)
    weights = np.zeros((answers.shape[1], design.shape[1]))
    weights[:, 0] = np.log(share / (1.0 - share))
    p: FloatArray = expit(design @ weights.T)
    for _ in range(15):
        gradient = (known * (answers - p)).T @ design - RIDGE * weights
        step = np.linalg.solve(_curvature(known * p * (1.0 - p), design), gradient[..., None])[..., 0]
        weights = weights + np.clip(step, -2.0, 2.0)
        p = expit(np.clip(design @ weights.T, -30.0, 30.0))
    residual = known * (answers - p)
    information = known * p * (1.0 - p)
    between = np.einsum("nc,ni->ic", design * covariate[:, None], information)
    explained = np.linalg.solve(_curvature(information, design), between[..., None])[..., 0]
    remaining = covariate[:, None] - design @ explained.T
    score = np.sum(remaining * residual, axis=0)
    skewness = 0.0
    expected = np.sum(remaining**2 * information, axis=0)
    tells = expected > 0.25  # the variance of one fair coin: below it an item tells nothing of a group
    if clusters is None:
        variance, n_free = expected, np.inf
        third = np.sum(remaining**3 * information * (1.0 - 2.0 * p), axis=0)
        skewness = np.divide(third, variance**1.5, out=np.zeros_like(third), where=tells)
    else:
        sums = np.zeros((int(clusters.max()) + 1, score.size))
        np.add.at(sums, clusters, remaining * residual)
        variance = np.sum(sums**2, axis=0)
        # clusters of the smaller of two groups, less one; of a number all clusters, less two
        n_free = float(np.unique(clusters).size - 2)
        if set(np.unique(covariate).tolist()) <= {0.0, 1.0}:
            n_free = float(min(np.unique(clusters[covariate == side]).size for side in (0.0, 1.0)) - 1)
    z = np.divide(score, np.sqrt(variance), out=np.zeros_like(score), where=tells & (variance > 0.0))
    # Cornish and Fisher's correction for the skewness of a sum over a few models, so that tails are as they should be:
    # skewness (z^2 - 1) / 6, bounded where it would be larger than the expansion bears
    bounded = np.clip(skewness * z, -1.5, 1.5)
    z = np.asarray(z - np.divide(bounded * (z**2 - 1.0), 6.0 * z, out=np.zeros_like(z), where=np.abs(z) > 1.0))
    p_value = np.full(z.shape, np.nan)
    if n_free >= 2.0:
        p_value = 2.0 * stdtr(n_free if np.isfinite(n_free) else 1e10, -np.abs(z))
    total = np.maximum(known.sum(axis=0), 1e-12)
    centred = covariate[:, None] - np.sum(known * covariate[:, None], axis=0) / total
    square = np.sum(known * centred**2, axis=0)
    effect = np.divide(np.sum(centred * residual, axis=0), square, out=np.zeros(total.shape), where=square > 1e-9)
    return ScoreTest(z, p_value, effect)


def _curvature(information: FloatArray, design: FloatArray) -> FloatArray:
    """Weighted cross-products of the design for every item, (n_items, n_columns, n_columns), with the ridge."""
    n_columns = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(design.shape[0], -1)
    return np.asarray((information.T @ products).reshape(-1, n_columns, n_columns) + RIDGE * np.eye(n_columns))


def mantel_haenszel_delta(
    values: FloatArray,  # (n_models, n_items)
    observed: BoolArray,  # (n_models, n_items)
    in_group: BoolArray,  # (n_models,)
    stratum: IntArray,  # (n_models,): Number of each model's stratum of ability, from 0
) -> tuple[FloatArray, FloatArray]:  # Delta and its error, (n_items,); NaN where no stratum compares the groups
    """Delta of each item and its standard error, (n_items,); negative where the item is harder for the group.

    The variance of the log odds ratio is that of Robins, Breslow and Greenland (1986).
    """
    answers, known = np.where(observed, values, 0.0), observed.astype(np.float64)
    n_strata = int(stratum.max()) + 1
    marks = (stratum == np.arange(n_strata)[:, None]).astype(np.float64)
    right_other, right_group = ((marks * side) @ answers for side in (~in_group, in_group))
    n_other, n_group = ((marks * side) @ known for side in (~in_group, in_group))
    wrong_other, wrong_group = n_other - right_other, n_group - right_group
    total = np.maximum(n_other + n_group, 1.0)
    # R and S, P and Q of Robins, Breslow and Greenland, by stratum
    r, s = right_other * wrong_group / total, wrong_other * right_group / total
    p, q = (right_other + wrong_group) / total, (wrong_other + right_group) / total
    sum_r, sum_s = r.sum(axis=0), s.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(sum_r / sum_s)
        variance = (
            (p * r).sum(axis=0) / (2.0 * sum_r**2)
            + (p * s + q * r).sum(axis=0) / (2.0 * sum_r * sum_s)
            + (q * s).sum(axis=0) / (2.0 * sum_s**2)
        )
    is_known = (sum_r > 0.0) & (sum_s > 0.0)
    delta = -2.35  # log odds ratios to the scale of ETS: 4 / 1.7
    return np.where(is_known, delta * log_ratio, np.nan), np.where(is_known, -delta * np.sqrt(variance), np.nan)


def ability_strata(theta: FloatArray) -> IntArray:
    """Divide models into strata of ability of about equal size, (n_models,): one for twenty models, ten at most."""
    n_strata = min(10, max(2, theta.size // 20))
    cuts = np.quantile(theta, np.arange(1, n_strata) / n_strata)
    return np.searchsorted(cuts, theta).astype(np.int64)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjust p-values for their number (Benjamini & Hochberg 1995), (n,); NaN stays NaN and does not count."""
    adjusted = np.full(p_values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    scaled = p_values[order] * order.size / np.arange(1, order.size + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
