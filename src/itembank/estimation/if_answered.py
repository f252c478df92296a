"""What scores are whether lost answers would have been right or wrong."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from itembank.bank.selections import Selection
from itembank.errors import DataWarning
from itembank.estimation.estimates import LostScores, ScoreEstimates
from itembank.numerics.arrays import IntArray
from itembank.readers.agreement import only_items
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix


def with_lost(
    estimates: ScoreEstimates,
    responses: ResponseMatrix,
    selection: Selection | None,
    *,
    again: Callable[[ResponseMatrix], ScoreEstimates],
) -> ScoreEstimates:
    """Say what the estimates are if all lost answers are wrong, and if all are right; stretch intervals if asked for.

    `responses` are those of the models of `estimates`; `again` estimates others of the same items. Only answers to
    items of the selection can be lost, where there is one.
    """
    if selection is not None:
        responses, _ = only_items(responses, selection.item_ids)
    lost = responses.lost
    if lost is None or not lost.n.any():
        return estimates
    rows = np.flatnonzero(lost.n.any(axis=1))
    some = responses.take(models=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # what there is to say of the responses has been said
        wrong, right = (again(some.with_lost_as(value)) for value in (0.0, 1.0))
    return told_of_lost(estimates, lost, rows, wrong, right)


def told_of_lost(
    estimates: ScoreEstimates, lost: LostAnswers, rows: IntArray, wrong: ScoreEstimates, right: ScoreEstimates
) -> ScoreEstimates:
    """Put what is estimated if the lost answers of some models (`rows`) are wrong, and right, beside the estimates.

    `lost` has a row a model. With 'bounds' intervals are stretched over those of both.
    """
    if_wrong, if_right = (np.full(estimates.value.shape, np.nan) for _ in range(2))
    if_wrong[rows], if_right[rows] = wrong.value, right.value
    scores = estimates.scores
    if lost.errors == "bounds":
        low, high = scores.low.copy(), scores.high.copy()
        low[rows] = np.fmin(low[rows], np.fmin(wrong.low, right.low))
        high[rows] = np.fmax(high[rows], np.fmax(wrong.high, right.high))
        scores = scores._replace(low=low, high=high)
    words = tuple(lost[row].in_words for row in range(len(lost.n)))
    told = LostScores(lost.errors, lost.n.sum(axis=1), words, if_wrong, if_right)
    return replace(estimates, scores=scores, lost=told)
