"""The answers of a session as responses, which every other command and verb takes."""

import numpy as np
import polars as pl

from itembank.bank.marks import ADAPTIVE, ANSWERED_HOW, FIXED, RANDOM
from itembank.errors import DataError
from itembank.responses.responses import ResponseMatrix
from itembank.selection.criteria import MinimumCost, RandomItem, UniformOverScenarios
from itembank.sessions.events import Told
from itembank.sessions.session import AdaptiveSession


def session_responses(session: AdaptiveSession) -> ResponseMatrix:
    """Return the answers of a session as responses of one model to the answered items, in the bank's order.

    The model table says in `answered_how` how the items were chosen, so that no bank calibrates items on answers that
    chose them.

    Raises
    ------
    DataError
        When it was told nothing yet.
    """
    answered = session.told
    if not answered:
        raise DataError("a session must have been told an answer before its answers can be written, got none.")
    items = session.pool.item_table
    items = items.filter(items["item_id"].is_in(pl.Series(list(answered)).implode()))
    answers = [answered[item_id] for item_id in items["item_id"]]
    return ResponseMatrix.create(
        np.array([[answer.response for answer in answers]]),
        models=pl.DataFrame({"model_id": [session.model_id], ANSWERED_HOW: [way_of(session.pool.spec.criterion)]}),
        items=items,
        n_trials=_trials(answers),
        costs=_costs(answers),
    )


def way_of(criterion: object) -> str:
    """How a criterion chooses items, in the words of the model table."""
    if isinstance(criterion, RandomItem | UniformOverScenarios):
        return RANDOM
    return FIXED if isinstance(criterion, MinimumCost) else ADAPTIVE


def _trials(answers: list[Told]) -> np.ndarray | None:
    """Trials behind each answer, (1, n_items), where any answer has them."""
    if all(answer.n_trials is None for answer in answers):
        return None
    return np.array([[answer.n_trials or 1 for answer in answers]])


def _costs(answers: list[Told]) -> dict[str, np.ndarray]:
    """Cost of each answer by unit, each (1, n_items); NaN where it is unknown."""
    units = dict.fromkeys(unit for answer in answers for unit in answer.costs)
    return {unit: np.array([[answer.costs.get(unit, np.nan) for answer in answers]]) for unit in units}
