"""Counts in a long table: trials and successes, and the responses that follow from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from itembank.errors import N_SHOWN, DataWarning, first_few, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.labels import Labels

AGREEMENT = 0.005
"""How far a response may stand from n_correct / n_trials: responses are often written with two decimals."""
LARGEST_COUNT = 2.0**53


@dataclass(frozen=True, slots=True)
class RowIds:
    """Source, and model and item of each row, for messages."""

    source: str
    models: Labels
    items: Labels

    def pairs(self, rows: IntArray) -> list[str]:
        """Name the first few of these rows."""
        first = rows[:N_SHOWN]
        names = zip(self.models.at(first), self.items.at(first), strict=True)
        return [f"{model!r} item {item!r}" for model, item in names]


def settle_counts(
    values: Mapping[str, FloatArray | None], spec: ReadingSpec, ids: RowIds, problems: list[str]
) -> tuple[FloatArray, IntArray | None]:
    """Find responses and trials of the rows, and say what cannot be.

    Parameters
    ----------
    values : mapping with `response`, `n_trials`, `n_correct`, each (n_rows,) or None
        NaN where missing.
    spec : ReadingSpec
        `n_correct` counts only where the response column is the usual one.
    ids : RowIds
    problems : list of str
        What is wrong is added to it.

    Returns
    -------
    response : (n_rows,)
        n_correct / n_trials where both are known, else as given, divided by the maximum; NaN where missing.
    n_trials : (n_rows,) or None
        1 for a response of unknown trials, 0 where the response is missing; None when no trials are known.
    """
    given, trials = values["response"], values["n_trials"]
    correct = values["n_correct"] if spec.response_column == "response" else None
    response: FloatArray = np.full(ids.models.index.shape, np.nan) if given is None else given / spec.max_response
    if trials is None:
        trials = np.full(response.shape, np.nan)
    if correct is not None:
        _check_correct(correct, trials, ids, problems)
        response = _from_counts(response, correct, trials, ids, problems)
    _check_trials(response, correct, trials, ids, problems)
    if np.isnan(trials).all():
        return response, None
    _tell_of_unknown_trials(response, trials, ids)
    is_known = ~np.isnan(trials) & (trials >= 1.0) & (trials < LARGEST_COUNT)
    counted = np.where(is_known, trials, 1.0).astype(np.int64)
    return response, np.where(np.isnan(response), 0, counted)


def _tell_of_unknown_trials(response: FloatArray, trials: FloatArray, ids: RowIds) -> None:
    """Warn of shares whose trials are unknown where those of others are known: they weigh as one trial."""
    shares = np.flatnonzero(np.isnan(trials) & (response > 0.0) & (response < 1.0))
    if shares.size:
        warn(
            f"{ids.source}: {shares.size} responses between 0 and 1 have no n_trials, though others have, and count as "
            f"one trial each: {first_few(ids.pairs(shares), shares.size)}. Give theirs, or read them apart.",
            DataWarning,
        )


def _check_trials(
    response: FloatArray,
    correct: FloatArray | None,
    trials: FloatArray,
    ids: RowIds,
    problems: list[str],
) -> None:
    """Refuse trials that are no counts; rows of zero trials that say nothing else are missing, with a note."""
    with np.errstate(invalid="ignore"):
        is_zero = trials == 0.0
        bad = ~np.isnan(trials) & ~((trials >= 0.0) & (trials == np.floor(trials)) & (trials < LARGEST_COUNT))
    has_successes = np.zeros_like(is_zero) if correct is None else correct > 0.0  # told by another check
    bad |= is_zero & ~np.isnan(response) & ~has_successes
    _add(
        problems,
        bad,
        ids,
        lambda row: f"{trials[row]:g}",
        "n_trials must be a whole number of at least 1 where there is a response",
    )
    empty = np.flatnonzero(is_zero & np.isnan(response) & ~has_successes)
    if empty.size:
        names = first_few(ids.pairs(empty), empty.size)
        warn(f"{ids.source}: {empty.size} rows have zero trials and count as missing: {names}.", DataWarning)


def _check_correct(correct: FloatArray, trials: FloatArray, ids: RowIds, problems: list[str]) -> None:
    """Refuse successes without trials, or that are not whole numbers from 0 to the trials."""
    has_correct = ~np.isnan(correct)
    _add(
        problems,
        has_correct & np.isnan(trials),
        ids,
        lambda row: f"{correct[row]:g} of unknown",
        "n_correct must come with n_trials",
    )
    with np.errstate(invalid="ignore"):
        bad = has_correct & (trials >= 0.0) & ((correct < 0.0) | (correct > trials) | (correct != np.floor(correct)))
    _add(
        problems,
        bad,
        ids,
        lambda row: f"{correct[row]:g} of {trials[row]:g}",
        "n_correct must be a whole number from 0 to n_trials",
    )


def _from_counts(
    response: FloatArray, correct: FloatArray, trials: FloatArray, ids: RowIds, problems: list[str]
) -> FloatArray:
    """Responses as n_correct / n_trials where both are known; they must not contradict one that is given."""
    with np.errstate(invalid="ignore"):
        has_counts = ~np.isnan(correct) & (trials >= 1.0) & (correct >= 0.0) & (correct <= trials)
        ratio = np.divide(correct, trials, out=np.full(correct.shape, np.nan), where=has_counts)
        unequal = has_counts & (np.abs(response - ratio) > AGREEMENT)
    _add(
        problems,
        unequal,
        ids,
        lambda row: f"{correct[row]:g} of {trials[row]:g}, response {response[row]:g}",
        "response must be n_correct / n_trials where all three are given",
    )
    result: FloatArray = np.where(has_counts, ratio, response)
    return result


def _add(problems: list[str], mask: BoolArray, ids: RowIds, text: Callable[[int], str], what: str) -> None:
    """Add a problem that names the first few rows of the mask."""
    rows = np.flatnonzero(mask)
    if rows.size:
        first = rows[:N_SHOWN]
        where = [f"{pair} ({text(row)})" for pair, row in zip(ids.pairs(first), first.tolist(), strict=True)]
        problems.append(f"{what}, got {rows.size} rows with something else: {first_few(where, rows.size)}.")
