"""Estimates of each calibration model as if it were new: fits, weights and errors out of fold."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimator_specs import PointSpec, Stacked
from itembank.estimation.expectations import Expectations
from itembank.estimation.folds import Fold, fold_numbers
from itembank.estimation.headlines import HeadlineReader, HeadlineTrial, learnt_by
from itembank.estimation.observations import Observations
from itembank.estimation.out_of_fold import OutOfFold, grown, with_tail
from itembank.estimation.point import Known, learnt_score, point_scores
from itembank.estimation.stacking import combined, reconciled, stack_weights
from itembank.estimation.trials import run_trial
from itembank.estimation.typicality import PastMisfit
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import clearly_best
from itembank.progress import ProgressCallback, silent


@dataclass(frozen=True, slots=True)
class Past:
    """How a method did on calibration models left out."""

    estimates: OutOfFold
    weights: FloatArray | None  # (n_members, n_targets): Of the members of 'stacked', from all calibration models
    misfit: PastMisfit
    tail: float  # Misfit from which errors grow faster, infinite where they do not
    # Whether the size of errors is what the item model alone expects, as far as it is known up to a factor.
    follows_item_model: bool = False
    reader: HeadlineReader | None = None  # How a headline score is read off new models' scenario scores

    def read(
        self, expected: Expectations, value: FloatArray, learnt: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return new estimates, and the expected sizes of their errors up to a factor, each (n_models, n_targets).

        The estimates are those given, but for a headline score. `learnt` are its estimates, (n_models,), by the method
        that learns it from the answers (`learnt_by`).
        """
        scale = expected.standard_error(value) if self.follows_item_model else expected.error_scale(value, np.inf)
        if self.reader is not None:
            value, scale = self.reader.read(value, scale, learnt)
        return value, grown(scale, expected.misfit, self.tail)


@dataclass(frozen=True, slots=True)
class MembersOutOfFold:
    """Estimates of each calibration model by several methods that have not seen it."""

    truth: FloatArray  # (n_models, n_targets)
    values: FloatArray  # (n_members, n_models, n_targets)
    expectations: Expectations  # Of the calibration models, by fits that they took no part in
    fold: IntArray  # (n_models,): Number of the fold each model was left out in, -1 for none
    scenario_weights: FloatArray  # (n_targets - 1,): Of the overall score, the last target
    truth_variance: FloatArray | None = None  # (n_models, n_targets): As in `OutOfFold`
    # Where a headline score was asked for: estimates have it in place of the overall score; the arrays above do not.
    headline: HeadlineTrial | None = None

    @property
    def errors(self) -> FloatArray:
        """Estimates less truth, (n_members, n_models, n_targets)."""
        return self.values - self.truth

    def past(self, spec: PointSpec | Stacked, *, prefer_item_model: bool = False) -> "Past":
        """Return what intervals of the method that has these members rest on.

        Parameters
        ----------
        spec
        prefer_item_model : bool
            Let the scale be the item model's own standard errors, unless another clearly makes better intervals of the
            overall score. The factor models know nothing of how an adaptive session chose its items; where this
            misleads them, their distance from the estimate says little of its error.
        """
        (estimates, reader), misfit = self._read(self._values(spec)), self.expectations.misfit[:, -1]
        weights = self.weights(spec) if isinstance(spec, Stacked) else None
        candidates = [(False, *with_tail(estimates, misfit))]
        if prefer_item_model:
            plain = replace(estimates, scale=estimates.standard_error)
            candidates = [(True, plain, np.inf), (True, *with_tail(plain, misfit)), *candidates]
        best = clearly_best([found.interval_scores for _, found, _ in candidates])
        follows, estimates, tail = candidates[best]
        of_misfit = PastMisfit.of(misfit, estimates.error[:, -1])
        return Past(estimates, weights, of_misfit, tail, follows, reader)

    def by(self, spec: PointSpec | Stacked) -> OutOfFold:
        """Return the estimates of the method that has these members."""
        return self._read(self._values(spec))[0]

    def single(self, member: int) -> OutOfFold:
        """Return the estimates of one method."""
        return self._read(self.values[member])[0]

    def stacked(self, spec: Stacked) -> OutOfFold:
        """Return the stacked estimates, each fold's with weights from the other folds."""
        return self.by(spec)

    def _values(self, spec: PointSpec | Stacked) -> FloatArray:
        """Estimates of the method that has these members, (n_models, n_targets)."""
        if not isinstance(spec, Stacked):
            single: FloatArray = self.values[0]
            return single
        value = np.full(self.truth.shape, np.nan)
        for number in np.unique(self.fold[self.fold >= 0]):
            inside = self.fold == number
            # weights that had seen the errors of this fold would make its stacked errors too small
            weights = _weights(self.errors[:, ~inside], spec)
            value[inside] = combined(self.values[:, inside], weights)
        return reconciled(value, self.expectations.variance, self.scenario_weights)

    def weights(self, spec: Stacked) -> FloatArray:
        """Weights of the methods from all calibration models, (n_members, n_targets)."""
        return _weights(self.errors, spec)

    def _read(self, value: FloatArray) -> tuple[OutOfFold, HeadlineReader | None]:
        """Return estimates with the sizes of their errors, and how a headline score among them is read."""
        expected = self.expectations
        scale = expected.error_scale(value, np.inf)
        plain = OutOfFold(self.truth, value, expected.standard_error(value), scale, self.truth_variance)
        return (plain, None) if self.headline is None else self.headline.read(plain, self.fold)


def _weights(errors: FloatArray, spec: Stacked) -> FloatArray:
    """Stack weights of every target, (n_members, n_targets), from errors (n_members, n_models, n_targets)."""
    return np.column_stack(
        [stack_weights(errors[:, :, target].T, prior_models=spec.prior_models) for target in range(errors.shape[2])]
    )


def members_out_of_fold(
    bank: Bank,
    specs: Sequence[PointSpec],
    choose: Callable[[Fold], Observations],
    items: Observations,
    *others: str,
) -> MembersOutOfFold:
    """Estimate each calibration model's scores by several methods, as if it were new; kept in the bank's cache.

    Parameters
    ----------
    bank : Bank
        With enough calibration models for `folds`.
    specs : sequence of PointSpec
    choose : function
        Gives the items of a fold, which the models it leaves out answer. Called where nothing was kept.
    items : Observations
        Of which, and `others`, what `choose` gives follows: they name the result in the cache. Where its models
        attempted each item less often than those of the calibration, these are tried with as few attempts.
    others : texts
    """
    attempts = items.fewer_attempts(bank)

    def try_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        answers = choose(fold).answered_by_calibration_models(bank, fold.held_out, attempts=attempts)
        return _estimates(fold, answers, specs)

    arrays = (items.positions, items.weights, items.selected, items.selected_weights)
    more = others if attempts is None else (*others, f"{attempts:g} attempts")
    about = (tuple(specs), items.is_random, more, *arrays)
    members = _of_trial(bank, specs, cache_name("out-of-fold", *about), try_fold, silent)
    learner = None if bank.headline is None else learnt_by(bank.headline, specs)
    if bank.headline is None or learner is None:
        return members

    past = bank.headline.past

    def learn_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        answers = choose(fold).answered_by_calibration_models(bank, fold.held_out, attempts=attempts)
        others = past[bank.responses.model_indices(fold.bank.responses.model_ids)]  # copies are left out, too
        return learnt_score(Known.of(fold.bank, answers), learner, others)[:, None]

    name = cache_name("learnt-out-of-fold", learner, *about, past)
    learnt = run_trial(bank, name, learn_fold, (bank.n_models, 1))[:, 0]
    return replace(members, headline=HeadlineTrial(bank.headline, learnt, len(specs) == 1))


def members_out_of_fold_each(
    bank: Bank,
    specs: Sequence[PointSpec],
    answers: Callable[[Fold], Iterator[Observations]],
    *about: object,
    progress: ProgressCallback = silent,
) -> MembersOutOfFold:
    """Estimate each calibration model's scores as `members_out_of_fold` does, where each is asked its own items.

    Parameters
    ----------
    bank : Bank
    specs : sequence of PointSpec
    answers : function
        Gives what the models that a fold leaves out answered, one after the other. Called where nothing was kept. Where
        it raises `ParameterError` or `DataError`, nothing is known of the fold's models.
    about : texts, numbers, arrays
        Everything that the answers depend on besides the bank: they name the result in the cache.
    progress : ProgressCallback
    """

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((len(specs) + len(Expectations._fields), fold.held_out.size, len(bank.targets.names)), np.nan)
        try:
            for place, answered in enumerate(answers(fold)):
                progress("asking calibration models left out", place / fold.held_out.size)
                result[:, [place]] = _estimates(fold, answered, specs)
        except (ParameterError, DataError):
            return np.full(result.shape, np.nan)
        return result

    return _of_trial(bank, specs, cache_name("out-of-fold-each", tuple(specs), *about), try_fold, progress)


def _of_trial(
    bank: Bank,
    specs: Sequence[PointSpec],
    name: str,
    try_fold: Callable[[Fold, ProgressCallback], FloatArray],
    progress: ProgressCallback,
) -> MembersOutOfFold:
    """Run a trial whose folds give estimates of all methods and what is expected of them."""
    shape = (len(specs) + len(Expectations._fields), bank.n_models, bank.targets.n_scenarios + 1)
    values = run_trial(bank, name, try_fold, shape, progress=progress)
    n_members = len(specs)
    return MembersOutOfFold(
        bank.known_scores.value,
        values[:n_members],
        Expectations(*values[n_members:]),
        fold_numbers(bank),
        bank.targets.scenario_weights,
        bank.known_scores.variance,
        None if bank.headline is None else HeadlineTrial(bank.headline),
    )


def _estimates(fold: Fold, answered: Observations, specs: Sequence[PointSpec]) -> FloatArray:
    """Estimates of all methods, then what is expected of them, (n_members + 6, n_models, n_targets)."""
    known = Known.of(fold.bank, answered)
    return np.stack([*(point_scores(known, spec) for spec in specs), *Expectations.of(known)])
