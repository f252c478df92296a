"""What a session and a candidate's way through a gate share: items are asked, their answers told, and both kept."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from itembank.bank.costs import TOKENS
from itembank.errors import DataError, ParameterError, did_you_mean, quoted, remedy, shown
from itembank.estimation.drawn_one_by_one import Draw, DrawnDesign
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.reading_specs import COST_COLUMNS
from itembank.sessions.events import NOT_RECORDED, Answer, Asked, Event, Extended, Failed, Told, checked_costs, told


@dataclass(slots=True)
class SessionState:
    """What the events so far make; `apply` alone changes it, so that the same events make the same state.

    The last word on an item counts: an answer replaces an earlier answer or failure, a failure an earlier answer.
    """

    positions: Mapping[str, int]  # By item id
    is_candidate: BoolArray  # (n_items,)
    scenario_index: IntArray  # (n_items,)
    design: DrawnDesign | None  # Of sessions whose items are drawn
    is_open: BoolArray  # (n_items,): Items that may be asked: candidates neither pending, answered nor skipped
    counts: IntArray  # (n_scenarios,): Items of each scenario that are pending or answered
    n_open: IntArray  # (n_scenarios,): Open items of each scenario
    answers: dict[int, Told] = field(default_factory=dict)
    pending: dict[int, None] = field(default_factory=dict)  # In the order of asking
    skipped: dict[int, Failed] = field(default_factory=dict)  # Failed, and not to be asked again
    asked: set[int] = field(default_factory=set)  # Asked at any time
    failed_costs: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)  # Of attempts at positions
    n_asks: int = 0  # Times that items were asked for
    draws: list[Draw] = field(default_factory=list)  # Of items that were drawn, in the order of asking
    events: list[Event] = field(default_factory=list)

    @classmethod
    def after(
        cls,
        events: Iterable[Event],
        positions: Mapping[str, int],
        is_candidate: BoolArray,
        scenario_index: IntArray,
        *,
        n_scenarios: int,
        design: DrawnDesign | None = None,
    ) -> Self:
        """Return the state after these events."""
        n_open = np.bincount(scenario_index[is_candidate], minlength=n_scenarios)
        counts = np.zeros(n_scenarios, dtype=np.int64)
        state = cls(positions, is_candidate, scenario_index, design, is_candidate.copy(), counts, n_open)
        for event in events:
            state.check(event)
            state.apply(event)
        return state

    @property
    def lost(self) -> dict[int, int]:
        """Positions of the items whose answers were lost, with the kind of error."""
        return {position: kind for position, failed in sorted(self.skipped.items()) if (kind := failed.lost_to)}

    def with_lost_as(self, value: float, item_ids: Sequence[str]) -> Self:
        """Return a state in which lost answers are answers: 0 wrong, 1 right; for estimates alone, as none was told."""
        counted = {position: Told(item_ids[position], value) for position in self.lost}
        return replace(self, answers={**self.answers, **counted}) if counted else self

    @property
    def counted_draws(self) -> list[Draw]:
        """Draws before the first that waits for its answer: which answers come soon may hang on what they are."""
        waiting = (number for number, one in enumerate(self.draws) if one.item in self.pending)
        return self.draws[: next(waiting, len(self.draws))]

    @property
    def to_repeat(self) -> list[int]:
        """Items that were drawn, failed, and may be asked again, in the order of their draws."""
        return [one.item for one in self.draws if self.is_open[one.item]]

    @property
    def n_used(self) -> int:
        """Items that are answered or pending."""
        return len(self.answers) + len(self.pending)

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

    @property
    def costs(self) -> dict[str, float]:
        """Costs of all answers and failed attempts, summed by unit."""
        amounts: dict[str, list[float]] = {}
        for costs in (*(answer.costs for answer in self.answers.values()), *(costs for _, costs in self.failed_costs)):
            for unit, amount in costs.items():
                amounts.setdefault(unit, []).append(amount)
        return {unit: math.fsum(amounts[unit]) for unit in sorted(amounts)}  # exact, so that order does not matter

    def check(self, event: Event) -> None:
        """Raise `DataError` when an event cannot follow on this state."""
        if isinstance(event, Extended):
            return
        item_ids = event.item_ids if isinstance(event, Asked) else (event.item_id,)
        self.check_items(item_ids)
        if isinstance(event, Asked):
            places = [self.positions[item] for item in item_ids]
            twice = [
                item for item, one in zip(item_ids, places, strict=True) if one in self.pending or one in self.answers
            ]
            if twice or len(set(places)) < len(places):
                raise DataError(
                    f"an item must not be asked while it is pending or answered, got {shown(twice or item_ids)}."
                )

    def check_items(self, item_ids: Sequence[str]) -> None:
        """Raise `DataError` naming the items that are not in the bank."""
        unknown = [item for item in item_ids if not isinstance(item, str) or item not in self.positions]
        if unknown:
            raise DataError(
                f"every item must be in the bank, which has {len(self.positions)}, got {shown(unknown)}."
                f"{did_you_mean(unknown, self.positions)} Check the spelling, or take the bank that the session was "
                "started with."
            )

    def apply(self, event: Event) -> None:
        """Change the state by an event that `check` let pass."""
        self.events.append(event)
        match event:
            case Asked(item_ids):
                self.n_asks += 1
                known = None if self.design is None else self.design.predicted(self.answered, self.responses[0])
                repeats = self.to_repeat  # drawn already
                for item in item_ids:
                    position = self.positions[item]
                    is_new = self.is_open[position] and position not in repeats
                    if self.design is not None and known is not None and is_new:
                        is_closed, is_open = np.zeros(self.is_open.shape, dtype=bool), self.is_open.copy()
                        is_closed[[*self.answers, *self.pending, *self.skipped, *repeats]] = True
                        is_open[repeats] = False
                        self.draws.append(self.design.drawn(position, is_open, is_closed, *known))
                    self._count(position)
                    self.asked.add(position)
                    self.pending[position] = None
            case Told():
                position = self.positions[event.item_id]
                self._count(position)
                self.pending.pop(position, None)
                earlier = self.answers.get(position)
                if earlier is not None and not event.costs:  # a correction that is silent on costs changes none
                    event = replace(event, costs=earlier.costs)
                self.answers[position] = event
            case Failed():
                self._fail(event)
            case Extended():  # the pool has the budget
                pass

    def _count(self, position: int) -> None:
        self.skipped.pop(position, None)
        if position in self.pending or position in self.answers:
            return
        scenario = self.scenario_index[position]
        self.counts[scenario] += 1
        if self.is_open[position]:
            self.is_open[position] = False
            self.n_open[scenario] -= 1

    def _fail(self, event: Failed) -> None:
        position = self.positions[event.item_id]
        scenario = self.scenario_index[position]
        if position in self.pending or position in self.answers:
            self.counts[scenario] -= 1
        # what was tried was paid for, told or not; a failure of what nobody asked for, or of a record's gap, was not
        if event.costs or (position in self.pending and event.reason != NOT_RECORDED):
            self.failed_costs.append((position, event.costs))
        self.pending.pop(position, None)
        taken_back = self.answers.pop(position, None)
        if taken_back is not None:
            self.failed_costs.append((position, taken_back.costs))
        self.skipped.pop(position, None)
        if not event.again:
            self.skipped[position] = event
        is_open = event.again and bool(self.is_candidate[position])
        self.n_open[scenario] += int(is_open) - int(self.is_open[position])
        self.is_open[position] = is_open


class EventLog(Protocol):
    """Where events are kept before they count."""

    def append(self, event: Mapping[str, Any]) -> None:
        """Keep the plain data of an event for good; when this raises, the event has not happened."""
        ...


class Asking(ABC):
    """One model on its way through items, whoever chooses them: what drives a session drives a gate's candidate, too.

    A session (`AdaptiveSession`) chooses items by the answers so far, a gate (`GateRun`) by its plan.
    """

    def __init__(
        self,
        model_id: str,
        state: SessionState,
        item_ids: Sequence[str],
        *,
        units: Sequence[str],  # Of costs that are known
        journal: EventLog | None,
    ) -> None:
        self._model_id = check_model_id(model_id)
        self._state, self._item_ids, self._units, self._journal = state, item_ids, units, journal

    @abstractmethod
    def ask(self, n: int = 1) -> tuple[str, ...]:
        """Choose up to n items to be answered next, none of them pending or answered; none when nothing is asked."""

    @property
    @abstractmethod
    def reason_stopped(self) -> str | None:
        """Why no more items are asked, None while they are."""

    @property
    @abstractmethod
    def askable(self) -> tuple[str, ...]:
        """All items that may be asked."""

    def tell(
        self,
        item_id: str,
        response: float | None = None,
        *,
        n_correct: int | None = None,
        n_trials: int | None = None,
        costs: Mapping[str, float] | None = None,
        new_units: bool = False,
    ) -> None:
        """Take the answer to an item, whether it was asked or not; an earlier answer to it is replaced.

        Parameters
        ----------
        item_id : str
        response : float
            In [0, 1].
        n_correct, n_trials : int
            Instead of a response: how many of repeated trials were correct. Their mean counts in scores; for ability
            each trial counts, unless the bank's responses are probabilities (family 'beta').
        costs : mapping of unit to amount
            What the answer cost.
        new_units : bool
            Take costs in units that neither the bank has nor are usual, which are refused as slips otherwise.

        Raises
        ------
        DataError
            When the item is not in the bank, a number is not valid, or a unit is unknown.
        """
        self.take(told(item_id, response, n_correct, n_trials, costs), new_units=new_units)

    def tell_failed(
        self,
        item_id: str,
        *,
        again: bool = False,
        reason: str = "",
        costs: Mapping[str, float] | None = None,
        new_units: bool = False,
    ) -> None:
        """Take note that an item could not be answered; an earlier answer to it is taken back.

        Parameters
        ----------
        item_id : str
        again : bool
            Whether it may be asked again; else it is skipped.
        reason : str
        costs : mapping of unit to amount
            What the attempt cost nevertheless; of an item that was asked as expected, where it is not told.
        new_units : bool
            As for `tell`.

        Raises
        ------
        DataError
            When the item is not in the bank, or a cost is not valid.
        """
        costs = checked_costs(costs, f"item {quoted(item_id)}")
        self.take(Failed(item_id, bool(again), str(reason), costs), new_units=new_units)

    def take(self, answer: Answer, *, new_units: bool = False) -> None:
        """Take an answer or a failure, as `tell` and `tell_failed` do."""
        self.check_items([answer.item_id])
        self.check_costs(answer, new_units=new_units)
        if isinstance(answer, Told):
            position = self._state.positions[answer.item_id]
            is_correction = position in self._state.answers
            answer = replace(answer, was_asked=position in self._state.asked, is_correction=is_correction)
        self._record(answer)

    def check_costs(self, answer: Answer, *, new_units: bool = False) -> None:
        """Raise `DataError` for costs in units that are neither known nor usual."""
        known = tuple(dict.fromkeys((*self._units, TOKENS, *COST_COLUMNS)))
        unknown = [] if new_units else [unit for unit in answer.costs if unit not in known]
        if unknown and self._units:
            raise DataError(
                f"costs must be in a unit that the bank has or that is usual ({shown(known, len(known))}), got "
                f"{shown(unknown)} for item {quoted(answer.item_id)}.{did_you_mean(unknown, known)} A unit that is "
                f"meant to be new needs {remedy('new_units=True', '--new-units')}."
            )

    def check_items(self, item_ids: Iterable[str]) -> None:
        """Raise `DataError` naming the items that may not be told."""
        self._state.check_items(list(item_ids))

    def _record(self, event: Event) -> None:
        """Let an event happen: checked, kept, applied, in this order, so that an error changes nothing."""
        self._state.check(event)
        if self._journal is not None:
            self._journal.append(event.to_dict())
        self._state.apply(event)

    @property
    def model_id(self) -> str:
        """The model that answers."""
        return self._model_id

    @property
    def history(self) -> tuple[Event, ...]:
        """All events, oldest first."""
        return tuple(self._state.events)

    @property
    def told(self) -> dict[str, Told]:
        """The answer that counts for each answered item, in the bank's order."""
        answers = self._state.answers
        return {self._item_ids[position]: answers[position] for position in sorted(answers)}

    @property
    def lost(self) -> dict[str, int]:
        """Items whose answers were lost, with the kind of error (`itembank.responses.error_kinds.KINDS`)."""
        return {self._item_ids[position]: kind for position, kind in self._state.lost.items()}

    @property
    def pending(self) -> tuple[str, ...]:
        """Items that were asked and are neither answered nor failed, in the order of asking."""
        return tuple(self._item_ids[position] for position in self._state.pending)

    @property
    def n_items(self) -> int:
        """Number of answered items."""
        return len(self._state.answers)

    @property
    def costs(self) -> dict[str, float]:
        """Known costs so far, summed by unit; failed attempts included."""
        return self._state.costs


def check_model_id(model_id: str) -> str:
    """Return the id of a session's model, or raise `ParameterError`."""
    if not isinstance(model_id, str) or not model_id:
        raise ParameterError(f"model_id must be text and not empty, got {model_id!r}.")
    return model_id
