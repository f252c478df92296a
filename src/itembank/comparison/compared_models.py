"""The models to compare: their responses to the items of a bank, for the targets asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.calibration_errors import raw_scores
from itembank.comparison.checks import check_shared, check_size, target_names
from itembank.comparison.differences import ItemCounts
from itembank.comparison.pairs import PairedDifferences, paired_differences
from itembank.estimation.observations import Observations, observe
from itembank.estimation.scenario_sums import scenario_sums
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class ComparedModels:
    """Models to compare."""

    bank: Bank
    responses: ResponseMatrix
    selection: Selection | None
    observations: Observations  # The responses to items of the bank, of the selection where there is one
    targets: tuple[str, ...]
    index: IntArray  # (n_targets,): Where the targets stand among the bank's

    @classmethod
    def create(
        cls, bank: Bank, responses: ResponseMatrix, selection: Selection | None, target: str | Sequence[str]
    ) -> Self:
        """Check that the models can be compared.

        Raises
        ------
        ParameterError
            For another target, or more rows than fit into memory.
        DataError
            When two models share no item.
        """
        targets, index = target_names(bank, target)
        check_size(responses.n_models, len(targets))
        observations = observe(bank, responses, selection)
        check_shared(responses.model_ids, ~np.isnan(observations.responses))
        return cls(bank, responses, selection, observations, targets, index)

    def target_weights(self) -> FloatArray:
        """Weight of each scenario in each target asked for, (n_targets, n_scenarios)."""
        targets = self.bank.targets
        result: FloatArray = np.vstack([np.eye(targets.n_scenarios), targets.scenario_weights])[self.index]
        return result

    @property
    def is_of_items(self) -> BoolArray:
        """Whether each target is a weighted mean of items, (n_targets,), as headline scores are not."""
        is_last = self.index == self.bank.targets.n_scenarios
        result: BoolArray = ~is_last if self.bank.headline is not None else np.ones_like(is_last)
        return result

    def if_of_items(self, values: FloatArray) -> FloatArray:
        """Keep values (..., n_targets) that answers to shared items give; NaN for a headline score."""
        return values if self.bank.headline is None else np.where(self.is_of_items, values, np.nan)

    def scenarios(self) -> IntArray:
        """Scenario of each column of responses."""
        return self.bank.targets.scenario_index[self.observations.positions]

    def paired(self) -> PairedDifferences:
        """Paired differences of the models compared."""
        responses = self.observations.responses
        return self.paired_on(responses, np.ones(responses.shape[1], dtype=bool))

    def paired_on(self, responses: FloatArray, columns: BoolArray) -> PairedDifferences:
        """Return paired differences of any models' responses to some of the columns."""
        sizes = self.bank.targets.scenario_sizes
        return paired_differences(
            responses, self.observations.weights[columns], self.scenarios()[columns], sizes, self.target_weights()
        )

    def raw_scores(self) -> FloatArray:
        """Weighted means of the models compared, (n_models, n_targets)."""
        observations = self.observations
        means = raw_scores(self.bank, observations.responses, observations.positions, observations.weights)
        return self.if_of_items(means[:, self.index])

    def common(self) -> BoolArray:
        """Columns that at least half of the models compared answered; all when there are none."""
        # calibration models must answer one set of items for all pairs: that of most models, so that one model that was
        # asked a few others does not change what errors are learnt for
        fraction = (~np.isnan(self.observations.responses)).mean(axis=0)
        is_common: BoolArray = fraction >= 0.5
        return is_common if is_common.any() else np.ones_like(is_common)

    def counts(self) -> ItemCounts:
        """Items behind each target."""
        counts_of = self.target_weights().T > 0.0  # (n_scenarios, n_targets)
        n_scenarios = self.bank.targets.n_scenarios
        observed = (~np.isnan(self.observations.responses)).astype(np.float64)
        seen = scenario_sums(observed, self.scenarios(), n_scenarios)
        common = np.bincount(self.scenarios()[self.common()], minlength=n_scenarios)
        sizes = self.bank.targets.scenario_sizes
        return ItemCounts((seen @ counts_of).astype(np.int64), common @ counts_of, sizes @ counts_of)
