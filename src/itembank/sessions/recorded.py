"""Sessions whose answers are recorded: of models to try a bank on, and of calibration models left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.observations import bank_positions
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.events import counts_behind
from itembank.sessions.session import AdaptiveSession, find_abilities

NO_RESPONSE = "no recorded response"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded responses of some models, small enough to send to worker processes."""

    model_ids: tuple[str, ...]
    column: IntArray  # (n_bank_items,): Column of each item of the bank; -1 where nothing of it is recorded
    responses: FloatArray  # (n_models, n_items)
    n_trials: IntArray | None  # (n_models, n_items)
    costs: Mapping[str, FloatArray]  # mapping of unit to (n_models, n_items)

    @classmethod
    def of_responses(cls, bank: Bank, responses: ResponseMatrix) -> "Recorded":
        """Find the bank's items among the responses.

        Raises
        ------
        DataError
            When an item is not in the bank.
        """
        positions = bank_positions(bank, responses.items["item_id"], "responses")
        column = np.full(bank.n_items, -1, dtype=np.int64)
        column[positions] = np.arange(responses.n_items)
        return cls(tuple(responses.model_ids), column, responses.responses, responses.n_trials, dict(responses.costs))

    def take(self, rows: slice) -> "Recorded":
        """Return some of the models."""
        return Recorded(
            self.model_ids[rows],
            self.column,
            self.responses[rows],
            None if self.n_trials is None else self.n_trials[rows],
            {unit: cost[rows] for unit, cost in self.costs.items()},
        )


def answer_from_record(
    session: AdaptiveSession, recorded: Recorded, row: int, *, batch: int = 1, n_answers: int | None = None
) -> None:
    """Give a session the recorded answers of the model at `row`, until it asks no more or has this many answers.

    Parameters
    ----------
    session : AdaptiveSession
    recorded : Recorded
    row : int
    batch : int
        Items asked at once each time.
    n_answers : int, optional
    """
    while n_answers is None or session.n_items < n_answers:
        if not _ask_and_tell(session, recorded, row, batch):
            return


def answer_side_by_side(
    sessions: Sequence[AdaptiveSession], recorded: Recorded, rows: Sequence[int], *, n_answers: int
) -> None:
    """Give sessions over one bank the recorded answers of the models at `rows`, as `answer_from_record` does to each.

    They go on together, an item at a time, so that their abilities are found together, which takes a fraction of the
    time.
    """
    going = list(zip(sessions, rows, strict=True))
    while going := [(session, row) for session, row in going if session.n_items < n_answers]:
        find_abilities([session for session, _ in going])
        going = [(session, row) for session, row in going if _ask_and_tell(session, recorded, row, 1)]


def _ask_and_tell(session: AdaptiveSession, recorded: Recorded, row: int, batch: int) -> bool:
    """Let a session ask, and answer it from the record; False where it asks no more."""
    item_ids = session.ask(batch)
    for item_id in item_ids:
        _tell(session, recorded, row, item_id)
    return bool(item_ids)


def _tell(session: AdaptiveSession, recorded: Recorded, row: int, item_id: str) -> None:
    """Give the session a recorded answer, or a failure where none is recorded."""
    column = int(recorded.column[session.pool.positions[item_id]])
    response = float("nan") if column < 0 else float(recorded.responses[row, column])
    costs = {} if column < 0 else _costs(recorded, row, column)
    if np.isnan(response):
        session.tell_failed(item_id, reason=NO_RESPONSE, costs=costs, new_units=True)
        return
    counts = None if recorded.n_trials is None else counts_behind(response, int(recorded.n_trials[row, column]))
    if counts is None:
        session.tell(item_id, response, costs=costs, new_units=True)
    else:
        session.tell(item_id, n_correct=counts[0], n_trials=counts[1], costs=costs, new_units=True)


def _costs(recorded: Recorded, row: int, column: int) -> dict[str, float]:
    amounts = {unit: float(cost[row, column]) for unit, cost in recorded.costs.items()}
    return {unit: amount for unit, amount in amounts.items() if not np.isnan(amount)}
