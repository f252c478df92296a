"""Responses of the models to compare, laid against the bank."""

from dataclasses import dataclass

import numpy as np

from itembank.comparison.calibration_errors import raw_scores
from itembank.comparison.differences import ItemCounts
from itembank.comparison.pairs import PairedDifferences, paired_differences
from itembank.data.banks import Bank
from itembank.estimation.observations import Observations
from itembank.estimation.scenario_sums import scenario_sums
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Answers:
    """Responses laid against the bank, for the targets asked for.

    Attributes
    ----------
    bank : Bank
    laid : Observations
    index : (n_targets,)
        Where the targets stand among the bank's.
    """

    bank: Bank
    laid: Observations
    index: IntArray

    def target_weights(self) -> FloatArray:
        """Weight of each scenario in each target asked for, (n_targets, n_scenarios)."""
        targets = self.bank.targets
        result: FloatArray = np.vstack([np.eye(targets.n_scenarios), targets.scenario_weights])[self.index]
        return result

    def scenarios(self) -> IntArray:
        """Scenario of each column of responses."""
        return self.bank.targets.scenario_index[self.laid.positions]

    def pairs(self, responses: FloatArray, columns: BoolArray) -> PairedDifferences:
        """Paired differences of any models' responses to some of the columns."""
        sizes = self.bank.targets.scenario_sizes
        return paired_differences(
            responses, self.laid.weights[columns], self.scenarios()[columns], sizes, self.target_weights()
        )

    def raw(self) -> FloatArray:
        """Weighted means of the models compared, (n_models, n_targets)."""
        laid = self.laid
        return raw_scores(self.bank, laid.responses, laid.positions, laid.weights)[:, self.index]

    def common(self) -> BoolArray:
        """Columns that at least half of the models compared answered; all when there are none."""
        share = (~np.isnan(self.laid.responses)).mean(axis=0)
        is_common: BoolArray = share >= 0.5
        return is_common if is_common.any() else np.ones_like(is_common)

    def counts(self) -> ItemCounts:
        """Items behind each target."""
        counts_of = self.target_weights().T > 0.0  # (n_scenarios, n_targets)
        n_scenarios = self.bank.targets.n_scenarios
        seen = scenario_sums((~np.isnan(self.laid.responses)).astype(np.float64), self.scenarios(), n_scenarios)
        common = np.bincount(self.scenarios()[self.common()], minlength=n_scenarios)
        sizes = self.bank.targets.scenario_sizes
        return ItemCounts((seen @ counts_of).astype(np.int64), common @ counts_of, sizes @ counts_of)
