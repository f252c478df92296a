"""The verb `estimate`: full-benchmark scores from some responses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast, get_args

import numpy as np

from itembank.bank.arguments import GivenBank, GivenSelection, NewResponses, as_bank, as_whole_selection
from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction, check_one_of
from itembank.errors import DataError, DataWarning, ParameterError, warn, warned_once
from itembank.estimation.calibrated_scores import with_intervals
from itembank.estimation.design_based import as_if_drawn, check_design, is_by_design, scores_by_design
from itembank.estimation.estimands import linking_variance, run_variance, widened
from itembank.estimation.estimates import ScoreEstimates, Scores, Typicality, checked
from itembank.estimation.estimator_specs import (
    GPIRT,
    METHODS,
    RUN,
    Auto,
    Estimand,
    EstimationSpec,
    IntervalChoice,
    IntervalKind,
    PointSpec,
    SampleMean,
    Stacked,
    check_estimand,
)
from itembank.estimation.folds import folds
from itembank.estimation.headlines import learnt_by
from itembank.estimation.if_answered import with_lost
from itembank.estimation.method_trials import choose_method, too_few, try_methods
from itembank.estimation.notes import WARNING, notes_on_estimates
from itembank.estimation.observations import known_items, observe, usual_attempts
from itembank.estimation.own_means import OwnMeans, own_means
from itembank.estimation.parents import ByParents, by_parents, check_parent, said_of_parents
from itembank.estimation.past_errors import Expectations, Past, all_answers, published_past, published_subset
from itembank.estimation.point_methods import Known, gp_irt_share, learnt_score, point_scores, stacked_scores
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.error_kinds import Errors
from itembank.responses.model_features import model_dates, months_between
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Note

MOST_KEPT = 8
"""Sets of answered items of a file whose trials on past models are kept; those of others are made anew each time."""


@one_blas_thread()
def estimate(
    bank: GivenBank,
    responses: NewResponses,
    *,
    selection: GivenSelection | None = None,
    method: EstimationSpec | str = "auto",
    level: float = 0.95,
    interval: IntervalChoice = "auto",
    estimand: Estimand = RUN,
    target: str = "",
    parent: str = "",
    ignore_unknown: bool = False,
    errors: Errors | None = None,
    progress: ProgressCallback = silent,
) -> ScoreEstimates:
    """Estimate what models would score on the full benchmark from some of their responses.

    Ability comes from all observed items of all scenarios (MAP, the bank's prior, responses made binary as in the
    calibration); scores are made of the raw responses. A scenario that was answered in full has its exact score
    by every method.

    'stacked' (and so 'auto') estimates the overall score in its own right and moves the scenario scores, each by what
    it is uncertain, so that they make it up (`reconciled`). 'ridge', which learns from the past models' scores,
    does not: its overall score need not be the scenarios' mean.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths, table, mapping or array
        Of the new models, over any items of the bank, in any order: a matrix, files, or a table (polars, pandas or
        pyarrow). Of one model also ``{item_id: response}``, or its responses in the order of the selection.
    selection : Selection or path, optional
        Use only these items, with their weights; others are left out. Of a later stage, the items of all stages up to
        there. Without it every response counts, as a random sample; of a bank that was published with the items to run,
        those.
    method : spec or str
        A name of `METHODS` in `itembank.estimation.estimator_specs`, or a spec with its choices. 'auto' is the
        design-based estimate of items that were drawn by chance; of others 'stacked', or with few past models
        'gp-irt' (`explanation` says why).
    level : float
        Of the intervals.
    interval : {'auto', 'calibrated', 'model-based', 'design'}
        'auto': 'design' where the items were drawn by chance and neither a method nor a parent is named, or the bank
        was begun without an item model; else 'calibrated'. 'calibrated': as wide as cross-validated errors on past
        models ask for (`calibrated_half_widths`); with fewer than ten of them whose full scores are known
        (`Bank.known_scores`) it is 'model-based': ``T +- z sqrt(V + (T - m)^2)`` from the item model alone
        (`score_posterior`). 'design': from how the items were drawn, valid even if the item model is wrong; it brings
        its own estimate (`design_based_estimates`) and needs items drawn by chance.
    estimand : {'run', 'repeated'}
        Which score the interval is for. 'run': that of one full run on the bank's items. 'repeated': the mean over
        repeated runs, for models that answer differently each time (`run_variance`; it needs repeated attempts). The
        estimate is the same, the interval takes in the chance of the run.
    ignore_unknown : bool
        Leave out items that the bank does not hold, with a `DataWarning`, instead of refusing them.
    target : str
        Score to estimate in place of the overall one: 'mean_win_rate', or an external score that the bank keeps
        (`itembank.banks.with_target`); or the id of an earlier set of items.
    parent : str
        Id of a past model, known in full, that the new ones descend from: a checkpoint before, what was quantised,
        tuned or merged. Scores are then the parent's and what the answers differ by, as far as that served past models
        that were as like another one, whose errors give the interval (`by_parents`). 'auto' finds the past models that
        answer most alike; `explanation` says which, and what it is worth.
    errors : {'missing', 'wrong', 'bounds'}, optional
        What lost answers count as (`ResponseMatrix.lost`): nothing; wrong answers; or nothing in the estimate, with an
        interval that holds whether they would have been right or wrong. As the responses have it unless told
        otherwise. The result says how many there were, and what the estimate is if all are wrong, and if all are right.
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
        that were not drawn by chance, or the score over repeated runs where nobody attempted items repeatedly.
    ParameterError
        For another method, interval or estimand, or a level outside (0, 1).

    Examples
    --------
    >>> estimates = estimate(bank, responses, selection=selection)  # doctest: +SKIP
    >>> estimates = estimate(bank, {"q7": 1, "q12": 0.5, "q31": 0})  # doctest: +SKIP
    >>> estimates.rows()[-1]["estimate"]  # doctest: +SKIP
    """
    spec = METHODS.resolve(method)
    check_fraction("level", level)
    check_one_of("interval", interval, get_args(IntervalChoice))
    check_estimand(estimand, Estimand)
    _check_choices(spec, interval, parent)
    bank = with_target(as_bank(bank), target) if target else as_bank(bank)
    with warned_once() as told:
        found = _estimate(
            *(bank, responses, as_whole_selection(selection), spec, interval, level, estimand, parent),
            ignore_unknown=ignore_unknown,
            errors=errors,
            progress=progress,
        )
    return replace(found, notes=(*found.notes, *(Note(WARNING, text) for text in told)))


def _estimate(  # noqa: PLR0917 (the choices of the verb, checked)
    bank: Bank,
    responses: NewResponses,
    selection: Selection | None,
    spec: EstimationSpec,
    interval: IntervalChoice,
    level: float,
    estimand: Estimand,
    parent: str,
    *,
    ignore_unknown: bool,
    errors: Errors | None = None,
    progress: ProgressCallback,
) -> ScoreEstimates:
    """Estimate, with all notes but warnings."""
    asked = selection
    if not isinstance(spec, Auto):
        bank.check_item_model(f"Method {METHODS.name_of(spec)!r} needs")
    if interval == "model-based":
        bank.check_item_model("A model-based interval needs")
    if bank.headline is not None:
        check_headline(bank, interval, estimand, progress)
    whole, given, selection = all_answers(bank, responses, selection, errors)
    matrix = known_items(bank, given, selection, ignore_unknown=ignore_unknown)
    check_parent(bank, parent, selection, matrix.model_ids)
    observations = observe(bank, matrix, selection)
    if isinstance(spec, SampleMean):
        _warn_of_unequal_weights(bank)
    known = Known.of(_ranked_against_others(bank, matrix.model_ids), observations)
    kind: IntervalKind
    if interval in {"auto", "calibrated"}:
        may_be_drawn = interval == "auto" and not parent and bank.headline is None
        kind, selection = _best_interval(known, selection, spec, progress, may_be_drawn=may_be_drawn)
    else:
        kind = cast("IntervalKind", interval)
    # nothing is missed where items were drawn, or another kind was asked for
    wanted = kind if kind in {"design", interval} else "calibrated"
    estimates = _unknown(known, matrix, level=level, interval=kind, estimand=estimand, parent=parent)
    if kind == "design":
        estimates = _by_design(estimates, known, selection)
    else:
        estimates = _by_answers(estimates, known, selection, spec, parent, progress=progress)
    estimates.typicality.months_ahead[:] = _months_ahead(bank, matrix)
    if kind != "design":
        of_links = linking_variance(bank.responses.items, bank.targets, observations.answered(bank.n_items))
        estimates = estimates if of_links is None else _widened(estimates, of_links)
    if estimand != RUN:
        estimates = _widened(estimates, run_variance(bank, matrix, known.summary.abilities))
    own = _own_means(estimates, bank, whole, is_score=asked is None and estimand == RUN)
    random = observations.is_random
    notes = notes_on_estimates(bank, matrix, estimates, own, wanted=wanted, is_random=random)
    is_owed = np.pad(known.summary.n_observed > 0, ((0, 0), (0, 1)))  # the overall score may lack a scenario
    return with_lost(
        checked(replace(estimates, notes=notes), is_owed),
        whole,
        matrix.item_ids if selection is None else selection.item_ids,
        again=lambda counted: _estimate(
            *(bank, counted, asked, spec, interval, level, estimand, parent),
            ignore_unknown=ignore_unknown,
            progress=progress,
        ),
    )


def _own_means(estimates: ScoreEstimates, bank: Bank, responses: ResponseMatrix, *, is_score: bool) -> OwnMeans | None:
    """Take the means of what models answered; where they are the score, and answered all, write them in place."""
    if bank.headline is not None:
        return None
    own = own_means(bank, responses, level=estimates.level)
    rows = np.flatnonzero(own.is_complete & ~own.is_pooled & ~estimates.is_exact & is_score)
    estimates.scores.set_rows(rows, own.scores.take(rows))
    estimates.n_items[rows] = estimates.n_total
    return own


def _months_ahead(bank: Bank, responses: ResponseMatrix) -> FloatArray:
    """Months that models are newer than the newest past one, NaN where unknown, (n_models,)."""
    newest, dates = bank.newest, model_dates(responses.models)
    if newest is None or dates is None:
        return np.full(responses.n_models, np.nan)
    return np.array([np.nan if day is None else months_between(newest, day) for day in dates.to_list()])


def _check_choices(spec: EstimationSpec, interval: str, parent: str) -> None:
    """Refuse a method beside design-based intervals, and what the method or the interval does not take."""
    if interval == "design" and not isinstance(spec, Auto):
        raise ParameterError(
            f"design-based intervals bring their own estimate, got method {METHODS.name_of(spec)!r}. Leave the method "
            "at 'auto', or take another interval."
        )
    if parent and not (isinstance(spec, Auto | Stacked) and interval in {"auto", "calibrated"}):
        raise ParameterError(
            "a parent is weighed with 'stacked' and has calibrated intervals, got method "
            f"{METHODS.name_of(spec)!r} and interval {interval!r}. Leave both as they are, or the parent out."
        )


def check_headline(bank: Bank, interval: str, estimand: str, progress: ProgressCallback) -> None:
    """Refuse what a headline score does not go with: it rests on past models' errors alone."""
    name = bank.targets.last
    interval = "calibrated" if interval == "auto" else interval
    for word, value, only in (("interval", interval, "calibrated"), ("estimand", estimand, RUN)):
        if value != only:
            raise ParameterError(f"the score {name!r} goes with {word} {only!r} alone, got {value!r}. Leave it out.")
    if not folds(bank, progress=progress):
        raise DataError(
            f"the score {name!r} needs more past models for cross-validation, since their errors give its "
            f"intervals: {too_few(bank)}. Add models to the bank."
        )


def _warn_of_unequal_weights(bank: Bank) -> None:
    """Warn where the plain mean of a sample, which estimates the micro score, is asked for another."""
    sizes = bank.targets.scenario_sizes[bank.targets.scenario_index]
    if not np.allclose(bank.targets.weights * sizes, 1.0):
        warn(
            "the plain mean estimates scores in which all items weigh the same, but those of this bank do not "
            f"(within = {bank.targets.within!r}): take method 'weighted'.",
            DataWarning,
        )


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


def _best_interval(
    known: Known,
    selection: Selection | None,
    spec: EstimationSpec,
    progress: ProgressCallback,
    *,
    may_be_drawn: bool,
) -> tuple[IntervalKind, Selection | None]:
    """Return what intervals rest on where no other ones are asked for, and the selection they rest on."""
    bank, is_auto = known.bank, isinstance(spec, Auto)
    if is_auto and not bank.calibration.is_fitted:
        return "design", as_if_drawn(bank, known.observations, selection)
    if is_auto and may_be_drawn and is_by_design(known, selection):
        return "design", selection
    method = Stacked() if isinstance(spec, Auto) else spec
    if published_subset(bank, selection, method) is not None or folds(bank, progress=progress):
        return "calibrated", selection
    return "model-based", selection


def _unknown(
    known: Known, responses: ResponseMatrix, *, level: float, interval: IntervalKind, estimand: Estimand, parent: str
) -> ScoreEstimates:
    """Return what is known of the estimates before any is made; the scores are filled in afterwards."""
    bank, summary, sizes = known.bank, known.summary, known.bank.targets.scenario_sizes
    return ScoreEstimates(
        model_ids=tuple(responses.model_ids),
        targets=bank.targets.names,
        scores=Scores.unknown(responses.n_models, len(bank.targets.names)),
        n_items=np.column_stack([summary.n_observed, summary.n_observed.sum(axis=1)]),
        n_total=np.array([*sizes, sizes.sum()]),
        n_missing=known.observations.n_missing,
        level=level,
        method="",
        explanation=said_of_parents([]) if parent else "",
        bank_id=bank.bank_id,
        target_id=bank.target_id,
        interval_kind=interval,
        estimand=estimand,
        sample_share=None,
        abilities=summary.abilities,
        ability_covariance=summary.ability_covariance,
        typicality=Typicality.unknown(responses.n_models),
        overall_is=bank.targets.overall_is,
        parents=("",) * responses.n_models if parent else (),
    )


def _by_design(estimates: ScoreEstimates, known: Known, selection: Selection | None) -> ScoreEstimates:
    """Estimate from how the items were drawn; models without responses stay without estimate."""
    if selection is None:
        raise DataError(
            "design-based intervals need to know how the items were drawn: give the selection (--selection), made "
            "with method 'drawn', 'random' or 'stratified'."
        )
    check_design(known.bank, selection)
    answered = np.flatnonzero(~known.summary.is_silent)
    some = known.take(models=answered, columns=np.arange(known.observations.positions.size))
    model_ids = [estimates.model_ids[row] for row in answered.tolist()]
    estimates.scores.set_rows(answered, scores_by_design(some, model_ids, selection, level=estimates.level))
    return replace(estimates, method="design-based")


def _by_answers(
    estimates: ScoreEstimates,
    known: Known,
    selection: Selection | None,
    spec: EstimationSpec,
    parent: str,
    *,
    progress: ProgressCallback,
) -> ScoreEstimates:
    """Estimate by a method, models that answered the same items together: its errors depend on the items."""
    bank, explanation, error = known.bank, "", np.nan
    if isinstance(spec, Auto):
        spec, explanation, error = choose_method(bank, known.observations, selection, progress=progress)
    parents, words, ids, degrees = [""] * len(estimates.model_ids), [], estimates.model_ids, np.inf
    for number, rows in enumerate(groups := _same_items(known)):
        columns = np.flatnonzero(~np.isnan(known.observations.responses[rows[0]]))
        group = known.take(models=rows, columns=columns)
        if number >= MOST_KEPT:
            progress("estimating models that were each asked other items", number / len(groups))
            # A group finds what this bank does, and keeps what it finds itself.
            copy = replace(bank)
            copy.cache.memory.update(bank.cache.memory)
            group = replace(group, bank=copy)
        scores, typicality, kin, of_past = _of_group(
            *(group, selection, spec, parent, [ids[row] for row in rows.tolist()]),
            level=estimates.level,
            interval=estimates.interval_kind,
            progress=progress,
        )
        estimates.scores.set_rows(rows, scores)
        estimates.typicality.set_rows(rows, typicality)
        degrees = min(degrees, of_past)
        if kin is not None:
            words += kin.words
            for row in np.flatnonzero(kin.is_used).tolist():
                parents[rows[row]] = kin.parents[row]
    if np.isnan(error) and groups and estimates.interval_kind == "calibrated":
        most = known.take(
            models=groups[0], columns=np.flatnonzero(~np.isnan(known.observations.responses[groups[0][0]]))
        )
        past = _past(most, selection, spec, needed=True, progress=progress)
        error = np.nan if past is None else float(mean_where_known(np.abs(past.estimates.error[:, -1])))
    if parent:
        explanation = (explanation or f"{METHODS.label(spec)}.") + said_of_parents(words)
        estimates = replace(estimates, parents=tuple(parents))
    sample_share = gp_irt_share(known, spec) if isinstance(spec, GPIRT) else None
    return replace(
        estimates,
        method=METHODS.label(spec),
        explanation=explanation,
        sample_share=sample_share,
        cross_validated_error=error,
        degrees=degrees,
    )


def _same_items(known: Known) -> list[IntArray]:
    """Rows of the models that answered the same items as often, the largest groups first.

    Errors of past models are those of estimates from just these items, and from as many attempts at each. So no
    model's estimate depends on what other models of its file answered.
    """
    observations = known.observations
    answered = np.flatnonzero(~known.summary.is_silent)
    observed = ~np.isnan(observations.responses[answered])
    how_often = np.ones((answered.size, 1))
    if observations.n_trials is not None:
        pairs = zip(observations.n_trials[answered], observations.responses[answered], strict=True)
        how_often[:, 0] = [usual_attempts(trials, responses) for trials, responses in pairs]
    _, which, counts = np.unique(
        np.column_stack([observed, how_often]), axis=0, return_inverse=True, return_counts=True
    )
    which = which.ravel()
    return [answered[which == group] for group in np.argsort(-counts, kind="stable")]


def _of_group(
    known: Known,
    selection: Selection | None,
    spec: PointSpec | Stacked,
    parent: str,
    model_ids: Sequence[str],
    *,
    level: float,
    interval: str,
    progress: ProgressCallback,
) -> tuple[Scores, Typicality, ByParents | None, float]:
    """Estimate models that answered the same items, say how typical the answers of each are, and who is like them.

    And how many degrees of freedom their intervals have.
    """
    bank, summary = known.bank, known.summary
    past = _past(known, selection, spec, needed=interval == "calibrated", progress=progress)
    if isinstance(spec, Stacked):
        values = np.stack([point_scores(known, member) for member in spec.members])
        weights = None if past is None else past.weights
        if weights is None:  # too few models to learn weights from
            weights = np.full((len(spec.members), values.shape[2]), 1.0 / len(spec.members))
        value = stacked_scores(bank.targets, summary, values, weights)
    else:
        value = point_scores(known, spec)
    if interval != "calibrated" or past is None:
        plain = with_intervals(bank.targets, summary, value, level=level)
        return plain, Typicality.unknown(value.shape[0]), None, np.inf
    learner = None if bank.headline is None else learnt_by(bank.headline, spec.members)
    learnt = None
    if bank.headline is not None and learner is not None:
        learnt = learnt_score(known, learner, bank.headline.past)
    expected = Expectations.of(known)
    typicality = past.typicality_of(expected.misfit[:, -1])
    value, scale = past.read(expected, value, learnt)
    scores = with_intervals(
        *(bank.targets, summary, value),
        past=past.estimates,
        scale=scale,
        level=level,
        headline=bank.headline,
    )
    if not parent:
        return scores, typicality, None, past.degrees
    kin = by_parents(
        known,
        model_ids,
        selection,
        parent=parent,
        past=past,
        value=value,
        scale=scale,
        usual=scores,
        level=level,
        progress=progress,
    )
    if kin is not None:
        scores.set_rows(np.flatnonzero(kin.is_used), kin.scores.take(np.flatnonzero(kin.is_used)))
    return scores, typicality, kin, past.degrees


def _past(
    known: Known, selection: Selection | None, spec: PointSpec | Stacked, *, needed: bool, progress: ProgressCallback
) -> Past | None:
    """Say how the method did in cross-validation, where that is needed and can be known."""
    kept = published_subset(known.bank, selection, spec)
    if kept is not None:
        return published_past(kept)
    if not (needed or isinstance(spec, Stacked)) or not folds(known.bank, progress=progress):
        return None
    members = try_methods(known.bank, known.observations, selection, spec.members, progress=progress)
    return members.past(spec)


def _widened(estimates: ScoreEstimates, variance: FloatArray) -> ScoreEstimates:
    """Add a variance (n_models, n_targets) of independent chance."""
    return replace(estimates, scores=widened(estimates.scores, variance, level=estimates.level))
