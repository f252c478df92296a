"""Estimates of each past model as if it were new: fits, weights and errors out of fold, and what was kept."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from itembank.bank.arguments import NewResponses, read_new
from itembank.bank.bank_cache import cache_name
from itembank.bank.bank_factors import bank_factor_model
from itembank.bank.bank_views import repeatable
from itembank.bank.banks import Bank
from itembank.bank.past_models import PublishedSubset
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, ParameterError, remedy, shown, warn
from itembank.estimation.calibrated_scores import OutOfFold
from itembank.estimation.estimates import Typicality, typicality_among
from itembank.estimation.estimator_specs import METHODS, Factor, PointSpec, Stacked
from itembank.estimation.folds import Fold, fold_numbers, run_trial
from itembank.estimation.headlines import HeadlineReader, HeadlineTrial, learnt_by
from itembank.estimation.observations import Observations
from itembank.estimation.point_methods import Known, factor_prediction, learnt_score, point_scores
from itembank.estimation.predictions import standard_error
from itembank.estimation.regressions import FactorPrediction, combined, predict_factor, reconciled, stack_weights
from itembank.estimation.response_summary import posterior_moments
from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import FEWEST_FOR_QUANTILE
from itembank.numerics.ties import clearly_best
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import only_items
from itembank.responses.error_kinds import Errors
from itembank.responses.responses import ResponseMatrix

MOSTLY = 0.9
"""Fraction of published items whose answers show that it was these that were run."""
LOOSE = 0.1
"""Discrepancy of the second factor model, one of the default's members: new models may be of another kind."""


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

    def standard_error(self, value: FloatArray) -> FloatArray:
        """Return what the item model expects of the errors of estimates, (n_models, n_targets)."""
        return standard_error(value, self.mean, self.variance)

    def error_scale(self, value: FloatArray) -> FloatArray:
        """Return the expected size of errors of estimates T up to a factor, which past errors give.

        ``sqrt(v + d^2 + D v_f)``: v and v_f are the posterior variances of the item model and of the
        factor model, d the root mean square distance of the estimate T from the three means, and D the misfit. A model
        that answers unlike past models is known worse than models that are fitted to past ones say: among the answers
        that are seen, the factor model's squared errors are D times as large as it expects. Neither truth nor other
        models' estimates enter.
        """
        disagreement = np.mean((self.means - value) ** 2, axis=0)
        spread = np.maximum(self.variance, 0.0) + disagreement + self.misfit * np.maximum(self.factor_variance, 0.0)
        result: FloatArray = np.sqrt(spread)
        return result


@dataclass(frozen=True, slots=True)
class Past:
    """How a method did in cross-validation."""

    estimates: OutOfFold
    weights: FloatArray | None  # (n_members, n_targets): Of the members of 'stacked', from all past models
    misfit: FloatArray  # (n_models,): How far the answers of past models, left out, lay from what was expected of them
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
        scale = expected.standard_error(value) if self.follows_item_model else expected.error_scale(value)
        return (value, scale) if self.reader is None else self.reader.read(value, scale, learnt)

    @property
    def is_stacked(self) -> bool:
        """Whether more methods than the first have a weight."""
        return self.weights is not None and bool(self.weights[1:].any())

    def typicality_of(self, misfit: FloatArray) -> Typicality:
        """How typical answers of this misfit are, (n_models,)."""
        return Typicality(misfit, typicality_among(self.misfit, misfit), np.full(misfit.shape, np.nan))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the last score's intervals (`calibrated_half_widths`); infinite with enough errors."""
        n_errors = int(np.sum(~np.isnan(self.estimates.error[:, -1])))
        return n_errors - 1.0 if n_errors < FEWEST_FOR_QUANTILE else np.inf


@dataclass(frozen=True, slots=True)
class MembersOutOfFold:
    """Estimates of each past model by several methods that have not seen it."""

    truth: FloatArray  # (n_models, n_targets)
    values: FloatArray  # (n_members, n_models, n_targets)
    expectations: Expectations  # Of the past models, by fits that they took no part in
    fold: IntArray  # (n_models,): Number of the fold each model was left out in, -1 for none
    scenario_weights: FloatArray  # (n_targets - 1,): Of the overall score, the last target
    truth_variance: FloatArray | None = None  # (n_models, n_targets): As in `OutOfFold`
    # Where a headline score was asked for: estimates have it in place of the overall score; the arrays above do not.
    headline: HeadlineTrial | None = None
    _found: dict[tuple[float, bytes], FloatArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def errors(self) -> FloatArray:
        """Estimates less truth, (n_members, n_models, n_targets)."""
        return self.values - self.truth

    def past(
        self,
        spec: PointSpec | Stacked,
        *,
        # Let the scale be the item model's own standard errors, unless another clearly makes better intervals of the
        # overall score. The factor models know nothing of how an adaptive session chose its items; where this
        # misleads them, their distance from the estimate says little of its error.
        prefer_item_model: bool = False,
    ) -> "Past":
        """Return what intervals of the method that has these members rest on."""
        estimates, reader = self._read(self._values(spec))
        weights = self.weights(spec) if isinstance(spec, Stacked) else None
        follows = False
        if prefer_item_model:
            plain = estimates.by_item_model()
            follows = clearly_best([found.interval_scores for found in (plain, estimates)]) == 0
            estimates = plain if follows else estimates
        return Past(estimates, weights, self.expectations.misfit[:, -1], follows, reader)

    def by(self, spec: PointSpec | Stacked) -> OutOfFold:
        """Return the estimates of the method that has these members."""
        return self._read(self._values(spec))[0]

    def single(self, member: int) -> OutOfFold:
        """Return the estimates of one method."""
        return self._read(self.values[member])[0]

    def _values(self, spec: PointSpec | Stacked) -> FloatArray:
        """Estimates of the method that has these members, (n_models, n_targets)."""
        if not isinstance(spec, Stacked):
            single: FloatArray = self.values[0]
            return single
        value = np.full(self.truth.shape, np.nan)
        for number in np.unique(self.fold[self.fold >= 0]):
            inside = self.fold == number
            # weights that had seen the errors of this fold would make its stacked errors too small
            value[inside] = combined(self.values[:, inside], self._weights(spec, ~inside))
        return reconciled(value, self.expectations.variance, self.scenario_weights)

    def weights(self, spec: Stacked) -> FloatArray:
        """Weights of the methods from all past models, (n_members, n_targets)."""
        return self._weights(spec, np.full(self.fold.shape, True))

    def _weights(self, spec: Stacked, rows: BoolArray) -> FloatArray:
        """Stack weights of every target from some of the models, (n_members, n_targets): found once."""
        key, errors = (spec.prior_models, rows.tobytes()), self.errors[:, rows]
        if key not in self._found:
            self._found[key] = np.column_stack(
                [stack_weights(errors[:, :, j].T, prior_models=spec.prior_models) for j in range(errors.shape[2])]
            )
        return self._found[key]

    def _read(self, value: FloatArray) -> tuple[OutOfFold, HeadlineReader | None]:
        """Return estimates with the sizes of their errors, and how a headline score among them is read."""
        expected = self.expectations
        plain = OutOfFold(
            self.truth, value, expected.standard_error(value), expected.error_scale(value), self.truth_variance
        )
        return (plain, None) if self.headline is None else self.headline.read(plain, self.fold)


def members_out_of_fold(
    bank: Bank,  # With enough past models for `folds`
    specs: Sequence[PointSpec],
    # Gives the items of a fold, which the models it leaves out answer. Called where nothing was kept.
    choose: Callable[[Fold], Observations],
    # Of which, and `others`, what `choose` gives follows: they name the result in the cache. Where its models
    # attempted each item less often than those of the calibration, these are tried with as few attempts.
    items: Observations,
    *others: object,
) -> MembersOutOfFold:
    """Estimate each past model's scores by several methods, as if it were new; kept in the bank's cache."""
    attempts = items.fewer_attempts(bank)

    def try_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        answers = choose(fold).answered_by_calibration_models(bank, fold.held_out, attempts=attempts)
        return _estimates(fold, answers, specs)

    arrays = (items.positions, items.weights, items.selected, items.selected_weights)
    more = others if attempts is None else (*others, f"{attempts:g} attempts")
    about = (_plain(specs), items.is_random, more, *arrays)
    members = _of_trial(bank, specs, cache_name("out-of-fold", *about), try_fold, silent)
    learner = None if bank.headline is None else learnt_by(bank.headline, specs)
    if bank.headline is None or learner is None:
        return members

    headline, past = bank.headline, bank.headline.past

    def learn_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        answers = choose(fold).answered_by_calibration_models(bank, fold.held_out, attempts=attempts)
        others = past[bank.responses.model_indices(fold.bank.responses.model_ids)]  # copies are left out, too
        return learnt_score(Known.of(fold.bank, answers), learner, others)[:, None]

    name = cache_name("learnt-out-of-fold", _plain([learner]), *about, past)

    learnt = run_trial(bank, name, learn_fold, (bank.n_models, 1))[:, 0]
    return replace(members, headline=HeadlineTrial(headline, learnt, len(specs) == 1))


def members_out_of_fold_each(
    bank: Bank,
    specs: Sequence[PointSpec],
    # Gives what the models that a fold leaves out answered, one after the other. Called where nothing was kept. Where
    # it raises `ParameterError` or `DataError`, nothing is known of the fold's models.
    answers: Callable[[Fold], Iterator[Observations]],
    *about: object,  # Everything that the answers depend on besides the bank: they name the result in the cache
    progress: ProgressCallback = silent,
) -> MembersOutOfFold:
    """Estimate each past model's scores as `members_out_of_fold` does, where each is asked its own items."""

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((len(specs) + len(Expectations._fields), fold.held_out.size, len(bank.targets.names)), np.nan)
        try:
            for place, answered in enumerate(answers(fold)):
                progress("cross-validating past models", place / fold.held_out.size)
                result[:, [place]] = _estimates(fold, answered, specs)
        except (ParameterError, DataError):
            return np.full(result.shape, np.nan)
        return result

    return _of_trial(bank, specs, cache_name("out-of-fold-each", _plain(specs), *about), try_fold, progress)


def _of_trial(
    bank: Bank,
    specs: Sequence[PointSpec],
    name: str,
    try_fold: Callable[[Fold, ProgressCallback], FloatArray],
    progress: ProgressCallback,
) -> MembersOutOfFold:
    """Run a trial whose folds give estimates of all methods and what is expected of them."""
    known, n_members = bank.known_scores, len(specs)
    shape = (n_members + len(Expectations._fields), bank.n_models, bank.targets.n_scenarios + 1)
    values = run_trial(bank, name, try_fold, shape, progress=progress)
    return MembersOutOfFold(
        known.value,
        values[:n_members],
        Expectations(*values[n_members:]),
        fold_numbers(bank),
        bank.targets.scenario_weights,
        known.variance,
        None if bank.headline is None else HeadlineTrial(bank.headline),
    )


def _estimates(fold: Fold, answered: Observations, specs: Sequence[PointSpec]) -> FloatArray:
    """Estimates of all methods, then what is expected of them, (n_members + 6, n_models, n_targets)."""
    known = Known.of(fold.bank, answered)
    return np.stack([*(point_scores(known, spec) for spec in specs), *Expectations.of(known)])


def selection_or_published(
    bank: Bank, selection: Selection | None, answered: Collection[str] | None = None
) -> Selection | None:
    """Return the selection, or else items that a bank was published with, where there are such.

    Of several sets of items it is the one that answers were given to, `answered`: of those with most of their items
    answered the largest. Where nobody has answered yet it is the usual one; where most answers are to other items of
    the bank, none.
    """
    if selection is not None:
        return repeatable(bank, selection)
    known = set(bank.item_ids).intersection(answered or ())
    if not (known and bank.own_selections):
        return bank.items_to_run
    counts = [(len(known.intersection(one.item_ids)), one) for one in bank.own_selections]
    count, best = max(counts, key=lambda pair: (pair[0] / pair[1].n_items >= MOSTLY, pair[0], -pair[1].n_items))
    return None if bank.rest is None and 2 * count < len(known) else best


def answers_to_items(
    bank: Bank, responses: NewResponses, selection: Selection | None, errors: Errors | None = None
) -> tuple[ResponseMatrix, Selection | None]:
    """Read the responses of new models to the items that they are to, and find these: `all_answers`.

    A `DataWarning` tells of answers to items that the bank was not published with, which are left out.
    """
    whole, given, chosen = all_answers(bank, responses, selection, errors)
    if selection is None and chosen is not None and given.n_items < whole.n_items:
        _, others = only_items(whole, chosen.item_ids)
        warn(
            f"{len(others)} of {whole.n_items} items are not among the {chosen.n_items} that the bank was published "
            f"with, and are left out: {shown(others)}.",
            DataWarning,
        )
    return given, chosen


def all_answers(
    bank: Bank, responses: NewResponses, selection: Selection | None, errors: Errors | None = None
) -> tuple[ResponseMatrix, ResponseMatrix, Selection | None]:
    """Read the responses of new models, and find the items that they are to: `selection_or_published`.

    Returns all of them, those to these items, and the items. Raises `DataError` where models answered different sets of
    those that the bank was published with.
    """
    whole, given = read_new(bank, responses, selection, errors=errors)
    if selection is not None:
        among = given if bank.rest is None else only_items(given, bank.item_ids)[0]
        return whole, among if among.n_items else given, selection_or_published(bank, selection)
    if not bank.own_selections:
        return whole, given, None
    ids, found = given.items["item_id"], {}
    for kind in np.unique(given.asked, axis=0):
        if kind.any():
            one = selection_or_published(bank, None, ids.filter(pl.Series(kind)).to_list())
            found[None if one is None else one.item_ids] = one
    if len(found) > 1:
        sizes = sorted("other items" if ids is None else f"{len(ids)} items" for ids in found)
        raise DataError(
            f"models must have run the same of the sets of items that the bank was published with, got {shown(sizes)}. "
            f"Estimate them apart, or name the items ({remedy('selection=...', '--selection FILE')})."
        )
    chosen = next(iter(found.values()), bank.items_to_run)
    if chosen is None:
        return whole, given, None
    among, _ = only_items(given, chosen.item_ids)
    return whole, among if among.n_items else given, chosen


def published_subset(bank: Bank, selection: Selection | None, spec: PointSpec | Stacked) -> PublishedSubset | None:
    """Return what is kept of a method's estimates from a selection; None where nothing is.

    It is kept for the stacked estimate from the published items. Where a model left some of them unanswered it still
    serves: widths are in units of what the item model expects of the items answered.
    """
    if bank.published is None or spec != Stacked() or selection is None:
        return None
    for subset in bank.published.subsets:
        one, is_usable = subset.selection, subset.methods == stacked_methods() and subset.errors.shape[0]
        is_same = selection.item_ids == one.item_ids and np.array_equal(selection.weights, one.weights)
        if is_same and is_usable and subset.weights.shape[0] == len(subset.methods):
            return subset
    return None


def stacked_methods() -> tuple[dict[str, Any], ...]:
    """Name what this release's 'stacked' combines, as plain data."""
    return tuple(_plain(Stacked().members))


def _plain(specs: Sequence[PointSpec]) -> list[dict[str, Any]]:
    return [METHODS.to_plain(one, "method") for one in specs]


def published_past(subset: PublishedSubset) -> Past:
    """Return the errors in the form of cross-validated estimates; their scores are not kept, and count as zero."""
    truth = np.zeros(subset.errors.shape)
    estimates = OutOfFold(truth, subset.errors, subset.standard_errors, subset.scales)
    return Past(estimates, subset.weights, subset.misfit)
