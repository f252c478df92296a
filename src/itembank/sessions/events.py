"""What can happen in a session (items are asked, answers told, attempts fail, the budget is raised), and what it makes.

A session is the list of its events: everything else follows from them, from the bank and from the settings.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from itembank.errors import DataError, ItembankError, did_you_mean, quoted, shown
from itembank.estimation.drawn_one_by_one import Draw, DrawnDesign
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.error_kinds import ERROR, error_kind
from itembank.selection.item_worth import DesignItems
from itembank.sessions.limits import Budget

EXTENDED = "extended"

NOT_RECORDED = "no recorded response"
"""Reason of a failure that lost no answer: a record that stands in for a model has none."""


MOST_COST = 1e15
"""Of one answer in any unit; more is a slip, and sums of it might be no number any more."""


class _Event:
    """What all events share: they are plain data in a journal, in which numbers survive to the last bit."""

    __slots__ = ()
    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `event_from_dict` reads it; without what is not known."""
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {"event": self.kind, **{name: value for name, value in fields.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Asked(_Event):
    """Items handed out together, in the order they were chosen."""

    kind = "asked"
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told(_Event):
    """The answer to an item."""

    kind = "told"
    item_id: str
    response: float  # In [0, 1]; with trials the share of them that were correct
    n_correct: int | None = None  # Of repeated trials; both or neither
    n_trials: int | None = None
    costs: Mapping[str, float] = field(default_factory=dict)  # What the answer cost; from 0 to `MOST_COST`
    was_asked: bool = True  # False for an answer to an item that the session never asked: it counts all the same
    is_correction: bool = False  # Whether it replaces an earlier answer


@dataclass(frozen=True, slots=True)
class Failed(_Event):
    """An item that could not be answered; an earlier answer to it is taken back."""

    kind = "failed"
    item_id: str
    again: bool = False  # Whether it may be asked again; else it is skipped
    reason: str = ""  # For people
    costs: Mapping[str, float] = field(default_factory=dict)  # What the attempt cost, where that is known


@dataclass(frozen=True, slots=True)
class Extended(_Event):
    """The budget was raised: this one holds from here on."""

    kind = EXTENDED
    budget: Budget


Event: TypeAlias = Asked | Told | Failed | Extended


def event_from_dict(record: Mapping[str, Any]) -> Event:
    """Make an event of the plain data that its `to_dict` gave."""
    if not isinstance(record, Mapping):
        raise DataError(f"an event must be an object of named fields, got {record!r}.")
    fields = dict(record)
    kind = fields.pop("event", None)
    match kind:
        case "asked":
            event: Event = Asked(tuple(_take(fields, kind, "item_ids", _is_texts)))
        case "told":
            item_id = _take(fields, kind, "item_id", _is_text)
            response = checked_response(fields.pop("response", None), item_id)
            n_correct, n_trials = fields.pop("n_correct", None), fields.pop("n_trials", None)
            if n_correct is not None or n_trials is not None:
                n_correct, n_trials = checked_counts(n_correct, n_trials, item_id)
                if response != n_correct / n_trials:
                    raise DataError(
                        f"response of item {quoted(item_id)} must be n_correct / n_trials = {n_correct} / {n_trials}, "
                        f"got {response}."
                    )
            event = Told(
                item_id,
                response,
                n_correct,
                n_trials,
                checked_costs(_take(fields, kind, "costs", Mapping), f"item {quoted(item_id)}"),
                _take(fields, kind, "was_asked", bool),
                _take(fields, kind, "is_correction", bool),
            )
        case "failed":
            event = Failed(
                _take(fields, kind, "item_id", _is_text),
                _take(fields, kind, "again", bool),
                _take(fields, kind, "reason", str),
                checked_costs(_take(fields, kind, "costs", Mapping), "a failed attempt"),
            )
        case "extended":
            plain = _take(fields, kind, "budget", Mapping)
            try:
                event = Extended(Budget(**plain))
            except (TypeError, AttributeError, ItembankError) as error:
                raise DataError(
                    f"event 'extended' must have a budget of n_items and costs, got {plain!r}: {error}"
                ) from error
        case _:
            raise DataError(f"an event must be 'asked', 'told', 'failed' or 'extended', got {kind!r}.")
    if fields:
        raise DataError(f"event {kind!r} must have no field {', '.join(map(repr, sorted(fields, key=str)))}.")
    return event


def checked_response(response: object, item_id: str) -> float:
    """Return a response as a number in [0, 1], or raise `DataError`."""
    try:
        value = float(response)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(response, str) or not 0.0 <= value <= 1.0:
        raise DataError(
            f"a response must be a number in [0, 1], got {response!r} for item {quoted(item_id)}. Rescale it, or tell "
            "that the attempt failed."
        )
    return value + 0.0  # -0.0 would be another number in a journal


def checked_counts(n_correct: object, n_trials: object, item_id: str) -> tuple[int, int]:
    """Return counts of correct and of all trials as whole numbers, or raise `DataError`."""
    most = 10**9  # more are a slip, and would not fit the numbers that responses are kept in
    correct, trials = _whole(n_correct), _whole(n_trials)
    if correct is None or trials is None or not 0 <= correct <= trials or not 1 <= trials <= most:
        raise DataError(
            "n_correct and n_trials must be whole numbers with 0 <= n_correct <= n_trials and n_trials from 1 to "
            f"{most}, got {n_correct!r} of {n_trials!r} for item {quoted(item_id)}."
        )
    return correct, trials


def counts_behind(response: float, n_trials: int) -> tuple[int, int] | None:
    """Return the counts that a recorded mean of trials stands for; None without trials, or where it is none.

    Means may have been kept in float32, which tells all means of up to a few million trials apart.
    """
    if n_trials < 1:
        return None
    n_correct = round(response * n_trials)
    rounding = 1.2e-7  # relative, of float32
    return (n_correct, n_trials) if math.isclose(n_correct / n_trials, response, rel_tol=rounding) else None


def checked_costs(costs: Mapping[str, float] | None, owner: str) -> dict[str, float]:
    """Return costs by unit as numbers from 0 to `MOST_COST`, or raise `DataError`."""
    result = {}
    if costs is not None and not isinstance(costs, Mapping):
        raise DataError(f"costs must be given by unit, as in {{'cost_usd': 0.01}}, got {costs!r} for {owner}.")
    amounts: dict[Any, Any] = dict(costs or {})
    for unit, amount in amounts.items():
        try:
            value = float(amount)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not _is_text(unit) or isinstance(amount, str) or not 0.0 <= value <= MOST_COST:
            raise DataError(
                f"a cost must be a number from 0 to {MOST_COST:g}, got {amount!r} {unit} for {owner}. Leave out what "
                "is not known."
            )
        result[unit] = value + 0.0
    return result


def _take(fields: dict[str, Any], kind: str, name: str, fits: type[Any] | Callable[[Any], bool]) -> Any:
    """Take a field that must be there and fit: be of a type, or what a function says."""
    is_fit = isinstance(fields.get(name), fits) if isinstance(fits, type) else fits(fields.get(name))
    if name not in fields or not is_fit:
        raise DataError(f"event {kind!r} must have a fitting field {name!r}, got {fields.get(name)!r}.")
    return fields.pop(name)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_text, value))


def _whole(value: object) -> int | None:
    """Return a whole number as int, None for anything else."""
    if isinstance(value, bool | str) or not hasattr(value, "__index__"):
        return None
    return int(value.__index__())


@dataclass(slots=True)
class SessionState:
    """The state of a session; `apply_event` alone changes it, so that the same events make the same state.

    The last word on an item counts: an answer replaces an earlier answer or failure, a failure an earlier answer.
    """

    is_open: BoolArray  # (n_items,): Items that may be asked: candidates neither pending, answered nor skipped
    counts: IntArray  # (n_scenarios,): Items of each scenario that are pending or answered
    n_open: IntArray  # (n_scenarios,): Open items of each scenario
    answers: dict[int, Told] = field(default_factory=dict)
    pending: dict[int, None] = field(default_factory=dict)  # In the order of asking
    # Failed, and not to be asked again, with the kind of error; 0 where a record has no answer, which is none
    skipped: dict[int, int] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)  # Asked at any time
    failed_costs: list[Mapping[str, float]] = field(default_factory=list)  # Of failed attempts
    n_asks: int = 0  # Times that items were asked for
    draws: list[Draw] = field(default_factory=list)  # Of items that were drawn, in the order of asking
    events: list[Event] = field(default_factory=list)

    @property
    def lost(self) -> dict[int, int]:
        """Positions of the items whose answers were lost, with the kind of error."""
        return {position: kind for position, kind in sorted(self.skipped.items()) if kind}

    def with_lost_as(self, value: float, item_ids: Sequence[str]) -> "SessionState":
        """Return a state in which lost answers are answers: 0 wrong, 1 right; for estimates alone, as none was told."""
        told = {position: Told(item_ids[position], value) for position in self.lost}
        return replace(self, answers={**self.answers, **told}) if told else self

    @property
    def counted_draws(self) -> list[Draw]:
        """Draws before the first that waits for its answer: which answers come soon may hang on what they are."""
        waiting = (number for number, one in enumerate(self.draws) if one.item in self.pending)
        return self.draws[: next(waiting, len(self.draws))]

    @property
    def n_used(self) -> int:
        """Items that are answered or pending."""
        return len(self.answers) + len(self.pending)

    @property
    def is_closed(self) -> BoolArray:
        """Items that are answered, pending or skipped, (n_items,)."""
        result = np.zeros(self.is_open.shape, dtype=bool)
        result[[*self.answers, *self.pending, *self.skipped]] = True
        return result

    @property
    def answered(self) -> IntArray:
        """Positions of the answered items in the bank's order, (n_answered,)."""
        return np.array(sorted(self.answers), dtype=np.int64)

    @property
    def responses(self) -> FloatArray:
        """Responses to the answered items, (1, n_answered)."""
        return np.array([[self.answers[position].response for position in sorted(self.answers)]])

    @property
    def n_trials(self) -> FloatArray:
        """Trials behind these responses, (1, n_answered)."""
        return np.array([[self.answers[one].n_trials or 1 for one in sorted(self.answers)]], dtype=np.float64)


def state_after(
    items: DesignItems, positions: Mapping[str, int], events: Iterable[Event], design: DrawnDesign | None = None
) -> SessionState:
    """Return the state after these events; the design is that of sessions whose items are drawn."""
    n_open = np.bincount(items.scenario_index[items.is_candidate], minlength=items.n_scenarios)
    state = SessionState(items.is_candidate.copy(), np.zeros(items.n_scenarios, dtype=np.int64), n_open)
    for event in events:
        check_event(state, event, positions)
        apply_event(state, event, items, positions, design)
    return state


def check_event(state: SessionState, event: Event, positions: Mapping[str, int]) -> None:
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


def apply_event(
    state: SessionState,
    event: Event,
    items: DesignItems,
    positions: Mapping[str, int],
    design: DrawnDesign | None = None,
) -> None:
    """Change the state by an event that `check_event` let pass."""
    state.events.append(event)
    match event:
        case Asked(item_ids):
            state.n_asks += 1
            known = None if design is None else design.predicted(state.answered, state.responses[0])
            for item in item_ids:
                position = positions[item]
                if design is not None and known is not None and state.is_open[position]:
                    state.draws.append(design.drawn(position, state.is_open, state.is_closed, *known))
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
    state.skipped.pop(position, None)
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
    state.skipped.pop(position, None)
    if not event.again:
        state.skipped[position] = 0 if event.reason == NOT_RECORDED else error_kind(event.reason) or ERROR
    is_open = event.again and bool(items.is_candidate[position])
    state.n_open[scenario] += int(is_open) - int(state.is_open[position])
    state.is_open[position] = is_open
