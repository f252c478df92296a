"""`PastSessions`: how sessions did on calibration models that were run as if these were new."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from itembank.bank.known_scores import Headline
from itembank.estimation.headlines import reader_of
from itembank.estimation.members_out_of_fold import Past
from itembank.estimation.out_of_fold import OutOfFold
from itembank.estimation.typicality import PastMisfit
from itembank.numerics.arrays import FloatArray, IntArray

P_IRT_ALONE = np.array([[1.0], [0.0], [0.0]])
"""Weights of the methods where no factor model has a say."""


@dataclass(frozen=True, slots=True)
class PastSessions:
    """Estimates of calibration models after some numbers of answers, from banks that had not seen them."""

    n_answered: FloatArray  # (n_checkpoints,): Rising
    # (n_models, n_targets): The targets are every scenario and the overall score; a custom target is the last.
    truth: FloatArray
    # (n_checkpoints, n_models, n_targets): Estimates, their errors by the item model, and the expected size of their
    # errors up to a factor, as in `OutOfFold`; NaN where a session ended before.
    value: FloatArray
    standard_error: FloatArray  # (n_checkpoints, n_models, n_targets)
    scale: FloatArray  # (n_checkpoints, n_models, n_targets)
    # (n_checkpoints, 3, n_targets): Of p-IRT and of both factor models, from all models that were tried; 1, 0, 0 where
    # p-IRT serves best.
    weights: FloatArray
    misfit: FloatArray  # (n_checkpoints, n_models)
    tail: FloatArray  # (n_checkpoints, n_targets): Misfit from which errors grow faster; NaN where they do not
    # (n_checkpoints, n_targets): 1 where the scale is the item model's standard errors (`Past`), else 0.
    follows_item_model: FloatArray

    @classmethod
    def create(cls, n_answered: FloatArray, truth: FloatArray) -> Self:
        """Return those of which nothing but the truth is known yet, to be filled in by `put`."""
        n_checkpoints, (n_models, n_scores) = n_answered.size, truth.shape
        of_models, of_scores = (n_checkpoints, n_models, n_scores), (n_checkpoints, n_scores)
        shapes = (of_models,) * 3 + ((n_checkpoints, 3, n_scores), of_models[:2], of_scores, of_scores)
        return cls(n_answered, truth, *(np.full(shape, np.nan) for shape in shapes))

    def put(self, checkpoint: int, models: IntArray, columns: IntArray, past: Past) -> None:
        """Write what was found for some models and targets at a checkpoint, in place."""
        cells = np.ix_(models, columns)
        for name in ("value", "standard_error", "scale"):
            getattr(self, name)[checkpoint][cells] = getattr(past.estimates, name)
        self.weights[checkpoint][:, columns] = P_IRT_ALONE if past.weights is None else past.weights
        self.tail[checkpoint, columns] = past.tail if np.isfinite(past.tail) else np.nan
        self.follows_item_model[checkpoint, columns] = past.follows_item_model

    @property
    def n_models(self) -> int:
        """Number of calibration models."""
        return int(self.truth.shape[0])

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """All arrays by name, as the bank's cache keeps them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def around(self, n: int, columns: IntArray, headline: Headline | None = None) -> list[tuple[Past, float]]:
        """Return what is known at the checkpoints around n answers, with shares linear in the logarithm of n.

        Before the first and after the last checkpoint that of the nearest counts alone.

        Parameters
        ----------
        n : int
        columns : (n_columns,)
            Targets to take, in this order; the last one's errors say what unusual models' errors were.
        headline : Headline or None
            The score that the last of them is, where it is not the overall one.
        """
        last = len(self.n_answered) - 1
        after = int(np.searchsorted(self.n_answered, n))
        if after == 0:
            return [(self._at(0, columns, headline), 1.0)]
        if after > last:
            return [(self._at(last, columns, headline), 1.0)]
        low, high = np.log(self.n_answered[after - 1 : after + 1])
        fraction = float((np.log(n) - low) / (high - low))
        if fraction == 1.0:
            return [(self._at(after, columns, headline), 1.0)]
        ends = ((after - 1, 1.0 - fraction), (after, fraction))
        return [(self._at(checkpoint, columns, headline), share) for checkpoint, share in ends]

    def _at(self, checkpoint: int, columns: IntArray, headline: Headline | None) -> Past:
        arrays = (array[checkpoint][:, columns] for array in (self.value, self.standard_error, self.scale))
        estimates = OutOfFold(self.truth[:, columns], *arrays)
        misfit = PastMisfit.of(self.misfit[checkpoint], estimates.error[:, -1])
        tail, follows = (float(array[checkpoint, columns[-1]]) for array in (self.tail, self.follows_item_model))
        weights = self.weights[checkpoint][:, columns]
        reader = None if headline is None else reader_of(headline, estimates)
        return Past(estimates, weights, misfit, np.inf if np.isnan(tail) else tail, follows > 0.0, reader)


def mean_weights(near: Sequence[tuple[Past, float]]) -> FloatArray:
    """Return the weights of the methods between checkpoints, (3, n_targets)."""
    result: FloatArray = np.sum([share * past.weights for past, share in near if past.weights is not None], axis=0)
    return result
