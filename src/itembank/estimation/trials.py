"""Trials of methods on past models as if these were new: fits, weights and errors out of fold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model
from itembank.bank.past_models import PublishedSubset
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimator_specs import METHODS, Factor, PointSpec, Stacked
from itembank.estimation.folds import Fold, fold_numbers, run_trial
from itembank.estimation.headlines import HeadlineTrial
from itembank.estimation.observations import Observations
from itembank.estimation.point_methods import Known, factor_prediction, point_scores
from itembank.estimation.predictions import standard_error
from itembank.estimation.regressions import FactorPrediction, combined, predict_factor, reconciled, stack_weights
from itembank.estimation.response_summary import posterior_moments
from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.progress import ProgressCallback, silent

LOOSE = 0.1
"""Discrepancy of the second factor model, one of the default's members: new models may be of another kind."""
EVERY = slice(None)


class FactorModels(NamedTuple):
    """Both factor models of a bank, and the scores that they are to predict."""

    usual: FactorModel  # With the discrepancy that past models show (`Factor`)
    loose: FactorModel  # With discrepancy `LOOSE`
    weights: FloatArray  # (n_items, n_targets): Of the items in each score
    # pair of (n_factors, n_targets): Of both models' factors on each score, for `predict_factor`.
    levers: tuple[FloatArray, FloatArray]

    @classmethod
    def of_bank(cls, bank: Bank, weights: FloatArray) -> Self:
        """Make them for scores that weigh items so."""
        usual, loose = (bank_factor_model(bank, discrepancy=each) for each in ("auto", LOOSE))
        return cls(usual, loose, weights, (usual.loadings.T @ weights, loose.loadings.T @ weights))


class Expectations(NamedTuple):
    """Scores of n_models models on n_targets targets, by the models that know how past models answered."""

    mean: FloatArray  # (n_models, n_targets): By the item model: p-IRT and its posterior variance
    variance: FloatArray  # (n_models, n_targets)
    # (n_models, n_targets): By the factor model with the discrepancy that past models show (`Factor`).
    factor_mean: FloatArray
    factor_variance: FloatArray  # (n_models, n_targets)
    loose_mean: FloatArray  # (n_models, n_targets): By the factor model with discrepancy `LOOSE`
    # (n_models, n_targets): How far the answers lie from what the factor model expects (`FactorPrediction.misfit`): the
    # same for all targets of a model, 1 on average for models like those of the calibration.
    misfit: FloatArray

    @classmethod
    def of(cls, known: Known) -> Self:
        """Gather them from the responses."""
        usual, loose = factor_prediction(known, Factor()), factor_prediction(known, Factor(discrepancy=LOOSE))
        return cls._of(posterior_moments(known.bank.targets, known.summary), usual, loose)

    @classmethod
    def by(
        cls, factors: FactorModels, positions: IntArray, responses: FloatArray, moments: tuple[FloatArray, FloatArray]
    ) -> Self:
        """Gather them from raw responses (n_models, n_columns) to items, and mean and variance by the item model."""
        usual, loose = (
            predict_factor(model, positions, factors.weights, responses, lever=lever)
            for model, lever in zip((factors.usual, factors.loose), factors.levers, strict=True)
        )
        return cls._of(moments, usual, loose)

    @classmethod
    def _of(cls, moments: tuple[FloatArray, FloatArray], usual: FactorPrediction, loose: FactorPrediction) -> Self:
        misfit = np.broadcast_to(usual.misfit[:, None], usual.value.shape)
        return cls(*moments, usual.value, usual.variance, loose.value, misfit)

    @property
    def means(self) -> FloatArray:
        """All three means, (3, n_models, n_targets)."""
        return np.stack([self.mean, self.factor_mean, self.loose_mean])

    def take(self, models: IntArray) -> "Expectations":
        """Return those of some models."""
        return Expectations(*(array[models] for array in self))

    def targets(self, columns: IntArray) -> "Expectations":
        """Return those on some of the targets."""
        return Expectations(*(array[:, columns] for array in self))

    def sizes(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected sizes of errors of estimates T, by the item model and up to a factor from past errors.

        The latter is ``sqrt(v + d^2 + D v_f)``: v and v_f are the posterior variances of the item model and of the
        factor model, d the root mean square distance of the estimate T from the three means, and D the misfit. A model
        that answers unlike past models is known worse than models that are fitted to past ones say: among the answers
        that are seen, the factor model's squared errors are D times as large as it expects. Neither truth nor other
        models' estimates enter.
        """
        disagreement = np.mean((self.means - value) ** 2, axis=0)
        spread = np.maximum(self.variance, 0.0) + disagreement + self.misfit * np.maximum(self.factor_variance, 0.0)
        return standard_error(value, self.mean, self.variance), np.sqrt(spread)


@dataclass(frozen=True, slots=True)
class Trial:
    """Estimates of each past model by several methods that have not seen it."""

    truth: FloatArray  # (n_models, n_targets)
    values: FloatArray  # (n_members, n_models, n_targets)
    expectations: Expectations  # Of the past models, by fits that they took no part in
    fold: IntArray  # (n_models,): Number of the fold each model was left out in, -1 for none
    scenario_weights: FloatArray  # (n_targets - 1,): Of the overall score, the last target
    truth_variance: FloatArray | None = None  # (n_models, n_targets): As in `PastEstimates`
    # Where a headline score was asked for: estimates have it in place of the overall score; the arrays above do not.
    headline: HeadlineTrial | None = None

    def by(self, spec: PointSpec | Stacked) -> PastEstimates:
        """Return the estimates of the method that has these members, and what intervals of it rest on."""
        if not isinstance(spec, Stacked):
            return self.single(0)
        value = np.full(self.truth.shape, np.nan)
        for number in np.unique(self.fold[self.fold >= 0]):
            inside = self.fold == number
            # weights that had seen the errors of this fold would make its stacked errors too small
            value[inside] = combined(self.values[:, inside], self.weights(spec, ~inside))
        value = reconciled(value, self.expectations.variance, self.scenario_weights)
        return replace(self._sized(value), weights=self.weights(spec))

    def single(self, member: int) -> PastEstimates:
        """Return the estimates of one method."""
        return self._sized(self.values[member])

    def weights(self, spec: Stacked, rows: BoolArray | slice = EVERY) -> FloatArray:
        """Weights of the methods, of every target, from all past models or some, (n_members, n_targets)."""
        errors = (self.values - self.truth)[:, rows]
        each = (stack_weights(errors[:, :, j].T, prior_models=spec.prior_models) for j in range(errors.shape[2]))
        return np.column_stack(list(each))

    def _sized(self, value: FloatArray) -> PastEstimates:
        """Return estimates with the sizes of their errors; a headline score is read off the others."""
        sizes, misfit = self.expectations.sizes(value), self.expectations.misfit[:, -1]
        plain = PastEstimates(self.truth, value, *sizes, self.truth_variance, misfit)
        return plain if self.headline is None else self.headline.read(plain, self.fold)


def try_out(
    bank: Bank,  # With enough past models for `folds`
    specs: Sequence[PointSpec],
    # Gives what the models that a fold leaves out are asked, some of them (their places among these) after the other.
    # Called where nothing was kept; of models that do not come nothing is known.
    ask: Callable[[Fold, ProgressCallback], Iterable[tuple[IntArray, Observations]]],
    *about: object,  # Everything that the answers depend on besides the bank: it names the result in the cache
    progress: ProgressCallback = silent,
) -> Trial:
    """Estimate each past model's scores by several methods, as if it were new; kept in the bank's cache."""
    known, n_members = bank.known_scores, len(specs)
    shape = (n_members + len(Expectations._fields), *known.value.shape)

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((shape[0], fold.held_out.size, shape[2]), np.nan)
        for places, answered in ask(fold, progress):
            new = Known.of(Asked(fold.bank, answered))
            result[:, places] = np.stack([*(point_scores(new, spec) for spec in specs), *Expectations.of(new)])
        return result

    values = run_trial(bank, cache_name("out-of-fold", plain(specs), *about), try_fold, shape, progress=progress)
    return Trial(
        known.value,
        values[:n_members],
        Expectations(*values[n_members:]),
        fold_numbers(bank),
        bank.targets.scenario_weights,
        known.variance,
        None if bank.headline is None else HeadlineTrial(bank.headline),
    )


def plain(specs: Sequence[PointSpec]) -> list[dict[str, Any]]:
    """Return methods as the cache names what they made."""
    return [METHODS.to_plain(one, "method") for one in specs]


def kept_trial(subset: PublishedSubset) -> PastEstimates:
    """Return what a published bank keeps of the stacked estimate; scores are not kept, and count as zero."""
    arrays = (np.zeros(subset.errors.shape), subset.errors, subset.standard_errors, subset.scales)
    return PastEstimates(*arrays, misfit=subset.misfit, weights=subset.weights)
