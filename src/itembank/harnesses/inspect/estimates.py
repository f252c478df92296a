"""The full-benchmark estimate from scored samples, as Inspect's metrics show it."""

import json
import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from itembank.bank.bank_files import load_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates
from itembank.harnesses.inspect.answers import MODEL, answers_to, counted, matrix_of
from itembank.harnesses.inspect.stages import stage_of
from itembank.harnesses.inspect.task_items import TaskItems, task_items
from itembank.responses.score_names import OVERALL
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec


@lru_cache(maxsize=4)
def known_bank(path: str, bank_id: str) -> Bank:
    """Load a bank once a process; it must be the one that the run was made with."""
    bank = load_bank(path)
    if bank_id and bank.bank_id != bank_id:
        raise DataError(
            f"{path} must be the bank that the run was made with, {bank_id}, got {bank.bank_id}. Put that bank there."
        )
    return bank


@lru_cache(maxsize=4)
def known_pool(path: str, bank_id: str, task: str, session: str) -> SessionPool:
    """Make a bank ready for sessions on one task once a process; `session` is the spec's JSON."""
    bank = known_bank(path, bank_id)
    spec = SessionSpec.from_dict(json.loads(session))
    excluded = (*spec.constraints.excluded, *task_items(bank, task).others)
    return prepare_sessions(bank, replace(spec, constraints=replace(spec.constraints, excluded=excluded)))


def estimated_metrics(
    scores: Iterable[tuple[str | int | None, float]],
    *,
    bank: str,
    task: str,
    bank_id: str = "",
    session: str = "",
    selection: str = "",
    routing: str = "",
) -> dict[str, float]:
    """Estimate scores from scored samples: ``name``, ``name_low`` and ``name_high`` for each, and ``n_items``.

    The scores are those of the task's scenarios, and the overall score.

    Parameters
    ----------
    scores : iterable of (sample id, score)
        One a sample and epoch; NaN where there is none.
    bank, bank_id : str
        Path of the bank, and its id.
    task : str
    session : str
        JSON of the `SessionSpec` for items that a session asked.
    selection : str
        Path of the `Selection` for items that were chosen before.
    routing : str
        Path of the first stage's `Selection` for items that were chosen in stages.

    Returns
    -------
    mapping of str to float
        Without any score a session's are those of the prior, others NaN.
    """
    known = task_items(known_bank(bank, bank_id), task)
    answers = answers_of(known, scores)
    if session:
        pool = known_pool(bank, bank_id, task, session)
        estimates: ScoreEstimates | None = told_session(pool, answers, model_id=MODEL).estimate().scores
    else:
        known_one = known_bank(bank, bank_id)
        first = _selection(routing)
        chosen = _selection(selection) if first is None else stage_of(known_one, first, answers)
        estimates = selected_estimates(known_one, answers, chosen, model_id=MODEL)
    rows = {row["target"]: row for row in estimates.rows()} if estimates else {}
    unknown = {"estimate": math.nan, "low": math.nan, "high": math.nan}
    metrics = {"n_items": float(len(answers))}
    for name in (*known.scenarios, OVERALL):
        row = rows.get(name, unknown)
        metrics |= {name: row["estimate"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
    return metrics


def answers_of(known: TaskItems, scores: Iterable[tuple[str | int | None, float]]) -> dict[str, list[float]]:
    """Return the scores of each item that has any, one an epoch."""
    answers: dict[str, list[float]] = defaultdict(list)
    for sample_id, score in scores:
        if str(sample_id) in known.items and not math.isnan(score):
            answers[known.items[str(sample_id)]].append(score)
    return dict(answers)


def told_session(pool: SessionPool, answers: Mapping[str, list[float]], *, model_id: str) -> AdaptiveSession:
    """Return the session that has these answers, whoever asked for them."""
    session = AdaptiveSession(pool, model_id=model_id)
    for item_id, responses in answers.items():
        session.tell(item_id, **counted(responses))
    return session


def selected_estimates(
    bank: Bank, answers: Mapping[str, list[float]], selection: Selection | None, *, model_id: str, level: float = 0.95
) -> ScoreEstimates | None:
    """Estimate scores from chosen items; None without any answer."""
    if selection is not None:
        answers = answers_to(selection.whole.item_ids, answers)
    if not answers:
        return None
    matrix = matrix_of(bank, answers, model_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # Inspect computes metrics while items are still missing
        return estimate(bank, matrix, selection=selection, level=level)


@lru_cache(maxsize=4)
def _selection(path: str) -> Selection | None:
    return Selection.load(path) if path else None
