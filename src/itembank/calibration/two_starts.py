"""Which of two starts of the abilities an ascent takes: the leading directions, or scores that link models.

A density or bound has several maxima where models answered blocks of items: a block's slopes can be turned together
with the abilities of the models that answered no other. Started beside the right end, the ascent goes to the wrong one
and stops there. The two starts then differ, and the higher end is taken. Where two different ends are about as high,
the responses do not say which is right; then the one is taken at which more items agree on who is able.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from itembank.calibration.start import linked_abilities, start_abilities
from itembank.errors import remedy
from itembank.numerics.arrays import BoolArray, FloatArray

ROUGH_TOLERANCE = 1e-3
"""Of the ascents from both starts: they need only come near their ends, which this is a fraction of the height of."""
ALIKE = 0.9
"""Correlation from which on two starts, or two ends, count as one."""
LEAST_MARGIN = 10.0
"""By so much one end must be higher than the other at least to count as the better one."""

Reached = TypeVar("Reached")


class End(NamedTuple):
    """Where a rough ascent ended."""

    items: FloatArray  # (n_items, n_dims + 1): Loadings and intercepts
    abilities: FloatArray  # (n_models, n_dims)
    height: float  # Of the bound or the log density there


class Started(NamedTuple, Generic[Reached]):
    """What the better of the rough ascents reached, and whether no other led to a different end as high."""

    reached: Reached
    is_determined: bool = True


def better_start(
    climb: Callable[[FloatArray], Reached],
    end: Callable[[Reached], End],
    values: FloatArray,
    observed: BoolArray | None,
    *,
    n_dims: int,
) -> Started[Reached]:
    """Climb from the leading directions, and from scores that link models where the two differ.

    Parameters
    ----------
    climb : callable
        Ascends part of the way from abilities, (n_models, n_dims).
    end : callable
        Says where an ascent ended.
    values : (n_models, n_items)
        See `start.start_values`.
    observed : (n_models, n_items) or None
        None where every model answered every item: then there is one start.
    n_dims : int
    """
    leading = start_abilities(values, observed, n_dims=n_dims)
    first = climb(leading)
    if observed is None:
        return Started(first)
    linked = linked_abilities(values, observed, n_dims=n_dims)
    if multiple_correlation(linked[:, 0], leading) >= ALIKE:
        return Started(first)
    other = climb(linked)
    ours, theirs = end(first), end(other)
    # a rough end is not the maximum: of two on the way to the same, the higher one means nothing
    if correlation_of_logits(ours, theirs) >= ALIKE:
        return Started(first)
    margin = max(ROUGH_TOLERANCE * max(abs(ours.height), abs(theirs.height)), LEAST_MARGIN)
    is_determined = abs(theirs.height - ours.height) > margin
    is_better = theirs.height > ours.height if is_determined else _agreement(theirs) > _agreement(ours)
    return Started(other if is_better else first, is_determined)


def advice(*, n_dims: int, may_be_positive: bool = False) -> str:
    """Say what to do where the responses do not determine the fit, for its message."""
    other = "" if n_dims == 1 else ", or take fewer abilities"
    if may_be_positive and n_dims == 1:
        other = f", or take {remedy('positive_discrimination=True', '--spec with positive_discrimination = true')}"
    return (
        "; a second start led to a different fit that is about as good: groups of models that answered different items "
        f"have too little in common. Let some models answer the items of several groups, or leave a group out{other}"
    )


def multiple_correlation(score: FloatArray, abilities: FloatArray) -> float:
    """Correlation of a score, (n_models,), with the closest combination of abilities, (n_models, n_dims)."""
    centred = score - score.mean()
    size = float(centred @ centred)
    if size == 0.0:
        return 1.0
    directions = abilities - abilities.mean(axis=0)
    fitted = directions @ np.linalg.lstsq(directions, centred, rcond=None)[0]
    return float(np.sqrt(fitted @ fitted / size))


def correlation_of_logits(one: End, other: End) -> float:
    """Correlation over models of the logits at two ends, those of all items taken together."""
    ours, theirs = _centred_logits(one), _centred_logits(other)
    size = float(np.sqrt(np.sum(ours**2) * np.sum(theirs**2)))
    return float(np.sum(ours * theirs)) / size if size > 0.0 else 1.0


def _centred_logits(end: End) -> FloatArray:
    """Give logits less their mean over models, (n_items, n_models)."""
    extended = np.column_stack([end.abilities, np.ones(len(end.abilities))])
    logits: FloatArray = end.items @ extended.T
    logits -= logits.mean(axis=1, keepdims=True)
    return logits


def _agreement(end: End) -> float:
    """Share of items whose slopes on the first ability have the sign that most have."""
    positive = float(np.mean(end.items[:, 0] > 0.0))
    return max(positive, 1.0 - positive)
