"""The verb `compare`: which of two models is better."""

import warnings
from collections.abc import Sequence

import numpy as np

from itembank.calibration.folds import folds
from itembank.comparison.answers import Answers
from itembank.comparison.calibration_errors import calibration_errors
from itembank.comparison.checks import check_shared, check_shares, check_size, chosen_models, target_names
from itembank.comparison.comparisons import Comparison
from itembank.comparison.differences import TargetErrors, differences, learn_errors
from itembank.comparison.judgement import judge
from itembank.comparison.optimism import error_inflation
from itembank.comparison.pairs import model_pairs
from itembank.comparison.ranking import square, tied_groups
from itembank.comparison.reference_tests import bootstrap_intervals, holm, mcnemar_exact, paired_t
from itembank.data.arguments import GivenBank, GivenResponses, GivenSelection, as_bank, as_new_responses, as_selection
from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.data.selections import Selection
from itembank.data.targets import OVERALL
from itembank.errors import DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.observations import known_items, observe
from itembank.estimation.specs import METHODS, Auto, EstimationSpec, Stacked, Weighted
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.random import as_generator
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, silent

PAIRED = "paired"
MANY_BOOTSTRAPS = 20_000
"""Pairs beyond this get no bootstrap interval: it costs far more than all the rest."""


@one_blas_thread()
def compare(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    models: Sequence[str] | None = None,
    selection: GivenSelection | None = None,
    method: EstimationSpec | str = "auto",
    level: float = 0.95,
    power: float = 0.8,
    target: str | Sequence[str] = OVERALL,
    n_bootstrap: int = 2000,
    ignore_unknown: bool = False,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Comparison:
    """Compare models by their responses to the same items: differences of full-benchmark scores.

    The difference is B - A for every pair of models (A before B). Its interval comes from the bank: pairs of
    calibration models, each estimated from these very items by a bank without it, tell how large the error of a
    difference is, given how differently two models answered. So what the items do to both models cancels.

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
        sample.
    method : spec or str
        'auto': the difference of stacked estimates; with fewer than 15 calibration models the raw paired
        difference. 'paired': the raw paired difference, which knows the bank only by its intervals. Or a method of
        `estimate`: the difference of its estimates.
    level : float
        Of the intervals; adjusted p-values are held against ``1 - level`` in the ranking.
    power : float
        With which the smallest detectable difference would be found.
    target : str or sequence of str
        'overall', 'all', or names of scenarios.
    n_bootstrap : int
        Samples of the reference bootstrap; 0 for none. Left out beyond 20,000 pairs.
    ignore_unknown : bool
        Leave out items that the bank does not hold, with a `DataWarning`, instead of refusing them.
    rng : Generator, int or None
        For the bootstrap.
    progress : ProgressCallback
        The first comparison of a bank fits the item model anew without some models; later ones do not.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        For fewer than two models, one named twice, a level or power outside (0, 1), or another target or method.
    DataError
        When a model is not there, an item is not in the bank, or two models share no item.

    Examples
    --------
    >>> comparison = compare(bank, responses, models=["old", "new"], selection=selection)  # doctest: +SKIP
    >>> comparison.rows()[0]["probability_b_better"]  # doctest: +SKIP
    """
    estimator = _estimator(method)
    check_shares(level, power, n_bootstrap)
    bank, selection = as_bank(bank), as_selection(selection)
    given = as_new_responses(bank, responses, selection)
    matrix = chosen_models(known_items(bank, given, selection, ignore_unknown=ignore_unknown), models)
    names, index = target_names(bank, target)
    check_size(matrix.n_models, len(names))
    laid = observe(bank, matrix, selection)
    check_shared(matrix.model_ids, ~np.isnan(laid.responses))
    is_auto = isinstance(estimator, Auto)
    if is_auto:
        estimator = Stacked()  # to take one method where it looks better, as estimate does, costs coverage: compare.md
    if estimator is not None:
        folds(bank, progress=progress)  # kept: all below asks for them without a word
    answers = Answers(bank, laid, index)
    pairs = answers.pairs(laid.responses, np.ones(laid.positions.shape[0], dtype=bool))
    learnt = _learn(answers, estimator, selection, level=level)
    if is_auto and None in learnt:
        estimator = None
        learnt = _learn(answers, None, selection, level=level)
    values = None if estimator is None else _estimates(bank, matrix, selection, estimator)[:, index]
    is_learnt = np.array([one is not None for one in learnt])
    difference, score = differences(answers.raw(), values, pairs, is_learnt)
    judged = judge(difference, pairs, answers.counts(), learnt, level=level, power=power)
    adjusted = holm(judged.p_value)
    first, second = model_pairs(matrix.n_models)
    observed = answers.counts().observed
    is_binary = matrix.is_binary
    bootstrap = _bootstrap(answers, level=level, n_samples=n_bootstrap, rng=as_generator(rng))
    unknown = np.full(difference.shape, np.nan)
    return Comparison(
        model_ids=tuple(matrix.model_ids),
        targets=names,
        first=first,
        second=second,
        difference=difference,
        standard_error=judged.standard_error,
        low=judged.low,
        high=judged.high,
        probability_b_better=judged.probability_b_better,
        p_value=judged.p_value,
        p_holm=adjusted,
        smallest_detectable_difference=judged.smallest_detectable,
        n_shared_items=pairs.n_shared,
        n_items_a=observed[first],
        n_items_b=observed[second],
        only_a_right=pairs.only_a if is_binary else unknown,
        only_b_right=pairs.only_b if is_binary else unknown,
        raw_difference=pairs.difference,
        mcnemar_p=mcnemar_exact(pairs.only_a, pairs.only_b) if is_binary else unknown,
        paired_t_p=paired_t(pairs.difference, pairs.variance_of_many, pairs.degrees),
        bootstrap_low=bootstrap[0],
        bootstrap_high=bootstrap[1],
        score=score,
        group=_groups(score, adjusted < 1.0 - level),
        level=level,
        power=power,
        method=PAIRED if estimator is None else METHODS.name_of(estimator),
        interval_kind="classical" if None in learnt else "calibrated",
        bank_id=bank.bank_id,
    )


def _learn(
    answers: Answers, estimator: EstimationSpec | None, selection: Selection | None, *, level: float
) -> list[TargetErrors | None]:
    """Errors of every target from the calibration models; None where there are too few of them."""
    columns = answers.common()
    found = calibration_errors(answers.bank, answers.laid, columns, estimator)
    if found is None:
        return [None] * answers.index.shape[0]
    factor = error_inflation(answers.bank, answers.laid, selection, Weighted() if estimator is None else estimator)
    pairs = answers.pairs(found.responses, columns)
    return learn_errors(factor * found.errors[:, answers.index], pairs, level=level)


def _groups(score: FloatArray, is_different: BoolArray) -> IntArray:
    """Tied group of each model on each target, (n_models, n_targets)."""
    n_models = score.shape[0]
    first, second = model_pairs(n_models)
    found = [
        tied_groups(score[:, t], square(is_different[:, t], first, second, n_models)) for t in range(score.shape[1])
    ]
    return np.column_stack([group for _, group in found])


def _bootstrap(
    answers: Answers, *, level: float, n_samples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Bootstrap the raw differences; NaN where they are not asked for or would take too long."""
    first, second = model_pairs(answers.laid.responses.shape[0])
    if n_samples == 0 or first.shape[0] > MANY_BOOTSTRAPS:
        unknown = np.full((first.shape[0], answers.index.shape[0]), np.nan)
        return unknown, unknown
    return bootstrap_intervals(
        answers.laid.responses,
        first,
        second,
        weights=answers.laid.weights,
        scenario_index=answers.scenarios(),
        target_weights=answers.target_weights(),
        level=level,
        n_samples=n_samples,
        rng=rng,
    )


def _estimator(method: EstimationSpec | str) -> EstimationSpec | None:
    """Spec of the estimator behind a method, None for the raw difference alone."""
    if method == PAIRED:
        return None
    if isinstance(method, str) and method not in METHODS.kinds:
        raise ParameterError(METHODS.refusal(method, [PAIRED], purpose="comparison"))
    return METHODS.resolve(method)


def _estimates(
    bank: Bank, matrix: ResponseMatrix, selection: Selection | None, estimator: EstimationSpec
) -> FloatArray:
    """Estimate the scores; the warnings on the responses have been given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return estimate(bank, matrix, selection=selection, method=estimator).value
