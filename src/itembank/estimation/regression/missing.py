"""Responses and scores that are missing: which complete problems a regression falls into."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Block:
    """New models that answered the same items, and scores that the same calibration models have."""

    train: IntArray  # (n_block_train,): Calibration models whose scores are known
    columns: IntArray  # (n_observed,): What the new models answered
    new: IntArray  # (n_block_new,): Rows of the new models
    targets: IntArray  # (n_block_targets,)


Solver = Callable[[FloatArray, FloatArray, FloatArray, Block], FloatArray]
"""(train responses, train scores, new responses, block), all complete -> (n_block_new, n_block_targets)."""


def solve_blocks(
    train_responses: FloatArray, train_scores: FloatArray, new_responses: FloatArray, solver: Solver
) -> FloatArray:
    """Predict block by block, each from exactly what its new models answered, and clip to [0, 1].

    A regression on the answered items alone uses what was observed and nothing made up, at the price of a fit for
    each pattern of missing items; new models of one run share theirs. What calibration models did not answer is
    filled in by `completed`, after the unanswered columns are gone.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    solver : callable
        Sees complete arrays only.

    Returns
    -------
    (n_new, n_targets)
        NaN for a target that no calibration model has a score for.
    """
    result = np.full((new_responses.shape[0], train_scores.shape[1]), np.nan)
    for block in blocks(train_scores, new_responses):
        train = completed(train_responses[np.ix_(block.train, block.columns)])
        scores = train_scores[np.ix_(block.train, block.targets)]
        new = new_responses[np.ix_(block.new, block.columns)]
        result[np.ix_(block.new, block.targets)] = solver(train, scores, new, block)
    return np.asarray(np.clip(result, 0.0, 1.0))


def blocks(train_scores: FloatArray, new_responses: FloatArray) -> Iterator[Block]:
    """Every pair of a pattern of known scores and a pattern of answered items; targets without any score are left."""
    new_patterns = list(_patterns(~np.isnan(new_responses)))
    for known, targets in _patterns(~np.isnan(train_scores).T):
        train = np.flatnonzero(known)
        if train.size:
            for answered, new in new_patterns:
                yield Block(train, np.flatnonzero(answered), new, targets)


def _patterns(mask: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Each distinct row of a mask and where it stands."""
    if mask.all():  # by far the most frequent, and the cheapest to see
        if mask.shape[0]:
            yield np.ones(mask.shape[1], dtype=np.bool_), np.arange(mask.shape[0])
        return
    distinct, inverse = np.unique(mask, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    for number, row in enumerate(distinct):
        yield row, np.flatnonzero(inverse == number)


def completed(responses: FloatArray) -> FloatArray:
    """Fill missing responses (n_models, n_columns) by item mean plus the model's mean distance from the item means.

    A column that nobody answered becomes constant, and so says nothing in a regression.
    """
    observed = ~np.isnan(responses)
    if observed.all():
        return responses
    values = np.where(observed, responses, 0.0)
    item_mean = values.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    distance = np.where(observed, responses - item_mean, 0.0)
    model_effect = distance.sum(axis=1) / np.maximum(observed.sum(axis=1), 1)
    filled = np.clip(item_mean + model_effect[:, None], 0.0, 1.0)
    filled = np.where(observed.any(axis=0), filled, 0.0)
    result: FloatArray = np.where(observed, responses, filled)
    return result
