"""`replay`: recorded models through adaptive sessions, in one process or several."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from itembank.adaptive.events import Asked, Told, counts_behind
from itembank.adaptive.limits import Budget, Stopping
from itembank.adaptive.pool import SessionPool
from itembank.adaptive.prior_specs import BANK, PriorSpec
from itembank.adaptive.priors import warn_of_unheard_values
from itembank.adaptive.replay_results import AskedItem, ReplayResult, SessionEnd, joined_sessions
from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.settings import CALIBRATED, SessionInterval, session_settings
from itembank.adaptive.spending import amount_in
from itembank.adaptive.trial import past_errors
from itembank.checks import check_whole
from itembank.data.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.data.banks import Bank
from itembank.data.costs import TOKENS, CostUnit
from itembank.data.responses import ResponseMatrix
from itembank.data.targets import OVERALL
from itembank.errors import warned_once
from itembank.estimation.observations import bank_positions
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.threads import check_jobs
from itembank.progress import ProgressCallback, silent
from itembank.selection.constraints import Constraints
from itembank.selection.criteria import Criterion

NO_RESPONSE = "no recorded response"
PARTS_PER_JOB = 8


@dataclass(frozen=True, slots=True)
class Recorded:
    """What some models answered, as light as worker processes want it.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    column : (n_bank_items,)
        Column of each item of the bank; -1 where nothing of it is recorded.
    responses : (n_models, n_items)
    n_trials : (n_models, n_items) or None
    costs : mapping of unit to (n_models, n_items)
    """

    model_ids: tuple[str, ...]
    column: IntArray
    responses: FloatArray
    n_trials: IntArray | None
    costs: Mapping[str, FloatArray]

    def take(self, rows: slice) -> "Recorded":
        """Return some of the models."""
        return Recorded(
            self.model_ids[rows],
            self.column,
            self.responses[rows],
            None if self.n_trials is None else self.n_trials[rows],
            {unit: cost[rows] for unit, cost in self.costs.items()},
        )


def replay(
    bank: GivenBank,
    responses: GivenResponses,
    criterion: Criterion | str = "v-optimal",
    *,
    stopping: Stopping | None = None,
    budget: Budget | None = None,
    target: str | Mapping[str, float] = OVERALL,
    cost: CostUnit | str | None = None,
    constraints: Constraints | None = None,
    prior: PriorSpec = BANK,
    n_start: int = 0,
    batch: int = 1,
    n_jobs: int = 1,
    rng: np.random.Generator | int | None = 0,
    interval: SessionInterval = CALIBRATED,
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
    criterion, stopping, budget, target, cost, constraints, prior, n_start, rng, interval
        As `AdaptiveSession` takes them.
    batch : int
        Items asked at once each time.
    n_jobs : int
        Processes to share the models among; -1 for one a core. Numbers do not depend on it.
    progress : callable

    Raises
    ------
    DataError
        When an item is not in the bank.
    DataError, ParameterError
        For choices that do not fit the bank, see `AdaptiveSession`.

    Examples
    --------
    >>> result = replay(bank, recorded, budget=Budget(n_items=50))  # doctest: +SKIP
    >>> result.rows()[0]["reason_stopped"]  # doctest: +SKIP
    'budget: 50 items'
    """
    check_jobs(n_jobs)
    check_whole("batch", batch, least=1)
    settings = session_settings(
        criterion,
        stopping=stopping,
        budget=budget,
        target=target,
        cost=cost,
        constraints=constraints,
        prior=prior,
        n_start=n_start,
        rng=rng,
        interval=interval,
    )
    bank = as_bank(bank)
    responses = as_new_responses(bank, responses)
    pool = SessionPool.create(bank, settings)
    warn_of_unheard_values(bank.responses.models, settings.prior)
    recorded = _recorded(bank, responses)
    if interval == CALIBRATED:
        pool = pool.with_past(past_errors(bank, settings, progress=_first_half(progress)))
    before = 0.5 if interval == CALIBRATED else 0.0
    ends: list[SessionEnd] = []
    with warned_once():
        for part in _each(pool, recorded, batch, n_jobs):
            ends.extend(part)
            share = len(ends) / responses.n_models
            progress(f"{len(ends)} of {responses.n_models} models", before + (1.0 - before) * share)
    return joined_sessions(ends)


def _first_half(progress: ProgressCallback) -> ProgressCallback:
    """Tell of work that comes before the sessions."""
    return lambda message, share: progress(message, 0.5 * share)


def _recorded(bank: Bank, responses: ResponseMatrix) -> Recorded:
    """Find the bank's items among the responses."""
    positions = bank_positions(bank, responses.items["item_id"], "responses")
    column = np.full(bank.n_items, -1, dtype=np.int64)
    column[positions] = np.arange(responses.n_items)
    return Recorded(tuple(responses.model_ids), column, responses.responses, responses.n_trials, dict(responses.costs))


def _each(pool: SessionPool, recorded: Recorded, batch: int, n_jobs: int) -> Iterator[list[SessionEnd]]:
    """Replay parts of the models in order, here or in several processes."""
    n_models = len(recorded.model_ids)
    if n_jobs == 1 or n_models == 1:
        for row in range(n_models):
            yield replay_models(pool, recorded.take(slice(row, row + 1)), batch)
        return
    import joblib  # noqa: PLC0415 (only work that runs in parallel needs it)

    n_workers = joblib.effective_n_jobs(n_jobs)
    size = -(-n_models // (PARTS_PER_JOB * n_workers))
    parts = [recorded.take(slice(start, start + size)) for start in range(0, n_models, size)]
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        work = joblib.Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)
        yield from work(joblib.delayed(replay_models)(pool, part, batch) for part in parts)


def replay_models(pool: SessionPool, recorded: Recorded, batch: int) -> list[SessionEnd]:
    """Run the session of each model to its end."""
    return [_replay_one(pool, recorded, row, batch) for row in range(len(recorded.model_ids))]


def _replay_one(pool: SessionPool, recorded: Recorded, row: int, batch: int) -> SessionEnd:
    session = AdaptiveSession.of_pool(pool, model_id=recorded.model_ids[row])
    while item_ids := session.ask(batch):
        for item_id in item_ids:
            _tell(session, recorded, row, item_id, int(recorded.column[pool.positions[item_id]]))
    return session_end(session, pool.settings.cost)


def _tell(session: AdaptiveSession, recorded: Recorded, row: int, item_id: str, column: int) -> None:
    """Tell what is recorded of an answer, or that nothing is."""
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


def session_end(session: AdaptiveSession, unit: CostUnit | None) -> SessionEnd:
    """Sum up a session that asks no more; tokens are counted as `unit` says where it is theirs."""
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
    """Items in the order of asking, with what was last told of each."""
    told = {event.item_id: event for event in session.history if isinstance(event, Told)}
    order = [item_id for event in session.history if isinstance(event, Asked) for item_id in event.item_ids]
    return [AskedItem(item_id, told.get(item_id)) for item_id in order]
