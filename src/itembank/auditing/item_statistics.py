"""Classical statistics of items, with cells missing: kernels on arrays."""

from dataclasses import dataclass

import numpy as np

from itembank.auditing.panel import Panel
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import rounded

N_BEST = 3
"""Best models whose failure on an item is told."""
LEAST_FILLED = 0.5
"""Share of answers that must be there for totals of models to be compared."""
SMALL = 1e-12


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """What items look like, each (n_items,)."""

    n_models: IntArray  # (n_items,): That answered
    mean: FloatArray  # (n_items,): Response; NaN where no model answered
    # (n_items,): Correlation of the response with the mean response to the other items of the group; 0 where all
    # answered alike.
    item_rest: FloatArray
    # (n_items,): Of the best models that answered, three at most: how many, and the sum of their responses.
    n_best: IntArray
    n_best_right: FloatArray  # (n_items,)
    # (n_items,): What the ranking of models would lose without the item, in average items: 1 as much as without an
    # average item, 0 nothing, below 0 the ranking would gain. NaN where models differ no more than chance explains, or
    # fewer than half of the answers are there.
    worth: FloatArray


def item_statistics(panel: Panel) -> ItemStatistics:
    """Compute the statistics of all items."""
    answers = np.where(panel.observed, panel.values, 0.0)
    n_models = panel.observed.sum(axis=0)
    mean = np.divide(answers.sum(axis=0), n_models, out=np.full(n_models.size, np.nan), where=n_models > 0)
    item_rest = np.zeros(n_models.size)
    n_best, n_best_right = np.zeros(n_models.size, dtype=np.int64), np.zeros(n_models.size)
    for number in range(panel.theta.shape[1]):
        items = np.flatnonzero(panel.group == number)
        item_rest[items] = item_rest_correlations(answers[:, items], panel.observed[:, items])
        best = best_models(panel.theta[:, number], panel.observed[:, items])
        n_best[items], n_best_right[items] = best.sum(axis=0), np.sum(best * answers[:, items], axis=0)
    return ItemStatistics(n_models, mean, item_rest, n_best, n_best_right, item_worth(answers, panel.observed))


def item_rest_correlations(answers: FloatArray, observed: BoolArray) -> FloatArray:
    """Correlate each item with the mean of a model's other answers, over the models that answered it, (n_items,).

    Parameters
    ----------
    answers, observed : (n_models, n_items)
        Responses, 0 where there is none; and where there is one.
    """
    known = observed.astype(np.float64)
    total, n_other = answers.sum(axis=1), np.maximum(known.sum(axis=1) - 1.0, 1.0)
    square = answers**2
    # The rest of model i at item j is (total_i - y_ij) / n_other_i; its sums over models take no matrix of its own.
    n = np.maximum(known.sum(axis=0), 1.0)
    sum_y, sum_yy = answers.sum(axis=0), square.sum(axis=0)
    sum_r = (total / n_other) @ known - (1.0 / n_other) @ answers
    sum_rr = (total**2 / n_other**2) @ known + (1.0 / n_other**2) @ square - (2.0 * total / n_other**2) @ answers
    sum_yr = (total / n_other) @ answers - (1.0 / n_other) @ square
    covariance = sum_yr - sum_y * sum_r / n
    spread = np.maximum(sum_yy - sum_y**2 / n, 0.0) * np.maximum(sum_rr - sum_r**2 / n, 0.0)
    return np.asarray(np.divide(covariance, np.sqrt(spread), out=np.zeros(n.size), where=spread > SMALL))


def best_models(theta: FloatArray, observed: BoolArray) -> BoolArray:
    """Mark the best models among those that answered each item, (n_models, n_items); of equals the first."""
    order = np.argsort(-rounded(theta), kind="stable")
    place = np.cumsum(observed[order], axis=0, dtype=np.int32)
    result = np.empty_like(observed)
    result[order] = observed[order] & (place <= N_BEST)
    return result


def item_worth(answers: FloatArray, observed: BoolArray) -> FloatArray:
    """Compute what the signal-to-noise ratio of the total score loses without each item, in average items.

    With Cronbach's alpha, ``alpha / (1 - alpha)`` grows in proportion to the number of like items (Spearman-Brown), so
    its loss counts items. Alpha without an item follows from the item's variance and its covariance with the total.
    """
    n_answers = np.maximum(observed.sum(axis=1), 1)
    n_items = answers.shape[1]
    total = answers.sum(axis=1) / n_answers * n_items
    n = np.maximum(observed.sum(axis=0), 1)
    mean = answers.sum(axis=0) / n
    variance = (answers**2).sum(axis=0) / n - mean**2
    known = observed.astype(np.float64)
    covariance = (total @ answers) / n - mean * (total @ known) / n
    whole = _signal_to_noise(np.array([total.var()]), np.array([variance.sum()]), n_items)
    without = _signal_to_noise(total.var() - 2.0 * covariance + variance, variance.sum() - variance, n_items - 1)
    # 1 / (1 - alpha) is a ratio of variances: by chance alone its standard deviation is about sqrt(2 / (n_models - 1))
    by_chance = 2.0 * np.sqrt(2.0 / max(answers.shape[0] - 1, 1))
    if n_items < 3 or not whole[0] > by_chance or observed.mean() < LEAST_FILLED:
        return np.full(n_items, np.nan)
    return np.asarray((whole - without) / (whole / n_items))


def _signal_to_noise(total: FloatArray, own: FloatArray, n_items: int) -> FloatArray:
    """Alpha / (1 - alpha), from the variance of the total and the sum of the items' variances; NaN without noise."""
    if n_items < 2:
        return np.full(total.shape, np.nan)
    signal = (total - own) * n_items / (n_items - 1)
    noise = total - signal
    return np.asarray(np.divide(signal, noise, out=np.full(total.shape, np.nan), where=noise > SMALL))
