"""Items chosen one at a time for each test model, by adaptive sessions (WILD 6.2 'adaptation')."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from itembank.bank.costs import CostUnit
from itembank.numerics.arrays import IntArray
from itembank.selection.greedy import Constraints
from itembank.sessions.events import Told
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import Recorded, answer_from_record
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank.studies.prediction.assessors import Assessor
from itembank.studies.prediction.designs import Pool, criterion_of, fixed_goal, needs_targets
from itembank.studies.prediction.prepared import STUDY_COST, Known, TestModels


def choose_adaptively(
    assessor: Assessor, known: Known, new: TestModels, pool: Pool, budgets: tuple[int, ...]
) -> Mapping[int, IntArray]:
    """Run one session for each test model; a smaller budget's items are the first of a larger one's.

    An item that the model has no response to fails when it is asked, and counts for nothing.

    Returns
    -------
    mapping of budget to (n_test, n)
        Columns in the order of asking; -1 where a session ended before.
    """
    most = min(max(budgets), pool.items.size)
    sessions, columns = session_pool(assessor, known, pool, most)
    n_trials = None if new.n_trials is None else new.n_trials[:, columns]
    recorded = Recorded(new.model_ids, np.arange(columns.size), new.responses[:, columns], n_trials, costs={})
    asked = np.full((len(new.model_ids), most), -1, dtype=np.int64)
    for row in range(len(new.model_ids)):
        places = answered_in_turn(AdaptiveSession(sessions), recorded, row, most)
        asked[row, : places.size] = columns[places]
    return {n: asked[:, :n] for n in budgets}


def session_pool(assessor: Assessor, known: Known, pool: Pool, most: int) -> tuple[SessionPool, IntArray]:
    """Lay out what the sessions of all test models share, and return it with the columns of its items.

    The target items are among these, not to be asked, where the criterion needs them at every step.
    """
    criterion = criterion_of(assessor)
    spec = SessionSpec(
        criterion,
        cost=CostUnit(STUDY_COST) if assessor.per_cost else None,
        budget=Budget(n_items=most),
        interval="model-based",
    )
    if not needs_targets(criterion):
        sessions = SessionPool.create(known.bank(assessor.design_model, pool.items), spec)
        return replace(sessions, goal=fixed_goal(assessor, known, pool)), pool.items
    columns = np.concatenate([pool.items, pool.targets])
    bank = known.bank(assessor.design_model, columns)
    targets = bank.item_ids[pool.items.size :]
    weights = dict(zip(targets, pool.target_weights.tolist(), strict=True))
    spec = replace(spec, target=weights, constraints=Constraints(excluded=tuple(targets)))
    return SessionPool.create(bank, spec), columns


def answered_in_turn(session: AdaptiveSession, recorded: Recorded, row: int, most: int) -> IntArray:
    """Answer what a session asks as the model at `row` did, at most `most` times.

    Returns
    -------
    (n_answered,)
        Positions in the bank, in the order of asking.
    """
    answer_from_record(session, recorded, row, n_answers=most)
    answered = [event.item_id for event in session.history if isinstance(event, Told)]
    return np.array([session.pool.positions[item_id] for item_id in answered], dtype=np.int64)
