"""The verb `estimate`: full-benchmark scores from some responses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.arguments import (
    GivenBank,
    GivenResponses,
    GivenSelection,
    as_bank,
    as_new_responses,
    as_whole_selection,
)
from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_one_of
from itembank.errors import DataError, DataWarning, remedy, shown, warn
from itembank.estimation.automatic import Chosen, choose_method, has_too_few, too_few
from itembank.estimation.checks import (
    check_covariates,
    check_headline,
    check_interval,
    check_item_model,
    warn_of_unequal_weights,
)
from itembank.estimation.covariates import explain_alone, explain_forecast, forecast_alone, forecast_scores
from itembank.estimation.design_based import as_if_drawn, check_design, is_by_design, scores_by_design
from itembank.estimation.estimand_names import ESTIMANDS, RUN, Estimand
from itembank.estimation.estimands import run_variance, widened
from itembank.estimation.estimated_scores import estimated_scores
from itembank.estimation.estimates import ScoreEstimates, checked
from itembank.estimation.estimator_specs import GPIRT, METHODS, Auto, EstimationSpec, IntervalKind, SampleMean, Stacked
from itembank.estimation.folds import folds
from itembank.estimation.forecast import Forecast
from itembank.estimation.linking_variance import linking_variance
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import known_items, observe
from itembank.estimation.point import Known
from itembank.estimation.point_methods import gp_irt_share
from itembank.estimation.published_errors import published_subset, selection_or_published
from itembank.estimation.scores import Scores
from itembank.estimation.typicality import Typicality
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix

MOST_PATTERNS = 8
"""Sets of answered items that get weights and errors of their own; other models get those of all items answered."""


@one_blas_thread()
def estimate(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    selection: GivenSelection | None = None,
    method: EstimationSpec | str = "auto",
    level: float = 0.95,
    interval: IntervalKind = "calibrated",
    estimand: Estimand = RUN,
    covariates: Sequence[str] = (),
    target: str = "",
    ignore_unknown: bool = False,
    progress: ProgressCallback = silent,
) -> ScoreEstimates:
    """Estimate what models would score on the full benchmark from some of their responses.

    Ability comes from all observed items of all scenarios (MAP, the bank's prior, responses made binary as in the
    calibration); scores are made of the raw responses. A scenario that was answered in full has its exact score
    by every method.

    'stacked' (and so 'auto') estimates the overall score in its own right and moves the scenario scores, each by what
    it is uncertain, so that they make it up (`reconciled`). 'ridge', which learns from the calibration models' scores,
    does not: its overall score need not be the scenarios' mean.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of the new models, over any items of the bank, in any order.
    selection : Selection or path, optional
        Use only these items, with their weights; others are left out. Of a later stage, the items of all stages up to
        there. Without it every response counts, as a random sample; of a bank that was published with the items to run,
        those.
    method : spec or str
        A name of `METHODS` in `itembank.estimation.estimator_specs`, or a spec with its choices. 'auto' takes what
        served the calibration models best (`explanation` says why): mostly 'stacked'; with few models the design-based
        estimate, or 'gp-irt' of items that were not drawn by chance.
    level : float
        Of the intervals.
    interval : {'calibrated', 'model-based', 'design'}
        'calibrated': as wide as the errors for calibration models left out in turn ask for (`calibrated_half_widths`);
        with fewer than ten of them whose full scores are known (`Bank.known_scores`) it is 'design' where the items
        were drawn by chance and the method is 'auto', or the bank was begun without an item model, else 'model-based':
        ``T +- z sqrt(V + (T - m)^2)`` from the item model alone (`score_posterior`). 'design': from how the items were
        drawn, valid also where the item model is wrong; it brings its own estimate (`design_based_estimates`) and needs
        items drawn by chance.
    estimand : {'run', 'expected'}
        Which score the interval is for. 'run': that of one full run on the bank's items. 'expected': the mean over
        repeated runs, for models that answer differently each time (`run_variance`; it needs repeated attempts). The
        estimate is the same, the interval takes in the chance of the run.
    covariates : sequence of column names
        What is known of models besides their answers, in the bank's model table and in that of `responses`: a date, a
        size, an organisation, other scores. A regression on these is weighed with the methods of 'stacked' where past
        models left out were estimated better so, else it changes nothing. A model that has not answered
        anything (`unanswered`) gets the forecast alone.
    ignore_unknown : bool
        Leave out items that the bank does not hold, with a `DataWarning`, instead of refusing them.
    target : str
        Score to estimate in place of the overall one: 'mean_win_rate', or an external score that the bank keeps
        (`itembank.banks.with_target`); or the id of an earlier set of items.
    progress : ProgressCallback
        The first estimate of a bank fits the item model anew without some models; later ones do not.

    Returns
    -------
    ScoreEstimates
        Intervals lie in [0, 1], and between what the score would be with all unseen items failed and all solved. Where
        items were linked to the bank (`add_items`), they contain the linking error.
        A `DataWarning` tells when items of the selection are missing.

    Raises
    ------
    DataError
        When an item is not in the bank, no item to be used was answered, design-based intervals are asked for items
        that were not drawn by chance, or the expected score where nobody attempted items repeatedly.
    ParameterError
        For another method, interval or estimand, or a level outside (0, 1).

    Examples
    --------
    >>> estimates = estimate(bank, responses, selection=selection)  # doctest: +SKIP
    >>> estimates.rows()[-1]["estimate"]  # doctest: +SKIP
    """
    spec = METHODS.resolve(method)
    check_interval(level, interval, spec)
    check_one_of("estimand", estimand, ESTIMANDS)
    check_covariates(covariates, spec, interval)
    bank = with_target(as_bank(bank), target) if target else as_bank(bank)
    check_item_model(bank, spec, interval)
    if bank.headline is not None:
        check_headline(bank, interval, estimand, covariates, progress)
    selection = selection_or_published(bank, as_whole_selection(selection))
    given = as_new_responses(bank, responses, selection)
    matrix = known_items(bank, given, selection, ignore_unknown=ignore_unknown)
    observations = observe(bank, matrix, selection, may_be_silent=bool(covariates))
    forecast = forecast_scores(bank, matrix.models, covariates, progress=progress) if covariates else None
    if isinstance(spec, SampleMean):
        warn_of_unequal_weights(bank)
    bank = _ranked_against_others(bank, matrix.model_ids)
    known = Known.of(bank, observations, forecast)
    if interval == "calibrated" and not bank.calibration.is_fitted and isinstance(spec, Auto):
        interval, selection = "design", as_if_drawn(bank, observations, selection)
    is_calibrated = interval == "calibrated" and _has_past_errors(bank, selection, spec, progress)
    has_nothing_better = interval == "calibrated" and not is_calibrated and isinstance(spec, Auto)
    if interval == "design":
        estimated = _by_design(known, matrix.model_ids, selection, level)
    elif has_nothing_better and has_too_few(bank) and is_by_design(known, selection):
        by_design = _by_design(known, matrix.model_ids, selection, level)
        estimated = replace(by_design, explanation=f"design-based, since {too_few(bank)}.")
    else:
        estimated = _by_pattern(known, selection, spec, level=level, is_calibrated=is_calibrated, progress=progress)
        of_links = linking_variance(bank.responses.items, bank.targets, observations.answered(bank.n_items))
        if of_links is not None:
            estimated = replace(estimated, scores=widened(estimated.scores, of_links, level=level))
    if estimand != RUN:
        variance = run_variance(bank, matrix, known.summary.abilities)
        estimated = replace(estimated, scores=widened(estimated.scores, variance, level=level))
    return _packed(known, matrix, estimated, level=level, estimand=estimand)


def _has_past_errors(bank: Bank, selection: Selection | None, spec: EstimationSpec, progress: ProgressCallback) -> bool:
    """Whether errors of past models left out are known, or can be found."""
    method = Stacked() if isinstance(spec, Auto) else spec
    return published_subset(bank, selection, method) is not None or bool(folds(bank, progress=progress))


@dataclass(frozen=True, slots=True)
class _Estimated:
    """Scores of all models, and how they were estimated."""

    scores: Scores
    typicality: Typicality
    method: str
    explanation: str
    interval_kind: str
    sample_share: FloatArray | None


def _ranked_against_others(bank: Bank, model_ids: Sequence[str]) -> Bank:
    """Take models that are estimated out of those that a win rate is against."""
    if bank.headline is None or not bank.headline.follows_answers:
        return bank
    rows = np.flatnonzero(bank.responses.models["model_id"].is_in(list(model_ids)).to_numpy())
    if not rows.size:
        return bank
    if rows.size == bank.n_models:
        raise DataError("the mean win rate needs a past model other than those estimated, got none.")
    ranked = replace(bank, headline=bank.headline.without(rows.tolist()))
    ranked.cache.share(bank.cache)
    return ranked


def _by_design(known: Known, model_ids: Sequence[str], selection: Selection | None, level: float) -> _Estimated:
    """Estimate from how the items were drawn; models without responses stay without estimate."""
    if selection is None:
        raise DataError(
            "design-based intervals need to know how the items were drawn: give the selection (--selection), made "
            "with method 'random' or 'stratified'."
        )
    check_design(known.bank, selection)
    scores = Scores.unknown(len(model_ids), len(known.bank.targets.names))
    answered = np.flatnonzero(~known.summary.is_silent)
    some = known.take(models=answered, columns=np.arange(known.observations.positions.size))
    scores.set_rows(
        answered, scores_by_design(some, [model_ids[row] for row in answered.tolist()], selection, level=level)
    )
    unknown = Typicality.unknown(len(model_ids))
    return _Estimated(scores, unknown, "design-based", "", "design", None)


def _by_pattern(
    known: Known,
    selection: Selection | None,
    spec: EstimationSpec,
    *,
    level: float,
    is_calibrated: bool,
    progress: ProgressCallback,
) -> _Estimated:
    """Estimate models that answered the same items together: the errors of a method depend on the items."""
    if known.forecast is not None and known.summary.is_silent.all():
        return _by_forecast(known, known.forecast, level)
    chosen = Chosen(spec, "")
    if isinstance(spec, Auto):
        chosen = choose_method(known.bank, known.observations, selection, progress=progress)
    explanation = chosen.explanation
    scores = Scores.unknown(known.observations.responses.shape[0], len(known.bank.targets.names))
    typicality = Typicality.unknown(scores.value.shape[0])
    for rows, columns in _patterns(known):
        estimated, of_answers = estimated_scores(
            known.take(models=rows, columns=columns),
            selection,
            chosen.spec,  # type: ignore[arg-type]
            level=level,
            is_calibrated=is_calibrated,
            progress=progress,
        )
        scores.set_rows(rows, estimated)
        typicality.set_rows(rows, of_answers)
    if known.forecast is not None and isinstance(chosen.spec, Stacked):
        members = try_methods(known.bank, known.observations, selection, chosen.spec.members, progress=progress)
        explanation += explain_forecast(members, known.forecast, chosen.spec)
        silent_rows = np.flatnonzero(known.summary.is_silent)
        scores.set_rows(silent_rows, forecast_alone(known.bank, known.forecast.take(silent_rows), level=level))
    sample_share = gp_irt_share(known, chosen.spec) if isinstance(chosen.spec, GPIRT) else None
    kind = "calibrated" if is_calibrated else "model-based"
    return _Estimated(scores, typicality, METHODS.label(chosen.spec), explanation, kind, sample_share)


def _by_forecast(known: Known, forecast: Forecast, level: float) -> _Estimated:
    """Estimate models that have not answered anything by what else is known of them."""
    scores = forecast_alone(known.bank, forecast, level=level)
    unknown, explanation = Typicality.unknown(scores.value.shape[0]), explain_alone(known.bank, forecast)
    return _Estimated(scores, unknown, "covariates", explanation, "calibrated", None)


def _patterns(known: Known) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the models that answered the same items, with their columns; then all other models with all columns."""
    observed = ~np.isnan(known.observations.responses)
    answered = np.flatnonzero(~known.summary.is_silent)
    everything = np.arange(observed.shape[1])
    patterns, which, counts = np.unique(observed[answered], axis=0, return_inverse=True, return_counts=True)
    if patterns.shape[0] > MOST_PATTERNS:
        common = np.argsort(-counts, kind="stable")[: MOST_PATTERNS - 1]
    else:
        common = np.arange(patterns.shape[0])
    which = which.ravel()
    for pattern in common:
        yield answered[which == pattern], np.flatnonzero(patterns[pattern])
    others = answered[~np.isin(which, common)]
    if others.size:
        yield others, everything


def _packed(
    known: Known, responses: ResponseMatrix, estimated: _Estimated, *, level: float, estimand: Estimand
) -> ScoreEstimates:
    """Put the result together."""
    bank, summary = known.bank, known.summary
    sizes = bank.targets.scenario_sizes
    is_owed = np.pad(summary.n_observed > 0, ((0, 0), (0, 1)))  # the overall score may lack a scenario
    estimates = ScoreEstimates(
        model_ids=tuple(responses.model_ids),
        targets=bank.targets.names,
        scores=estimated.scores,
        n_items=np.column_stack([summary.n_observed, summary.n_observed.sum(axis=1)]),
        n_total=np.array([*sizes, sizes.sum()]),
        n_missing=known.observations.n_missing,
        level=level,
        method=estimated.method,
        explanation=estimated.explanation,
        bank_id=bank.bank_id,
        target_id=bank.target_id,
        interval_kind=estimated.interval_kind,
        estimand=estimand,
        sample_share=estimated.sample_share,
        abilities=summary.abilities,
        ability_covariance=summary.ability_covariance,
        typicality=estimated.typicality,
    )
    warn_of_shift(estimates, bank.n_compared_models)
    return checked(estimates, is_owed)


def warn_of_shift(estimates: ScoreEstimates, n_past: int) -> None:
    """Warn where the new models as a group answered unlike the calibration models."""
    if estimates.typicality.is_shift(n_past):
        flagged = estimates.flagged_models
        how = remedy("interval='design'", "--interval design")
        warn(
            f"{len(flagged)} of {estimates.n_models} models answered unlike the bank's models, where one in ten is "
            f"expected: {shown(flagged)}. Estimates of such models may all be off in one direction, which no interval "
            f"shows. Draw items at random and take {how}, or calibrate again with models like these.",
            DataWarning,
        )
