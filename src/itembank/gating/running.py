"""A candidate on its way through the stages of a gate: what is asked, told and kept, by the methods of a session."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, did_you_mean, quoted, shown, visible
from itembank.files.documents import RECORD_KEY, read_json
from itembank.gating.lost import how_to_count
from itembank.gating.results import Gate
from itembank.gating.stages import PLAN, GatePlan
from itembank.responses.error_kinds import ERROR, Errors, error_kind
from itembank.responses.lost_answers import one_policy
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answers import told_responses
from itembank.sessions.choosing import fit_costs, told_costs
from itembank.sessions.events import Failed, Told, checked_counts, checked_response
from itembank.sessions.journal import Journal
from itembank.sessions.journal_sessions import events_of
from itembank.sessions.session import check_model_id

KIND = "itembank gate answers"


class GateRun:
    """The answers of a candidate so far, and which items it is to run next.

    Whatever drives a session (`itembank.harnesses.drive`) drives this in its place: it asks for the items of a stage,
    looks when all of them are answered, and asks no more as soon as there is a verdict.
    """

    def __init__(
        self,
        plan: GatePlan,
        *,
        model_id: str,  # The candidate's
        bank: Bank | None = None,  # That of a gate with a bank; by default it is loaded from where it lay
        events: Iterable[Told | Failed] = (),  # Of before; items that failed are asked again
        journal: Journal | None = None,  # Keeps each answer
    ) -> None:
        self.plan, self.model_id = plan, check_model_id(model_id)
        self.found: Gate | None = None
        """What the last look found."""
        self._probabilities: Callable[[], ResponseMatrix | None] = lambda: None
        self._bank = plan.bank() if bank is None or bank.bank_id != plan.bank_id else bank
        self._journal: Journal | None = None
        self._answers: dict[str, Told] = {}
        self._keeps_lost = one_policy([plan.baseline.lost], plan.spec.errors) != "missing"
        self._failed: dict[str, str] = {}  # Reasons of the items that are not asked again
        self._failed_costs: list[Mapping[str, float]] = []
        self._pending: dict[str, None] = {}
        self._left: dict[str, None] = {}  # Items of the stage without an answer
        for event in events:
            self._record(event)
        if not self._keeps_lost:
            self._failed.clear()
        self._look()
        self._journal = journal

    @property
    def n_items(self) -> int:
        """Items that are answered."""
        return len(self._answers)

    @property
    def pending(self) -> tuple[str, ...]:
        """Items that were asked and wait for their answers."""
        return tuple(self._pending)

    @property
    def costs(self) -> dict[str, float]:
        """What answers and failed attempts cost, by unit."""
        return told_costs(self._answers.values(), self._failed_costs)

    @property
    def askable(self) -> tuple[str, ...]:
        """All items that may be asked."""
        return self.plan.order[: self.plan.sizes[-1]]

    @property
    def reason_stopped(self) -> str | None:
        """Why no item is asked any more."""
        return None if self._left or self.found is None else self.found.verdict

    @property
    def result(self) -> Gate:
        """The verdict, once nothing is asked any more."""
        if self.found is None or self._left:
            n_stage = next(size for size in self.plan.sizes if not self._is_answered(size))
            lacking = list(self._failed or self._left)
            why = f" ({visible(self._failed[lacking[0]])})" if self._failed else ""
            raise DataError(
                f"the gate looks when all {n_stage} items of a stage are answered, and {len(lacking)} are not: "
                f"{shown(lacking)}{why}. Fix that, and give the same command again: answers are kept, and only these "
                f"items are run.{f' {how_to_count()}.' if self._failed else ''}"
            )
        spent = " and ".join(f"{amount:.3g} {visible(unit)}" for unit, amount in self.costs.items())
        notes = [f"the candidate's answers cost {spent}, failed attempts among them"] if spent else []
        return replace(self.found, notes=(*self.found.notes, *notes))

    def look_with(self, probabilities: Callable[[], ResponseMatrix | None]) -> None:
        """From now on look also at the candidate's probabilities of the right options, which a function gives."""
        self._probabilities = probabilities
        self._look()

    def ask(self, n: int = 1) -> tuple[str, ...]:
        """Give up to n further items of the stage; none while all of them wait, or when there is a verdict."""
        open_items = [item for item in self._left if item not in self._pending and item not in self._failed][:n]
        self._pending.update(dict.fromkeys(open_items))
        return tuple(open_items)

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
        """Take the answer to an item, as a session does, and look when it completes a stage."""
        if n_correct is not None or n_trials is not None:
            n_correct, n_trials = checked_counts(n_correct, n_trials, item_id)
            response = n_correct / n_trials
        value, checked = checked_response(response, item_id), self.check_costs(costs, item_id, new_units=new_units)
        self._record(Told(item_id, value, n_correct, n_trials, checked))
        if not self._left:
            self._look()

    def tell_failed(
        self,
        item_id: str,
        *,
        again: bool = False,
        reason: str = "",
        costs: Mapping[str, float] | None = None,
        new_units: bool = False,
    ) -> None:
        """Take note that an item could not be answered."""
        self._record(Failed(item_id, again, reason, self.check_costs(costs, item_id, new_units=new_units)))
        if self._keeps_lost and not self._left:
            self._look()

    def check_costs(
        self, costs: Mapping[str, float] | None, item_id: str, *, new_units: bool = False
    ) -> dict[str, float]:
        """Return costs as numbers; units must be the baseline's own, or usual."""
        return fit_costs(tuple(self.plan.baseline.costs), costs, f"item {quoted(item_id)}", new_units=new_units)

    def check_items(self, item_ids: Iterable[str]) -> None:
        """Raise `DataError` naming the items that are not of the gate."""
        unknown = [item for item in item_ids if item not in self.plan.order]
        if unknown:
            raise DataError(
                f"every item must be of the gate, got {shown(unknown)}.{did_you_mean(unknown, self.plan.order)}"
            )

    def _record(self, event: Told | Failed) -> None:
        """Keep an answer or a failure on the disk, and then here."""
        if self._journal is not None:
            self._journal.append(event.to_dict())
        if isinstance(event, Told):
            self._answers[event.item_id] = event
            self._left.pop(event.item_id, None)
        else:
            self._failed_costs.append(event.costs)
        self._pending.pop(event.item_id, None)
        self._failed.pop(event.item_id, None)
        if isinstance(event, Failed) and not event.again:
            self._failed[event.item_id] = event.reason
            if self._keeps_lost:
                self._left.pop(event.item_id, None)

    @property
    def _lost(self) -> dict[str, int]:
        """Items whose answers count though they were lost, with the kind of error."""
        lost = self._failed if self._keeps_lost else {}
        return {item: error_kind(reason) or ERROR for item, reason in lost.items()}

    def _is_answered(self, size: int) -> bool:
        return self._answers.keys() | self._lost.keys() >= set(self.plan.order[:size])

    def _look(self) -> None:
        """Take the looks that the answers allow, and find out what is left to be run."""
        self._left = dict.fromkeys(self.plan.next_items(self._answers.keys() | self._lost.keys()))
        if self._is_answered(self.plan.sizes[0]):
            models = pl.DataFrame({"model_id": [self.model_id]})
            given = told_responses(self._answers, self._lost, self.plan.baseline.items, models)
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
        events = [event for event in events_of(journal.content) if isinstance(event, Told | Failed)]
        try:
            yield GateRun(plan, model_id=model_id, bank=bank, events=events, journal=journal)
        finally:
            if not is_there and path.exists() and path.stat().st_size == n_bytes:  # refused before anything was told
                path.unlink()
