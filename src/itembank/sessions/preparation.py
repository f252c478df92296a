"""Getting a bank ready: the slow work behind calibrated intervals, done once, in the open, and kept.

Cross-validated sessions of past models, whose answers are recorded, say how wide intervals must be.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_cache import cache_name
from itembank.bank.bank_views import asked_for
from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model
from itembank.checks import with_choices
from itembank.errors import DataError, ParameterError
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimate import check_headline
from itembank.estimation.estimator_specs import PIRT, RUN, Factor, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, Fold, fold_numbers, folds, run_trial
from itembank.estimation.headlines import HeadlineTrial
from itembank.estimation.notes import why_not_calibrated
from itembank.estimation.observations import bank_positions, fewer_than_past, past_runs, scores_of_past
from itembank.estimation.trials import LOOSE, Expectations, Trial
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.ties import clearly_best
from itembank.progress import ProgressCallback, silent
from itembank.responses.content_order import order_among
from itembank.responses.error_kinds import KINDS
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.selection.criteria import CRITERIA
from itembank.sessions.events import NOT_RECORDED, Answer, Failed, Told, counts_behind, told
from itembank.sessions.first_items import n_lead_items
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.pool import PastSessions, SessionPool, custom_targets
from itembank.sessions.session import AdaptiveSession, expectations_of, find_abilities, find_worth
from itembank.sessions.session_spec import BY_DRAW, CALIBRATED, MODEL_BASED, SessionSpec

MOST_MODELS = 100
"""Past models that are tried; more would hardly change the errors' quantiles, and take time."""
USUAL_ITEMS = 128
"""Answers of a tried session where the budget does not say how many there will be."""
MOST_ITEMS = 512
SEED = 40
BY_ITEM_MODEL = PIRT()
STACKED = Stacked((BY_ITEM_MODEL, Factor(), Factor(discrepancy=LOOSE)))
CANDIDATES = (BY_ITEM_MODEL, STACKED)
"""Of the default's members those that make sense for items chosen by the answers."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded responses of some models, small enough to send to worker processes."""

    model_ids: tuple[str, ...]
    column: IntArray  # (n_bank_items,): Column of each item of the bank; -1 where nothing of it is recorded
    responses: FloatArray  # (n_models, n_items)
    n_trials: IntArray | None  # (n_models, n_items)
    costs: Mapping[str, FloatArray]  # mapping of unit to (n_models, n_items)
    lost: IntArray | None = None  # (n_models, n_items): Kinds of errors that answers were lost to; 0 for none
    # (n_models, n_bank_items): Where an item that was asked counts as answered, though nothing of it is recorded
    counts: BoolArray | None = None

    def n_done(self, session: AdaptiveSession, row: int) -> int:
        """Count what a session has of the model at `row`: answers, and what counts as such."""
        if self.counts is None or not self.counts[row].any():
            return session.n_items
        failed = [session.pool.positions[one.item_id] for one in session.history if isinstance(one, Failed)]
        return session.n_items + int(self.counts[row, failed].sum())

    @classmethod
    def of_responses(cls, bank: Bank, responses: ResponseMatrix) -> "Recorded":
        """Find the bank's items among the responses."""
        positions = bank_positions(bank, responses.items["item_id"], "responses")
        column = np.full(bank.n_items, -1, dtype=np.int64)
        column[positions] = np.arange(responses.n_items)
        lost = None if responses.lost is None else responses.lost.kind
        numbers = (responses.responses, responses.n_trials, dict(responses.costs), lost)
        return cls(tuple(responses.model_ids), column, *numbers)

    def take(self, rows: slice) -> "Recorded":
        """Return some of the models."""
        return Recorded(
            self.model_ids[rows],
            self.column,
            self.responses[rows],
            None if self.n_trials is None else self.n_trials[rows],
            {unit: cost[rows] for unit, cost in self.costs.items()},
            None if self.lost is None else self.lost[rows],
        )

    def answer(self, row: int, item_id: str, position: int) -> Answer:
        """Return the answer of a model to an item of the bank, or that there is none."""
        column = int(self.column[position])
        if column < 0:
            return Failed(item_id, reason=NOT_RECORDED)
        response = float(self.responses[row, column])
        known = {unit: float(cost[row, column]) for unit, cost in self.costs.items()}
        costs = {unit: amount for unit, amount in known.items() if not np.isnan(amount)}
        if np.isnan(response):
            kind = 0 if self.lost is None else int(self.lost[row, column])
            return Failed(item_id, reason=KINDS[kind] if kind else NOT_RECORDED, costs=costs)
        counts = None if self.n_trials is None else counts_behind(response, int(self.n_trials[row, column]))
        return told(item_id, response, costs=costs) if counts is None else told(item_id, None, *counts, costs)


def answer_from_record(
    session: AdaptiveSession,
    recorded: Recorded,
    row: int,
    *,
    batch: int = 1,  # Items asked at once each time
    n_answers: int | None = None,
) -> None:
    """Give a session the recorded answers of the model at `row`, until it asks no more or has this many answers."""
    while n_answers is None or session.n_items < n_answers:
        if not _ask_and_tell(session, recorded, row, batch):
            return


def answer_side_by_side(
    sessions: Sequence[AdaptiveSession], recorded: Recorded, rows: Sequence[int], *, n_answers: int
) -> None:
    """Give sessions over one bank the recorded answers of the models at `rows`, as `answer_from_record` does to each.

    They go on together, an item at a time, so that their abilities are found together, which takes a fraction of the
    time.
    """
    going = list(zip(sessions, rows, strict=True))
    while going := [(session, row) for session, row in going if recorded.n_done(session, row) < n_answers]:
        find_abilities([session for session, _ in going])
        find_worth([session for session, _ in going])
        going = [(session, row) for session, row in going if _ask_and_tell(session, recorded, row, 1)]


def _ask_and_tell(session: AdaptiveSession, recorded: Recorded, row: int, batch: int) -> bool:
    """Let a session ask, and answer it from the record; False where it asks no more."""
    item_ids = session.ask(batch)
    for item_id in item_ids:
        session.take(recorded.answer(row, item_id, session.pool.positions[item_id]), new_units=True)
    return bool(item_ids)


@one_blas_thread()
def past_sessions(
    bank: Bank,
    spec: SessionSpec,
    *,
    progress: ProgressCallback = silent,  # Seconds the first time, a minute where the folds have not been fitted yet
) -> PastSessions | None:
    """Run cross-validated sessions of this spec for past models; None where these are too few.

    Each model's items are chosen, and its answers read, by the bank of a fold that has not seen it (`folds`). Its
    scores are estimated after 1, 2, 4, 8, ... answers, up to the budget's number of items (128 without one, 512 at
    most): by p-IRT, and by p-IRT and both factor models together, whose weights for a fold come from the errors of all
    others. The latter is kept where it is better by more than a standard error, checkpoint by checkpoint.
    Rules of stopping are left out, so that the errors are those at a number of answers. Kept in the bank's cache.
    """
    if bank.distinct_models.size < MINIMUM_FOR_FOLDS:
        return None
    n_scores = _n_scores(bank, spec)

    def measure() -> dict[str, FloatArray]:
        return _measured(bank, spec, *past_expectations(bank, spec, progress=progress))

    def fits(kept: dict[str, FloatArray]) -> bool:
        wanted = unknown_sessions(kept.get("n_answered", np.zeros(0)), *np.zeros((2, bank.n_models, n_scores)))
        return {name: array.shape for name, array in kept.items()} == {name: one.shape for name, one in wanted.items()}

    headline = () if bank.headline is None else (bank.headline.name, bank.headline.past)
    name = _name("past-sessions", _tried_spec(bank, spec), *headline, *_attempts(bank))
    found = PastSessions(**bank.cache.arrays(name, measure, fits=fits))
    return found if found.n_answered.size else None


def past_expectations(
    bank: Bank, spec: SessionSpec, *, progress: ProgressCallback = silent
) -> tuple[IntArray, FloatArray]:
    """Run the sessions, and keep what item and factor models that have not seen a model expect of its scores.

    Numbers of answers (n_checkpoints,), and the arrays of `Expectations`, (6, n_checkpoints, n_models, n_targets): NaN
    for models that were not tried, and after a session's end.
    """
    tried, n_scores = _tried_spec(bank, spec), _n_scores(bank, spec)
    most = min(tried.budget.n_items or USUAL_ITEMS, int(np.sum(~bank.calibration.is_degenerate)))
    powers = [2**k for k in range(most.bit_length()) if 2**k < most]
    checkpoints = np.array([*powers, most], dtype=np.int64)
    sizes = (len(Expectations._fields), len(checkpoints))

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((*sizes, fold.held_out.size, n_scores), np.nan)
        sessions = _sessions(bank, fold, tried)
        for number, reached in enumerate(_on_the_way(bank, fold, sessions, checkpoints, progress)):
            for place, session in reached.items():
                expected = expectations_of(session)
                if expected is not None:
                    result[:, number, place] = np.stack(expected)[:, 0]
        return result

    shape, name = (*sizes, bank.n_models, n_scores), _name("past-sessions-expected", tried, *_attempts(bank))
    return checkpoints, run_trial(bank, name, try_fold, shape, progress=progress)


@one_blas_thread()
def past_orders(bank: Bank, spec: SessionSpec, n_answers: int, *, progress: ProgressCallback = silent) -> FloatArray:
    """Run the sessions, and keep which items each past model was asked, in order.

    Positions (n_models, n_answers); NaN for models that were not tried, and after a session's end.
    """
    tried = _tried_spec(bank, spec)
    tried = replace(tried, budget=Budget(n_items=max(tried.budget.n_items or 0, n_answers)))

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((fold.held_out.size, n_answers), np.nan)
        sessions = _sessions(bank, fold, tried)
        for _ in _on_the_way(bank, fold, sessions, np.array([n_answers]), progress):
            pass
        for place, session in sessions.items():
            answered = [session.pool.positions[one.item_id] for one in session.history if isinstance(one, Told)]
            result[place, : len(answered)] = answered
        return result

    name = cache_name(_name("past-session-orders", tried, *_attempts(bank)), n_answers)
    return run_trial(bank, name, try_fold, (bank.n_models, n_answers), progress=progress)


def _name(kind: str, tried: SessionSpec, *more: object) -> str:
    return cache_name(kind, json.dumps(tried.to_dict(), sort_keys=True), MOST_MODELS, *more)


def _attempts(bank: Bank) -> tuple[float, ...]:
    """Return one, the attempts at an item that sessions ask for, where past models made more (`fewer_than_past`)."""
    attempts = fewer_than_past(bank, 1.0)
    return () if attempts is None else (attempts,)


def _n_scores(bank: Bank, spec: SessionSpec) -> int:
    return len(bank.targets.names) + (not isinstance(spec.target, str))


def unknown_sessions(n_answered: FloatArray, truth: FloatArray, variance: FloatArray) -> dict[str, FloatArray]:
    """Return the arrays of `PastSessions` of which nothing but the truth, up to a variance, is known yet."""
    n_checkpoints, (n_models, n_scores) = n_answered.size, truth.shape
    shapes = {
        **dict.fromkeys(("value", "standard_error", "scale"), (n_checkpoints, n_models, n_scores)),
        "weights": (n_checkpoints, 3, n_scores),
        "misfit": (n_checkpoints, n_models),
        "follows_item_model": (n_checkpoints, n_scores),
    }
    known = {"n_answered": n_answered, "truth": truth, "truth_variance": variance}
    return {**known, **{name: np.full(shape, np.nan) for name, shape in shapes.items()}}


def _measured(bank: Bank, spec: SessionSpec, checkpoints: IntArray, expected: FloatArray) -> dict[str, FloatArray]:
    """Weigh the methods and measure the errors at every checkpoint that enough sessions reach."""
    has_reached = ~np.all(np.isnan(expected), axis=(0, 3))  # (n_checkpoints, n_models)
    n_reached = has_reached.sum(axis=1)
    # where a fold's bank has fewer items to ask, its sessions end early; a checkpoint that few models reach is left out
    n_kept = int(np.sum(n_reached >= 0.5 * max(n_reached.max(), 1)))
    headline, n_targets = bank.headline, len(bank.targets.names)
    scores, variance = scores_of_past(bank, *(_attempts(bank) or [None])), bank.known_scores.variance
    if custom := custom_targets(spec.target, bank):  # a custom target comes last
        value, of_value = _custom_scores(bank, custom.overall_weights)
        scores, variance = np.column_stack([scores, value]), np.column_stack([variance, of_value])
    truth, of_truth = scores.copy(), variance.copy()
    if headline is not None:
        last = bank.targets.n_scenarios
        truth[:, last], of_truth[:, last] = headline.past, np.where(np.isnan(headline.past), np.nan, 0.0)
    result, fold = unknown_sessions(checkpoints[:n_kept].astype(np.float64), truth, of_truth), fold_numbers(bank)
    result["misfit"][:] = expected[-1, :n_kept, :, 0]
    # columns of targets whose last is the weighted mean of the others, and the weights; a custom one alone
    groups = [(np.arange(n_targets), bank.targets.scenario_weights)]
    groups += [(np.array([n_targets]), np.zeros(0))] * (truth.shape[1] - n_targets)
    for columns, scenario_weights in groups:
        for checkpoint in range(n_kept):
            gathered = Expectations(*expected[:, checkpoint][:, :, columns])
            members = Trial(
                scores[:, columns],
                gathered.means,
                gathered,
                np.where(has_reached[checkpoint], fold, -1),
                scenario_weights,
                variance[:, columns],
                None if headline is None else HeadlineTrial(headline),
            )
            found = _best(members)
            for array in ("value", "standard_error", "scale"):
                result[array][checkpoint][:, columns] = getattr(found, array)
            # where no factor model has a say, p-IRT has all
            weights = [[1.0], [0.0], [0.0]] if found.weights is None else found.weights
            result["weights"][checkpoint][:, columns] = weights
            result["follows_item_model"][checkpoint, columns] = found.follows_item_model
    return result


def _custom_scores(bank: Bank, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means of items by weights (n_items,) in the runs of past models' sessions, and variances, (n_models,)."""
    known = bank.known_means(weights)
    means = known.value[:, -1]
    if attempts := _attempts(bank):
        means = means + np.nan_to_num(past_runs(bank, *attempts)[0] - bank.responses.responses) @ weights
    return means, known.variance[:, -1]


def _best(members: Trial) -> PastEstimates:
    """Return estimates by p-IRT, unless it is clearly worse for the overall score than all members together.

    One by one items are chosen where the item model doubts the answer. Of a model that is stronger than most these are
    items that most fail, and half of them are solved: a factor model, linear in the answers, makes too much of that.
    Sizes of errors, too, are the item model's own, unless others clearly make better intervals: the factor models know
    nothing of how the items were chosen, and where this misleads them, their distance says little of an error.
    """
    candidates = [members.by(method) for method in CANDIDATES]
    found = candidates[clearly_best([np.abs(one.error[:, -1]) for one in candidates])]
    both = (found.by_item_model(), found)
    return both[clearly_best([one.interval_scores for one in both])]


def _tried_spec(bank: Bank, spec: SessionSpec) -> SessionSpec:
    """Return the spec without the choices that do not change the errors after a number of answers."""
    n_items, constraints = spec.budget.n_items or USUAL_ITEMS, spec.constraints
    at_least = constraints.at_least
    least = sum(at_least.values()) if isinstance(at_least, Mapping) else at_least * bank.targets.n_scenarios
    if least > MOST_ITEMS:  # sessions as long as that would take hours
        least, constraints = 0, replace(constraints, at_least=0)
    return replace(
        spec,
        target=spec.target if bank.headline is None else OVERALL,  # the same items are asked
        stopping=Stopping(),
        budget=Budget(n_items=max(min(n_items, MOST_ITEMS), least)),
        constraints=constraints,
        n_start=n_lead_items(bank, spec, CRITERIA.resolve(spec.criterion)),
        seed=SEED,
        interval=BY_DRAW if spec.interval == BY_DRAW else MODEL_BASED,
        estimand=RUN,
        errors="missing",
    )


def _sessions(bank: Bank, fold: Fold, spec: SessionSpec) -> dict[int, AdaptiveSession]:
    """Begin a session for each model to be tried that the fold leaves out, by its place among those left out."""
    try:
        pool = SessionPool.create(fold.bank, spec).with_factors(fold.bank)
    except (DataError, ParameterError):  # without some models a bank may lack what the spec names
        return {}
    tried = bank.distinct_models
    if tried.size > MOST_MODELS:
        by_content = tried[order_among(tried, bank.content_order.models)]
        tried = np.random.default_rng(SEED).choice(by_content, MOST_MODELS, replace=False)
    places = np.flatnonzero(np.isin(fold.held_out, tried)).tolist()
    return {place: AdaptiveSession(pool, model_id="past model") for place in places}


def _on_the_way(
    bank: Bank, fold: Fold, sessions: Mapping[int, AdaptiveSession], checkpoints: IntArray, progress: ProgressCallback
) -> Iterator[dict[int, AdaptiveSession]]:
    """Run sessions; yield those that reach each number of answers when they are there."""
    responses = bank.responses.take(models=fold.held_out[list(sessions)])
    names, columns = tuple(responses.model_ids), np.arange(bank.n_items)
    # one that answered nothing of a scenario would be asked more of others than new models are
    lacks = np.isnan(bank.known_scores.value[fold.held_out[list(sessions)]])[:, bank.targets.scenario_index]
    recorded = Recorded(names, columns, responses.responses, responses.n_trials, costs={}, counts=lacks)
    if attempts := _attempts(bank):
        values, n_trials = (of_all[fold.held_out[list(sessions)]] for of_all in past_runs(bank, *attempts))
        recorded = replace(recorded, responses=values, n_trials=n_trials.astype(np.int64))
    reached, done = dict(sessions), 0
    row_of = {place: row for row, place in enumerate(sessions)}
    for n_answers in checkpoints.tolist():
        progress("cross-validating sessions", done / checkpoints[-1])
        rows = [row_of[place] for place in reached]
        answer_side_by_side(list(reached.values()), recorded, rows, n_answers=n_answers)
        reached = {place: one for place, one in reached.items() if recorded.n_done(one, row_of[place]) >= n_answers}
        find_abilities(list(reached.values()))
        yield reached
        done = n_answers


def prepare(bank: GivenBank, *, keep_in_bank: bool = False, progress: ProgressCallback = silent) -> Bank:
    """Get a bank ready for calibrated estimates: fit its items, and what items are chosen by, without some models.

    `estimate`, `select`, `compare` and `plan` do this themselves when they need it first; what was found is kept in the
    user's cache folder, so it takes time once a bank.

    Parameters
    ----------
    bank : Bank or path
    keep_in_bank : bool
        Keep it in the bank's own folder too, so that it goes with the bank wherever the bank goes.
    progress : ProgressCallback

    Returns
    -------
    Bank
        The bank, loaded if a path was given.

    Raises
    ------
    ParameterError
        When it is to be kept in the bank's folder, and there is none, or nothing can be written there.
    """
    bank = as_bank(bank)
    bank.check_responses("To be got ready, a bank needs")
    every = folds(bank, progress=progress)
    if keep_in_bank:
        bank.cache.keep_in_bank()
    if bank.calibration.is_fitted:  # larger than the fits and made in a second or two: kept in the user's cache alone
        for part in (bank, *(fold.bank for fold in every)):
            bank_factor_model(part, discrepancy="auto")
    return bank


def prepare_sessions(
    bank: GivenBank,
    spec: SessionSpec | None = None,
    *,
    keep_in_bank: bool = False,
    progress: ProgressCallback = silent,
    **choices: Any,
) -> SessionPool:
    """Get a bank ready for sessions of one kind; `AdaptiveSession` takes what this returns.

    The weights of a session's estimates and the width of their intervals rest on cross-validated sessions of
    past models (`past_sessions`): these are run here, and only here. It takes seconds to minutes once for a bank
    and a spec; what was found is kept in the user's cache folder.

    Parameters
    ----------
    bank : Bank or path
    spec : SessionSpec, optional
    keep_in_bank : bool
        Keep it in the bank's own folder too, so that it goes with the bank wherever the bank goes.
    progress : ProgressCallback
    **choices
        Fields of `SessionSpec`, `Budget`, `Stopping` and `Constraints` by name, over the spec's.

    Raises
    ------
    DataError
        When an item, column, model or cost that the spec names is not in the bank.
    ParameterError
        When nothing may be asked, constraints contradict each other, a score is unknown, or the criterion does not fit
        the bank; or when it is to be kept in the bank's folder, and there is none, or nothing can be written there.

    Examples
    --------
    >>> pool = prepare_sessions(bank, n_items=100)  # doctest: +SKIP
    >>> sessions = [AdaptiveSession(pool, model_id=model_id) for model_id in new_models]  # doctest: +SKIP
    """
    if "max_items" in choices:
        raise ParameterError("the most items of a session are called n_items, got max_items.")
    if "criterion" in choices:  # which says what interval goes with it
        choices = {"interval": None, **choices}
    bank, spec = as_bank(bank), with_choices(SessionSpec() if spec is None else spec, choices)
    pool = ready_pool(bank, spec, progress=progress)
    if keep_in_bank:
        bank.cache.keep_in_bank()
    return pool


def ready_pool(bank: Bank, spec: SessionSpec, *, progress: ProgressCallback = silent) -> SessionPool:
    """Return the pool for a session that goes on, without repeating the warnings about its spec."""
    if isinstance(spec.target, str):
        bank = asked_for(bank, spec.target)
    if bank.headline is not None:  # the rules of the spec are of the headline score
        last, stopping = bank.targets.last, spec.stopping
        decision = stopping.decision
        if decision is not None and decision.target == OVERALL:
            decision = replace(decision, target=last)
        widths = {last if name == OVERALL else name: width for name, width in stopping.half_widths.items()}
        stopping = replace(stopping, half_width=widths, decision=decision)
        spec = replace(spec, target=last if spec.target == OVERALL else spec.target, stopping=stopping)
        check_headline(bank, str(spec.interval), spec.estimand, progress)
    pool = SessionPool.create(bank, spec)
    if spec.interval != CALIBRATED:
        return pool
    past = past_sessions(bank, spec, progress=progress)
    if past is None:
        return replace(pool, why_not_calibrated=why_not_calibrated(bank))
    return replace(pool.with_factors(bank), past=past)
