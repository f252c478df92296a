"""Scores of many questions that came without the number of these, and how many answers each counts as."""

from dataclasses import replace

import numpy as np
import polars as pl

from itembank.errors import DataWarning, remedy, warn
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.numerics.paired import is_count
from itembank.responses.how_read import ATTEMPT_VARIANCE
from itembank.responses.responses import ResponseMatrix

ASSUMED_QUESTIONS = 100
"""Published scores are percentages: of a hundred questions one is a point. More or fewer matter little, since how far
scores scatter beyond chance is measured ('beta-binomial')."""
COLUMN = "assumed_questions"
"""Item column: how many questions a score of it counts as that came without their number; 0 where none did."""


def with_assumed_sizes(responses: ResponseMatrix) -> ResponseMatrix:
    """Return past results in which published scores of benchmarks have numbers of questions.

    Scores are those of benchmarks where an item is the only one of its scenario, and has a response between 0 and 1 in
    no more than one trial. Then all such responses of the table count as `ASSUMED_QUESTIONS` answers. Others stay as
    they are.
    """
    alone = np.flatnonzero(responses.items.select(pl.len().over("scenario") == 1).to_series().to_numpy())
    if not (alone.size and _is_share(responses.take(items=alone)).any()):
        return responses
    is_unsized = _is_share(responses)
    trials = _trials(responses)
    assumed = np.where(is_unsized.any(axis=0), ASSUMED_QUESTIONS, 0)
    of_items = assumed if COLUMN not in responses.items.columns else np.maximum(assumed, responses.items[COLUMN])
    items = responses.items.with_columns(pl.Series(COLUMN, of_items, dtype=pl.Int64))
    # an item's score of 0 or 1 is one of as many questions
    n_trials = np.where(responses.observed & (assumed > 0) & (trials <= 1), assumed, trials)
    return replace(responses, items=items, n_trials=n_trials)


def with_usual_sizes(responses: ResponseMatrix, past: ResponseMatrix) -> ResponseMatrix:
    """Return new results in which scores without a number of trials count as many as those of past models.

    That is the median over past models of the item, or where these are not there what was assumed of them. A
    `DataWarning` says so. Where past models' are means of graded attempts, read one by one, a score is one attempt.
    """
    assumed = past.items[COLUMN].to_numpy() if COLUMN in past.items.columns else None
    trials = past.n_trials if past.n_models or assumed is None else assumed[None]
    if trials is None:
        return responses
    place = {name: at for at, name in enumerate(past.item_ids)}
    known = np.array([place.get(name, -1) for name in responses.item_ids], dtype=np.int64)
    is_unsized = _is_share(responses) & (known >= 0)
    if ATTEMPT_VARIANCE in past.items.columns and is_unsized.any():
        is_told = past.items[ATTEMPT_VARIANCE].is_not_null().to_numpy()
        is_unsized &= ~(is_told & graded_items(past) if past.n_models else is_told)[known]
    if assumed is not None:  # a score of 0 or 1 is one of as many questions
        is_score = (known >= 0) & (assumed[known] > 0)
        is_unsized |= is_score & responses.observed & (_trials(responses) <= 1)
    columns = np.flatnonzero(is_unsized.any(axis=0))
    if not columns.size:
        return responses
    of_past = np.ma.masked_equal(trials[:, known[columns]], 0)
    usual = np.ones(responses.n_items, dtype=np.int64)
    usual[columns] = np.ma.median(of_past, axis=0).filled(1).astype(np.int64)  # type: ignore[no-untyped-call]
    n_filled = int((is_unsized & (usual > 1)).sum())
    if not n_filled:
        return responses
    low, high = int(usual[columns].min()), int(usual[columns].max())
    numbers = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    graded = ""
    if graded_items(past)[known[columns]].any():
        how = remedy("repeats='mean'", "--repeats mean")
        graded = (
            f" If they are one graded attempt each, import past results from such ({how}): intervals are too narrow."
        )
    warn(f"{_said(n_filled, numbers)}, as those of past models do. {_ADVICE}{graded}", DataWarning)
    return replace(responses, n_trials=np.where(is_unsized, usual, _trials(responses)))


def graded_items(responses: ResponseMatrix) -> BoolArray:
    """Items of which some response is a mean of graded attempts, and not a share of right ones, (n_items,).

    Scores of as many questions as was assumed are none.
    """
    values, n_trials = responses.responses, responses.n_trials
    if n_trials is None:
        return np.zeros(responses.n_items, dtype=bool)
    found: BoolArray = np.any(~np.isnan(values) & (n_trials >= 2) & ~is_count(values, n_trials), axis=0)
    return found & ~(responses.items[COLUMN] > 0).to_numpy() if COLUMN in responses.items.columns else found


def usual_trials(responses: ResponseMatrix) -> int:
    """Return how often models tried an item, the median over responses: what is expected of them is of so many."""
    if responses.n_trials is None or responses.n_items == 0 or COLUMN in responses.items.columns:
        return 1
    known = responses.n_trials[responses.n_trials > 0]
    return int(np.median(known)) if known.size else 1


def assumed_questions(items: pl.DataFrame) -> int | None:
    """Return what scores without a number of questions count as in a bank; None where all numbers are known."""
    return (int(items[COLUMN].max()) or None) if COLUMN in items.columns else None  # type: ignore[arg-type]


def warn_of_assumed_sizes(before: ResponseMatrix, after: ResponseMatrix) -> None:
    """Say in a `DataWarning` what `with_assumed_sizes` assumed."""
    if after is not before:
        n_filled = int((_trials(after) > _trials(before)).sum())
        warn(f"{_said(n_filled, str(ASSUMED_QUESTIONS))}, an assumption. {_ADVICE}", DataWarning)


def _trials(responses: ResponseMatrix) -> IntArray:
    """Trials behind each response, (n_models, n_items): one where nothing is said, zero where it is missing."""
    return responses.observed.astype(np.int64) if responses.n_trials is None else responses.n_trials


def _is_share(responses: ResponseMatrix) -> BoolArray:
    """Where a response is between 0 and 1 in one trial at most, (n_models, n_items)."""
    values = responses.responses
    is_share: BoolArray = (values > 0.0) & (values < 1.0)
    return is_share if responses.n_trials is None else is_share & (responses.n_trials <= 1)


def _said(n: int, numbers: str) -> str:
    came = (
        "1 score came without a number of questions, and counts"
        if n == 1
        else (f"{n:,} scores came without numbers of questions, and count")
    )
    return f"{came} as {numbers} each"


_ADVICE = "Where you know the numbers, give them: n_trials."
