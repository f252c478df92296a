"""What a sample of Inspect was worth: scores as numbers, and which scorer's score is the response."""

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from itembank.errors import DataError, did_you_mean, quoted, remedy, shown

OWN_SCORER = "itembank"
"""Scorer of `itembank.harnesses.inspect`; its value is no response."""

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
    """Return a score as a number, NaN where there is none.

    Raises
    ------
    DataError
        For what is no number and none of the words of Inspect; Inspect itself takes it for 0.
    """
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        number = WORDS.get(value, WORDS.get(value.lower()))
        return _number(value) if number is None else number
    raise DataError(f"a score must be a number or one of {shown(list(WORDS), len(WORDS))}, got {quoted(value)}.")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(
            f"a score must be a number or one of {shown(list(WORDS), len(WORDS))}, got {quoted(text)}."
        ) from None


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

    Parameters
    ----------
    task : str
    names : sequence of str
        Scorers of the task, in the log's order.
    wanted : sequence of str
        What was asked for, in order of preference, ``task=name`` for some tasks only. Without it the first scorer is
        taken, which is Inspect's headline; that there are others is noted.

    Raises
    ------
    DataError
        When none that was asked for is there.
    """
    own = [one.split("=", 1) for one in wanted if "=" in one]
    asked = [name for pattern, name in own if fnmatchcase(task, pattern)] + [name for name in wanted if "=" not in name]
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


def how_to_choose() -> str:
    """Say how another scorer is chosen."""
    return f"Choose with {remedy('metric=...', '--metric')}."
