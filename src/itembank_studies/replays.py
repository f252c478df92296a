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
from itembank.sessions.events import Asked, Told
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import Recorded, answer_from_record, prepare_sessions
from itembank.sessions.prices import amount_in
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank.tabular import Tabular, joined_notes


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


def joined_sessions(parts: Sequence[ReplayResult]) -> ReplayResult:
    """Put the sessions of several models together, in their order."""
    units = sorted({unit for one in parts for unit in one.costs})
    unknown = [np.where(one.n_answered > 0, np.nan, 0.0) for one in parts]  # who answered nothing paid nothing
    return ReplayResult(
        estimates=joined_estimates([one.estimates for one in parts]),
        n_answered=np.concatenate([one.n_answered for one in parts]),
        n_failed=np.concatenate([one.n_failed for one in parts]),
        costs={
            unit: np.concatenate([one.costs.get(unit, none) for one, none in zip(parts, unknown, strict=True)])
            for unit in units
        },
        reason_stopped=tuple(reason for one in parts for reason in one.reason_stopped),
        is_precise=np.concatenate([one.is_precise for one in parts]),
        asked=pl.concat([one.asked for one in parts], how="diagonal"),
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
    found: dict[int, ReplayResult] = {}
    n_models = len(recorded.model_ids)
    with warned_once():
        small = replace(pool, item_table=pool.item_table.clear())  # it may hold every item's text
        size = -(-n_models // 64)  # the models are dealt out to so many parts at most
        parts = [(small, recorded.take(slice(row, row + size)), batch) for row in range(0, n_models, size)]
        for number, part in in_parallel(_replay_models, parts, n_jobs=n_jobs):
            found[number] = part
            n_done = sum(one.n_models for one in found.values())
            progress(f"{n_done} of {n_models} models", before + (1.0 - before) * n_done / n_models)
    return joined_sessions([found[number] for number in range(len(parts))])


def _replay_models(pool: SessionPool, recorded: Recorded, batch: int) -> ReplayResult:
    ended = []
    for row, name in enumerate(recorded.model_ids):
        session = AdaptiveSession(pool, model_id=name)
        answer_from_record(session, recorded, row, batch=batch)
        ended.append(_ended(session, pool.spec.cost_unit))
    return joined_sessions(ended)


def _ended(session: AdaptiveSession, unit: CostUnit | None) -> ReplayResult:
    """Summarise a session that asks no more; where `unit` is one of tokens, they are counted in it."""
    costs = session.costs
    tokens = amount_in(costs, unit if unit is not None and unit.name == TOKENS else CostUnit())
    if tokens is not None:
        costs = {**costs, TOKENS: tokens}
    answers = {event.item_id: event for event in session.history if isinstance(event, Told)}
    order = [item_id for event in session.history if isinstance(event, Asked) for item_id in event.item_ids]
    schema: dict[str, Any] = {"model_id": pl.String, "step": pl.Int64, "item_id": pl.String, "response": pl.Float64}
    asked: list[dict[str, Any]] = []
    for step, item_id in enumerate(order, start=1):
        told = answers.get(item_id)
        known = {} if told is None else {"response": told.response, **told.costs}
        asked.append({"model_id": session.model_id, "step": step, "item_id": item_id, **known})
        schema |= {name: pl.Float64 for name in known if name not in schema}
    return ReplayResult(
        estimates=session.estimate().scores,
        n_answered=np.array([session.n_items]),
        n_failed=np.array([sum(item_id not in answers for item_id in order)]),
        costs={unit: np.array([amount]) for unit, amount in costs.items()},
        reason_stopped=(session.reason_stopped or "",),
        is_precise=np.array([session.is_precise]),
        asked=pl.DataFrame(asked, schema=schema),
    )
