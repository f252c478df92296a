"""Old items that the linking models find easier or harder than the bank says, and that should not link."""

from typing import NamedTuple

import numpy as np

from itembank.irt import families
from itembank.irt.bernoulli import logit
from itembank.irt.newton import map_abilities
from itembank.living.linking_data import LinkingData
from itembank.numerics.arrays import BoolArray, FloatArray

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

    Parameters
    ----------
    data : LinkingData
    intercept_variance : (n_old,)
        Of the bank's calibration.
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
