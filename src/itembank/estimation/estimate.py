"""The verb `estimate`: full-benchmark scores from some responses."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple, get_args

import numpy as np

from itembank.bank.arguments import GivenBank, GivenSelection, NewResponses, as_bank, as_whole_selection
from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction, check_one_of
from itembank.errors import OF_LEVEL, DataError, DataWarning, ParameterError, says_instead, warn, warned_once
from itembank.estimation.asked import Asked, all_answers, known_items, tell_of_strangers
from itembank.estimation.calibrated_scores import with_intervals
from itembank.estimation.design_based import judged_by_design
from itembank.estimation.estimands import linking_variance, run_variance, widened
from itembank.estimation.estimates import ScoreEstimates, Scores, Typicality, checked, placed
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
from itembank.estimation.if_answered import with_lost
from itembank.estimation.method_trials import Chosen, choose_method, past_of, too_few
from itembank.estimation.notes import WARNING, notes_on_estimates
from itembank.estimation.observations import attempts_of
from itembank.estimation.own_means import own_means
from itembank.estimation.parents import by_parents, check_parent, said_of_parents
from itembank.estimation.point_methods import Known, estimated_by, gp_irt_share, learnt_headline
from itembank.estimation.trials import Expectations
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.error_kinds import Errors
from itembank.responses.model_features import model_dates, months_between
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Note

MOST_KEPT = 8
"""Sets of answered items of a file whose trials on past models are kept; those of others are made anew each time."""


@says_instead(**OF_LEVEL)
@one_blas_thread()
def estimate(
    bank: GivenBank,
    responses: NewResponses,
    selection: GivenSelection | None = None,
    *,
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
    how = How(METHODS.resolve(method), interval, level, estimand, parent)
    bank = with_target(as_bank(bank), target) if target else as_bank(bank)
    with warned_once() as told:
        found = _estimate(
            *(bank, responses, as_whole_selection(selection), how),
            ignore_unknown=ignore_unknown,
            errors=errors,
            progress=progress,
        )
    return replace(found, notes=(*found.notes, *(Note(WARNING, text) for text in told)))


@dataclass(frozen=True, slots=True)
class How:
    """How scores are to be estimated, as `estimate` is asked."""

    method: EstimationSpec
    interval: IntervalChoice
    level: float
    estimand: Estimand
    parent: str

    def __post_init__(self) -> None:
        """Refuse what is no choice, and choices that do not go together."""
        check_fraction("level", self.level)
        check_one_of("interval", self.interval, get_args(IntervalChoice))
        check_estimand(self.estimand, Estimand)
        is_auto, name = isinstance(self.method, Auto), METHODS.name_of(self.method)
        if self.interval == "design" and not is_auto:
            raise ParameterError(
                f"design-based intervals bring their own estimate, got method {name!r}. Leave the method at 'auto', or "
                "take another interval."
            )
        is_usual = isinstance(self.method, Auto | Stacked) and self.interval in {"auto", "calibrated"}
        if self.parent and not is_usual:
            raise ParameterError(
                f"a parent is weighed with 'stacked' and has calibrated intervals, got method {name!r} and interval "
                f"{self.interval!r}. Leave both as they are, or the parent out."
            )

    def check(self, bank: Bank, progress: ProgressCallback) -> None:
        """Refuse what a bank cannot do."""
        if not isinstance(self.method, Auto):
            bank.check_item_model(f"Method {METHODS.name_of(self.method)!r} needs")
        if self.interval == "model-based":
            bank.check_item_model("A model-based interval needs")
        if bank.headline is not None:
            check_headline(bank, self.interval, self.estimand, progress)

    def interval_of(self, asked: Asked, progress: ProgressCallback) -> IntervalKind:
        """Say what intervals rest on."""
        bank, is_auto = asked.bank, isinstance(self.method, Auto)
        if self.interval not in {"auto", "calibrated"}:
            return self.interval  # type: ignore[return-value]  # one of the kinds
        may_be_drawn = self.interval == "auto" and not self.parent and bank.headline is None
        if is_auto and (not bank.calibration.is_fitted or (may_be_drawn and asked.is_drawn)):
            return "design"
        spec = Stacked() if isinstance(self.method, Auto) else self.method
        can_be_tried = asked.kept_of(spec) is not None or bool(folds(bank, progress=progress))
        return "calibrated" if can_be_tried else "model-based"


def _estimate(
    bank: Bank,
    responses: NewResponses,
    selection: Selection | None,
    how: How,
    *,
    ignore_unknown: bool,
    errors: Errors | None = None,
    progress: ProgressCallback,
) -> ScoreEstimates:
    """Ask, predict, correct by the draw or by past models, put an interval on it, and pack; all notes but warnings."""
    how.check(bank, progress)
    whole, given, chosen = all_answers(bank, responses, selection, errors)
    if selection is None and chosen is not None:
        tell_of_strangers(bank, whole)
    matrix = known_items(bank, given, chosen, ignore_unknown=ignore_unknown)
    asked = Asked.of(_ranked_against_others(bank, matrix.model_ids), matrix, chosen)
    check_parent(asked, how.parent, matrix.model_ids)
    if isinstance(how.method, SampleMean):
        _warn_of_unequal_weights(bank)
    kind = how.interval_of(asked, progress)
    if kind == "design" and how.interval != "design":
        asked = asked.as_if_drawn().without_few(matrix.model_ids)
    known = Known.of(asked)
    if kind == "design":
        made = _by_draw(known, matrix.model_ids, how.level)
    else:
        made = _by_answers(known, matrix.model_ids, how, kind, progress)
        of_links = linking_variance(bank.responses.items, bank.targets, asked.observations.answered(bank.n_items))
        made = made if of_links is None else made.widened(of_links, how.level)
    if how.estimand != RUN:
        made = made.widened(run_variance(bank, matrix, known.summary.abilities), how.level)
    estimates = _packed(known, matrix, made, how, kind)
    own = None if bank.headline is not None else own_means(bank, whole, level=how.level)
    if own is not None and selection is None and how.estimand == RUN:  # the mean of all answers is the score itself
        is_whole = own.is_complete & ~own.is_pooled & ~estimates.is_exact
        n_items = np.where(is_whole[:, None], estimates.n_total, estimates.n_items)
        estimates = replace(estimates, scores=made.scores.where(is_whole, own.scores), n_items=n_items)
    # nothing is missed where items were drawn, or another kind was asked for
    wanted = kind if kind in {"design", how.interval} else "calibrated"
    ids = None if chosen is None else chosen.item_ids
    notes = notes_on_estimates(bank, matrix, estimates, own, wanted=wanted, answers=asked.observations, chosen=ids)
    is_owed = np.pad(known.summary.n_observed > 0, ((0, 0), (0, 1)))  # the overall score may lack a scenario
    return with_lost(
        checked(replace(estimates, notes=notes), is_owed),
        whole,
        ids or matrix.item_ids,
        again=lambda counted: _estimate(bank, counted, selection, how, ignore_unknown=True, progress=progress),
    )


class _Made(NamedTuple):
    """Scores of n_models models, and how they were made."""

    scores: Scores
    typicality: Typicality
    method: str
    explanation: str = ""
    error: float = np.nan  # Cross-validated mean absolute error of the last score
    degrees: float = np.inf
    sample_share: FloatArray | None = None
    parents: tuple[str, ...] = ()
    by_item_model: tuple[str, ...] = ()

    def widened(self, variance: FloatArray, level: float) -> "_Made":
        """Add a variance (n_models, n_targets) of independent chance."""
        return self._replace(scores=widened(self.scores, variance, level=level))


def _packed(known: Known, responses: ResponseMatrix, made: _Made, how: How, kind: IntervalKind) -> ScoreEstimates:
    """Put scores, what they rest on and what was asked together."""
    bank, summary, targets = known.bank, known.summary, known.bank.targets
    answers = known.observations.responses
    return ScoreEstimates(
        model_ids=tuple(responses.model_ids),
        targets=targets.names,
        scores=made.scores,
        n_items=np.column_stack([summary.n_observed, summary.n_observed.sum(axis=1)]),
        n_total=np.array([*targets.scenario_sizes, targets.scenario_sizes.sum()]),
        n_missing=known.observations.n_missing,
        level=how.level,
        method=made.method,
        explanation=made.explanation,
        bank_id=bank.bank_id,
        target_id=bank.target_id,
        interval_kind=kind,
        estimand=how.estimand,
        sample_share=made.sample_share,
        abilities=summary.abilities,
        ability_covariance=summary.ability_covariance,
        typicality=made.typicality._replace(months_ahead=_months_ahead(bank, responses)),
        parents=made.parents,
        cross_validated_error=made.error,
        degrees=made.degrees,
        overall_is=targets.overall_is,
        is_graded=bool(np.any((answers > 0.0) & (answers < 1.0))),
        by_item_model=made.by_item_model,
    )


def _by_draw(known: Known, model_ids: Sequence[str], level: float) -> _Made:
    """Estimate from how the items were drawn; models without responses stay without estimate."""
    n_models, columns = len(model_ids), np.arange(known.observations.positions.size)
    rows = np.flatnonzero(~known.summary.is_silent)
    some = known.take(models=rows, columns=columns)
    some.asked.check_drawn([model_ids[row] for row in rows.tolist()])
    scores = placed([(rows, judged_by_design(some).scores(level))], n_models)
    return _Made(scores, Typicality.unknown(n_models), "design-based")


def _by_answers(
    known: Known, model_ids: Sequence[str], how: How, kind: IntervalKind, progress: ProgressCallback
) -> _Made:
    """Estimate by a method, models that answered the same items together: its errors depend on the items."""
    cache = known.bank.cache
    chosen = Chosen(how.method, "") if not isinstance(how.method, Auto) else choose_method(known.asked, progress)
    groups, found = _same_items(known), []
    for number, rows in enumerate(groups):
        group = known.take(models=rows, columns=np.flatnonzero(~np.isnan(known.observations.responses[rows[0]])))
        ids, is_kept = [model_ids[row] for row in rows.tolist()], number < MOST_KEPT
        if not is_kept:
            progress("estimating models that were each asked other items", number / len(groups))
        with nullcontext() if is_kept else cache.forgetting():
            found.append(_of_group(group, ids, chosen.spec, how, is_calibrated=kind == "calibrated", progress=progress))
    made, words = [one for one, _ in found], [text for _, texts in found for text in texts]
    n_models, explanation = len(model_ids), chosen.explanation
    parents: dict[int, str] = {}
    for rows, one in zip(groups, made, strict=True):
        parents |= zip(rows.tolist(), one.parents, strict=False)  # that of a group may be none at all
    if how.parent:
        explanation = (explanation or f"{made[0].method}.") + said_of_parents(words)
    return _Made(
        placed([(rows, one.scores) for rows, one in zip(groups, made, strict=True)], n_models),
        placed([(rows, one.typicality) for rows, one in zip(groups, made, strict=True)], n_models),
        made[0].method,
        explanation,
        made[0].error if np.isnan(chosen.error) else chosen.error,
        min(one.degrees for one in made),
        gp_irt_share(known, chosen.spec) if isinstance(chosen.spec, GPIRT) else None,
        tuple(parents.get(row, "") for row in range(n_models)) if how.parent else (),
        tuple(name for name in known.bank.targets.names if any(name in one.by_item_model for one in made)),
    )


def _of_group(
    known: Known,
    model_ids: Sequence[str],
    spec: PointSpec | Stacked,
    how: How,
    *,
    is_calibrated: bool,
    progress: ProgressCallback,
) -> tuple[_Made, list[str]]:
    """Estimate models that answered the same items, say how typical each one's answers are, and who is like them."""
    bank, summary = known.bank, known.summary
    past = past_of(known.asked, spec, progress=progress) if is_calibrated or isinstance(spec, Stacked) else None
    value = estimated_by(known, spec, None if past is None else past.weights)
    if past is None or not is_calibrated:
        scores = with_intervals(bank.targets, summary, value, level=how.level)
        return _Made(scores, Typicality.unknown(len(model_ids)), METHODS.label(spec)), []
    expected = Expectations.of(known)
    value, scale = past.read(value, expected.sizes(value), learnt_headline(known, spec.members))
    scores = with_intervals(
        bank.targets, summary, value, level=how.level, past=past, scale=scale, headline=bank.headline
    )
    parents: tuple[str, ...] = ()
    words: list[str] = []
    if how.parent:
        usual = (value, scale)
        scores, parents, words = by_parents(
            known, model_ids, how.parent, usual, scores, past=past, level=how.level, progress=progress
        )
    error = float(mean_where_known(np.abs(past.error[:, -1])))
    typicality = past.typicality_of(expected.misfit[:, -1])
    unmeasured = tuple(np.array(bank.targets.names)[~past.is_measured].tolist())
    made = _Made(scores, typicality, METHODS.label(spec), "", error, past.degrees, parents=parents)
    return made._replace(by_item_model=unmeasured), words


def _same_items(known: Known) -> list[IntArray]:
    """Rows of the models that answered the same items as often, the largest groups first.

    Errors of past models are those of estimates from just these items, and from as many attempts at each. So no
    model's estimate depends on what other models of its file answered.
    """
    observations = known.observations
    answered = np.flatnonzero(~known.summary.is_silent)
    observed = ~np.isnan(observations.responses[answered])
    trials = None if observations.n_trials is None else observations.n_trials[answered]
    how_often = attempts_of(observations.responses[answered], trials)
    _, which, counts = np.unique(
        np.column_stack([observed, how_often]), axis=0, return_inverse=True, return_counts=True
    )
    which = which.ravel()
    return [answered[which == group] for group in np.argsort(-counts, kind="stable")]


def _months_ahead(bank: Bank, responses: ResponseMatrix) -> FloatArray:
    """Months that models are newer than the newest past one, NaN where unknown, (n_models,)."""
    newest, dates = bank.newest, model_dates(responses.models)
    if newest is None or dates is None:
        return np.full(responses.n_models, np.nan)
    return np.array([np.nan if day is None else months_between(newest, day) for day in dates.to_list()])


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
