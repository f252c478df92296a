"""Choose items one after the other; each choice takes the earlier ones into account."""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest, rounded
from itembank.selection.criteria import Criterion, VOptimality, uses_information
from itembank.selection.design import DesignItems, criterion_scores, goal_matrix, updated_covariance


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many items of each scenario are to be asked."""

    at_least: IntArray  # (n_scenarios,)
    at_most: IntArray  # (n_scenarios,)


def next_items(
    items: DesignItems,
    criterion: Criterion,
    theta: FloatArray,
    covariance: FloatArray,
    n: int,
    *,
    target_weights: FloatArray,
    is_open: BoolArray,
    counts: IntArray,
    bounds: Bounds,
    n_left: int,
    randomesque: int = 1,
    rng: np.random.Generator,
    goal: FloatArray | None = None,
) -> IntArray:
    """Choose the n best items, the covariance updated after each as if it had been answered (WILD eq. 14).

    Parameters
    ----------
    items : DesignItems
    criterion : Criterion
    theta, covariance : (n_dims,), (n_dims, n_dims)
        Estimate of ability, whose information weights serve for all n, and its posterior covariance.
    n : int
    target_weights : (n_items,)
        Weights of the items in the score that 'v-optimal' is to make certain.
    is_open : (n_items,)
        Items that may be chosen.
    counts : (n_scenarios,)
        Items asked from each scenario so far.
    bounds : Bounds
    n_left : int
        Items that may be asked in all from here on: scenarios that lack as many come first.
    randomesque : int
        Draw each item uniformly from this many best, so that not every model is asked the same (Kingsbury and Zara
        1989).
    rng : Generator
    goal : (n_dims, n_dims), optional
        M of 'v-optimal', where the caller has it already (`goal_matrix`).

    Returns
    -------
    (n_chosen,)
        Positions in the order of choice; fewer than n when no more may be chosen.
    """
    if isinstance(criterion, VOptimality) and goal is None:
        goal = goal_matrix(items, target_weights, theta, of=criterion.of)
    weights = items.weights(theta) if uses_information(criterion) else np.zeros(items.n_items)
    is_open, counts = is_open.copy(), counts.copy()
    chosen: list[int] = []
    n_steps = min(n, n_left)
    for step in range(n_steps):
        scores = criterion_scores(
            items, criterion, theta, covariance, goal=goal, counts=counts, rng=rng, weights=weights
        )
        scores[~_allowed(items, is_open, counts, bounds, n_left - step)] = -np.inf
        item = _draw_best(scores, randomesque, rng)
        if item is None:
            break
        chosen.append(item)
        is_open[item] = False
        counts[items.scenario_index[item]] += 1
        if step + 1 == n_steps:
            break
        # information depends on ability but not on the answer, so that the covariance is known before any answer comes
        covariance = updated_covariance(covariance, items.loadings[item], float(weights[item]))
    return np.array(chosen, dtype=np.int64)


def allowed_scenarios(counts: IntArray, at_least: IntArray, at_most: IntArray, n_left: int) -> BoolArray:
    """Scenarios that the next item may come from, (n_scenarios,).

    A scenario must not be full. Once the items left are only as many as the scenarios still lack, the item must come
    from one of those.

    Parameters
    ----------
    counts, at_least, at_most : (n_scenarios,)
    n_left : int
        Items still to be chosen.
    """
    lacking = np.maximum(at_least - counts, 0)
    has_room: BoolArray = counts < at_most
    # more may be lacking than is left, as where a session ends early: those that lack then still come first
    return has_room & (lacking > 0) if lacking.sum() >= n_left else has_room


def _allowed(items: DesignItems, is_open: BoolArray, counts: IntArray, bounds: Bounds, n_left: int) -> BoolArray:
    """Open items of the scenarios that the next item may come from, (n_items,)."""
    at_least = bounds.at_least
    if np.any(counts < at_least):  # a scenario cannot owe more items than it has open
        n_open = np.bincount(items.scenario_index[is_open], minlength=items.n_scenarios)
        at_least = np.minimum(at_least, counts + n_open)
    scenarios = allowed_scenarios(counts, at_least, bounds.at_most, n_left)
    return is_open if scenarios.all() else is_open & scenarios[items.scenario_index]


def _draw_best(scores: FloatArray, randomesque: int, rng: np.random.Generator) -> int | None:
    """Position of the best score, or of one drawn from the best few; None where all are minus infinity."""
    best = int(first_largest(scores))
    if scores[best] == -np.inf:
        return None
    if randomesque == 1:
        return best
    # items that are not allowed have minus infinity and must not be drawn, even if fewer than `randomesque` are left
    n_best = min(randomesque, int(np.isfinite(scores).sum()))
    return int(rng.choice(np.argsort(-rounded(scores), kind="stable")[:n_best]))
