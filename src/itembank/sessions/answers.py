"""Answers as an evaluation tool reports them: one JSON object a line, checked together before any is told."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from itembank.errors import N_SHOWN, DataError, JournalError, quoted, shown
from itembank.readers.columns import PAIRS, response_of
from itembank.sessions.events import checked_costs, checked_counts, checked_response
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


def parse_answers(text: str, name: str) -> tuple[Answer, ...]:
    """Read answers from JSON Lines; empty lines mean nothing.

    Parameters
    ----------
    text : str
        ``{"item_id": "q1", "response": 1}``, with ``n_correct`` and ``n_trials`` instead of ``response``, or
        ``"failed": true`` with ``again`` and ``reason``; ``costs`` by unit.
    name : str
        Where it comes from, for messages.

    Raises
    ------
    DataError
        With the first problems and their lines; also when an item stands in two of them, or there is no answer at all.
    """
    answers, problems = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            answers.append(_answer(line))
        except DataError as error:
            problems.append(f"line {number}: {error}")
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
    """Give answers to a session one after the other, after all of them have been checked.

    Raises
    ------
    DataError
        When an item is not in the bank, or a unit of cost is unknown and not said to be new; nothing is told then.
    JournalError
        When the journal cannot be written; the message says which answers were kept before.
    """
    session.check_items([answer.item_id for answer in answers])
    for answer in answers:
        session.check_costs(answer.costs, answer.item_id, new_units=new_units)
    for number, answer in enumerate(answers):
        try:
            _tell(session, answer, new_units=new_units)
        except JournalError as error:
            raise JournalError(
                f"{error} Of {len(answers)} answers {f'the first {number} are' if number else 'none is'} kept; tell "
                f"the others again, from item {quoted(answer.item_id)} on."
            ) from error


def _tell(session: AdaptiveSession, answer: Answer, *, new_units: bool) -> None:
    arguments: dict[str, Any] = {"costs": answer.costs, "new_units": new_units}
    if answer.failed:
        session.tell_failed(answer.item_id, again=answer.again, reason=answer.reason, **arguments)
    else:
        session.tell(answer.item_id, answer.response, n_correct=answer.n_correct, n_trials=answer.n_trials, **arguments)


def answer_to(item_id: str, given: object) -> Answer:
    """Make the answer to an item of what was got for it: a response, the fields of an `Answer` by name, or an `Answer`.

    Raises
    ------
    DataError
        When it is none, or the answer to another item.
    """
    if isinstance(given, Mapping):
        given = _from_fields({"item_id": item_id, **given})
    answer = given if isinstance(given, Answer) else Answer(item_id, response=given)  # type: ignore[arg-type]
    if answer.item_id != item_id:
        raise DataError(f"the answer must be to item {quoted(item_id)}, got one to {quoted(answer.item_id)}.")
    return answer


def _answer(line: str) -> Answer:
    """Read one line."""
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"must be a JSON object, got {line.strip()[:80]!r} ({error}).") from error
    if not isinstance(record, dict):
        raise DataError(f"must be a JSON object, got {line.strip()[:80]!r}.")
    return _from_fields(record)


def _from_fields(record: Mapping[str, Any]) -> Answer:
    """Make an answer of its fields by name; a word for right as a name is a response, and words stand for numbers."""
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
            f"{wrong}: an answer must have fields of {shown(FIELDS, limit=len(FIELDS))}. In place of 'response' may "
            f"stand {shown(RIGHT_NAMES, limit=len(RIGHT_NAMES))}."
        )
    return Answer(**record)
