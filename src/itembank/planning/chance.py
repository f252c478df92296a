"""Chance of the run, which no number of items takes away."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.estimand_names import RUN, Estimand
from itembank.estimation.estimands import run_variance
from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import normal_quantile, normal_reach


@dataclass(frozen=True, slots=True)
class Chance:
    """How far the score that is meant lies from that of one run, typically."""

    variance: float = 0.0  # For one model

    @classmethod
    def of(cls, bank: Bank, target: int, estimand: Estimand) -> Self:
        """Take the mean over the calibration models.

        Raises
        ------
        DataError
            For 'expected' where the bank's models attempted each item once.
        """
        if estimand == RUN:
            return cls()
        return cls(float(run_variance(bank, bank.responses, bank.calibration.abilities)[:, target].mean()))

    def of_intervals(self, half_widths: FloatArray, *, level: float) -> FloatArray:
        """Widen half-widths at a level."""
        return np.hypot(half_widths, normal_reach(level) * math.sqrt(self.variance))

    def of_differences(self, detectable: FloatArray, *, level: float, power: float) -> FloatArray:
        """Widen the smallest differences that show with a power; runs of two models are independent."""
        return np.hypot(detectable, (normal_reach(level) + normal_quantile(power)) * math.sqrt(2.0 * self.variance))
