"""What methods would have said of each calibration model had it been new: fits, weights and errors out of fold."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from itembank.calibration.folds import Fold, folds
from itembank.data.banks import Bank
from itembank.data.targets import ScoreTargets
from itembank.estimation.observations import Observations
from itembank.estimation.point import Known, calibration_scores, point_scores
from itembank.estimation.posterior import standard_error
from itembank.estimation.response_summary import ResponseSummary
from itembank.estimation.specs import Auto, EstimationSpec, PointSpec, Stacked
from itembank.estimation.stacking import combined, reconciled, stack_weights
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, silent


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """What a method would have said of each calibration model had it been new.

    Attributes
    ----------
    truth : (n_models, n_targets)
        Full scores of the calibration models; NaN where unknown. Targets are `ScoreTargets.names`.
    value : (n_models, n_targets)
        Estimates from fits, and for 'stacked' weights, that the model took no part in; NaN where there is none.
    standard_error : (n_models, n_targets)
        By the item model alone, not calibrated.
    """

    truth: FloatArray
    value: FloatArray
    standard_error: FloatArray

    @property
    def error(self) -> FloatArray:
        """Estimate less truth, (n_models, n_targets)."""
        return self.value - self.truth


@dataclass(frozen=True, slots=True)
class MembersOutOfFold:
    """The same for several methods at once.

    Attributes
    ----------
    truth : (n_models, n_targets)
    values : (n_members, n_models, n_targets)
    posterior_mean, posterior_variance : (n_models, n_targets)
        Of the scores by the item model.
    fold : (n_models,)
        Number of the fold each model was left out in.
    scenario_weights : (n_targets - 1,)
        Of the overall score, the last target.
    """

    truth: FloatArray
    values: FloatArray
    posterior_mean: FloatArray
    posterior_variance: FloatArray
    fold: IntArray
    scenario_weights: FloatArray

    @property
    def errors(self) -> FloatArray:
        """Estimates less truth, (n_members, n_models, n_targets)."""
        return self.values - self.truth

    def by(self, spec: PointSpec | Stacked) -> OutOfFold:
        """Return the estimates of the method whose members these are."""
        return self.stacked(spec) if isinstance(spec, Stacked) else self.single(0)

    def single(self, member: int) -> OutOfFold:
        """Return one method's."""
        return self._of(self.values[member])

    def stacked(self, spec: Stacked) -> OutOfFold:
        """Return the stacked estimates, each fold's with weights from the other folds."""
        value = np.full(self.truth.shape, np.nan)
        for number in np.unique(self.fold):
            inside = self.fold == number
            weights = _weights(self.errors[:, ~inside], spec)
            value[inside] = combined(self.values[:, inside], weights)
        return self._of(reconciled(value, self.posterior_variance, self.scenario_weights))

    def weights(self, spec: Stacked) -> FloatArray:
        """Weights of the methods from all calibration models, (n_members, n_targets)."""
        return _weights(self.errors, spec)

    def _of(self, value: FloatArray) -> OutOfFold:
        return OutOfFold(self.truth, value, standard_error(value, self.posterior_mean, self.posterior_variance))


def _weights(errors: FloatArray, spec: Stacked) -> FloatArray:
    """Stack weights of every target, (n_members, n_targets), from errors (n_members, n_models, n_targets)."""
    return np.column_stack(
        [stack_weights(errors[:, :, target].T, prior_models=spec.prior_models) for target in range(errors.shape[2])]
    )


@one_blas_thread()
def out_of_fold(
    bank: Bank, positions: IntArray, weights: FloatArray, *, is_random: bool, spec: EstimationSpec
) -> OutOfFold:
    """Estimate each calibration model's scores from its responses to some items, as if it were new.

    Parameters
    ----------
    bank : Bank
        With enough calibration models for `folds`.
    positions : (n_columns,)
        Of the items in the bank.
    weights : (n_columns,)
        Of the weighted mean.
    is_random : bool
        Whether the items count as a random sample.
    spec : EstimationSpec
        'auto' counts as 'stacked'.
    """
    observations = Observations.of_items(
        bank.responses.responses[:, positions], positions, weights, is_random=is_random
    )
    if isinstance(spec, Auto):
        spec = Stacked()
    return members_out_of_fold(bank, observations, spec.members).by(spec)


def members_out_of_fold(
    bank: Bank, observations: Observations, specs: Sequence[PointSpec], *, progress: ProgressCallback = silent
) -> MembersOutOfFold:
    """Estimate each calibration model's scores by several methods from the items that new models answered."""
    n_folds = len(folds(bank, progress=progress))
    return members_in_folds(bank, digest(observations, specs), lambda: [observations] * n_folds, specs)


def members_in_folds(
    bank: Bank, name: str, samples: Callable[[], Sequence[Observations]], specs: Sequence[PointSpec]
) -> MembersOutOfFold:
    """Do the same with items that may differ from fold to fold; kept in the bank's cache under `name`.

    Parameters
    ----------
    bank : Bank
    name : str
        See `digest`.
    samples : function
        Gives the items of each fold; called where nothing was kept.
    specs : sequence of PointSpec
    """
    shape = (len(specs) + 2, bank.n_models, bank.targets.n_scenarios + 1)
    found = bank.cache.arrays(
        f"out-of-fold-{name}",
        lambda: {"found": _run(bank, samples(), specs)},
        fits=lambda arrays: arrays.get("found", np.empty(0)).shape == shape,
    )["found"]
    fold = np.empty(bank.n_models, dtype=np.int64)
    for number, each in enumerate(folds(bank)):
        fold[each.held_out] = number
    return MembersOutOfFold(
        calibration_scores(bank), found[:-2], found[-2], found[-1], fold, bank.targets.scenario_weights
    )


def _run(bank: Bank, samples: Sequence[Observations], specs: Sequence[PointSpec]) -> FloatArray:
    """Estimates of all methods, then the item model's mean and variance, (n_members + 2, n_models, n_targets)."""
    result = np.full((len(specs) + 2, bank.n_models, bank.targets.n_scenarios + 1), np.nan)
    for fold, sample in zip(folds(bank), samples, strict=True):
        result[:, fold.held_out] = _run_fold(bank, fold, sample, specs)
    return result


def _run_fold(bank: Bank, fold: Fold, sample: Observations, specs: Sequence[PointSpec]) -> FloatArray:
    held_out = sample.answered_by_calibration_models(bank, fold.held_out)
    known = Known.of(fold.bank, held_out)
    values = [point_scores(known, spec) for spec in specs]
    means, variances = posterior_moments(bank.targets, known.summary)
    return np.stack([*values, means, variances])


def posterior_moments(targets: ScoreTargets, summary: ResponseSummary) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of every target by the item model, each (n_models, n_targets).

    The overall score has its own variance ``w' V w``: scenario scores share the uncertain ability.
    """
    weights, covariance = targets.scenario_weights, summary.posterior_covariance
    overall = np.einsum("j,mjk,k->m", weights, covariance, weights)
    variances = np.column_stack([np.einsum("mjj->mj", covariance), overall])
    return targets.with_overall(summary.posterior_mean), variances


def digest(observations: Observations, specs: Sequence[PointSpec], *others: str) -> str:
    """Short name of the items, their weights, the methods, and what else the estimates depend on."""
    made = hashlib.sha256(repr((tuple(specs), observations.is_random, others)).encode())
    for array in (observations.positions, observations.weights, observations.selected, observations.selected_weights):
        made.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        made.update(b"|")
    return made.hexdigest()[:20]
