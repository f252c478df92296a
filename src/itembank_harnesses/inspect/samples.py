"""Items of a bank as samples of a task of Inspect: which they are, their answers and estimates."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.bank_files import load_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import (
    DataError,
    DataWarning,
    MissingDependencyError,
    did_you_mean,
    missing_package,
    quoted,
    shown,
    unsaid,
)
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates
from itembank.readers.matching import AUTO, NATIVE, find_items, native_ids, plain
from itembank.responses.error_kinds import KINDS, NO_ANSWER, Errors
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.prompts import names_in_harness
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.sessions.answers import answer
from itembank.sessions.events import Answer, Failed
from itembank.sessions.first_items import excluded_items
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_harnesses.readers.inspect import sample_document
from itembank_harnesses.readers.inspect_runs import release_of
from itembank_harnesses.readers.inspect_samples import Sample, choose_scorer, sample_of, score_value
from itembank_harnesses.running import check_same_content

MODEL = "model"
"""What a model is called where nobody sees its name."""
LOGGED = {"id", "epoch", "scores", "error", "limit", "model_usage", "working_time", "total_time"}
"""What is looked at of a sample that Inspect has logged."""
OLDEST = (0, 3, 250)
"""The first release whose tasks can be fed samples while they run."""


@dataclass(frozen=True, slots=True)
class TaskItems:
    """The items of one task."""

    task: str  # As the bank names it
    items: Mapping[str, str]  # Sample ids as text, as logs tell them; in the bank's order
    scorer: str | None  # Whose scores the bank's responses are
    scenarios: tuple[str, ...]  # Of these items
    others: tuple[str, ...]  # Items of the bank's other tasks


def task_items(bank: Bank, task: str) -> TaskItems:
    """Find the items of a task in a bank, by the task's name, or its name of before; all where the bank has one task.

    The package before a name, case and what joins its words do not matter.
    """
    table = bank.responses.items
    if "task" in table.columns:
        named = [one for one in table["task"].unique(maintain_order=True).to_list() if one is not None]
        alike = [one for one in named if plain(one) == plain(task)]
        alike = alike or [name for name, own in names_in_harness(table).items() if plain(own) == plain(task)]
        found = [task] if task in named else alike or (named if len(named) == 1 else [])
        if len(found) != 1:
            raise DataError(
                f"the bank must hold items of the task {quoted(task)}, got the tasks {shown(named)}."
                f"{did_you_mean(task, named)}"
            )
        name = found[0]
    else:
        name, table = task, table.with_columns(pl.lit(task).alias("task"))
    own = table.filter(pl.col("task") == name)
    ids = native_ids(own)
    if len(set(ids)) < len(ids):
        raise DataError(
            f"items of the task {quoted(name)} must have ids of their own ({NATIVE}), got twice: "
            f"{shown([one for one, n in Counter(ids).items() if n > 1])}."
        )
    scorers = own["metric"].unique().to_list() if "metric" in own.columns else [None]
    return TaskItems(
        name,
        dict(zip(ids, own["item_id"].to_list(), strict=True)),
        scorers[0] if len(scorers) == 1 else None,
        tuple(own["scenario"].unique(maintain_order=True).to_list()),
        tuple(table.filter(pl.col("task").ne_missing(name))["item_id"].to_list()),
    )


def samples_by_item(
    bank: Bank,
    known: TaskItems,
    # The whole data set of the task. Samples without an id are numbered from 1, as Inspect does
    samples: Iterable[Any],
    wanted: Sequence[str],
    match: str = AUTO,  # How they are found (`itembank.readers.matching`)
) -> dict[str, Any]:
    """Return the sample of each wanted item, with the id that logs will tell: the one that `known` has for it."""
    by_id: dict[str, Any] = {}
    for number, sample in enumerate(samples, start=1):
        sample.id = number if sample.id is None else sample.id
        by_id[str(sample.id)] = sample
    documents = []
    for sample in by_id.values():
        text = sample.input if isinstance(sample.input, str) else [one.model_dump() for one in sample.input]
        record = {"id": sample.id, "input": text, "target": sample.target, "choices": sample.choices}
        document = sample_document(known.task, {**record, "metadata": sample.metadata}, is_whole=True)
        documents.append(document)
    found = find_items(bank.responses.items, wanted, documents, match)
    check_same_content(found, bank.responses.items, "inspect")
    asked = {item_id: by_id[found[item_id].name] for item_id in wanted}
    for native, item_id in known.items.items():
        if item_id in asked and str(asked[item_id].id) != native:
            asked[item_id].id = native
    return asked


def logged_sample(sample: Any) -> Sample:
    """Read one of Inspect's own logged samples as the reader of logs does."""
    return sample_of(sample.model_dump(include=LOGGED))


def response_of(sample: Sample, task: str, scorer: str | None) -> float:
    """Return the score of a sample, NaN where it has none."""
    if not sample.is_scored:
        return math.nan
    return score_value(sample.scores[choose_scorer(task, list(sample.scores), [scorer] if scorer else [], [])])


def answer_of(item_id: str, epochs: Sequence[Sample], responses: Sequence[float]) -> Answer:
    """Make the answer to an item of all its epochs: trials where each is right or wrong, else their mean.

    Costs are of all epochs together. Epochs without a score do not count; an item with none failed.
    """
    # A unit that some epoch does not tell is unknown.
    units = set.intersection(*(set(one.costs) for one in epochs)) if epochs else set()
    costs = {unit: sum(one.costs[unit] for one in epochs) for unit in sorted(units)}
    known = [response for response in responses if not math.isnan(response)]
    if not known:
        reasons = sorted({KINDS[one.failure] if one.failure else "no score" for one in epochs})
        return Failed(item_id, reason=", ".join(reasons) or "not run", costs=costs)
    return answer(item_id, costs=costs, **counted(known))


def counted(known: Sequence[float]) -> dict[str, Any]:
    """Return the response of one epoch, the counts of several that are right or wrong, or the mean of several."""
    if len(known) == 1:
        return {"response": known[0]}
    if all(one in {0.0, 1.0} for one in known):
        return {"n_correct": int(sum(known)), "n_trials": len(known)}
    return {"response": sum(known) / len(known)}


def answers_to(item_ids: Collection[str], answers: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Return the answers to these items."""
    wanted = set(item_ids)
    return {item_id: responses for item_id, responses in answers.items() if item_id in wanted}


def matrix_of(
    bank: Bank, answers: Mapping[str, Sequence[float]], model_id: str, kinds: Mapping[str, int] | None = None
) -> ResponseMatrix:
    """Make a response matrix of one model's answers; several epochs that are right or wrong are trials.

    Epochs without a score (NaN) were lost, of an item to the kind of error that `kinds` tells.
    """
    known = [[one for one in scores if not math.isnan(one)] for scores in answers.values()]
    trials = [counted(scores).get("n_trials", 1) if scores else 0 for scores in known]
    n_lost = np.array([[len(scores) - len(some) for scores, some in zip(answers.values(), known, strict=True)]])
    kind = np.array([[(kinds or {}).get(item, NO_ANSWER) for item in answers]])
    return ResponseMatrix.create(
        np.array([[sum(scores) / len(scores) if scores else math.nan for scores in known]]),
        model_ids=[model_id],
        items=bank.responses.items[bank.responses.item_indices(list(answers))],
        n_trials=np.array([trials]) if max(trials) > 1 else None,
        lost=LostAnswers(n_lost, np.where(n_lost > 0, kind, 0)) if n_lost.any() else None,
    )


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
    excluded = (*excluded_items(bank, spec), *task_items(bank, task).others)
    return prepare_sessions(bank, replace(spec, constraints=replace(spec.constraints, excluded=excluded)))


def estimated_metrics(
    scores: Iterable[tuple[str | int | None, float]],  # One a sample and epoch; NaN where there is none
    *,
    bank: str,  # Path of the bank, and its id
    task: str,
    bank_id: str = "",
    session: str = "",  # JSON of the `SessionSpec` for items that a session asked
    selection: str = "",  # Path of the `Selection` for items that were chosen before
) -> dict[str, float]:  # Without any score a session's are those of the prior, others NaN
    """Estimate scores from scored samples: ``name``, ``name_low`` and ``name_high`` for each, and ``n_items``.

    The scores are those of the task's scenarios, and the overall score.
    """
    known = task_items(known_bank(bank, bank_id), task)
    answers = answers_of(known, scores)
    if session:
        pool = known_pool(bank, bank_id, task, session)
        estimates: ScoreEstimates | None = told_session(pool, answers, model_id=MODEL).estimate().scores
    else:
        estimates = selected_estimates(known_bank(bank, bank_id), answers, _selection(selection), model_id=MODEL)
    targets = estimates.targets if estimates else ()  # rows would leave out the only scenario
    metrics = {"n_items": float(sum(not all(map(math.isnan, own)) for own in answers.values()))}
    for name in (*known.scenarios, OVERALL):
        at = (0, targets.index(name)) if name in targets else None
        for end, array in (("", "value"), ("_low", "low"), ("_high", "high")):
            metrics[f"{name}{end}"] = math.nan if at is None else float(getattr(estimates, array)[at])
    return metrics


def answers_of(known: TaskItems, scores: Iterable[tuple[str | int | None, float]]) -> dict[str, list[float]]:
    """Return the scores of each item that was run, one an epoch, NaN where there is none."""
    answers: dict[str, list[float]] = defaultdict(list)
    for sample_id, score in scores:
        if str(sample_id) in known.items:
            answers[known.items[str(sample_id)]].append(score)
    return dict(answers)


def told_session(
    pool: SessionPool, answers: Mapping[str, list[float]], *, model_id: str, kinds: Mapping[str, int] | None = None
) -> AdaptiveSession:
    """Return the session that has these answers, whoever asked for them; items without a score failed."""
    session = AdaptiveSession(pool, model_id=model_id)
    for item_id, scores in answers.items():
        known = [one for one in scores if not math.isnan(one)]
        if known:
            session.tell(item_id, **counted(known))
        else:
            session.tell_failed(item_id, reason=KINDS[(kinds or {}).get(item_id, NO_ANSWER)])
    return session


def selected_estimates(
    bank: Bank,
    answers: Mapping[str, list[float]],
    selection: Selection | None,
    *,
    model_id: str,
    level: float = 0.95,
    errors: Errors | None = None,
    kinds: Mapping[str, int] | None = None,
) -> ScoreEstimates | None:
    """Estimate scores from chosen items; None without any answer."""
    if selection is not None:
        answers = answers_to(selection.whole.item_ids, answers)
    if not answers:
        return None
    matrix = matrix_of(bank, answers, model_id, kinds).with_errors(errors)
    if not matrix.observed.any():
        return None
    with unsaid(DataWarning):  # Inspect computes metrics while items are still missing
        return estimate(bank, matrix, selection=selection, level=level)


@lru_cache(maxsize=4)
def _selection(path: str) -> Selection | None:
    return Selection.load(path) if path else None


def check_release() -> None:
    """Raise `MissingDependencyError` unless an Inspect is installed that the harness can run in."""
    try:
        import inspect_ai  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise missing_package("runs inside Inspect need inspect_ai", "inspect_ai", error) from error
    installed = version("inspect_ai")
    if release_of(installed) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MissingDependencyError(
            f"runs inside Inspect need inspect_ai {oldest} or newer, got {installed}: pip install -U inspect_ai. Logs "
            "of any release can be read: itembank import."
        )
