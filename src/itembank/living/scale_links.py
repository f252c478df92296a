"""Old items that the linking models find easier or harder than the bank says, and that should not link."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from itembank.irt import families
from itembank.irt.bernoulli import logit
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.living.linking_answers import LinkingData
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.ties import first_largest, rounded
from itembank.progress import ProgressCallback, silent

LARGEST_DISPLACEMENT = 0.5
"""In logits (Wright and Douglas 1976)."""
LARGEST_Z = 2.5
"""Displacements in standard errors."""
LARGEST_ERROR = 1.0
"""In logits: where a displacement is known less well, a few answers that are hard to believe look like a moved item."""
MOST_UNLINKED = 0.2
"""Fraction of the old items that may be taken out of a link: beyond that it is not the items that moved."""


class Displacements(NamedTuple):
    """Of the n_old items of a link."""

    # (n_old,): Logits by which the item is easier for the linking models than for the bank's; NaN where none answered
    # it.
    value: FloatArray
    standard_error: FloatArray  # (n_old,)
    is_unlinked: BoolArray  # (n_old,)


def displacements(data: LinkingData, intercept_variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find each old item's displacement and its standard error, (n_old,) each.

    One Newton step of the intercept, ``d = sum_l s_l / sum_l w_l`` with s the slope and w the information of each
    answer in its logit, at the abilities found from all old items; its variance is ``1 / sum_l w_l`` plus the variance
    of the intercept in the bank. Displacements of the linked items sum to about zero, since ability takes up what they
    share: where some items moved one way, the others seem to move a little the other way.
    """
    abilities = map_abilities(data.old, data.old_responses, data.prior, n_trials=data.old_trials).theta
    return _at(data, abilities, intercept_variance)


def drifted_anchors(data: LinkingData, intercept_variance: FloatArray) -> Displacements:
    """Unlink the item that moved most, find abilities anew, and go on while any moved too far.

    An item moved too far when its displacement is more than 0.5 logits and more than 2.5 standard errors, with an error
    below one logit; at most a fifth of the items are unlinked.
    """
    n_old = data.old.n_items
    is_unlinked = np.zeros(n_old, dtype=bool)
    while True:
        linked = data.without_old(is_unlinked)
        abilities = map_abilities(linked.old, linked.old_responses, data.prior, n_trials=linked.old_trials).theta
        value, error = _at(data, abilities, intercept_variance)
        z = np.abs(value / error)
        too_far = (np.abs(value) > LARGEST_DISPLACEMENT) & (z > LARGEST_Z) & (error < LARGEST_ERROR) & ~is_unlinked
        if not too_far.any() or is_unlinked.sum() + 1 > MOST_UNLINKED * n_old:
            return Displacements(value, error, is_unlinked)
        is_unlinked[np.argmax(np.where(too_far, z, -1.0))] = True


def _at(data: LinkingData, abilities: FloatArray, intercept_variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Displacements at given abilities (n_models, n_dims)."""
    x = logit(data.old, abilities)
    answered = ~np.isnan(data.old_responses)
    responses = np.where(answered, data.old_responses, 0.0)
    slope = families.likelihood_terms(data.old, x, responses, data.old_trials).slope
    weights = families.information_weights(data.old, x, data.old_trials)
    information = np.where(answered, weights, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(information > 0.0, np.where(answered, slope, 0.0).sum(axis=0) / information, np.nan)
        error = np.sqrt(1.0 / information + intercept_variance)
    return value, error


LEAST_SLOPE = 1e-3
"""Of the line; a free calibration without any spread of ability has none."""


class ScaleLink(NamedTuple):
    """``ability = slope * free ability + intercept``."""

    slope: float
    intercept: float

    def apply(self, loadings: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bring loadings (n_items, 1) and intercepts (n_items,) of the free scale onto the other one."""
        moved = loadings / self.slope
        return moved, intercept - moved[:, 0] * self.intercept


def stocking_lord(old: ItemParameters, free: ItemParameters, theta: FloatArray, weights: FloatArray) -> ScaleLink:
    """Find the line from a free scale to that of old items (Stocking and Lord 1983).

    Minimises ``sum_q w_q (T_old(theta_q) - T_free((theta_q - B) / A))^2``, with T the sum of the curves of the common
    items, over slope A and intercept B.
    Both sets of items are in one dimension and have the old asymptotes; `theta` (n_quadrature,) lies on the old scale.
    """
    height = old.upper_asymptote - old.lower_asymptote
    roots = np.sqrt(weights)
    wanted = expit(np.outer(theta, old.loadings[:, 0]) + old.intercept) @ height

    def residuals(line: FloatArray) -> FloatArray:
        x = np.outer((theta - line[1]) / line[0], free.loadings[:, 0]) + free.intercept
        result: FloatArray = roots * (expit(x) @ height - wanted)
        return result

    def derivatives(line: FloatArray) -> FloatArray:
        away = (theta - line[1]) / line[0]
        sigmoid = expit(np.outer(away, free.loadings[:, 0]) + free.intercept)
        rise = roots * ((sigmoid * (1.0 - sigmoid)) @ (height * free.loadings[:, 0])) / line[0]
        return np.column_stack([-rise * away, -rise])

    bounds = ([LEAST_SLOPE, -np.inf], [np.inf, np.inf])
    found = least_squares(residuals, np.array([1.0, 0.0]), derivatives, bounds=bounds, xtol=1e-12, ftol=1e-12)
    return ScaleLink(float(found.x[0]), float(found.x[1]))


MOST_GROUPS = 10
"""Links that are made again: with more linking models, groups of them are left out."""


def jackknife_error(
    data: LinkingData,
    scores: Callable[[LinkingData], FloatArray],
    strength: FloatArray,
    *,
    progress: ProgressCallback = silent,
) -> FloatArray:
    """Find the standard error of what a link says, ``sqrt((G - 1) / G sum_g (s_g - mean s)^2)``.

    Leaving models out takes in what no information matrix does: that models differ in how they do on the new items
    compared with the old ones. Groups are alike in strength, so that what is left still spans the abilities.
    `scores` gives (n_points,) of linking data, such as the expected score on the new items at some abilities;
    `strength` (n_models,) is that of the linking models.
    """
    n_groups = min(MOST_GROUPS, data.n_models)
    group = np.empty(data.n_models, dtype=np.int64)
    group[np.argsort(rounded(strength), kind="stable")] = np.arange(data.n_models) % n_groups
    found = []
    for one in range(n_groups):
        progress("linking error", one / n_groups)
        found.append(scores(data.take_models(group != one)))
    result: FloatArray = np.sqrt((n_groups - 1) * np.var(np.stack(found), axis=0))
    return result


OUTER = (0.025, 0.975)
"""Quantiles between which a bank's scores range: one odd model should not set it."""


def covered_range(strength: FloatArray, known: FloatArray) -> float:
    """Part of the range of known scores (n_known,) that those of linking models (n_models,) span, 0 to 1."""
    low, high = np.quantile(known, OUTER)
    if high <= low:
        return 1.0
    span = np.clip([strength.min(), strength.max()], low, high)
    return float((span[1] - span[0]) / (high - low))


def spread_over(
    known: FloatArray, strength: FloatArray, known_ids: Sequence[str], taken: Sequence[str], n_models: int
) -> tuple[str, ...]:
    """Choose models of the bank that fill the widest gaps, one after the other, by their scores.

    `known` (n_known,) are scores of the bank's models and `strength` (n_models,) those of the linking models, whose ids
    are `taken`.
    """
    low, high = np.quantile(known, OUTER)
    is_free = np.array([name not in set(taken) for name in known_ids]) & (known >= low) & (known <= high)
    chosen: list[int] = []
    reached = strength
    while len(chosen) < n_models and is_free.any():
        gap = np.where(is_free, np.abs(known[:, None] - reached).min(axis=1), -np.inf)
        best = int(first_largest(gap))
        chosen.append(best)
        is_free[best] = False
        reached = np.append(reached, known[best])
    return tuple(known_ids[k] for k in chosen)
