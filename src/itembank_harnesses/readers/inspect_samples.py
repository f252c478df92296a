"""Samples of Inspect's logs: what each cost, what it asked, and what became of it."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from itembank.errors import DataError, did_you_mean, quoted, shown
from itembank.readers.json_files import Record, as_float
from itembank.readers.reading_specs import choices_for
from itembank.responses.error_kinds import ERROR, KINDS, error_kind

OWN_SCORER = "itembank"
"""Scorer of `itembank_harnesses.inspect`; its value is no response."""

WORDS: Mapping[str, float] = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    **dict.fromkeys(("yes", "true"), 1.0),
    **dict.fromkeys(("no", "false"), 0.0),
}
"""Scores that are words: right, wrong, partly right and not answered, as Inspect's own `value_to_float` has them."""


def score_value(value: Any) -> float:
    """Return a score as a number, NaN where there is none; `DataError` for what Inspect itself takes for 0."""
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float):
        return as_float(value)
    if isinstance(value, str):
        known = WORDS.get(value, WORDS.get(value.lower()))
        if known is not None:
            return known
        with suppress(ValueError):
            return float(value)
    raise DataError(f"a score must be a number or one of {shown(list(WORDS), len(WORDS))}, got {quoted(value)}.")


def flat_scores(scores: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the value of each scorer; a scorer with several values gives ``scorer/name`` for each."""
    values: dict[str, Any] = {}
    for name, score in (scores or {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            values |= {f"{name}/{part}": one for part, one in value.items()}
        else:
            values[name] = value
    values.pop(OWN_SCORER, None)
    return values


def choose_scorer(task: str, names: Sequence[str], wanted: Sequence[str], notes: list[str]) -> str:
    """Name of the scorer whose score is the response of a task.

    Of those `wanted`, in order of preference, ``task=name`` holds for some tasks only. Without any the first scorer is
    taken, which is Inspect's headline; that there are others is noted. `DataError` when none that was asked for is
    there.
    """
    asked = choices_for(task, wanted)
    if asked:
        chosen = next((name for name in asked if name in names), None)
        if chosen is None:
            raise DataError(
                f"unknown scorer {shown(asked)} for task {quoted(task)}: it has {shown(names, 20)}."
                f"{did_you_mean(asked, names)}"
            )
        return chosen
    if len(names) > 1:
        notes.append(f"scorer {quoted(names[0])} of task {quoted(task)} (it also has {shown(names[1:])})")
    return names[0]


MOST_TEXT = 5120
"""Characters that the summaries of a log keep of a text; the hash of an item looks at no more."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample and epoch."""

    id: str | int
    epoch: int
    scores: Mapping[str, Any]  # As logged; empty where the sample was not scored
    content: str | None  # Hash of what was asked, and of the target
    failure: int  # Kind of what ended the sample before its time (`error_kinds.KINDS`); 0 for none
    costs: Mapping[str, float]

    @property
    def is_scored(self) -> bool:
        """Whether there is a score: that of a sample that ended in an error counts, as Inspect counts it."""
        return bool(self.scores)


def sample_of(record: Record) -> Sample:
    """Make a sample of its record in a log, or of its summary."""
    sample_id, epoch = record.get("id"), record.get("epoch", 1)
    if isinstance(sample_id, bool) or not isinstance(sample_id, str | int) or not isinstance(epoch, int):
        raise DataError(f"a sample must have an id, text or a whole number, and an epoch, got {quoted(sample_id)}.")
    scores = record.get("scores", record.get("score"))  # `score` in logs of version 1
    if scores is not None and not isinstance(scores, dict):
        raise DataError(f"the scores of a sample must be an object, got {type(scores).__name__} for {sample_id!r}.")
    failure = _failure(record)
    if record.get("invalidation"):  # somebody said so, and a retry runs it again
        scores, failure = None, ERROR
    content = content_hash(record["input"], record.get("target", "")) if "input" in record else None
    return Sample(sample_id, epoch, flat_scores(scores), content, failure, sample_costs(record))


LIMITS = {"time": "time-out", "working": "time-out", "operator": "harness"}
"""Kinds of what Inspect calls limits; of tokens, messages and costs it is one."""


def _failure(record: Record) -> int:
    """Kind of what ended a sample before its time; 0 for none."""
    error, limit = record.get("error"), record.get("limit")
    if error:
        return error_kind(error.get("message") or error if isinstance(error, dict) else error) or ERROR
    if not limit:
        return 0
    kind = str(limit.get("type") if isinstance(limit, dict) else limit)
    return KINDS.index(LIMITS.get(kind, "limit"))


def sample_costs(record: Mapping[str, Any]) -> dict[str, float]:
    """Return what a sample cost: tokens of all models, money where the log tells it, and seconds of work.

    Tokens that were written are those of the total that were not read, where the log has a total: some providers
    count tokens of reasoning apart.
    """
    usage = record.get("model_usage")
    models = [one for one in usage.values() if isinstance(one, dict)] if isinstance(usage, dict) else []
    costs: dict[str, float] = {}
    if models:
        read = [_sum(one, "input_tokens", "input_tokens_cache_read", "input_tokens_cache_write") for one in models]
        written = [
            max(_sum(one, "output_tokens"), _sum(one, "total_tokens") - n) for one, n in zip(models, read, strict=True)
        ]
        costs = {"input_tokens": sum(read), "output_tokens": sum(written)}
        money = [_sum(one, "total_cost") for one in models if one.get("total_cost") is not None]
        if len(money) == len(models):
            costs["cost_usd"] = sum(money)
    seconds = record.get("working_time", record.get("total_time"))
    if _is_amount(seconds):
        costs["seconds"] = float(seconds)
    return costs


def _sum(usage: Mapping[str, Any], *names: str) -> float:
    return sum(float(usage[name]) for name in names if _is_amount(usage.get(name)))


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(as_float(value)) and value >= 0


def content_hash(asked: Any, target: Any) -> str:
    """SHA-256 of what a sample asks and of its target, the same for a log, its summaries and the data set.

    Of messages the roles and texts count; of anything but text its kind. Of each text the first 5,120 characters
    count, as many as the summaries of a log keep.
    """
    targets = target if isinstance(target, list) else [target]
    text = json.dumps([_asked(asked), [str(one)[:MOST_TEXT] for one in targets]], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _asked(asked: Any) -> Any:
    if not isinstance(asked, list):
        return str(asked)[:MOST_TEXT]
    messages = []
    for one in (one for one in asked if isinstance(one, dict)):
        content = one.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        told = [(str(part.get("type", "text")), part) for part in parts if isinstance(part, dict)]
        texts = [
            str(part.get("text", ""))[:MOST_TEXT] if kind == "text" else f"({kind.capitalize()})" for kind, part in told
        ]
        messages.append([one.get("role"), texts])
    return messages
