"""Items that a session draws at random among those that it chooses: a sample that no answer has had a say in."""

from dataclasses import replace

import numpy as np

from itembank.bank.selections import Selection
from itembank.numerics.arrays import IntArray
from itembank.sessions.events import Asked
from itembank.sessions.pool import SessionPool
from itembank.sessions.state import SessionState

ORDER, SHIFT = 1, 2
"""Streams of chance beside that of the criterion."""


def random_order(pool: SessionPool) -> IntArray:
    """Put all items that count into the order in which the session draws them at random, (n_counting,).

    Those of each scenario in random order, one of each scenario in turn. It follows from the seed alone, so that any
    beginning of it is a simple random sample of each scenario's items, whatever was answered.
    """
    rng = np.random.default_rng([pool.spec.seed, ORDER])
    targets = pool.basis.targets
    counting = rng.permutation(np.flatnonzero(targets.weights > 0.0))
    scenario = targets.scenario_index[counting]
    turn = np.empty(counting.size, dtype=np.int64)
    for one in np.unique(scenario):
        turn[scenario == one] = np.arange(np.sum(scenario == one))
    result: IntArray = counting[np.lexsort((scenario, turn))]
    return result


def drawn_next(pool: SessionPool, state: SessionState, n: int) -> dict[int, int]:
    """Draw those of the next n questions that are drawn at random: item positions by their places among the n.

    Every question of which ``floor(explore k + shift)`` is more than before, with a random shift: of any number of
    questions the share `explore`, to one. An item of the order that was chosen before is passed over; its answer is
    part of the sample.
    """
    explore = pool.spec.explore
    if not explore:
        return {}
    shift = np.random.default_rng([pool.spec.seed, SHIFT]).random()
    asked = [event for event in state.events if isinstance(event, Asked)]
    numbers = sum(len(event.item_ids) for event in asked) + np.arange(n + 1)
    places = np.flatnonzero(np.diff(np.floor(explore * numbers + shift)) > 0.0)
    known = {*state.pending, *state.answers, *state.skipped}
    order = random_order(pool)
    left = [item for item in order[n_drawn(pool, state) :].tolist() if item not in known]
    return dict(zip(places.tolist(), left, strict=False))


def n_drawn(pool: SessionPool, state: SessionState) -> int:
    """How far the random order was gone: its first so many items are the random sample."""
    drawn = {item for event in state.events if isinstance(event, Asked) for item in event.explored}
    if not drawn:
        return 0
    positions = [pool.positions[item] for item in drawn]
    return int(np.flatnonzero(np.isin(random_order(pool), positions)).max()) + 1


def random_sample(pool: SessionPool, state: SessionState) -> Selection:
    """Return the items that were drawn at random so far, with their probabilities: m of N in each scenario."""
    targets = pool.basis.targets
    items = random_order(pool)[: n_drawn(pool, state)]
    scenario = targets.scenario_index[items]
    n_all = np.bincount(targets.scenario_index[targets.weights > 0.0], minlength=targets.n_scenarios)
    mass = np.bincount(scenario, weights=targets.weights[items], minlength=targets.n_scenarios)
    sizes = np.bincount(scenario, minlength=targets.n_scenarios)
    return Selection(
        item_ids=tuple(pool.item_ids[item] for item in items.tolist()),
        scenarios=tuple(targets.scenarios[one] for one in scenario.tolist()),
        weights=targets.weights[items] / mass[scenario],
        method="random",
        bank=pool.bank_id,
        seed=pool.spec.seed,
        inclusion_probabilities=sizes[scenario] / n_all[scenario],
        target=pool.target_id,
        target_digest=pool.target_digest,
    )


def as_if_asked(pool: SessionPool, state: SessionState, positions: list[int]) -> SessionState:
    """Return the state with some more items pending; itself where there are none."""
    if not positions:
        return state
    is_open, counts, n_open = state.is_open.copy(), state.counts.copy(), state.n_open.copy()
    for position in positions:
        scenario = pool.items.scenario_index[position]
        counts[scenario] += 1
        n_open[scenario] -= int(is_open[position])
        is_open[position] = False
    pending = {**state.pending, **dict.fromkeys(positions)}
    return replace(state, is_open=is_open, counts=counts, n_open=n_open, pending=pending)
