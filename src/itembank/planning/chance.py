"""Chance that no number of items takes away: of the run, or of the items that are in the benchmark."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.estimand_names import RUN, Estimand
from itembank.estimation.estimands import ExpectedAnswers, item_variance, run_variance
from itembank.estimation.observations import Observations, attempts_of
from itembank.estimation.point import target_weights
from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import normal_quantile, normal_reach


@dataclass(frozen=True, slots=True)
class Chance:
    """How far the score that is meant lies from that of one run, typically.

    Attributes
    ----------
    single : float
        Standard deviation for one model.
    paired : float
        For the difference of two models on the same items.
    """

    single: float = 0.0
    paired: float = 0.0

    @classmethod
    def of(cls, bank: Bank, target: int, estimand: Estimand) -> Self:
        """Take the root mean square over the calibration models.

        Raises
        ------
        DataError
            For 'expected' where the bank's models attempted each item once.
        """
        if estimand == RUN:
            return cls()
        theta = bank.calibration.abilities
        if estimand == "expected":
            variance = float(run_variance(bank, bank.responses, theta)[:, target].mean())
            return cls(np.sqrt(variance), np.sqrt(2.0 * variance))  # runs of two models are independent
        answered = _all_items(bank)
        scores = bank.best_known_scores
        answers = ExpectedAnswers.of(bank, answered, theta, attempts_of(bank.responses))
        single = item_variance(answers, np.nan_to_num(scores))[:, target]
        single = single[~np.isnan(scores[:, target])]
        return cls(float(np.sqrt(single.mean())), float(np.sqrt(_paired_variance(bank, target, scores[:, target]))))

    def of_intervals(self, half_widths: FloatArray, *, level: float) -> FloatArray:
        """Widen half-widths at a level."""
        return np.hypot(half_widths, normal_reach(level) * self.single)

    def of_differences(self, detectable: FloatArray, *, level: float, power: float) -> FloatArray:
        """Widen the smallest differences that show with a power."""
        return np.hypot(detectable, (normal_reach(level) + normal_quantile(power)) * self.paired)


def _all_items(bank: Bank) -> Observations:
    everything = np.arange(bank.n_items)
    return Observations.of_items(bank.responses.responses, everything, bank.targets.weights, is_random=True)


def _paired_variance(bank: Bank, target: int, scores: FloatArray) -> float:
    """Mean over pairs of models of ``sum_i omega_i^2 (y_ia - y_ib - D)^2``, the squared standard error of D.

    The mean squared difference of a pair is twice the variance between models, item by item.
    """
    squares = target_weights(bank)[:, target] ** 2
    answers = bank.responses.responses
    known = np.flatnonzero((~np.isnan(answers)).sum(axis=0) >= 2)
    between = np.nanvar(answers[:, known], axis=0, ddof=1)
    of_scores = float(np.nanvar(scores, ddof=1))
    return max(2.0 * (float(squares[known] @ between) - of_scores * float(squares[known].sum())), 0.0)
