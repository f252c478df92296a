"""Differences of models' scores on all items of a bank, by how items were drawn or by what past models teach."""

from dataclasses import replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.comparison.compared_models import ComparedModels
from itembank.comparison.comparison_spec import PAIRED
from itembank.comparison.comparisons import Found, ModelPairs
from itembank.comparison.difference_tests import Evidence, error_variance, learn_errors, past_errors, with_chance
from itembank.comparison.pairs import NO_ERROR, PairedDifferences, PairErrorModel, model_pairs
from itembank.errors import DataError, DataWarning, remedy, unsaid
from itembank.estimation.design_based import judged_by_design
from itembank.estimation.drawn_pairs import pair_shares
from itembank.estimation.estimands import run_variance
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import Typicality
from itembank.estimation.estimator_specs import (
    METHODS,
    QUESTIONS,
    REPEATED,
    RUN,
    Auto,
    DifferenceEstimand,
    EstimationSpec,
    PointSpec,
    Stacked,
)
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.method_trials import too_few
from itembank.estimation.notes import note_on_past_models
from itembank.estimation.observations import Observations
from itembank.estimation.point_methods import Known
from itembank.estimation.response_summary import summarise_responses
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.progress import ProgressCallback
from itembank.responses.responses import ResponseMatrix

BY_DESIGN = "design-based"
FULL_RUN = 0.9
"""Fraction of a score's items from which on a run counts as full, but for gaps."""


def compare_scores(
    compared: ComparedModels,
    estimator: EstimationSpec | None,
    estimand: DifferenceEstimand | None,
    level: float,
    progress: ProgressCallback,
) -> Found:
    """Find what answers to items of a bank say of all pairs of models."""
    bank, matrix = compared.bank, compared.responses
    pairs = compared.paired()
    found = _by_draw(compared, pairs) if isinstance(estimator, Auto) else None
    if found is None:
        if estimator is not None:
            folds(bank, progress=progress)  # kept: all below asks for them without a word
        found = _by_past_models(compared, estimator, pairs, level)
    n_observed, n_total = compared.n_observed, compared.n_total
    # unless one says, of full runs, or nearly, what other items would show
    is_full = compared.is_of_items.all() and np.all(n_observed >= FULL_RUN * n_total)
    estimand = estimand or (QUESTIONS if is_full else RUN)
    chance: FloatArray = np.zeros(pairs.difference.shape)
    if estimand == REPEATED:
        chance = pair_variance(bank, compared.observations, matrix)[:, compared.index]
    elif estimand == QUESTIONS:
        chance = pairs.variance_of_all
    has_unit = (estimand == QUESTIONS) & (matrix.is_binary | (pairs.variance_of_many <= 0.0))
    evidence = with_chance(found.evidence, pairs, chance=chance, has_unit=has_unit, is_of_run=estimand == RUN)
    of_intervals = () if evidence.is_exact.all() else found.remarks
    of_past = (str(one).removesuffix(".") for one in note_on_past_models(bank.past_models, matrix.model_ids))
    return replace(
        found,
        evidence=evidence,
        estimand=estimand,
        bank_id=bank.bank_id,
        target_id=bank.target_id,
        last=bank.targets.last,
        remarks=(*of_intervals, *of_past),
    )


def _by_draw(compared: ComparedModels, pairs: PairedDifferences) -> Found | None:
    """Take differences of runs from how items were drawn, whatever the models are; None where that is not known."""
    if compared.bank.headline is not None or not compared.asked.is_drawn:
        return None
    found = judged_by_design(Known.of(compared.asked))
    first, second = model_pairs(compared.responses.n_models)
    score = np.clip(found.values, found.least, found.most)
    share = pair_shares(found, compared.observations.responses, compared.scenarios(), first, second)
    degrees = np.maximum(np.minimum(found.freedom[first], found.freedom[second]), 1.0)
    of_targets = (
        one[:, compared.index]
        for one in (
            score[second] - score[first],
            share * (found.variances[first] + found.variances[second]),
            np.broadcast_to(degrees, share.shape),
            # a difference that is known is rounded one way or the other
            found.least[second] - found.most[first] - NO_ERROR,
            found.most[second] - found.least[first] + NO_ERROR,
        )
    )
    difference, variance, freedom, least, most = of_targets
    none, one = np.zeros(variance.shape), np.ones(variance.shape)
    evidence = Evidence(difference, variance, none, pairs.fell, pairs.rose, freedom, one, True, least, most)
    return Found(
        targets=compared.targets,
        evidence=evidence,
        pairs=ModelPairs.of(compared, pairs),
        score=score[:, compared.index],
        estimand=RUN,
        method=BY_DESIGN,
        interval_kind="design",
        typicality=Typicality.unknown(score.shape[0]),
    )


def _by_past_models(
    compared: ComparedModels, estimator: EstimationSpec | None, pairs: PairedDifferences, level: float
) -> Found:
    """Take those of estimates, with the errors of past models' pairs, or raw ones of items that chance drew."""
    bank, matrix = compared.bank, compared.responses
    asked, shape = estimator, pairs.difference.shape
    estimator, errors = _estimator_and_errors(compared, estimator, level)
    is_learnt = np.array([error is not None for error in errors])
    _check_learnt(compared, estimator, is_learnt, is_asked=asked is None)
    score, difference = compared.raw_scores(), pairs.difference
    standard_errors: FloatArray = np.zeros((matrix.n_models, len(compared.targets)))
    of_rivals: FloatArray = np.zeros(standard_errors.shape)
    first, second = model_pairs(matrix.n_models)
    typicality = Typicality.unknown(matrix.n_models)
    if estimator is not None:
        with unsaid(DataWarning):  # of the responses, given before
            estimates = estimate(bank, matrix, selection=compared.selection, method=estimator)
        values, standard_errors = estimates.value[:, compared.index], estimates.standard_error[:, compared.index]
        score = np.where(np.isnan(values), score, values)
        difference, typicality = score[second] - score[first], estimates.typicality
        if bank.headline is not None:  # errors of past models, which have the same rivals, know nothing of their gaps
            of_rivals[:, ~compared.is_of_items] = bank.headline.variance_by_rivals(estimates.value[:, :-1])[:, None]
            standard_errors = np.sqrt(np.maximum(standard_errors**2 - of_rivals, 0.0))
    sizes = compared.n_observed, compared.n_total
    variance = [error_variance(pairs, *sizes, standard_errors, error, target=t) for t, error in enumerate(errors)]
    degrees, scale = pairs.degrees.astype(np.float64), np.ones(shape)
    for target, error in enumerate(errors):
        if error is not None:
            degrees[:, target], scale[:, target] = error.degrees, error.scale
    why = "" if asked is None else f", since {_why_not_learnt(bank)}"
    none, variances = np.zeros(shape), np.column_stack(variance) + of_rivals[first] + of_rivals[second]
    evidence = Evidence(difference, variances, none, pairs.fell, pairs.rose, degrees, scale, True)
    return Found(
        targets=compared.targets,
        evidence=evidence,
        pairs=ModelPairs.of(compared, pairs),
        score=score,
        estimand=RUN,
        method=PAIRED if estimator is None else METHODS.name_of(estimator),
        interval_kind="calibrated" if is_learnt.all() else "classical",
        typicality=typicality,
        remarks=() if is_learnt.all() else (f"the intervals take the items as a random sample{why}",),
    )


def _why_not_learnt(bank: Bank) -> str:
    """Say why no past models tell how far differences are off."""
    if bank.published is not None:
        return "the bank was published without the past models' responses that would tell it for these items"
    return too_few(bank)


def _check_learnt(
    compared: ComparedModels, estimator: EstimationSpec | None, is_learnt: BoolArray, *, is_asked: bool
) -> None:
    """Refuse differences whose errors were not learnt where the classical ones do not hold.

    These are for items that chance drew: what a method chose says more of some models than of others. And a headline
    score is no mean of the answers.
    """
    last, selection = compared.bank.targets.last, compared.selection
    if selection is not None and not is_learnt.all():
        is_drawn = selection.is_random or selection.inclusion_probabilities is not None
        if not is_drawn and selection.n_items < compared.bank.n_total:
            other = "take another method than 'paired'" if is_asked else "add past models"
            why = "are not raw ones" if is_asked else f"need past models, but {_why_not_learnt(compared.bank)}"
            how = remedy("select(bank, n)", "itembank select BANK -n N")
            raise DataError(
                f"differences on items that {selection.method!r} chose {why}. Run items that chance drew ({how}), or "
                f"all, or {other}."
            )
    if compared.is_of_items.all():
        return
    if estimator is None or not is_learnt[~compared.is_of_items].all():
        raise DataError(
            f"differences of {last!r} are those of estimates, and their errors come from {MINIMUM_FOR_FOLDS} past "
            "models or more whose score is known. Take another method than 'paired', or add models to the bank."
        )


def _estimator_and_errors(
    compared: ComparedModels, estimator: EstimationSpec | None, level: float
) -> tuple[EstimationSpec | None, list[PairErrorModel | None]]:
    """Return the estimator to take, None for raw differences, and its errors; 'auto' needs errors of every target."""
    nothing: list[PairErrorModel | None] = [None] * len(compared.targets)
    if estimator is None:
        return None, nothing
    # to take one method where it looks better, as estimate does, costs coverage: compare.md
    taken = Stacked() if isinstance(estimator, Auto) else estimator
    errors = _learn(compared, taken, level)
    return (None, nothing) if isinstance(estimator, Auto) and None in errors else (taken, errors)


def _learn(compared: ComparedModels, estimator: PointSpec | Stacked, level: float) -> list[PairErrorModel | None]:
    """Errors of every target from the past models; None where there are too few of them."""
    columns = compared.common()
    found = past_errors(compared.asked, columns, estimator)
    if found is None:
        return [None] * len(compared.targets)
    past, answers = found
    if answers is None:  # nobody knows how alike past models answered: it explains nothing
        n_models, n_targets = past.error.shape[0], len(compared.targets)
        disagreement = np.zeros((n_models * (n_models - 1) // 2, n_targets))
    else:
        disagreement = compared.paired_on(answers, columns).variance
    return learn_errors(past, disagreement, compared.index, level=level)


def pair_variance(
    bank: Bank,
    observations: Observations,
    responses: ResponseMatrix,  # Of the same models, with the attempts behind each response
) -> FloatArray:
    """Find the variance of each pair's difference in one run around that over repeated runs, (n_pairs, n_targets).

    Runs of two models are independent, so that their variances add up.
    """
    first, second = model_pairs(responses.n_models)
    variance = run_variance(bank, responses, summarise_responses(bank, observations).abilities)
    return variance[first] + variance[second]
