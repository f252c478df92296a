"""What scores are whether lost answers would have been right or wrong."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from itembank.errors import DataWarning
from itembank.estimation.estimates import LostScores, ScoreEstimates
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix


def with_lost(
    estimates: ScoreEstimates, responses: ResponseMatrix, again: Callable[[ResponseMatrix], ScoreEstimates]
) -> ScoreEstimates:
    """Say what the estimates are if all lost answers are wrong, and if all are right; stretch intervals if asked for.

    `responses` are those that were asked for, of the models of `estimates`, and have lost answers; `again` estimates
    others of the same items.
    """
    lost = responses.lost
    if lost is None:
        return estimates
    rows = np.flatnonzero(lost.n.any(axis=1))
    some = responses.take(models=rows)
    if_wrong, if_right = (np.full(estimates.value.shape, np.nan) for _ in range(2))
    ends = [estimates.low.copy(), estimates.high.copy()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # what there is to say of the responses has been said
        for found, value in ((if_wrong, 0.0), (if_right, 1.0)):
            counted = again(some.with_lost_as(value))
            found[rows] = counted.value
            _stretch(ends, rows.tolist(), counted)
    scores = estimates.scores
    if lost.errors == "bounds":
        scores = scores._replace(low=ends[0], high=ends[1])
    n = lost.n.sum(axis=1)
    words = tuple(lost[row].in_words for row in range(n.size))
    return replace(estimates, scores=scores, lost=LostScores(lost.errors, n, words, if_wrong, if_right))


def _stretch(ends: list[FloatArray], rows: list[int], counted: ScoreEstimates) -> None:
    """Take the intervals of some models into theirs."""
    ends[0][rows] = np.fmin(ends[0][rows], counted.low)
    ends[1][rows] = np.fmax(ends[1][rows], counted.high)
