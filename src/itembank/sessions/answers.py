"""Answers to items: as an evaluation tool reports them, told to a session, and as responses that all verbs take."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.marks import ADAPTIVE, ANSWERED_HOW, FIXED, RANDOM
from itembank.errors import N_SHOWN, DataError, JournalError, quoted, shown
from itembank.readers.columns import PAIRS, response_of
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from itembank.selection.criteria import MinimumCost, RandomItem, UniformOverScenarios
from itembank.sessions.events import Told, checked_costs, checked_counts, checked_response
from itembank.sessions.session import AdaptiveSession

RIGHT_NAMES = tuple(dict.fromkeys(right for right, _ in PAIRS if len(right) > 1 and right not in {"true", "yes"}))
"""Names that a response goes by, too: {"resolved": true}."""
FIELDS = ("item_id", "response", "n_correct", "n_trials", "costs", "failed", "again", "reason")


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of running one item: a response, a count of trials, or a failure."""

    item_id: str
    response: float | None = None  # In [0, 1]
    n_correct: int | None = None  # Instead of a response, of repeated trials
    n_trials: int | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False  # That there is no response
    again: bool = False  # Whether an item that failed may be asked again
    reason: str = ""  # Why it failed, for people

    def __post_init__(self) -> None:
        """Check the answer by itself; the `DataError` names the problem."""
        if not isinstance(self.item_id, str) or not self.item_id:
            raise DataError(f"item_id must be text, got {quoted(self.item_id)}.")
        checked_costs(self.costs, f"item {quoted(self.item_id)}")
        if not isinstance(self.failed, bool) or not isinstance(self.again, bool) or not isinstance(self.reason, str):
            raise DataError(
                f"failed and again must be true or false, and reason text, for item {quoted(self.item_id)}."
            )
        has_counts = self.n_correct is not None or self.n_trials is not None
        if self.failed + (self.response is not None) + has_counts != 1:
            raise DataError(
                f"an answer must be one of a response, n_correct and n_trials, or failed, and is not for item "
                f"{quoted(self.item_id)}."
            )
        if not self.failed and (self.again or self.reason):
            raise DataError(
                f"again and reason belong to a failure, got them with an answer to item {quoted(self.item_id)}."
            )
        if has_counts:
            checked_counts(self.n_correct, self.n_trials, self.item_id)
        elif not self.failed:
            checked_response(self.response, self.item_id)


def parse_answers(
    # ``{"item_id": "q1", "response": 1}``, with ``n_correct`` and ``n_trials`` instead of ``response``, or ``"failed":
    # true`` with ``again`` and ``reason``; ``costs`` by unit
    text: str,
    name: str,  # Where it comes from, for messages
) -> tuple[Answer, ...]:
    """Read answers from JSON Lines; empty lines mean nothing."""
    answers, problems = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise DataError(f"must be a JSON object, got {line.strip()[:80]!r}.")
            answers.append(_from_fields(record))
        except DataError as error:
            problems.append(f"line {number}: {error}")
        except (ValueError, RecursionError) as error:
            problems.append(f"line {number}: must be a JSON object, got {line.strip()[:80]!r} ({error}).")
    if problems:
        more = f" And {len(problems) - N_SHOWN} more." if len(problems) > N_SHOWN else ""
        raise DataError(f"{name}: {' '.join(problems[:N_SHOWN])}{more} Nothing was told.")
    if not answers:
        raise DataError(f"{name}: must hold answers, one JSON object a line, got no answer.")
    repeated = [item_id for item_id, count in Counter(answer.item_id for answer in answers).items() if count > 1]
    if repeated:
        raise DataError(
            f"{name}: every item must be there once, got {len(repeated)} more often: {shown(repeated)}. Nothing was "
            "told. Count repeated trials (n_correct, n_trials), or keep the last line of each."
        )
    return tuple(answers)


def tell_all(session: AdaptiveSession, answers: Sequence[Answer], *, new_units: bool = False) -> None:
    """Give answers to a session one after the other, after all of them have been checked."""
    session.check_items([answer.item_id for answer in answers])
    for answer in answers:
        session.check_costs(answer.costs, answer.item_id, new_units=new_units)
    for number, answer in enumerate(answers):
        try:
            item_id, costs, counts = answer.item_id, answer.costs, (answer.n_correct, answer.n_trials)
            if answer.failed:
                session.tell_failed(item_id, again=answer.again, reason=answer.reason, costs=costs, new_units=new_units)
            else:
                session.tell(
                    item_id, answer.response, n_correct=counts[0], n_trials=counts[1], costs=costs, new_units=new_units
                )
        except JournalError as error:
            raise JournalError(
                f"{error} Of {len(answers)} answers {f'the first {number} are' if number else 'none is'} kept; tell "
                f"the others again, from item {quoted(answer.item_id)} on."
            ) from error


def answer_to(item_id: str, given: object) -> Answer:
    """Make the answer to an item of what was got: a response, the fields of an `Answer` by name, or an `Answer`."""
    if isinstance(given, Mapping):
        given = _from_fields({"item_id": item_id, **given})
    answer = given if isinstance(given, Answer) else Answer(item_id, response=given)  # type: ignore[arg-type]
    if answer.item_id != item_id:
        raise DataError(f"the answer must be to item {quoted(item_id)}, got one to {quoted(answer.item_id)}.")
    return answer


def _from_fields(record: Mapping[str, Any]) -> Answer:
    """Make an answer of its fields by name; a word for right as a name is a response, and words may replace numbers."""
    named = [name for name in record if name in RIGHT_NAMES]
    if len(named) == 1 and not {"response", "n_correct", "failed"} & set(record):
        record = {"response" if name in named else name: value for name, value in record.items()}
    given = record.get("response")
    if isinstance(given, bool | str):
        read = float(given) if isinstance(given, bool) else response_of(given)
        record = {**record, "response": given if read is None else read}
    unknown = [name for name in record if name not in FIELDS]
    if unknown or "item_id" not in record:
        wrong = f"got {shown(unknown)} too" if unknown else "got no item_id"
        raise DataError(
            f"{wrong}: an answer must have fields of {shown(FIELDS, limit=len(FIELDS))}. 'response' may also be "
            f"called {shown(RIGHT_NAMES, limit=len(RIGHT_NAMES))}."
        )
    return Answer(**record)


def session_responses(session: AdaptiveSession) -> ResponseMatrix:
    """Return the answers of a session as responses of one model to the answered items, in the bank's order.

    The model table says in `answered_how` how the items were chosen, so that no bank calibrates items on answers that
    chose them.

    Raises
    ------
    DataError
        When it has no answer yet.
    """
    answered = session.told
    if not answered:
        raise DataError("a session must have an answer before its answers can be written, got none.")
    models = pl.DataFrame({"model_id": [session.model_id], ANSWERED_HOW: [way_of(session.pool.spec.criterion)]})
    responses = told_responses(answered, session.lost, session.pool.item_table, models)
    return responses.with_errors(session.pool.spec.errors)


def told_responses(
    answered: Mapping[str, Told], lost: Mapping[str, int], items: pl.DataFrame, models: pl.DataFrame
) -> ResponseMatrix:
    """Return answers by item as responses of the one model of a table, in the order of the table of items.

    `lost` are the items whose answer was lost, with the kind of error; they are missing.
    """
    items = items.filter(items["item_id"].is_in(pl.Series([*answered, *lost]).implode()))
    answers = [answered.get(item_id) for item_id in items["item_id"]]
    told = [one for one in answers if one is not None]
    n_trials = None
    if any(answer.n_trials is not None for answer in told):
        n_trials = np.array([[0 if one is None else one.n_trials or 1 for one in answers]])
    units = dict.fromkeys(unit for answer in told for unit in answer.costs)
    costs = [{} if one is None else one.costs for one in answers]
    kinds = np.array([[lost.get(item_id, 0) for item_id in items["item_id"]]], dtype=np.int64)
    return ResponseMatrix.create(
        np.array([[np.nan if one is None else one.response for one in answers]]),
        models=models,
        items=items,
        n_trials=n_trials,
        costs={unit: np.array([[one.get(unit, np.nan) for one in costs]]) for unit in units},
        lost=LostAnswers((kinds > 0).astype(np.int64), kinds) if lost else None,
    )


def way_of(criterion: object) -> str:
    """How a criterion chooses items, in the words of the model table."""
    if isinstance(criterion, RandomItem | UniformOverScenarios):
        return RANDOM
    return FIXED if isinstance(criterion, MinimumCost) else ADAPTIVE
