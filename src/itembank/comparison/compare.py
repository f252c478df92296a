"""The verb `compare`: which of two models is better."""

import warnings
from collections.abc import Sequence

import numpy as np

from itembank.bank.arguments import GivenBank, GivenResponses, GivenSelection, as_bank, as_selection
from itembank.bank.banks import Bank
from itembank.comparison.compared_models import ComparedModels, bank_and_targets, chosen_models
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.comparisons import Comparison, ModelPairs, Ranking, ReferenceTests
from itembank.comparison.difference_tests import tested_differences
from itembank.comparison.differences import (
    TargetErrors,
    calibration_errors,
    differences,
    learn_errors,
    raw_standard_errors,
)
from itembank.comparison.pairs import model_pairs
from itembank.errors import DataError, DataWarning, ParameterError, remedy
from itembank.estimation.estimands import run_variance
from itembank.estimation.estimate import check_headline, estimate
from itembank.estimation.estimates import Typicality
from itembank.estimation.estimator_specs import METHODS, RUN, Auto, Estimand, EstimationSpec, PointSpec, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.method_trials import too_few
from itembank.estimation.observations import Observations, known_items
from itembank.estimation.past_errors import answers_to_items
from itembank.estimation.response_summary import summarise_responses
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

PAIRED = "paired"
USUAL = ComparisonSpec()


@one_blas_thread()
def compare(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    models: Sequence[str] | None = None,
    selection: GivenSelection | None = None,
    method: EstimationSpec | str = "auto",
    target: str | Sequence[str] = OVERALL,
    ignore_unknown: bool = False,
    spec: ComparisonSpec = USUAL,
    progress: ProgressCallback = silent,
) -> Comparison:
    """Compare models by their responses to the same items: differences of full-benchmark scores.

    The difference is B - A for every pair of models (A before B). Its interval comes from the bank: pairs of
    past models, each estimated as if it were new, tell how large the error of a difference is, given how large
    the errors of both models are expected to be and how differently the two answered. So effects of the items on both
    models cancel.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of two or more models, over any items of the bank. Best on the same items; what is not shared counts as
        independent.
    models : sequence of ids, optional
        Compare these, in this order; all models of `responses` by default.
    selection : Selection or path, optional
        Use only these items, with their weights; others are left out. Without it every response counts, as a random
        sample; of a bank that was published with the items to run, those.
    method : spec or str
        'auto': the difference of stacked estimates; with fewer than ten past models the raw paired difference, of
        items that chance drew. 'paired': the raw paired difference, which knows the bank only by its intervals. Or a
        method of `estimate`: the difference of its estimates.
    target : str or sequence of str
        'overall', 'all', or names of scenarios; 'mean_win_rate', or an external score that the bank keeps.
    spec : ComparisonSpec
        Level and power, and which scores are compared.
    ignore_unknown : bool
        Leave out items that the bank does not hold, with a `DataWarning`, instead of refusing them.
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
    >>> comparison = compare(bank, responses, models=["old", "new"], selection=selection)  # doctest: +SKIP
    >>> comparison.rows()[0]["probability_b_better"]  # doctest: +SKIP
    """
    estimator = _estimator(method)
    bank, target = bank_and_targets(as_bank(bank), target)
    if bank.headline is not None:
        check_headline(bank, "calibrated", spec.estimand, (), progress)
    given, selection = answers_to_items(bank, responses, as_selection(selection))
    matrix = chosen_models(known_items(bank, given, selection, ignore_unknown=ignore_unknown), models)
    compared = ComparedModels.create(bank, matrix, selection, target)
    if estimator is not None:
        folds(bank, progress=progress)  # kept: all below asks for them without a word
    estimator, errors = _estimator_and_errors(compared, estimator, spec.level)
    is_learnt = np.array([error is not None for error in errors])
    _check_learnt(compared, estimator, is_learnt)
    pairs, counts = compared.paired(), compared.counts()
    if estimator is None:
        values, standard_errors = None, raw_standard_errors(errors, counts)
        typicality = Typicality.unknown(matrix.n_models)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the warnings on the responses have been given
            estimates = estimate(bank, matrix, selection=selection, method=estimator)
        values, standard_errors = estimates.value[:, compared.index], estimates.standard_error[:, compared.index]
        typicality = estimates.typicality
    raw, score = differences(compared.raw_scores(), values, pairs, is_learnt)
    chance = pair_variance(spec.estimand, bank, compared.observations, matrix)[:, compared.index]
    difference, tests = tested_differences(raw, pairs, counts, standard_errors, errors, chance=chance, spec=spec)
    return Comparison(
        model_ids=tuple(matrix.model_ids),
        targets=compared.targets,
        difference=difference,
        tests=tests,
        pairs=ModelPairs.of(compared, pairs),
        reference=ReferenceTests.of(compared, pairs),
        ranking=Ranking.of(compared, score, tests.p_holm < 1.0 - spec.level),
        spec=spec,
        method=PAIRED if estimator is None else METHODS.name_of(estimator),
        interval_kind="calibrated" if is_learnt.all() else "classical",
        bank_id=bank.bank_id,
        target_id=bank.target_id,
        typicality=typicality,
        last=bank.targets.last,
        explanation="" if is_learnt.all() else _why_not_learnt(bank),
    )


def _why_not_learnt(bank: Bank) -> str:
    """Say why no past models tell how far differences are off."""
    if bank.published is not None:
        return "the bank was published without the past models' responses that would tell it for these items"
    return too_few(bank)


def _check_learnt(compared: ComparedModels, estimator: EstimationSpec | None, is_learnt: BoolArray) -> None:
    """Refuse differences whose errors were not learnt where the classical ones do not hold.

    These are for items that chance drew: what a method chose says more of some models than of others. And a headline
    score is no mean of the answers.
    """
    last, selection = compared.bank.targets.last, compared.selection
    is_sample = selection is None or selection.is_random or selection.n_items == compared.bank.n_total
    if selection is not None and not (is_sample or is_learnt.all()):
        how = remedy("select(bank, n, method='random')", "itembank select BANK -n N --method random")
        raise DataError(
            f"differences on items that {selection.method!r} chose need past models that tell how far they are off, "
            f"but {_why_not_learnt(compared.bank)}. Run items that chance drew ({how}), or all, or add past models."
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
    if not isinstance(estimator, Auto):
        return estimator, _learn(compared, estimator, level)
    stacked = Stacked()  # to take one method where it looks better, as estimate does, costs coverage: compare.md
    errors = _learn(compared, stacked, level)
    return (None, _learn(compared, None, level)) if None in errors else (stacked, errors)


def _learn(compared: ComparedModels, estimator: PointSpec | Stacked | None, level: float) -> list[TargetErrors | None]:
    """Errors of every target from the past models; None where there are too few of them."""
    columns = compared.common()
    calibration = calibration_errors(compared.bank, compared.observations, columns, compared.selection, estimator)
    if calibration is None:
        return [None] * len(compared.targets)
    if calibration.responses is None:  # nobody knows how alike past models answered: it explains nothing
        n_models, n_targets = calibration.errors.shape[0], len(compared.targets)
        disagreement = np.zeros((n_models * (n_models - 1) // 2, n_targets))
    else:
        disagreement = compared.paired_on(calibration.responses, columns).variance
    return learn_errors(calibration, disagreement, compared.index, level=level)


def _estimator(method: EstimationSpec | str) -> EstimationSpec | None:
    """Spec of the estimator behind a method, None for the raw difference alone."""
    if method == PAIRED:
        return None
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, [PAIRED], purpose="comparison"))
    return METHODS.resolve(method)


def pair_variance(
    estimand: Estimand,
    bank: Bank,
    observations: Observations,
    responses: ResponseMatrix,  # Of the same models, with the attempts behind each response
) -> FloatArray:
    """Find the variance of each pair's difference in one run around the difference that is meant, (n_pairs, n_targets).

    Runs of two models are independent, so that their variances around expected scores add up.
    """
    first, second = model_pairs(responses.n_models)
    if estimand == RUN:
        return np.zeros((first.size, len(bank.targets.names)))
    variance = run_variance(bank, responses, summarise_responses(bank, observations).abilities)
    return variance[first] + variance[second]
