"""The models to compare: which may be, and their responses to the items of a bank, for the targets asked for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.bank_views import asked_for, headline_names, refuse_version
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.difference_tests import raw_scores
from itembank.comparison.pairs import PairedDifferences, model_pairs, paired_differences, shared_counts
from itembank.errors import N_SHOWN, DataError, DataWarning, ParameterError, did_you_mean, shown, warn
from itembank.estimation.asked import Asked
from itembank.estimation.observations import Observations
from itembank.estimation.predictions import scenario_sums
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

MANY_ROWS = 500_000
MAXIMUM_ROWS = 5_000_000
"""Each row is some 20 numbers: a tenth of a gigabyte for many rows, nearly one for the most."""


def chosen_models(responses: ResponseMatrix, models: Sequence[str] | None) -> ResponseMatrix:
    """Rows of the models to compare; refuses fewer than two, and one named twice."""
    if models is not None:
        wanted = [str(name) for name in models]
        repeated = [name for name, count in Counter(wanted).items() if count > 1]
        if repeated:
            raise ParameterError(f"every model to compare must be named once, got {shown(repeated)} more than once.")
        responses = responses.take(models=responses.model_indices(wanted))
    if responses.n_models < 2:
        raise ParameterError(
            f"a comparison needs at least two models, got {shown(responses.model_ids) or 'none'}. "
            "Give the responses of another one, or ask itembank estimate for its score."
        )
    return responses


def check_number(n_models: int, n_targets: int) -> None:
    """Refuse more rows than fit into memory, and warn of many."""
    advice, n_rows = "Name fewer models, or ask for fewer targets.", n_models * (n_models - 1) // 2 * n_targets
    if n_rows > MAXIMUM_ROWS:
        raise ParameterError(
            f"a comparison holds at most {MAXIMUM_ROWS:,} rows, {n_models} models make {n_rows:,}. {advice}"
        )
    if n_rows > MANY_ROWS:
        warn(f"comparing all pairs of {n_models} models makes {n_rows:,} rows. {advice}", DataWarning)


def check_shared(model_ids: Sequence[str], shared: IntArray, *, least: int = 1) -> None:
    """Refuse pairs of models that share fewer items, (n_pairs,), than it takes to compare them."""
    apart = np.flatnonzero(shared < least)
    if apart.size:
        first, second = model_pairs(len(model_ids))
        lonely = [f"{model_ids[first[k]]} and {model_ids[second[k]]}" for k in apart[: N_SHOWN + 1]]
        few = "none" if least == 1 else f"fewer than {least}"
        raise DataError(
            f"models to compare must share items, {apart.size} of {shared.size} pairs share {few}: {shown(lonely)}. "
            "Run the same selection on both, name models that share some, or compare their estimates from itembank "
            "estimate."
        )


def wanted_targets(known: Sequence[str], target: str | Sequence[str]) -> tuple[str, ...]:
    """Return the scores to compare, each once; refuses those that there are not."""
    wanted = known if target == "all" else (target,) if isinstance(target, str) else target
    wanted = tuple(dict.fromkeys(wanted))
    absent = [name for name in wanted if name not in known]
    if absent or not wanted:
        raise ParameterError(
            f"target must be 'all' or one of {shown(known, limit=20)}, got {shown(absent) or 'none'}."
            f"{did_you_mean(absent, known)}"
        )
    return wanted


def bank_and_targets(bank: Bank, target: str | Sequence[str]) -> tuple[Bank, str | Sequence[str]]:
    """Return the bank that gives the headline score among the targets, and the targets; one bank gives one."""
    if bank.headline is not None and target == OVERALL:
        return bank, bank.targets.last
    known = headline_names(bank)
    names = [target] if isinstance(target, str) else list(target)
    for name in names:
        refuse_version(bank, name)
    asked = [name for name in names if name in known]
    if len(asked) + (bool(asked) and OVERALL in names) > 1:
        raise ParameterError(
            f"a comparison must be of one of {shown([OVERALL, *known])}, got {shown(names)}. Compare once for each."
        )
    return (asked_for(bank, asked[0]) if asked else bank), target


@dataclass(frozen=True, slots=True)
class ComparedModels:
    """Models to compare."""

    bank: Bank
    responses: ResponseMatrix
    selection: Selection | None
    asked: Asked  # The responses to items of the bank, of the selection where there is one
    targets: tuple[str, ...]
    index: IntArray  # (n_targets,): Places of the targets among the bank's

    @classmethod
    def create(
        cls, bank: Bank, responses: ResponseMatrix, selection: Selection | None, target: str | Sequence[str]
    ) -> Self:
        """Check that the models can be compared."""
        known = bank.targets.names
        wanted = wanted_targets(known, target)
        check_number(responses.n_models, len(wanted))
        asked = Asked.of(bank, responses, selection)
        check_shared(responses.model_ids, shared_counts(~np.isnan(asked.observations.responses)))
        index = np.array([known.index(name) for name in wanted], dtype=np.int64)
        return cls(bank, responses, selection, asked, wanted, index)

    @property
    def observations(self) -> Observations:
        """The responses to items of the bank, and these."""
        return self.asked.observations

    def target_weights(self) -> FloatArray:
        """Weight of each scenario in each target asked for, (n_targets, n_scenarios)."""
        targets = self.bank.targets
        return np.vstack([np.eye(targets.n_scenarios), targets.scenario_weights])[self.index]

    @property
    def is_of_items(self) -> BoolArray:
        """Whether each target is a weighted mean of items, (n_targets,), as headline scores are not."""
        is_last = self.index == self.bank.targets.n_scenarios
        return ~is_last if self.bank.headline is not None else np.ones_like(is_last)

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
        # past models must answer one set of items for all pairs: that of most models, so that one model that was
        # asked a few others does not change what errors are learnt for
        fraction = (~np.isnan(self.observations.responses)).mean(axis=0)
        is_common: BoolArray = fraction >= 0.5
        return is_common if is_common.any() else np.ones_like(is_common)

    @property
    def n_observed(self) -> IntArray:
        """Items of each target that each model answered, (n_models, n_targets)."""
        observed = (~np.isnan(self.observations.responses)).astype(np.float64)
        seen = scenario_sums(observed, self.scenarios(), self.bank.targets.n_scenarios)
        return (seen @ (self.target_weights().T > 0.0)).astype(np.int64)

    @property
    def n_total(self) -> IntArray:
        """Items of the whole benchmark behind each target, (n_targets,)."""
        return self.bank.targets.scenario_sizes @ (self.target_weights().T > 0.0)
