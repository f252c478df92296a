"""What of a bank the estimates of new models' scores rest on, without the calibration responses."""

from dataclasses import dataclass
from typing import Self

from itembank.data.banks import Bank
from itembank.data.targets import ScoreTargets
from itembank.estimation.noise import noise_ratio
from itembank.irt.binarise import item_thresholds
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class ScoreBasis:
    """Item model and score targets of n_items items.

    Attributes
    ----------
    parameters : ItemParameters
    prior : AbilityPrior
    targets : ScoreTargets
    thresholds : (n_scenarios,)
        From which response on an answer counts as right for ability; NaN where responses are taken as they are.
    noise_ratio : (n_scenarios,)
        See `itembank.estimation.noise.noise_ratio`.
    """

    parameters: ItemParameters
    prior: AbilityPrior
    targets: ScoreTargets
    thresholds: FloatArray
    noise_ratio: FloatArray

    @classmethod
    def of_bank(cls, bank: Bank) -> Self:
        """Take from a bank what is needed."""
        return cls(
            bank.parameters,
            bank.calibration.prior,
            bank.targets,
            item_thresholds(bank.calibration.thresholds, bank.targets.scenarios),
            bank.cache.remember("noise ratio", lambda: noise_ratio(bank)),
        )
