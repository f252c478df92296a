"""How well past models are estimated that the bank has not seen."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import half_widths_out_of_fold
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Overall scores of past models, each estimated by a bank that was calibrated without it."""

    n_items: int  # That were answered
    # (n_models,): In [0, 1]; models without a full score are left out. Intervals are of 95 %, as wide as the errors for
    # models of the other folds ask for.
    true: FloatArray
    estimate: FloatArray  # (n_models,)
    low: FloatArray  # (n_models,)
    high: FloatArray  # (n_models,)

    @property
    def error(self) -> float:
        """Mean absolute error."""
        return float(np.abs(self.estimate - self.true).mean())

    @property
    def coverage(self) -> float:
        """Fraction of the intervals that hold the true score."""
        return float(((self.low <= self.true) & (self.true <= self.high)).mean())


@one_blas_thread()
def held_out_scores(bank: Bank, selection: Selection, *, progress: ProgressCallback = silent) -> HeldOutScores | None:
    """Estimate each past model's overall score as if it were new; every fold chooses its items anew.

    Returns
    -------
    HeldOutScores or None
        None where there are too few models to leave some out.
    """
    if not folds(bank, progress=progress):
        return None
    trials = try_methods(bank, sample_of(bank, selection), selection, Stacked().members, progress=progress)
    past = trials.stacked(Stacked())
    half = half_widths_out_of_fold(past.error, past.standard_error, trials.fold, level=LEVEL)
    true, value, half = past.truth[:, -1], past.value[:, -1], half[:, -1]
    known = ~(np.isnan(true) | np.isnan(value) | np.isnan(half))
    true, value, half = true[known], value[known], half[known]
    low, high = np.clip(value - half, 0.0, 1.0), np.clip(value + half, 0.0, 1.0)
    return HeldOutScores(selection.n_items, true, value, low, high) if true.size else None
