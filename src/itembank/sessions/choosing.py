"""Which items a session asks next."""

import numpy as np
from scipy.special import ndtri

from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.selection.criteria import uses_chance
from itembank.selection.greedy import next_items
from itembank.selection.item_worth import goal_matrix, updated_covariance
from itembank.sessions.pool import SessionPool
from itembank.sessions.spending import left_of_budget, own_costs, with_reserve
from itembank.sessions.state import SessionState

_NEVER_USED = np.random.default_rng(0)


def choose(
    pool: SessionPool,
    state: SessionState,
    theta: FloatArray,
    covariance: FloatArray,
    *,
    start: FloatArray,
    n: int,
    is_precise: bool = False,
) -> IntArray:
    """Choose the n best items, fewer when no more may be asked: positions in the order of choice.

    Pending items count as answered. With a budget of costs, or while the first items cover the range of ability, items
    are chosen one by one, since what may follow depends on each.

    Parameters
    ----------
    pool : SessionPool
    state : SessionState
    theta, covariance : (n_dims,), (n_dims, n_dims)
        Ability from what is answered.
    start : (n_start, n_dims)
        Abilities for which the first items are chosen, see `start_abilities`.
    n : int
    is_precise : bool
        Whether nothing is wanted any more but items of scenarios that lack some.
    """
    n_left = _n_left(pool, state)
    if is_precise:
        n_left = min(n_left, int(np.maximum(pool.bounds.at_least - state.counts, 0).sum()))
    rng = _chance(pool, state)
    covariance = with_pending(pool, state, theta, covariance)
    if not pool.spec.budget.costs and state.n_used >= len(start):
        return _next(pool, theta, covariance, n, is_open=state.is_open, counts=state.counts, n_left=n_left, rng=rng)
    return _choose_in_turn(pool, state, theta, covariance, start=start, n=min(n, n_left), n_left=n_left, rng=rng)


def _n_left(pool: SessionPool, state: SessionState) -> int:
    """Items that may still be asked, costs apart."""
    budget = pool.spec.budget
    return int(state.n_open.sum()) if budget.n_items is None else budget.n_items - state.n_used


def _chance(pool: SessionPool, state: SessionState) -> np.random.Generator:
    """Return the generator of this ask; where nothing is drawn, one for all: to make one takes as long as to choose."""
    if uses_chance(pool.criterion) or pool.spec.constraints.randomesque > 1:
        return np.random.default_rng([pool.spec.seed, state.n_asks])
    return _NEVER_USED


def start_abilities(pool: SessionPool, prior: AbilityPrior) -> FloatArray:
    """Abilities for which the first `n_start` items are chosen, (n_start, n_dims), the middle first.

    Quantiles ``(k + 1/2) / n_start`` of the prior along the direction in which the wanted score varies most with
    ability as it is distributed: ``mu + z Sigma g / sqrt(g' Sigma g)`` with g the score's gradient at mu, which is the
    expected ability given how far the score lies from its mean, to first order.
    """
    n_start = pool.spec.n_start
    if n_start == 0:
        return np.empty((0, prior.n_dims))
    quantiles = ndtri((np.arange(n_start) + 0.5) / n_start)
    quantiles = quantiles[np.argsort(np.abs(quantiles), kind="stable")]
    outer = goal_matrix(pool.items, pool.target_weights, prior.mean, of="score")
    gradient = np.linalg.eigh(outer)[1][:, -1]
    along = prior.covariance @ gradient
    length = float(np.sqrt(gradient @ along))
    direction = along / length if length > 0.0 else np.zeros(prior.n_dims)
    result: FloatArray = prior.mean + quantiles[:, None] * direction
    return result


def with_pending(pool: SessionPool, state: SessionState, theta: FloatArray, covariance: FloatArray) -> FloatArray:
    """Covariance of ability as if the pending items had been answered, (n_dims, n_dims)."""
    if not state.pending:
        return covariance
    positions = np.array(sorted(state.pending), dtype=np.int64)
    loadings = pool.items.loadings[positions]
    weights = _weights(pool, positions, theta)
    result: FloatArray = np.linalg.inv(np.linalg.inv(covariance) + (loadings.T * weights) @ loadings)
    return result


def _choose_in_turn(
    pool: SessionPool,
    state: SessionState,
    theta: FloatArray,
    covariance: FloatArray,
    *,
    start: FloatArray,
    n: int,
    n_left: int,
    rng: np.random.Generator,
) -> IntArray:
    is_open, counts, costs = state.is_open.copy(), state.counts.copy(), own_costs(pool, state)
    left = left_of_budget(pool, state, costs)
    chosen: list[int] = []
    for step in range(n):
        number = state.n_used + step
        at = start[number] if number < len(start) else theta
        may, is_enough = with_reserve(pool, is_open, counts, left, costs)
        # of what cannot be had in full, scenarios that lack items get what is left
        n_more = n_left - step if is_enough else 1
        best = _next(pool, at, covariance, 1, is_open=may, counts=counts, n_left=n_more, rng=rng)
        if not best.size:
            break
        item = int(best[0])
        chosen.append(item)
        is_open[item] = False
        counts[pool.items.scenario_index[item]] += 1
        left = {name: amount - float(costs[name][item]) for name, amount in left.items()}
        weight = float(_weights(pool, best, at)[0])
        covariance = updated_covariance(covariance, pool.items.loadings[item], weight)
    return np.array(chosen, dtype=np.int64)


def _weights(pool: SessionPool, positions: IntArray, theta: FloatArray) -> FloatArray:
    """Fisher information in the logit of some items at theta, (n_positions,)."""
    items = pool.items
    model = items.model.take(positions)
    return model.information_weights(items.loadings[positions] @ theta + items.intercept[positions])


def _next(
    pool: SessionPool,
    theta: FloatArray,
    covariance: FloatArray,
    n: int,
    *,
    is_open: BoolArray,
    counts: IntArray,
    n_left: int,
    rng: np.random.Generator,
) -> IntArray:
    """Choose by the pool's criterion, target and bounds."""
    return next_items(
        pool.items,
        pool.criterion,
        theta,
        covariance,
        n,
        target_weights=pool.target_weights,
        is_open=is_open,
        counts=counts,
        bounds=pool.bounds,
        n_left=n_left,
        randomesque=pool.spec.constraints.randomesque,
        rng=rng,
        goal=pool.goal,
    )
