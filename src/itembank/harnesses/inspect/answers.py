"""What became of samples in all their epochs, as answers to items."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.readers.inspect_samples import Sample, choose_scorer, sample_of, score_value
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answers import Answer

MODEL = "model"
"""What a model is called where nobody sees its name."""
LOGGED = {"id", "epoch", "scores", "error", "limit", "model_usage", "working_time", "total_time"}
"""What is looked at of a sample that Inspect has logged."""


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
    costs = total_costs(epochs)
    known = [response for response in responses if not math.isnan(response)]
    if not known:
        reasons = sorted({one.failure or "no score" for one in epochs})
        return Answer(item_id, costs=costs, failed=True, reason=", ".join(reasons) or "not run")
    return Answer(item_id, costs=costs, **counted(known))


def counted(known: Sequence[float]) -> dict[str, Any]:
    """Return the response of one epoch, the counts of several that are right or wrong, or the mean of several."""
    if len(known) == 1:
        return {"response": known[0]}
    if all(one in {0.0, 1.0} for one in known):
        return {"n_correct": int(sum(known)), "n_trials": len(known)}
    return {"response": sum(known) / len(known)}


def total_costs(epochs: Sequence[Sample]) -> Mapping[str, float]:
    """Sum costs by unit; a unit that some epoch does not tell is unknown."""
    units = set.intersection(*(set(one.costs) for one in epochs)) if epochs else set()
    return {unit: sum(one.costs[unit] for one in epochs) for unit in sorted(units)}


def answers_to(item_ids: Collection[str], answers: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Return the answers to these items."""
    wanted = set(item_ids)
    return {item_id: responses for item_id, responses in answers.items() if item_id in wanted}


def matrix_of(bank: Bank, answers: Mapping[str, Sequence[float]], model_id: str) -> ResponseMatrix:
    """Make a response matrix of one model's answers; several epochs that are right or wrong are trials.

    Parameters
    ----------
    bank : Bank
    answers : mapping of item id to one score an epoch
    model_id : str
    """
    trials = [counted(responses).get("n_trials", 1) for responses in answers.values()]
    return ResponseMatrix.create(
        np.array([[sum(responses) / len(responses) for responses in answers.values()]]),
        model_ids=[model_id],
        items=bank.responses.items[bank.responses.item_indices(list(answers))],
        n_trials=np.array([trials]) if max(trials) > 1 else None,
    )
