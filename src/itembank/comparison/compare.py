"""The verb `compare`: which of two models is better, and whether lost answers could change that."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from itembank.comparison.comparison_spec import PAIRED, ComparisonSpec
from itembank.comparison.comparisons import Comparison, Found, LostByModel, Ranking
from itembank.comparison.difference_tests import Evidence, intervals_and_tests
from itembank.comparison.pairs import model_pairs
from itembank.comparison.with_bank import compare_scores
from itembank.comparison.without_bank import compare_answers, joined
from itembank.errors import OF_LEVEL, ParameterError, remedy, says_instead
from itembank.estimation.asked import answers_to_items, known_items
from itembank.estimation.estimate import check_headline
from itembank.estimation.estimator_specs import METHODS, QUESTIONS, RUN, DifferenceEstimand, EstimationSpec
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import only_items
from itembank.responses.error_kinds import Errors
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.tabular import picked

USUAL = ComparisonSpec()


@says_instead(**OF_LEVEL)
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
    new, selection = answers_to_items(bank, new, chosen, errors)
    matrix = chosen_models(known_items(bank, new, selection, ignore_unknown=ignore_unknown), models)

    def find(responses: ResponseMatrix, estimand: DifferenceEstimand | None) -> Found:
        given = ComparedModels.create(bank, responses, selection, target)
        return compare_scores(given, estimator, estimand, spec.level, progress)

    return compared(matrix, find, spec)


def _of_bank(
    bank: Bank, results: Sequence[GivenResponses], errors: Errors | None, *, allow_mixed_prompts: bool
) -> NewResponses:
    """Return results to items of a bank as one: files are read together, as the bank's were."""
    if len(results) == 1 and not allow_mixed_prompts:
        return results[0]
    paths = [one for one in results if isinstance(one, str | Path)]
    if len(paths) == len(results):
        return as_new_responses(bank, paths, allow_mixed_prompts=allow_mixed_prompts, errors=errors)
    given = [as_new_responses(bank, one, allow_mixed_prompts=allow_mixed_prompts, errors=errors) for one in results]
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


def _estimator(method: EstimationSpec | str) -> EstimationSpec | None:
    """Spec of the estimator behind a method, None for the raw difference alone."""
    if method == PAIRED:
        return None
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, [PAIRED], purpose="comparison"))
    return METHODS.resolve(method)


Find = Callable[[ResponseMatrix, DifferenceEstimand | None], Found]


def compared(responses: ResponseMatrix, find: Find, spec: ComparisonSpec) -> Comparison:
    """Compare models as `find` does, with lost answers counted as the responses say."""
    lost, ends, told = responses.lost, None, None
    plain = responses if lost is None else responses.with_lost_as(lost.value)
    found = find(plain, spec.estimand)
    if lost is not None and lost.n.any():
        wrong = responses.with_lost_as(0.0)
        if_wrong = found if lost.errors == "wrong" else find(wrong, found.estimand)
        if lost.errors == "bounds":
            ends = _ends(find(_both(responses.with_lost_as(1.0), wrong), found.estimand).evidence, responses.n_models)
        kinds = tuple(lost[row].in_words for row in range(responses.n_models))
        told = LostByModel(lost.errors, lost.n.sum(axis=1), kinds, if_wrong.evidence.difference)
    spec = replace(spec, estimand=found.estimand)
    difference, tests = intervals_and_tests(found.evidence, spec, ends)
    return Comparison(
        model_ids=tuple(responses.model_ids),
        difference=difference,
        tests=tests,
        ranking=Ranking.of(responses.model_ids, found.targets, found.score, difference.value, tests, level=spec.level),
        spec=spec,
        lost=told,
        **picked(found, "targets", "pairs", "method", "interval_kind", "bank_id", "target_id", "typicality"),
        **picked(found, "last", "remarks"),
    )


def _both(right: ResponseMatrix, wrong: ResponseMatrix) -> ResponseMatrix:
    """Put every model there twice: first with its lost answers as right ones, then as wrong ones."""
    parts = (right, wrong)
    trials = [one.n_trials if one.n_trials is not None else one.observed.astype(np.int64) for one in parts]
    return ResponseMatrix.create(
        np.vstack([one.responses for one in parts]),
        model_ids=[f"{name} ({how})" for how in ("right", "wrong") for name in right.model_ids],
        items=right.items,
        n_trials=np.vstack(trials) if any(one.n_trials is not None for one in parts) else None,
    )


def _ends(every: Evidence, n_models: int) -> tuple[Evidence, Evidence]:
    """Return the evidence of the lowest and the highest difference of each pair, from that of all pairs of `_both`.

    B - A is lowest if what A lost was right and what B lost was wrong. It is highest the other way round, of which
    the pairs have the opposite: A's wrong answers come after B's right ones.
    """
    first, second = model_pairs(2 * n_models)
    place = np.zeros((2 * n_models, 2 * n_models), dtype=np.int64)
    place[first, second] = np.arange(first.size)
    a, b = model_pairs(n_models)
    lowest, highest = (every.take(rows) for rows in (place[a, n_models + b], place[b, n_models + a]))
    return lowest, highest.turned
