"""`replay`: recorded models through adaptive sessions, in one process or several, and how they ended."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.costs import TOKENS, CostUnit
from itembank.checks import check_whole
from itembank.errors import warned_once
from itembank.estimation.estimates import ScoreEstimates, joined
from itembank.estimation.if_answered import joined_lost
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import check_jobs, in_parallel
from itembank.progress import ProgressCallback, part_of, silent
from itembank.sessions.choosing import amount_in
from itembank.sessions.events import Asked, Told
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import Recorded, answer_from_record, prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank.tabular import Tabular, joined_notes


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """Summary of a session that asks no more."""

    estimates: ScoreEstimates  # Of one model
    n_answered: int
    costs: Mapping[str, float]
    reason_stopped: str
    is_precise: bool
    asked: Sequence[tuple[str, Told | None]]  # Items in the order of asking, with the answer; None where it failed


@dataclass(frozen=True, slots=True, repr=False)
class ReplayResult(Tabular):
    """Sessions of n_models recorded models, in the order of their responses.

    Attributes
    ----------
    estimates : ScoreEstimates
        Of all models; each what a session of the model, driven by hand, ends with.
    n_answered : (n_models,)
        Items that were asked and answered.
    n_failed : (n_models,)
        Items that were asked and that the record has no response to.
    costs : mapping of unit to (n_models,)
        Sum of what the record says that the answers cost; NaN where it does not say. 'tokens' is output tokens plus
        half the input tokens (or the weight of the session's cost unit).
    reason_stopped : tuple of n_models texts
        See `itembank.sessions.choosing`.
    is_precise : (n_models,)
        Whether a rule of precision holds at the end.
    asked : table
        One row an item asked: `model_id`, `step` (from 1), `item_id`, `response` (null if there is none), and the
        costs.
    """

    estimates: ScoreEstimates
    n_answered: IntArray
    n_failed: IntArray
    costs: Mapping[str, FloatArray]
    reason_stopped: tuple[str, ...]
    is_precise: BoolArray
    asked: pl.DataFrame

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.estimates.n_models

    def rows(self, unit: str | None = None) -> list[dict[str, Any]]:
        """One record for each model and target: the rows of the estimates, and how the model's session went.

        Parameters
        ----------
        unit : str, optional
            Of `cost`, which is None without it or where no cost is known in it.
        """
        amounts = None if unit is None else self.costs.get(unit)
        ends = [
            {
                "n_answered": int(self.n_answered[model]),
                "n_failed": int(self.n_failed[model]),
                "cost": None if amounts is None else float(amounts[model]),
                "cost_unit": unit,
                "reason_stopped": self.reason_stopped[model],
                "is_precise": bool(self.is_precise[model]),
            }
            for model in range(self.n_models)
        ]
        rows = self.estimates.rows()
        n_each = len(rows) // self.n_models
        return [{**row, **ends[index // n_each]} for index, row in enumerate(rows)]


def joined_sessions(ends: Sequence[SessionEnd]) -> ReplayResult:
    """Put the sessions of several models together, in their order."""
    asked: list[dict[str, Any]] = []
    schema: dict[str, Any] = {"model_id": pl.String, "step": pl.Int64, "item_id": pl.String, "response": pl.Float64}
    for end in ends:
        for step, (item_id, told) in enumerate(end.asked, start=1):
            known = {} if told is None else {"response": told.response, **told.costs}
            asked.append({"model_id": end.estimates.model_ids[0], "step": step, "item_id": item_id, **known})
            schema |= {unit: pl.Float64 for unit in known if unit not in schema}
    units = sorted({unit for end in ends for unit in end.costs})
    return ReplayResult(
        estimates=joined_estimates([end.estimates for end in ends]),
        n_answered=np.array([end.n_answered for end in ends]),
        n_failed=np.array([sum(told is None for _, told in end.asked) for end in ends]),
        costs={
            unit: np.array([end.costs.get(unit, np.nan if end.n_answered else 0.0) for end in ends]) for unit in units
        },
        reason_stopped=tuple(end.reason_stopped for end in ends),
        is_precise=np.array([end.is_precise for end in ends]),
        asked=pl.DataFrame(asked, schema=schema),
    )


def joined_estimates(estimates: Sequence[ScoreEstimates]) -> ScoreEstimates:
    """Put a session's estimates of different models together; they are of one bank, by one method."""
    per_model = ("n_items", "n_missing", "abilities", "ability_covariance")
    stacked: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in estimates]) for name in per_model}
    model_ids = tuple(model for estimate in estimates for model in estimate.model_ids)
    scores = joined([estimate.scores for estimate in estimates])
    typicality = joined([estimate.typicality for estimate in estimates])
    notes = joined_notes(note for estimate in estimates for note in estimate.notes)
    stacked |= {"scores": scores, "typicality": typicality, "notes": notes, "lost": joined_lost(estimates)}
    return dataclasses.replace(estimates[0], model_ids=model_ids, **stacked)


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
    driven by hand. An item that a model has no recorded response to fails; what the record says was lost counts as
    `spec.errors` says; costs are taken from the record.

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
        When more of the models answer unlike the past models than chance would make.

    Examples
    --------
    >>> result = replay(bank, recorded, SessionSpec(budget=Budget(n_items=50)))  # doctest: +SKIP
    >>> result.rows()[0]["reason_stopped"]  # doctest: +SKIP
    'budget: 50 items'
    """
    check_jobs(n_jobs)
    check_whole("batch", batch, least=1)
    bank = as_bank(bank)
    recorded = Recorded.of_responses(bank, as_new_responses(bank, responses, errors="missing"))
    pool = prepare_sessions(bank, spec, progress=part_of(progress, 0.0, 0.5))
    before = 0.0 if pool.past is None else 0.5
    ends: dict[int, list[SessionEnd]] = {}
    n_models = len(recorded.model_ids)
    with warned_once():
        small = replace(pool, item_table=pool.item_table.clear())  # it may hold every item's text
        size = -(-n_models // 64)  # the models are dealt out to so many parts at most
        parts = [(small, recorded.take(slice(row, row + size)), batch) for row in range(0, n_models, size)]
        for number, part in in_parallel(_replay_models, parts, n_jobs=n_jobs):
            ends[number] = part
            n_done = sum(map(len, ends.values()))
            progress(f"{n_done} of {n_models} models", before + (1.0 - before) * n_done / n_models)
    return joined_sessions([end for number in range(len(parts)) for end in ends[number]])


def _replay_models(pool: SessionPool, recorded: Recorded, batch: int) -> list[SessionEnd]:
    """Run the session of each model to its end."""
    ends = []
    for row, name in enumerate(recorded.model_ids):
        session = AdaptiveSession(pool, model_id=name)
        answer_from_record(session, recorded, row, batch=batch)
        ends.append(session_end(session, pool.spec.cost_unit))
    return ends


def session_end(session: AdaptiveSession, unit: CostUnit | None) -> SessionEnd:
    """Summarise a session that asks no more; where `unit` is one of tokens, they are counted in it."""
    costs = session.costs
    tokens = amount_in(costs, unit if unit is not None and unit.name == TOKENS else CostUnit())
    if tokens is not None:
        costs = {**costs, TOKENS: tokens}
    answers = {event.item_id: event for event in session.history if isinstance(event, Told)}
    order = [item_id for event in session.history if isinstance(event, Asked) for item_id in event.item_ids]
    return SessionEnd(
        estimates=session.estimate().scores,
        n_answered=session.n_items,
        costs=costs,
        reason_stopped=session.reason_stopped or "",
        is_precise=session.is_precise,
        asked=[(item_id, answers.get(item_id)) for item_id in order],
    )
