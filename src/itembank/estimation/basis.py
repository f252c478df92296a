"""The parts of a bank that estimates of new models' scores rest on, without the calibration responses."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.noise import noise_ratio
from itembank.estimation.predictions import WeightedItems
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.targets import ScoreTargets


@dataclass(frozen=True, slots=True)
class ScoreBasis:
    """Item model and score targets of n_items items; make one with `of_bank`."""

    parameters: ItemParameters
    prior: AbilityPrior
    targets: ScoreTargets
    # (n_scenarios,): From which response on an answer counts as right for ability; NaN where responses are taken as
    # they are.
    thresholds: FloatArray
    noise_ratio: FloatArray  # (n_scenarios,): See `itembank.estimation.noise.noise_ratio`
    weighted: WeightedItems  # The items with their weights in the targets
    n_counting: FloatArray  # (n_scenarios,): Items of each scenario that count in its score

    @classmethod
    def of_bank(cls, bank: Bank, targets: ScoreTargets | None = None) -> Self:
        """Take the parts of a bank that are needed; other targets must have the bank's scenarios."""
        targets = bank.targets if targets is None else targets
        counts = (targets.weights > 0.0).astype(np.float64)
        return cls(
            bank.parameters,
            bank.calibration.prior,
            targets,
            item_thresholds(bank.calibration.thresholds, bank.targets.scenarios),
            bank.cache.remember("noise ratio", lambda: noise_ratio(bank)),
            WeightedItems.create(bank.parameters, targets.weights, targets.scenario_index, targets.n_scenarios),
            np.bincount(targets.scenario_index, weights=counts, minlength=targets.n_scenarios).astype(np.float64),
        )

    def answers(self, responses: FloatArray, positions: IntArray) -> FloatArray:
        """Apply the thresholds of the calibration to raw responses to some items, (n_models, n_columns)."""
        return apply_thresholds(responses, self.thresholds[self.targets.scenario_index[positions]])


def score_basis(bank: Bank) -> ScoreBasis:
    """Return the basis of a bank for its own targets; it is made once for a bank in memory."""
    return bank.cache.remember("score basis", lambda: ScoreBasis.of_bank(bank))
