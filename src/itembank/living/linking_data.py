"""What every linking kernel takes: arrays without ids."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.irt.family_names import Family
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LinkingData:
    """Answers of n_models linking models to n_old items of a bank and to n_new others."""

    old: ItemParameters  # Of the n_old items, on the bank's scale
    old_responses: FloatArray  # (n_models, n_old): NaN where missing
    new_responses: FloatArray  # (n_models, n_new): NaN where missing
    new_lower: FloatArray  # (n_new,): Known chance of guessing a new item right
    prior: AbilityPrior  # Of ability, as the bank has it
    # (n_models, n_old), (n_models, n_new),: Trials behind each response of a bank of counts.
    old_trials: FloatArray | None = None
    new_trials: FloatArray | None = None  # (n_models, n_old), (n_models, n_new),

    @property
    def family(self) -> Family:
        """Distribution of a response."""
        return self.old.family

    @property
    def n_models(self) -> int:
        """Number of linking models."""
        return int(self.new_responses.shape[0])

    @property
    def n_new(self) -> int:
        """Number of new items."""
        return int(self.new_responses.shape[1])

    @property
    def responses(self) -> FloatArray:
        """Responses to the old items, then to the new ones, (n_models, n_old + n_new)."""
        return np.concatenate([self.old_responses, self.new_responses], axis=1)

    @property
    def trials(self) -> FloatArray | None:
        """Trials behind `responses`."""
        if self.old_trials is None or self.new_trials is None:
            return None
        return np.concatenate([self.old_trials, self.new_trials], axis=1)

    def take_models(self, models: IntArray | BoolArray) -> "LinkingData":
        """Return the answers of some models."""
        return replace(
            self,
            old_responses=self.old_responses[models],
            new_responses=self.new_responses[models],
            old_trials=None if self.old_trials is None else self.old_trials[models],
            new_trials=None if self.new_trials is None else self.new_trials[models],
        )

    def without_old(self, dropped: BoolArray) -> "LinkingData":
        """Return the data without the old items marked in `dropped` (n_old,)."""
        kept = np.flatnonzero(~dropped)
        return replace(
            self,
            old=self.old.take(kept),
            old_responses=self.old_responses[:, kept],
            old_trials=None if self.old_trials is None else self.old_trials[:, kept],
        )
