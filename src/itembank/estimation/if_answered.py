"""What scores are whether lost answers would have been right or wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from itembank.errors import DataWarning, remedy, unsaid
from itembank.estimation.estimates import LostScores, ScoreEstimates
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.agreement import only_items
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Note


def with_lost(
    estimates: ScoreEstimates,
    responses: ResponseMatrix,
    item_ids: Sequence[str],
    *,
    again: Callable[[ResponseMatrix], ScoreEstimates],
) -> ScoreEstimates:
    """Say what the estimates are if all lost answers are wrong, and if all are right; stretch intervals if asked for.

    `responses` are those of the models of `estimates`, of which answers to `item_ids` count; `again` estimates others.
    """
    lost = None if responses.lost is None else only_items(responses, item_ids)[0].lost
    if lost is None or not lost.n.any():
        return estimates
    rows = np.flatnonzero(lost.n.any(axis=1))
    some = responses.take(models=rows)
    with unsaid(DataWarning):  # what there is to say of the responses has been said
        wrong, right = (again(some.with_lost_as(value)) for value in (0.0, 1.0))
    return told_of_lost(estimates, lost, rows, wrong, right)


def told_of_lost(
    estimates: ScoreEstimates, lost: LostAnswers, rows: IntArray, wrong: ScoreEstimates, right: ScoreEstimates
) -> ScoreEstimates:
    """Put what is estimated if the lost answers of some models (`rows`) are wrong, and right, beside the estimates.

    `lost` has a row a model. Estimates are cut to what lies between both: drawn items weigh differently, so that those
    left may give more than all of them would if the lost were right. With 'bounds' intervals are stretched over both.
    """
    if_wrong, if_right = _unknown(estimates)
    if_wrong[rows], if_right[rows] = wrong.value, right.value
    value, low, high = (one.copy() for one in (estimates.value, estimates.low, estimates.high))
    least, most = np.fmin(wrong.value, right.value), np.fmax(wrong.value, right.value)
    value[rows] = np.clip(value[rows], *(np.where(np.isnan(one), value[rows], one) for one in (least, most)))
    ends = [value[rows]] if lost.errors != "bounds" else [value[rows], wrong.low, right.low, wrong.high, right.high]
    low[rows], high[rows] = np.fmin.reduce([low[rows], *ends]), np.fmax.reduce([high[rows], *ends])
    scores = estimates.scores._replace(value=value, low=low, high=high)
    words = tuple(lost[row].in_words for row in range(len(lost.n)))
    told = LostScores(lost.errors, lost.n.sum(axis=1), words, if_wrong, if_right)
    notes = [_note(estimates, told, row) for row in rows.tolist()]
    return replace(estimates, scores=scores, lost=told, notes=(*notes, *estimates.notes))


def joined_lost(estimates: Sequence[ScoreEstimates]) -> LostScores | None:
    """Put what several models lost together, in their order; None where none lost any."""
    told = [one.lost for one in estimates if one.lost is not None]
    if not told:
        return None
    nothing = [
        LostScores(told[0].errors, np.zeros(one.n_models, dtype=np.int64), ("",) * one.n_models, *_unknown(one))
        for one in estimates
    ]
    parts = [empty if one.lost is None else one.lost for one, empty in zip(estimates, nothing, strict=True)]
    return LostScores(
        told[0].errors,
        np.concatenate([one.n for one in parts]),
        tuple(words for one in parts for words in one.in_words),
        np.concatenate([one.if_wrong for one in parts]),
        np.concatenate([one.if_right for one in parts]),
    )


def _unknown(estimates: ScoreEstimates) -> tuple[FloatArray, FloatArray]:
    """Return estimates that are unknown if lost answers are wrong, and if they are right: there are none."""
    return np.full(estimates.value.shape, np.nan), np.full(estimates.value.shape, np.nan)


def _note(estimates: ScoreEstimates, lost: LostScores, row: int) -> Note:
    """Say how many answers a model lost, what they count as, and what the score is otherwise."""
    at = estimates.targets.index(estimates.main_target)
    wrong, right = (f"{100.0 * one[row, at]:.1f}" for one in (lost.if_wrong, lost.if_right))
    n = int(lost.n[row])
    said = f"lost {n} answer{'s' * (n > 1)} ({lost.in_words[row]})."
    they = "It counts" if n == 1 else "They count"
    if lost.errors == "wrong":
        text = f"{said} {they} as wrong; if right, the score is {right} points."
    elif lost.errors == "bounds":
        text = f"{said} The interval covers both: {wrong} points if wrong, {right} if right."
    else:
        text = f"{said} {they} as missing: {wrong} points if wrong, {right} if right."
    more = remedy("errors='wrong' or 'bounds' counts them.", "--errors wrong or bounds counts them.")
    return Note("lost", text, more if lost.errors == "missing" else "", (estimates.model_ids[row],))
