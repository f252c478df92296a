"""Start values of ability: the leading directions in which models differ.

Which of two starts of the abilities an ascent takes: the leading directions, or scores that link models.

A density or bound has several maxima where models answered blocks of items: a block's slopes can be turned together
with the abilities of the models that answered no other. Started beside the right end, the ascent goes to the wrong one
and stops there. The two starts then differ, and the higher end is taken. Where two different ends are about as high,
the responses do not say which is right; then the one is taken at which more items agree on who is able.
"""

from collections.abc import Callable

import numpy as np
import scipy

from itembank.calibration.fits import Ascent, FitData, Place, Point
from itembank.errors import remedy
from itembank.irt.family_names import KINDS
from itembank.numerics.arrays import BoolArray, FloatArray

COLUMNS_AT_ONCE = 2048
"""Bounds the copy in double precision; with 256 or all 20,000 columns of 400 models at once it is no quicker."""

DRAWN = 1.0
"""Responses of size zero that every model's effect counts beside its own: groups of models without a common item are
thereby centred, each by itself."""


def standardised(responses: FloatArray, observed: BoolArray | None) -> FloatArray:
    """Responses with mean 0 and variance 1 in each item, 0 where not observed, float32 (n_models, n_items)."""
    values = responses.astype(np.float32)
    if observed is None:
        values -= values.mean(axis=0)
    else:
        values -= (values * observed).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        values *= observed
    spread = np.sqrt(np.einsum("li,li->i", values, values) / values.shape[0])
    values /= np.where(spread > 0.0, spread, 1.0)
    return values


def start_values(data: FitData) -> FloatArray:
    """Responses as `start_abilities` should see them: logits where they are more than right or wrong.

    Fractions are moved inwards, ``(c + 1/2) / (n + 1)``, so that none right of ten thousand is far from one right.
    """
    # Smaller probabilities count as this at the start, so that clipped zeros do not lead.
    least_fraction = 1e-3
    if KINDS[data.family].takes == "probabilities":
        fractions: FloatArray = np.clip(data.responses, least_fraction, 1.0 - least_fraction)
    elif data.n_trials is None:
        return data.responses
    else:
        fractions = (data.responses * data.n_trials + 0.5) / (data.n_trials + 1.0)
    result: FloatArray = scipy.special.logit(fractions)
    return result


def start_abilities(
    responses: FloatArray,  # As in `FitData`
    observed: BoolArray | None,
    *,
    n_dims: int,  # Up to one less than the smaller of n_models and n_items give directions; the rest are zero
) -> FloatArray:
    """Leading left singular vectors of the standardised responses, scaled to unit variance.

    Returns (n_models, n_dims); the first correlates positively with the number of correct responses.
    """
    values = standardised(responses, observed)
    n_models, n_items = values.shape
    rank = min(n_dims, n_models - 1, n_items)
    by_models = n_models <= n_items
    gram = _gram(values if by_models else values.T)
    size = gram.shape[0]
    # Up to 600 the dense solver takes 0.02 s at most; at 2,400 it takes 0.9 s and Lanczos' method 0.04 s.
    if size <= 600 or 3 * rank >= size:
        _, vectors = scipy.linalg.eigh(gram, subset_by_index=(size - rank, size - 1))
    else:
        # the sums alone can be orthogonal to a leading vector, and would be zero for a centred matrix
        first = gram.sum(axis=1) + np.linspace(-1.0, 1.0, size) * np.abs(gram[0, 0])  # fixed, so that results repeat
        found, vectors = scipy.sparse.linalg.eigsh(gram, k=rank, which="LA", v0=first)
        vectors = vectors[:, np.argsort(found)]
    vectors = vectors[:, ::-1]  # largest first
    if not by_models:
        vectors = values @ vectors
    vectors = vectors - vectors.mean(axis=0)
    length = np.sqrt(np.mean(vectors**2, axis=0))
    vectors = vectors / np.where(length > 0.0, length, 1.0)
    total = values.sum(axis=1)
    signs = np.where(total @ vectors < 0.0, -1.0, 1.0)
    theta = np.zeros((n_models, n_dims))
    theta[:, :rank] = vectors * signs
    return theta


def linked_abilities(
    responses: FloatArray,  # As in `FitData`
    observed: BoolArray,
    *,
    n_dims: int,
) -> FloatArray:
    """Effects of models beside those of items on the observed cells, then the leading directions of what they leave.

    The effects solve the least squares of ``y_li = theta_l + b_i``. Models are thereby compared over the items that
    they share, wherever cells are missing. `start_abilities` takes a missing cell for an average response: models
    with few cells then come out near zero, and so do strong ones on items that only strong ones answered.

    Returns (n_models, n_dims): Each of mean 0 and variance 1, or zero where the responses give no more directions.
    """
    weights = observed.astype(np.float64)
    values = np.where(observed, responses, 0.0)
    models, items = additive_effects(values, weights)
    for first in range(0, items.shape[0], COLUMNS_AT_ONCE):
        part = slice(first, first + COLUMNS_AT_ONCE)
        values[:, part] -= (models[:, None] + items[part]) * weights[:, part]
    theta = np.zeros((models.shape[0], n_dims))
    centred = models - models.mean()
    spread = centred.std()
    theta[:, 0] = centred / (spread if spread > 0.0 else 1.0)
    if n_dims > 1:
        theta[:, 1:] = start_abilities(values, observed, n_dims=n_dims - 1)
    return theta


def additive_effects(
    values: FloatArray,  # (n_models, n_items): Zero where not observed
    weights: FloatArray,  # (n_models, n_items): One where observed, else zero
) -> tuple[FloatArray, FloatArray]:
    """Effects of rows and columns whose sums are nearest to the cells, with ``DRAWN theta' theta`` added.

    The normal equations are solved for the side with fewer effects, the other side eliminated.
    """
    of_rows, of_columns = weights.sum(axis=1) + DRAWN, np.maximum(weights.sum(axis=0), 1.0)
    row_sums, column_sums = values.sum(axis=1), values.sum(axis=0)
    if weights.shape[0] <= weights.shape[1]:
        shared = _gram(weights, np.sqrt(of_columns))
        right = row_sums - weights @ (column_sums / of_columns)
        rows = _solved(of_rows, shared, right)
        return rows, (column_sums - rows @ weights) / of_columns
    shared = _gram((weights / np.sqrt(of_rows)[:, None]).T)
    right = column_sums - (row_sums / of_rows) @ weights
    columns = _solved(of_columns, shared, right)
    return (row_sums - weights @ columns) / of_rows, columns


def _solved(diagonal: FloatArray, shared: FloatArray, right: FloatArray) -> FloatArray:
    """Solve ``(diag(diagonal) - shared) x = right`` in the place of `shared`, of which there is room for one."""
    np.negative(shared, out=shared)
    shared[np.diag_indices_from(shared)] += diagonal
    result: FloatArray = scipy.linalg.solve(shared, right, assume_a="pos", overwrite_a=True)
    return result


def _gram(values: FloatArray, scale: FloatArray | None = None) -> FloatArray:
    """``V V'`` in float64, of a part of the columns at a time: in float32 its digits would be the processor's own.

    With a scale, (n_columns,), columns are first divided by it.
    """
    gram = np.zeros((values.shape[0], values.shape[0]))
    for first in range(0, values.shape[1], COLUMNS_AT_ONCE):
        part = values[:, first : first + COLUMNS_AT_ONCE].astype(np.float64)
        if scale is not None:
            part /= scale[first : first + COLUMNS_AT_ONCE]
        gram += part @ part.T
    return gram


ROUGH_TOLERANCE = 1e-3
"""Of the ascents from both starts: they need only come near their ends, which this is a fraction of the height of."""
ALIKE = 0.9
"""Correlation from which on two starts, or two ends, count as one."""


def better_start(
    climb: Callable[[FloatArray], Ascent[Place]],  # Goes part of the way from abilities, (n_models, n_dims)
    point_of: Callable[[Place], Point],  # Where an ascent ended
    values: FloatArray,  # (n_models, n_items): See `start_values`
    observed: BoolArray | None,  # (n_models, n_items); None where every model answered every item: then with one start
    *,
    n_dims: int,
    # Climbs from the only start, whose end is compared with no other; None for `climb`
    climb_alone: Callable[[FloatArray], Ascent[Place]] | None = None,
) -> tuple[Ascent[Place], bool]:
    """Climb from the leading directions, and from scores that link models where the two differ.

    Returns what the better of the rough ascents reached, and whether no other led to a different end as high.
    """
    leading = start_abilities(values, observed, n_dims=n_dims)
    linked = None if observed is None else linked_abilities(values, observed, n_dims=n_dims)
    if linked is None or multiple_correlation(linked[:, 0], leading) >= ALIKE:
        return (climb_alone or climb)(leading), True
    first, other = climb(leading), climb(linked)
    ours, theirs = point_of(first.end), point_of(other.end)
    # a rough end is not the maximum: of two on the way to the same, the higher one means nothing
    if correlation_of_logits(ours, theirs) >= ALIKE:
        return first, True
    height, other_height = first.history[-1], other.history[-1]
    # By so much one end must be higher than the other at least to count as the better one.
    least_margin = 10.0
    margin = max(ROUGH_TOLERANCE * max(abs(height), abs(other_height)), least_margin)
    is_determined = abs(other_height - height) > margin
    is_better = other_height > height if is_determined else _agreement(theirs) > _agreement(ours)
    return other if is_better else first, is_determined


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


def correlation_of_logits(one: Point, other: Point) -> float:
    """Correlation over models of the logits at two ends, those of all items taken together."""
    ours, theirs = _centred_logits(one), _centred_logits(other)
    size = float(np.sqrt(np.sum(ours**2) * np.sum(theirs**2)))
    return float(np.sum(ours * theirs)) / size if size > 0.0 else 1.0


def _centred_logits(end: Point) -> FloatArray:
    """Give logits less their mean over models, (n_items, n_models)."""
    extended = np.column_stack([end.abilities, np.ones(len(end.abilities))])
    logits: FloatArray = end.items @ extended.T
    logits -= logits.mean(axis=1, keepdims=True)
    return logits


def _agreement(end: Point) -> float:
    """Share of items whose slopes on the first ability have the sign that most have."""
    positive = float(np.mean(end.items[:, 0] > 0.0))
    return max(positive, 1.0 - positive)
