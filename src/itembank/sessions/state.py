"""`SessionState`: what a session's events have made of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from itembank.errors import DataError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.selection.item_worth import DesignItems
from itembank.sessions.events import Asked, Event, Extended, Failed, Told


@dataclass(slots=True)
class SessionState:
    """Where a session stands; `apply` alone changes it, so that the same events make the same state.

    The last word on an item counts: an answer replaces an earlier answer or failure, a failure an earlier answer.
    """

    is_open: BoolArray  # (n_items,): Items that may be asked: candidates neither pending, answered nor skipped
    counts: IntArray  # (n_scenarios,): Items of each scenario that are pending or answered
    n_open: IntArray  # (n_scenarios,): Open items of each scenario
    answers: dict[int, Told] = field(default_factory=dict)
    pending: dict[int, None] = field(default_factory=dict)  # In the order of asking
    skipped: set[int] = field(default_factory=set)  # Failed, and not to be asked again
    asked: set[int] = field(default_factory=set)  # Asked at any time
    failed_costs: list[Mapping[str, float]] = field(default_factory=list)  # Of failed attempts
    n_asks: int = 0  # Times that items were asked for
    events: list[Event] = field(default_factory=list)

    @property
    def n_used(self) -> int:
        """Items that are answered or pending."""
        return len(self.answers) + len(self.pending)

    @property
    def answered(self) -> IntArray:
        """Positions of the answered items in the bank's order, (n_answered,)."""
        return np.array(sorted(self.answers), dtype=np.int64)


def initial(items: DesignItems) -> SessionState:
    """Return the state before any event."""
    n_open = np.bincount(items.scenario_index[items.is_candidate], minlength=items.n_scenarios)
    return SessionState(items.is_candidate.copy(), np.zeros(items.n_scenarios, dtype=np.int64), n_open)


def fold(items: DesignItems, positions: Mapping[str, int], events: Iterable[Event]) -> SessionState:
    """Return the state after these events.

    Raises
    ------
    DataError
        When they are not those of one session over these items.
    """
    state = initial(items)
    for event in events:
        check(state, event, positions)
        apply(state, event, items, positions)
    return state


def check(state: SessionState, event: Event, positions: Mapping[str, int]) -> None:
    """Raise `DataError` when an event cannot follow on this state."""
    if isinstance(event, Extended):
        return
    item_ids = event.item_ids if isinstance(event, Asked) else (event.item_id,)
    check_items(item_ids, positions)
    if isinstance(event, Asked):
        twice = [item for item in item_ids if positions[item] in state.pending or positions[item] in state.answers]
        if twice or len(set(item_ids)) < len(item_ids):
            raise DataError(
                f"an item must not be asked while it is pending or answered, got {shown(twice or item_ids)}."
            )


def check_items(item_ids: Sequence[str], positions: Mapping[str, int]) -> None:
    """Raise `DataError` naming the items that are not in the bank."""
    unknown = [item for item in item_ids if not isinstance(item, str) or item not in positions]
    if unknown:
        raise DataError(
            f"every item must be in the bank, which has {len(positions)}, got {shown(unknown)}."
            f"{did_you_mean(unknown, positions)} Check the spelling, or take the bank that the session was started "
            "with."
        )


def apply(state: SessionState, event: Event, items: DesignItems, positions: Mapping[str, int]) -> None:
    """Change the state by an event that `check` let pass."""
    state.events.append(event)
    match event:
        case Asked(item_ids):
            state.n_asks += 1
            for item in item_ids:
                position = positions[item]
                _count(state, items, position)
                state.asked.add(position)
                state.pending[position] = None
        case Told():
            position = positions[event.item_id]
            _count(state, items, position)
            state.pending.pop(position, None)
            earlier = state.answers.get(position)
            if earlier is not None and not event.costs:  # a correction that is silent on costs changes none
                event = replace(event, costs=earlier.costs)
            state.answers[position] = event
        case Extended():  # the pool has the budget
            pass
        case Failed():
            _fail(state, event, items, positions[event.item_id])


def _count(state: SessionState, items: DesignItems, position: int) -> None:
    """Count an item as pending or answered."""
    state.skipped.discard(position)
    if position in state.pending or position in state.answers:
        return
    scenario = items.scenario_index[position]
    state.counts[scenario] += 1
    if state.is_open[position]:
        state.is_open[position] = False
        state.n_open[scenario] -= 1


def _fail(state: SessionState, event: Failed, items: DesignItems, position: int) -> None:
    scenario = items.scenario_index[position]
    if position in state.pending or position in state.answers:
        state.counts[scenario] -= 1
    state.pending.pop(position, None)
    taken_back = state.answers.pop(position, None)
    if taken_back is not None and taken_back.costs:
        state.failed_costs.append(taken_back.costs)  # it was spent all the same
    if event.costs:
        state.failed_costs.append(event.costs)
    if event.again:
        state.skipped.discard(position)
    else:
        state.skipped.add(position)
    is_open = event.again and bool(items.is_candidate[position])
    state.n_open[scenario] += int(is_open) - int(state.is_open[position])
    state.is_open[position] = is_open
