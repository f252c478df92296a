"""A candidate on its way through the stages of a gate: what is asked, told and kept, by the methods of a session."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, did_you_mean, shown, visible
from itembank.files.documents import RECORD_KEY, read_json
from itembank.gating.lost import how_to_count
from itembank.gating.results import Gate
from itembank.gating.stages import PLAN, GatePlan
from itembank.responses.error_kinds import Errors
from itembank.responses.lost_answers import one_policy
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answers import told_responses
from itembank.sessions.asking import Asking, EventLog, SessionState, check_model_id
from itembank.sessions.events import Answer, Asked, Event, Failed, Told, event_from_dict
from itembank.sessions.journal import Journal
from itembank.tables import amount
from itembank.tabular import Fact

KIND = "itembank gate answers"


class GateRun(Asking):
    """The answers of a candidate so far, and which items it is to run next.

    It asks for the items of a stage, looks when all of them are answered, and asks no more as soon as there is a
    verdict.
    """

    def __init__(
        self,
        plan: GatePlan,
        *,
        model_id: str,  # The candidate's
        bank: Bank | None = None,  # That of a gate with a bank; by default it is loaded from where it lay
        events: Iterable[Answer] = (),  # Of before; items that failed are asked again
        journal: EventLog | None = None,  # Keeps each answer
    ) -> None:
        n_items, positions = len(plan.order), {item: place for place, item in enumerate(plan.order)}
        is_candidate, one_scenario = np.ones(n_items, dtype=bool), np.zeros(n_items, dtype=np.int64)
        state = SessionState.after(events, positions, is_candidate, one_scenario, n_scenarios=1)
        super().__init__(model_id, state, plan.order, units=tuple(plan.baseline.costs), journal=journal)
        self.plan = plan
        self.found: Gate | None = None
        """What the last look found."""
        self._probabilities: Callable[[], ResponseMatrix | None] = lambda: None
        self._bank = plan.bank() if bank is None or bank.bank_id != plan.bank_id else bank
        self._keeps_lost = one_policy([plan.baseline.lost], plan.spec.errors) != "missing"
        if not self._keeps_lost:
            state.skipped.clear()
        self._left: dict[str, None] = {}  # Items of the stage without an answer
        self._look()

    @property
    def askable(self) -> tuple[str, ...]:
        """All items that may be asked."""
        return self.plan.order[: self.plan.sizes[-1]]

    @property
    def reason_stopped(self) -> str | None:
        """Why no item is asked any more: the verdict."""
        return None if self._left or self.found is None else self.found.verdict

    @property
    def result(self) -> Gate:
        """The verdict, once nothing is asked any more."""
        if self.found is None or self._left:
            answered, failed = self._answered, list(self._state.skipped.values())
            n_stage = next(size for size in self.plan.sizes if not answered.issuperset(self.plan.order[:size]))
            lacking = [one.item_id for one in failed] or list(self._left)
            why = f" ({visible(failed[0].reason)})" if failed else ""
            raise DataError(
                f"the gate looks when all {n_stage} items of a stage are answered, and {len(lacking)} are not: "
                f"{shown(lacking)}{why}. Fix that, and give the same command again: answers are kept, and only these "
                f"items are run.{f' {how_to_count()}.' if failed else ''}"
            )
        spent = " and ".join(f"{amount(cost)} {visible(unit)}" for unit, cost in self.costs.items())
        notes = [Fact(f"the candidate's answers cost {spent}, failed attempts among them")] if spent else []
        return replace(self.found, notes=(*self.found.notes, *notes))

    def look_with(self, probabilities: Callable[[], ResponseMatrix | None]) -> None:
        """From now on look also at the candidate's probabilities of the right options, which a function gives."""
        self._probabilities = probabilities
        self._look()

    def ask(self, n: int = 1) -> tuple[str, ...]:
        """Give up to n further items of the stage; none while all of them wait, or when there is a verdict."""
        taken = {*self.pending, *(one.item_id for one in self._state.skipped.values())}
        item_ids = tuple(itertools.islice((item for item in self._left if item not in taken), n))
        if item_ids:  # not kept: what has no answer is asked again
            self._state.apply(Asked(item_ids))
        return item_ids

    def check_items(self, item_ids: Iterable[str]) -> None:
        """Raise `DataError` naming the items that are not of the gate."""
        unknown = [item for item in item_ids if item not in self.plan.order]
        if unknown:
            raise DataError(
                f"every item must be of the gate, got {shown(unknown)}.{did_you_mean(unknown, self.plan.order)}"
            )

    def _record(self, event: Event) -> None:
        super()._record(event)
        if isinstance(event, Told) or (isinstance(event, Failed) and not event.again and self._keeps_lost):
            self._left.pop(event.item_id, None)
            if not self._left:
                self._look()

    @property
    def _lost(self) -> dict[str, int]:
        """Items whose answers count though they were lost, with the kind of error."""
        return self.lost if self._keeps_lost else {}

    @property
    def _answered(self) -> set[str]:
        return {*self.told, *self._lost}

    def _look(self) -> None:
        """Take the looks that the answers allow, and find out what is left to be run."""
        answered = self._answered
        self._left = dict.fromkeys(self.plan.next_items(answered))
        if answered.issuperset(self.plan.order[: self.plan.sizes[0]]):
            models = pl.DataFrame({"model_id": [self.model_id]})
            given = told_responses(self.told, self._lost, self.plan.baseline.items, models)
            self.found = self.plan.look(given, bank=self._bank, probabilities=self._probabilities())
            self._left = dict.fromkeys(self.found.next_items)


@contextmanager
def open_gate_run(
    path: Path,  # Of the candidate's answers
    gate: Path,  # Folder
    *,
    model_id: str,
    bank: Bank | None = None,  # As of `GateRun`
    errors: Errors | None = None,  # What items count as that fail, unless as the plan says
) -> Iterator[GateRun]:
    """Begin a candidate's way through a gate, or go on with the answers that a file keeps.

    Raises `DataError` when the file is of another gate or candidate; `JournalError` when another process writes it, or
    it cannot be written.
    """
    plan = GatePlan.load(gate).with_errors(errors)
    header = {"gate": read_json(gate / PLAN)[RECORD_KEY], "model_id": check_model_id(model_id)}
    is_there = path.exists()
    with Journal.open(path, kind=KIND) if is_there else Journal.create(path, {"kind": KIND, **header}) as journal:
        kept = {name: journal.content.header.get(name) for name in header}
        if kept["gate"] != header["gate"]:
            raise DataError(f"{path} holds answers for another gate than {gate}. Take another folder.")
        if kept != header:
            raise DataError(
                f"{path} holds answers of {visible(str(kept['model_id']))}, got the candidate {visible(model_id)}. "
                "Repeat the name, or take another folder."
            )
        n_bytes = path.stat().st_size
        kept_events = map(event_from_dict, journal.content.events)
        events = [event for event in kept_events if isinstance(event, Told | Failed)]
        try:
            yield GateRun(plan, model_id=model_id, bank=bank, events=events, journal=journal)
        finally:
            if not is_there and path.exists() and path.stat().st_size == n_bytes:  # refused before anything was told
                path.unlink()
