"""`replay`: recorded models through adaptive sessions, in one process or several."""

from collections.abc import Sequence
from dataclasses import replace

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.costs import TOKENS, CostUnit
from itembank.checks import check_whole
from itembank.errors import warned_once
from itembank.estimation.estimate import warn_of_shift
from itembank.numerics.parallel import check_jobs, in_parallel
from itembank.progress import ProgressCallback, part_of, silent
from itembank.sessions.events import Asked, Told
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.recorded import Recorded, answer_from_record
from itembank.sessions.replay_results import AskedItem, ReplayResult, SessionEnd, joined_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank.sessions.spending import amount_in

MOST_PARTS = 64
"""Parts that the models are dealt out to."""


def replay(
    bank: GivenBank,
    responses: GivenResponses,
    spec: SessionSpec | None = None,
    *,
    batch: int = 1,
    n_jobs: int | None = None,
    progress: ProgressCallback = silent,
) -> ReplayResult:
    """Send recorded models through adaptive sessions, to see what these would ask and estimate.

    Every model's session has the same seed, and ends with the numbers that the session would end with if it were
    driven by hand. An item that a model has no recorded response to fails; costs are told where they are recorded.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of models to many items of the bank; best of models that it was not calibrated on.
    spec : SessionSpec, optional
    batch : int
        Items asked at once each time.
    n_jobs : int, optional
        Processes to share the models among; -1 for one a core. Without it, what the surrounding
        ``joblib.parallel_config`` says, 1 otherwise. Numbers do not depend on it.
    progress : callable

    Raises
    ------
    DataError
        When an item is not in the bank.
    DataError, ParameterError
        For choices that do not fit the bank, see `prepare_sessions`.

    Warns
    -----
    DataWarning
        When more of the models answer unlike the calibration models than chance would make.

    Examples
    --------
    >>> result = replay(bank, recorded, SessionSpec(budget=Budget(n_items=50)))  # doctest: +SKIP
    >>> result.rows()[0]["reason_stopped"]  # doctest: +SKIP
    'budget: 50 items'
    """
    check_jobs(n_jobs)
    check_whole("batch", batch, least=1)
    bank = as_bank(bank)
    recorded = Recorded.of_responses(bank, as_new_responses(bank, responses))
    pool = prepare_sessions(bank, spec, progress=part_of(progress, 0.0, 0.5))
    before = 0.0 if pool.past is None else 0.5
    ends: dict[int, list[SessionEnd]] = {}
    n_models = len(recorded.model_ids)
    with warned_once():
        small = replace(pool, item_table=pool.item_table.clear())  # it may hold every item's text
        size = -(-n_models // MOST_PARTS)
        parts = [(small, recorded.take(slice(row, row + size)), batch) for row in range(0, n_models, size)]
        for number, part in in_parallel(_replay_models, parts, n_jobs=n_jobs):
            ends[number] = part
            n_done = sum(map(len, ends.values()))
            progress(f"{n_done} of {n_models} models", before + (1.0 - before) * n_done / n_models)
    result = joined_sessions([end for number in range(len(parts)) for end in ends[number]])
    warn_of_shift(result.estimates, bank.n_compared_models)
    return result


def _replay_models(pool: SessionPool, recorded: Recorded, batch: int) -> list[SessionEnd]:
    """Run the session of each model to its end."""
    return [_replay_one(pool, recorded, row, batch) for row in range(len(recorded.model_ids))]


def _replay_one(pool: SessionPool, recorded: Recorded, row: int, batch: int) -> SessionEnd:
    session = AdaptiveSession(pool, model_id=recorded.model_ids[row])
    answer_from_record(session, recorded, row, batch=batch)
    return session_end(session, pool.spec.cost_unit)


def session_end(session: AdaptiveSession, unit: CostUnit | None) -> SessionEnd:
    """Summarise a session that asks no more; where `unit` is one of tokens, they are counted in it."""
    costs = session.costs
    tokens = amount_in(costs, unit if unit is not None and unit.name == TOKENS else CostUnit())
    if tokens is not None:
        costs = {**costs, TOKENS: tokens}
    return SessionEnd(
        estimates=session.estimate().scores,
        n_answered=session.n_items,
        costs=costs,
        reason_stopped=session.reason_stopped or "",
        is_precise=session.is_precise,
        asked=_asked(session),
    )


def _asked(session: AdaptiveSession) -> Sequence[AskedItem]:
    """Items in the order of asking, with the last answer to each."""
    answers = {event.item_id: event for event in session.history if isinstance(event, Told)}
    order = [item_id for event in session.history if isinstance(event, Asked) for item_id in event.item_ids]
    return [AskedItem(item_id, answers.get(item_id)) for item_id in order]
