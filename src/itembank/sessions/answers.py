"""Answers to items: as an evaluation tool reports them, told to a session, and as responses that all verbs take."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.marks import ADAPTIVE, ANSWERED_HOW, FIXED, RANDOM
from itembank.errors import N_SHOWN, DataError, JournalError, quoted, shown
from itembank.readers.columns import PAIRS, response_of
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from itembank.selection.criteria import MinimumCost, RandomItem, UniformOverScenarios
from itembank.sessions.asking import Asking
from itembank.sessions.events import Answer, Failed, Told, checked_costs, checked_counts, told
from itembank.sessions.session import AdaptiveSession
from itembank.tables import plural

RIGHT_NAMES = tuple(dict.fromkeys(right for right, _ in PAIRS if len(right) > 1 and right not in {"true", "yes"}))
"""Names that a response goes by, too: {"resolved": true}."""
FIELDS = ("item_id", "response", "n_correct", "n_trials", "costs", "failed", "again", "reason")


def answer(
    item_id: str,
    response: object = None,  # In [0, 1]
    *,
    n_correct: object = None,  # Instead of a response, of repeated trials
    n_trials: object = None,
    costs: Mapping[str, float] | None = None,
    failed: object = False,  # That there is no response
    again: object = False,  # Whether an item that failed may be asked again
    reason: object = "",  # Why it failed, for people
) -> Answer:
    """Make what became of an item that was run: a response, a count of trials, or a failure.

    The `DataError` names the problem.
    """
    if not isinstance(item_id, str) or not item_id:
        raise DataError(f"item_id must be text, got {quoted(item_id)}.")
    owner = f"item {quoted(item_id)}"
    costs = checked_costs(costs, owner)
    if not isinstance(failed, bool) or not isinstance(again, bool) or not isinstance(reason, str):
        raise DataError(f"failed and again must be true or false, and reason text, for {owner}.")
    has_counts = n_correct is not None or n_trials is not None
    if failed + (response is not None) + has_counts != 1:
        raise DataError(
            f"an answer must be one of a response, n_correct and n_trials, or failed, and is not for {owner}."
        )
    if failed:
        return Failed(item_id, again, reason, costs)
    if again or reason:
        raise DataError(f"again and reason belong to a failure, got them with an answer to {owner}.")
    if has_counts:
        checked_counts(n_correct, n_trials, item_id)
    return told(item_id, response, n_correct, n_trials, costs)


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
    repeated = [item_id for item_id, count in Counter(one.item_id for one in answers).items() if count > 1]
    if repeated:
        raise DataError(
            f"{name}: every item must be there once, got {len(repeated)} more often: {shown(repeated)}. Nothing was "
            "told. Count repeated trials (n_correct, n_trials), or keep the last line of each."
        )
    return tuple(answers)


def tell_all(session: Asking, answers: Sequence[Answer], *, new_units: bool = False) -> None:
    """Give answers to a session one after the other, after all of them have been checked."""
    session.check_items([one.item_id for one in answers])
    for one in answers:
        session.check_costs(one, new_units=new_units)
    for number, one in enumerate(answers):
        try:
            session.take(one, new_units=new_units)
        except JournalError as error:
            raise JournalError(
                f"{error} Of {plural(len(answers), 'answer')} {f'the first {number} are' if number else 'none is'} "
                f"kept; tell the others again, from item {quoted(one.item_id)} on."
            ) from error


def answer_to(item_id: str, given: object) -> Answer:
    """Make the answer to an item of what was got: a response, fields of `answer` by name, or what that gives."""
    if isinstance(given, Mapping):
        given = _from_fields({"item_id": item_id, **given})
    made = given if isinstance(given, Told | Failed) else answer(item_id, given)
    if made.item_id != item_id:
        raise DataError(f"the answer must be to item {quoted(item_id)}, got one to {quoted(made.item_id)}.")
    return made


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
    return answer(**record)


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
    known = [one for one in answers if one is not None]
    n_trials = None
    if any(one.n_trials is not None for one in known):
        n_trials = np.array([[0 if one is None else one.n_trials or 1 for one in answers]])
    units = dict.fromkeys(unit for one in known for unit in one.costs)
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
