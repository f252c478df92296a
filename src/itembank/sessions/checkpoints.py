"""What sessions of past models say of a new one's after as many answers."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.known_scores import Headline
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.headlines import reader_of
from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class PastSessions:
    """Estimates of past models after some numbers of answers, from banks that had not seen them."""

    n_answered: FloatArray  # (n_checkpoints,): Rising
    # (n_models, n_targets): The targets are every scenario and the overall score; a custom target is the last.
    truth: FloatArray
    # (n_checkpoints, n_models, n_targets): Estimates, their errors by the item model, and the expected size of their
    # errors up to a factor, as in `PastEstimates`; NaN where a session ended before.
    value: FloatArray
    standard_error: FloatArray  # (n_checkpoints, n_models, n_targets)
    scale: FloatArray  # (n_checkpoints, n_models, n_targets)
    # (n_checkpoints, 3, n_targets): Of p-IRT and of both factor models, from all models that were tried; 1, 0, 0 where
    # p-IRT serves best.
    weights: FloatArray
    misfit: FloatArray  # (n_checkpoints, n_models)
    # (n_checkpoints, n_targets): 1 where the scale is the item model's standard errors (`PastEstimates`), else 0.
    follows_item_model: FloatArray

    def around(
        self,
        n: int,
        # (n_columns,): Targets to take, in this order
        columns: IntArray,
        headline: Headline | None = None,  # The score that the last of them is, where it is not the overall one
    ) -> list[tuple[PastEstimates, float]]:
        """Return what is known at the checkpoints around n answers, with shares linear in the logarithm of n.

        Before the first and after the last checkpoint that of the nearest counts alone.
        """
        last, after = len(self.n_answered) - 1, int(np.searchsorted(self.n_answered, n))
        shares = {min(after, last): 1.0}
        if 0 < after <= last and n < self.n_answered[after]:
            low, high = np.log(self.n_answered[after - 1 : after + 1])
            fraction = float((np.log(n) - low) / (high - low))
            shares = {after - 1: 1.0 - fraction, after: fraction}
        return [(self._at(checkpoint, columns, headline), share) for checkpoint, share in shares.items()]

    def _at(self, checkpoint: int, columns: IntArray, headline: Headline | None) -> PastEstimates:
        found = PastEstimates(
            self.truth[:, columns],
            self.value[checkpoint][:, columns],
            self.standard_error[checkpoint][:, columns],
            self.scale[checkpoint][:, columns],
            misfit=self.misfit[checkpoint],
            weights=self.weights[checkpoint][:, columns],
            follows_item_model=float(self.follows_item_model[checkpoint, columns[-1]]) > 0.0,
        )
        return found if headline is None else replace(found, reader=reader_of(headline, found))
