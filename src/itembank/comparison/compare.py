"""The verb `compare`: which of two models is better."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from itembank.bank.arguments import (
    GivenBank,
    GivenResponses,
    GivenSelection,
    NewResponses,
    as_new_responses,
    as_responses,
    as_selection,
    bank_and_results,
)
from itembank.bank.banks import Bank
from itembank.checks import with_choices
from itembank.comparison.compared_models import ComparedModels, bank_and_targets, chosen_models
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.comparisons import Comparison, Found, ModelPairs, ReferenceTests
from itembank.comparison.difference_tests import Evidence, with_chance
from itembank.comparison.differences import ItemCounts, TargetErrors, error_variance, learn_errors, past_errors
from itembank.comparison.lost import compared
from itembank.comparison.pairs import NO_ERROR, PairedDifferences, model_pairs
from itembank.comparison.without_bank import compare_answers, joined
from itembank.errors import DataError, DataWarning, ParameterError, remedy
from itembank.estimation.asked import answers_to_items, known_items
from itembank.estimation.design_based import judged_by_design
from itembank.estimation.drawn_pairs import pair_shares
from itembank.estimation.estimands import run_variance
from itembank.estimation.estimate import check_headline, estimate
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
from itembank.estimation.observations import Observations
from itembank.estimation.point_methods import Known
from itembank.estimation.response_summary import summarise_responses
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import only_items
from itembank.responses.error_kinds import Errors
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

PAIRED, BY_DESIGN = "paired", "design-based"
FULL_RUN = 0.9
"""Fraction of a score's items from which on a run counts as full, but for gaps."""
USUAL = ComparisonSpec()


@one_blas_thread()
def compare(
    *sources: GivenBank | GivenResponses,
    models: Sequence[str] | None = None,
    selection: GivenSelection | None = None,
    method: EstimationSpec | str = "auto",
    target: str | Sequence[str] = OVERALL,
    ignore_unknown: bool = False,
    allow_mixed_prompts: bool = False,
    errors: Errors | None = None,
    spec: ComparisonSpec = USUAL,
    progress: ProgressCallback = silent,
    **choices: Any,
) -> Comparison:
    """Compare models by their responses to the same items: differences of their scores.

    The difference is B - A for every pair of models (A before B). Without a bank it is that of the items which both
    answered (`paired_look`, as `gate` takes it). With a bank it is that of full-benchmark scores. If chance drew the
    items with known probabilities, its interval follows from the draw, whatever the two models are (`pair_shares`).
    Else it comes from pairs of past models, each estimated as if it were new: they tell how large the error of a
    difference is, given how large the errors of both models are expected to be and how differently the two answered.
    So effects of the items on both models cancel.

    Parameters
    ----------
    sources : ResponseMatrix, path or paths; before them a Bank, or the path or name of one
        Responses of two or more models, in one file or several. Best to the same items; with a bank what is not shared
        counts as independent.
    models : sequence of ids, optional
        Compare these, in this order; all models of `responses` by default.
    selection : Selection or path, optional
        Use only these items, with their weights; others are left out. Without it every response counts, as a random
        sample; of a bank that was published with the items to run, those. Without a bank all items weigh the same.
    method : spec or str
        'auto': of drawn items the difference of design-based estimates, else of stacked ones; with fewer than ten past
        models the raw paired difference, of items that count as a random sample. 'paired': that one always, which the
        bank has no say in. Or a method of `estimate`: the difference of its estimates. Without a bank it is 'paired'.
    target : str or sequence of str
        'overall', 'all', or names of scenarios; 'mean_win_rate', or an external score that the bank keeps. Without a
        bank the overall score is the mean over all items.
    ignore_unknown : bool
        Leave out items that the bank does not hold, with a `DataWarning`, instead of refusing them.
    allow_mixed_prompts : bool
        Compare even if the models had different prompts.
    errors : {'missing', 'wrong', 'bounds'}, optional
        What lost answers count as (`ResponseMatrix.lost`): nothing; wrong answers; or nothing in the difference, with
        an interval that holds whichever they were. By default what the responses say.
    spec : ComparisonSpec
    **choices
        Fields of the spec by name: ``level=0.9``, ``estimand="run"``.
    progress : ProgressCallback
        The first comparison of a bank fits the item model anew without some models; later ones do not.

    Raises
    ------
    ParameterError
        For fewer than two models, one named twice, or another target or method.
    DataError
        When a model is not there, an item is not in the bank, two models share no item, or the items were not drawn by
        chance and past models are too few to tell how far differences on them are off.

    Examples
    --------
    >>> compare("old.csv", "new.csv").rows()[0]["difference"]  # doctest: +SKIP
    >>> comparison = compare(bank, responses, models=["old", "new"], selection=selection)  # doctest: +SKIP
    >>> comparison.rows()[0]["probability_b_better"]  # doctest: +SKIP
    """
    spec, estimator = with_choices(spec, choices), _estimator(method)
    known_bank, results = bank_and_results(sources)
    chosen = as_selection(selection)
    if known_bank is None:
        _check_without_bank(method, is_ignored=ignore_unknown)
        given = [as_responses(one, errors) for one in results]
        matrix = joined(given, errors, allow_mixed_prompts=allow_mixed_prompts)
        if chosen is not None:
            matrix, _ = only_items(matrix, chosen.item_ids)
        return compared(
            chosen_models(matrix, models),
            lambda one, estimand: compare_answers(one, target, estimand or QUESTIONS, progress=progress),
            spec,
        )
    bank, target = bank_and_targets(known_bank, target)
    if bank.headline is not None:
        check_headline(bank, "calibrated", spec.estimand or RUN, progress)
    new = _of_bank(bank, results, errors, allow_mixed_prompts=allow_mixed_prompts)
    new, selection = answers_to_items(bank, new, chosen)
    matrix = chosen_models(known_items(bank, new, selection, ignore_unknown=ignore_unknown), models)

    def find(responses: ResponseMatrix, estimand: DifferenceEstimand | None) -> Found:
        given = ComparedModels.create(bank, responses, selection, target)
        return _found(given, estimator, estimand, spec.level, progress)

    return compared(matrix, find, spec)


class _Judged(NamedTuple):
    """Scores and differences over all items of the bank, and what they rest on."""

    score: FloatArray  # (n_models, n_targets)
    evidence: Evidence
    method: str
    interval_kind: str
    typicality: Typicality
    remarks: tuple[str, ...] = ()


def _found(
    compared: ComparedModels,
    estimator: EstimationSpec | None,
    estimand: DifferenceEstimand | None,
    level: float,
    progress: ProgressCallback,
) -> Found:
    """Find what answers to items of a bank say of all pairs of models."""
    bank, matrix, counts = compared.bank, compared.responses, compared.counts()
    pairs = compared.paired()
    judged = _by_draw(compared, pairs) if isinstance(estimator, Auto) else None
    if judged is None:
        if estimator is not None:
            folds(bank, progress=progress)  # kept: all below asks for them without a word
        judged = _by_past_models(compared, estimator, pairs, counts, level)
    estimand = estimand or _usual_estimand(compared, counts)
    chance: FloatArray = np.zeros(pairs.difference.shape)
    if estimand == REPEATED:
        chance = pair_variance(bank, compared.observations, matrix)[:, compared.index]
    elif estimand == QUESTIONS:
        chance = pairs.variance_of_all
    has_unit = estimand == QUESTIONS and matrix.is_binary
    found = with_chance(judged.evidence, pairs, chance=chance, has_unit=has_unit, is_of_run=estimand == RUN)
    return Found(
        targets=compared.targets,
        evidence=found,
        pairs=ModelPairs.of(compared, pairs),
        reference=ReferenceTests.of(compared, pairs),
        score=judged.score,
        estimand=estimand,
        method=judged.method,
        interval_kind=judged.interval_kind,
        bank_id=bank.bank_id,
        target_id=bank.target_id,
        typicality=judged.typicality,
        last=bank.targets.last,
        remarks=() if found.is_exact.all() else judged.remarks,
    )


def _by_draw(compared: ComparedModels, pairs: PairedDifferences) -> _Judged | None:
    """Take differences from how the items were drawn, whatever the models are; None where that is not known."""
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
    return _Judged(score[:, compared.index], evidence, BY_DESIGN, "design", Typicality.unknown(score.shape[0]))


def _by_past_models(
    compared: ComparedModels,
    estimator: EstimationSpec | None,
    pairs: PairedDifferences,
    counts: ItemCounts,
    level: float,
) -> _Judged:
    """Take differences of estimates and the errors of past models' pairs, or raw ones of items that chance drew."""
    bank, matrix = compared.bank, compared.responses
    asked, shape = estimator, pairs.difference.shape
    estimator, errors = _estimator_and_errors(compared, estimator, level)
    is_learnt = np.array([error is not None for error in errors])
    _check_learnt(compared, estimator, is_learnt, is_asked=asked is None)
    score, difference = compared.raw_scores(), pairs.difference
    standard_errors: FloatArray = np.zeros(counts.observed.shape)
    typicality = Typicality.unknown(matrix.n_models)
    if estimator is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the warnings on the responses have been given
            estimates = estimate(bank, matrix, selection=compared.selection, method=estimator)
        values, standard_errors = estimates.value[:, compared.index], estimates.standard_error[:, compared.index]
        score = np.where(np.isnan(values), score, values)
        first, second = model_pairs(matrix.n_models)
        difference, typicality = score[second] - score[first], estimates.typicality
    variance = [error_variance(pairs, counts, standard_errors, error, t) for t, error in enumerate(errors)]
    degrees, scale = pairs.degrees.astype(np.float64), np.ones(shape)
    for target, error in enumerate(errors):
        if error is not None:
            degrees[:, target], scale[:, target] = error.model.degrees, error.model.scale
    why = "" if asked is None else f", since {_why_not_learnt(bank)}"
    return _Judged(
        score,
        Evidence(difference, np.column_stack(variance), np.zeros(shape), pairs.fell, pairs.rose, degrees, scale, True),
        PAIRED if estimator is None else METHODS.name_of(estimator),
        "calibrated" if is_learnt.all() else "classical",
        typicality,
        () if is_learnt.all() else (f"the intervals take the items as a random sample{why}",),
    )


def _usual_estimand(compared: ComparedModels, counts: ItemCounts) -> DifferenceEstimand:
    """Return what differences are of unless one says: of full runs, or nearly, what other items would show."""
    is_full = compared.is_of_items.all() and np.all(counts.observed >= FULL_RUN * counts.total)
    return "questions" if is_full else "run"


def _of_bank(
    bank: Bank, results: Sequence[GivenResponses], errors: Errors | None, *, allow_mixed_prompts: bool
) -> NewResponses:
    """Return results to items of a bank as one: files are read together, as the bank's were."""
    paths = [one for one in results if isinstance(one, str | Path)]
    if len(paths) == len(results) and (len(results) > 1 or allow_mixed_prompts or errors is not None):
        return as_new_responses(bank, paths, allow_mixed_prompts=allow_mixed_prompts, errors=errors)
    if len(results) == 1:
        return results[0].with_errors(errors) if isinstance(results[0], ResponseMatrix) else results[0]
    given = [as_new_responses(bank, one, errors=errors) for one in results]
    return joined(given, errors, allow_mixed_prompts=allow_mixed_prompts)


def _check_without_bank(method: EstimationSpec | str, *, is_ignored: bool) -> None:
    """Refuse what only a bank gives."""
    if method not in {"auto", PAIRED}:
        raise ParameterError(
            f"without a bank the method must be 'paired', the difference on shared items, got {method!r}. "
            f"Give a bank first: {remedy('compare(bank, responses)', 'itembank compare BANK RESULTS')}."
        )
    if is_ignored:
        raise ParameterError("ignore_unknown leaves out items that a bank does not hold, and no bank is given.")


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
) -> tuple[EstimationSpec | None, list[TargetErrors | None]]:
    """Return the estimator to take, None for raw differences, and its errors; 'auto' needs errors of every target."""
    nothing: list[TargetErrors | None] = [None] * len(compared.targets)
    if estimator is None:
        return None, nothing
    # to take one method where it looks better, as estimate does, costs coverage: compare.md
    taken = Stacked() if isinstance(estimator, Auto) else estimator
    errors = _learn(compared, taken, level)
    return (None, nothing) if isinstance(estimator, Auto) and None in errors else (taken, errors)


def _learn(compared: ComparedModels, estimator: PointSpec | Stacked, level: float) -> list[TargetErrors | None]:
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


def _estimator(method: EstimationSpec | str) -> EstimationSpec | None:
    """Spec of the estimator behind a method, None for the raw difference alone."""
    if method == PAIRED:
        return None
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, [PAIRED], purpose="comparison"))
    return METHODS.resolve(method)


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
