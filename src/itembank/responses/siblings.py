"""Models that answer alike beyond what their scores explain: copies, resubmissions, quantised and merged siblings.

What is learnt from a model's sibling is not learnt from a model that nobody has seen: wherever models are left out to
see how wrong estimates are, siblings are left out together, and count once. Models are left out in an order that
follows from their answers, so that other names give the same numbers.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataWarning, quoted, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import rounded
from itembank.responses.content_order import ContentOrder, content_order
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural

COPY_OF = "copy_of"
"""Column of the model table: the id of the model that this one is a copy or a close relative of."""
ALIKE_FROM = 0.7
"""Correlation of what two models answer beyond their scores from which they are siblings.

Measured on simulated banks of 20 models, each two or three times: 95 % intervals for other models covered 0 %
with exact copies (correlation 1), 74 to 86 % at 0.9, 89 to 93 % at 0.8 and 93 to 97 % at 0.7. Of unrelated models on
eight leaderboards 99 % of the pairs lie below 0.5."""
MODELS_AT_ONCE = 1024


def sibling_groups(responses: ResponseMatrix) -> IntArray:
    """Group of each model, (n_models,), numbered from 0; a model without siblings is alone.

    Two models are siblings where their residuals correlate by `ALIKE_FROM` or more over the items that both answered,
    and by more than chance explains, or where the column `copy_of` of the model table names one for the other, or the
    same for both. Siblings of siblings are siblings.
    """
    # every k-th item in the order of their content is compared, of as many as make 1e11 cells of all pairs of models
    n_compared = min(8192, max(256, 10**11 // max(responses.n_models, 1) ** 2))
    stride = -(-responses.n_items // n_compared)
    items = np.arange(responses.n_items) if stride == 1 else content_order(responses).items[::stride]
    first, second = _alike(responses.of_items(items).astype(np.float32))
    if COPY_OF in responses.models.columns:  # it joins each model with the first of the same name
        name = responses.models.select(pl.coalesce(pl.col(COPY_OF).cast(pl.String), "model_id")).to_series()
        _, named, number = np.unique(name.to_numpy().astype(str), return_index=True, return_inverse=True)
        first = np.concatenate([first, np.arange(responses.n_models)])
        second = np.concatenate([second, named[number]])
    if not first.size:
        return np.arange(responses.n_models)
    from scipy.sparse import coo_array  # noqa: PLC0415 (most banks have no siblings)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    shape = (responses.n_models, responses.n_models)
    _, group = connected_components(coo_array((np.ones(first.size), (first, second)), shape), directed=False)
    return np.asarray(group, dtype=np.int64)


def siblings_in_words(model_ids: Sequence[str], group: IntArray) -> str:
    """Name the models that have siblings, and what follows; '' where none has."""
    _, number, size = np.unique(group, return_inverse=True, return_counts=True)
    if size.size == group.size:
        return ""
    names: dict[int, list[str]] = {}
    for row in np.flatnonzero(size[number] > 1).tolist():
        names.setdefault(int(number[row]), []).append(model_ids[row])
    groups = [" = ".join(map(quoted, group[:3])) + (" = ..." if len(group) > 3 else "") for group in names.values()]
    more = f" and {plural(len(groups) - N_SHOWN, 'more group')}" if len(groups) > N_SHOWN else ""
    return (
        f"{sum(map(len, names.values()))} of {group.size} models answer like another one, beyond what their scores "
        f"explain: {'; '.join(groups[:N_SHOWN])}{more}. Each group counts once in cross-validation: {size.size} "
        "models differ. Leave mere copies out."
    )


def one_of_each(group: IntArray, models: IntArray) -> IntArray:
    """First of these models of each group, (n_distinct,), in the order given."""
    return models[np.sort(np.unique(group[models], return_index=True)[1])]


def order_by_answers(responses: ResponseMatrix, models: IntArray, by_content: ContentOrder) -> IntArray:
    """Positions of some models from the lowest mean response to the highest, (n_chosen,); of equals by content."""
    means = []
    for part in responses.parts():
        mean = part.responses.mean(axis=1)
        gappy = np.isnan(mean) & part.observed.any(axis=1)
        mean[gappy] = np.nanmean(part.responses[gappy], axis=1)
        means.append(mean)
    return np.lexsort((np.argsort(by_content.models)[models], rounded(np.concatenate(means)[models])))


def residuals_of(responses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Responses less what items and the model's own mean explain, and the variance that leaves to right or wrong.

    ``y - p`` and ``p (1 - p)`` with ``logit p_ij = logit m_j + d_i``: m_j is the item's mean response, and d_i gives
    the model its own mean. Both means have half an answer of either kind added, so that no p is 0 or 1.
    Responses are (n_models, n_items) in [0, 1], NaN where missing; both results are 0 there, in single precision.
    """
    known = ~np.isnan(responses)
    values = np.where(known, responses, 0.0).astype(np.float32)
    n_models, n_items = known.sum(axis=0), known.sum(axis=1, keepdims=True)
    mean = (values.sum(axis=0) + 0.5) / (n_models + 1.0)
    easiness = np.log(mean / (1.0 - mean)).astype(np.float32)
    total = (values.sum(axis=1, keepdims=True) + 0.5) * n_items / (n_items + 1.0)
    ability = np.zeros((responses.shape[0], 1), dtype=np.float32)
    for _ in range(6):  # Newton's steps from 0, of which the sixth changes nothing seen
        p = _expit(easiness + ability)
        slope = np.where(known, p * (1.0 - p), 0.0).sum(axis=1, keepdims=True)
        gap = total - np.where(known, p, 0.0).sum(axis=1, keepdims=True)
        ability = np.clip(ability + np.clip(gap / np.maximum(slope, 1e-6), -2.0, 2.0), -12.0, 12.0).astype(np.float32)
    p = _expit(easiness + ability)
    return np.where(known, values - p, 0.0), np.where(known, p * (1.0 - p), 0.0)


def _expit(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -15.0, 15.0)))


def _alike(responses: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs of models whose residuals correlate as those of siblings do.

    An answer that is expected with p says as much as ``4 p (1 - p)`` coins: models that solve all items, or none, say
    nothing. Of n coins the fraction ``a = (1 + r) / 2`` or more agree by chance with a probability of at most
    ``exp(-n (log 2 + a log a + (1 - a) log(1 - a)))`` (Chernoff 1952), which must be below 0.01 for all pairs.
    """
    from scipy.special import entr  # noqa: PLC0415 (a bank is shown without it)

    residuals, variances = residuals_of(responses)
    known, squares = (~np.isnan(responses)).astype(np.float32), residuals**2
    n_models = len(responses)
    wanted = np.log(max(n_models * (n_models - 1) / 2, 1.0) / 0.01)
    pairs = [np.zeros((2, 0), dtype=np.int64)]
    for start in range(0, n_models, MODELS_AT_ONCE):
        rows = slice(start, start + MODELS_AT_ONCE)
        size = np.sqrt((squares[rows] @ known.T) * (known[rows] @ squares.T))
        correlation = np.divide(residuals[rows] @ residuals.T, size, out=np.zeros_like(size), where=size > 0.0)
        n_coins = 4.0 * np.minimum(variances[rows] @ known.T, known[rows] @ variances.T)
        agree = np.clip(0.5 + 0.5 * correlation, 0.5, 1.0)
        evidence = n_coins * (np.log(2.0) - entr(agree) - entr(1.0 - agree))
        first, second = np.nonzero((correlation >= ALIKE_FROM) & (evidence >= wanted))
        pairs.append(np.stack([first + start, second])[:, first + start < second])
    first, second = np.concatenate(pairs, axis=1)
    return first, second


def connected_models(observed: BoolArray) -> list[IntArray]:
    """Return groups of models that shared items link, by whoever else answered them.

    Each is an array of indices of models, in the order of their first models; a model without responses is alone.
    """
    groups = []
    is_left = np.ones(observed.shape[0], dtype=bool)
    while is_left.any():
        is_inside = np.zeros_like(is_left)
        is_inside[np.argmax(is_left)] = True
        n_inside = 0
        while is_inside.sum() > n_inside:
            n_inside = int(is_inside.sum())
            items = observed[is_inside].any(axis=0)
            shared = observed if items.all() else observed[:, items]  # a copy of all takes long
            is_inside |= is_left & shared.any(axis=1)
        groups.append(np.flatnonzero(is_inside))
        is_left &= ~is_inside
    return groups


def warn_of_no_overlap(responses: ResponseMatrix) -> bool:
    """Warn when models fall into groups that share no items, which no calibration can bring onto one scale."""
    groups = connected_models(responses.observed)
    if len(groups) == 1:
        return False
    if len(groups) == responses.n_models:
        what = (
            f"{responses.n_models} models answered {responses.n_items} items, but no item was answered by more than "
            "one model"
        )
    else:
        names = [shown([responses.model_ids[row] for row in group], 2) for group in groups[:N_SHOWN]]
        what = (
            f"{responses.n_models} models fall into {len(groups)} groups that share no items: {'; '.join(names)}"
            f"{'; ...' if len(groups) > N_SHOWN else ''}"
        )
    warn(
        f"{what}: a bank cannot bring them onto one scale. Do files spell the ids of items differently? Read "
        "results of the same tasks for all of them.",
        DataWarning,
    )
    return True
