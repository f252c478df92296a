"""Run sessions of calibration models as if these were new, to learn how to read the answers of such sessions.

Adaptive tests choose the items about which the item model is boldest, so that its own standard errors promise too much,
the more so the more items are asked. What sessions did for models that the bank had not seen says by how much, and how
much weight its estimates deserve beside those of the factor models.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimand_names import RUN
from itembank.estimation.estimator_specs import PIRT, Factor, Stacked
from itembank.estimation.expectations import LOOSE, Expectations
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, Fold, fold_numbers
from itembank.estimation.headlines import HeadlineTrial
from itembank.estimation.members_out_of_fold import MembersOutOfFold
from itembank.estimation.point import calibration_scores, weighted_means
from itembank.estimation.trials import run_trial
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.ties import clearly_best
from itembank.progress import ProgressCallback, silent
from itembank.responses.score_names import OVERALL
from itembank.selection.constraints import Constraints
from itembank.sessions.events import Told
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.past_session_results import PastSessions
from itembank.sessions.pool import SessionPool
from itembank.sessions.prior_specs import BANK, GroupPrior, Known, PriorSpec, RegressionPrior
from itembank.sessions.priors import group_rows
from itembank.sessions.recorded import Recorded, answer_side_by_side
from itembank.sessions.session import AdaptiveSession, expectations_of, find_abilities
from itembank.sessions.session_spec import MODEL_BASED, SessionSpec

MOST_MODELS = 100
"""Calibration models that are tried; more would hardly change the errors' quantiles, and take time."""

USUAL_ITEMS = 128
"""Answers of a tried session where the budget does not say how many there will be."""

MOST_ITEMS = 512
SEED = 40
PAST_MODEL = "past model"


BY_ITEM_MODEL = PIRT()
STACKED = Stacked((BY_ITEM_MODEL, Factor(), Factor(discrepancy=LOOSE)))
"""Of the default's members those that make sense for items chosen by the answers."""


@one_blas_thread()
def past_sessions(bank: Bank, spec: SessionSpec, *, progress: ProgressCallback = silent) -> PastSessions | None:
    """Run sessions of this spec for calibration models left out in turn; None where too few can be left out.

    Each model's items are chosen, and its answers read, by the bank of a fold that has not seen it (`folds`). Its
    scores are estimated after 1, 2, 4, 8, ... answers, up to the budget's number of items (128 without one, 512 at
    most): by p-IRT, and by p-IRT and both factor models together, whose weights for a fold come from the errors of all
    others. The latter is kept where it is better by more than a standard error, checkpoint by checkpoint.
    Rules of stopping are left out, so that the errors are those at a number of answers. With a group's prior the
    group's own models are tried, if they are ten or more; with one by regression each model's own columns count.
    Kept in the bank's cache.

    Parameters
    ----------
    bank : Bank
    spec : SessionSpec
    progress : ProgressCallback
        Seconds the first time, a minute where the folds have not been fitted yet.
    """
    if bank.distinct_models.size < MINIMUM_FOR_FOLDS:
        return None
    n_scores = _n_scores(bank, spec)

    def measure() -> dict[str, FloatArray]:
        return _measured(bank, spec, *past_expectations(bank, spec, progress=progress)).arrays

    def fits(kept: dict[str, FloatArray]) -> bool:
        n_checkpoints = np.zeros(kept["n_answered"].size if "n_answered" in kept else 0)
        wanted = PastSessions.create(n_checkpoints, np.zeros((bank.n_models, n_scores)))
        return {name: array.shape for name, array in kept.items()} == {
            name: array.shape for name, array in wanted.arrays.items()
        }

    headline = () if bank.headline is None else (bank.headline.name, bank.headline.past)
    name = _name("past-sessions", _tried_spec(bank, spec), *headline)
    found = PastSessions(**bank.cache.arrays(name, measure, fits=fits))
    return found if found.n_answered.size else None


def past_expectations(
    bank: Bank, spec: SessionSpec, *, progress: ProgressCallback = silent
) -> tuple[IntArray, FloatArray]:
    """Run the sessions, and keep what item and factor models that have not seen a model expect of its scores.

    Returns
    -------
    (n_checkpoints,)
        Numbers of answers.
    (6, n_checkpoints, n_models, n_targets)
        The arrays of `Expectations`; NaN for models that were not tried, and after a session's end.
    """
    tried, n_scores = _tried_spec(bank, spec), _n_scores(bank, spec)
    checkpoints = _checkpoints(bank, tried)
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

    shape, name = (*sizes, bank.n_models, n_scores), _name("past-sessions-expected", tried)
    return checkpoints, run_trial(bank, name, try_fold, shape, progress=progress)


@one_blas_thread()
def past_orders(bank: Bank, spec: SessionSpec, n_answers: int, *, progress: ProgressCallback = silent) -> FloatArray:
    """Run the sessions, and keep which items each calibration model left out was asked, in order.

    Returns
    -------
    (n_models, n_answers)
        Positions of the items; NaN for models that were not tried, and after a session's end.
    """
    tried = _tried_spec(bank, spec)
    tried = replace(tried, budget=Budget(n_items=max(tried.budget.n_items or 0, n_answers)))

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((fold.held_out.size, n_answers), np.nan)
        sessions = _sessions(bank, fold, tried)
        for _ in _on_the_way(bank, fold, sessions, np.array([n_answers]), progress):
            pass
        for place, session in sessions.items():
            told = [event.item_id for event in session.history if isinstance(event, Told)]
            result[place, : len(told)] = [session.pool.positions[item] for item in told]
        return result

    name = cache_name(_name("past-session-orders", tried), n_answers)
    return run_trial(bank, name, try_fold, (bank.n_models, n_answers), progress=progress)


def _name(kind: str, tried: SessionSpec, *more: object) -> str:
    """Name what the bank's cache keeps of sessions of this spec."""
    return cache_name(kind, json.dumps(tried.to_dict(), sort_keys=True), MOST_MODELS, *more)


def _n_scores(bank: Bank, spec: SessionSpec) -> int:
    return len(bank.targets.names) + (not isinstance(spec.target, str))


def _measured(bank: Bank, spec: SessionSpec, checkpoints: IntArray, expected: FloatArray) -> PastSessions:
    """Weigh the methods and measure the errors at every checkpoint that enough sessions reach."""
    has_reached = ~np.all(np.isnan(expected), axis=(0, 3))  # (n_checkpoints, n_models)
    n_reached = has_reached.sum(axis=1)
    # where a fold's bank has fewer items to ask, its sessions end early; a checkpoint that few models reach is left out
    n_kept = int(np.sum(n_reached >= 0.5 * max(n_reached.max(), 1)))
    truth, headline = _truth(bank, spec), bank.headline
    result = PastSessions.create(checkpoints[:n_kept].astype(np.float64), truth.copy())
    if headline is not None:
        result.truth[:, bank.targets.n_scenarios] = headline.past
    for checkpoint in range(n_kept):
        models = np.flatnonzero(has_reached[checkpoint])
        result.misfit[checkpoint, models] = expected[-1, checkpoint, models, 0]
        for columns, scenario_weights in _scores_that_add_up(bank, result.truth.shape[1]):
            cells = np.ix_(models, columns)
            gathered = Expectations(*(array[cells] for array in expected[:, checkpoint]))
            members = MembersOutOfFold(
                truth[cells],
                gathered.means,
                gathered,
                fold_numbers(bank)[models],
                scenario_weights,
                headline=None if headline is None else HeadlineTrial(headline, rows=models),
            )
            result.put(checkpoint, models, columns, members.past(_method(members), prefer_item_model=True))
    return result


def _method(members: MembersOutOfFold) -> PIRT | Stacked:
    """Return p-IRT, unless it is clearly worse for the overall score than all members together.

    One by one items are chosen where the item model doubts the answer. Of a model that is stronger than most these are
    items that most fail, and half of them are solved: a factor model, linear in the answers, makes too much of that.
    """
    candidates = (BY_ITEM_MODEL, STACKED)
    return candidates[clearly_best([np.abs(members.by(method).error[:, -1]) for method in candidates])]


def _scores_that_add_up(bank: Bank, n_scores: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield columns of targets whose last is the weighted mean of the others, and the weights; a custom one alone."""
    n_targets = len(bank.targets.names)
    yield np.arange(n_targets), bank.targets.scenario_weights
    if n_scores > n_targets:
        yield np.array([n_targets]), np.zeros(0)


def _tried_spec(bank: Bank, spec: SessionSpec) -> SessionSpec:
    """Return the spec without the choices that do not change the errors after a number of answers."""
    n_items, prior, constraints = spec.budget.n_items or USUAL_ITEMS, spec.prior, spec.constraints
    least = _least_items(bank, constraints)
    if least > MOST_ITEMS:  # sessions as long as that would take hours
        least, constraints = 0, replace(constraints, at_least=0)
    if isinstance(prior, RegressionPrior):
        prior = replace(prior, known={})
    elif isinstance(prior, GroupPrior) and _tried_models(bank, spec).size < MINIMUM_FOR_FOLDS:
        prior = BANK
    return replace(
        spec,
        target=spec.target if bank.headline is None else OVERALL,  # the same items are asked
        stopping=Stopping(),
        budget=Budget(n_items=max(min(n_items, MOST_ITEMS), least)),
        constraints=constraints,
        prior=prior,
        seed=SEED,
        interval=MODEL_BASED,
        estimand=RUN,
    )


def _least_items(bank: Bank, constraints: Constraints) -> int:
    """Items that the constraints require, which a tried session must have room for."""
    at_least = constraints.at_least
    if isinstance(at_least, Mapping):
        return sum(at_least.values())
    return at_least * bank.targets.n_scenarios


def _checkpoints(bank: Bank, spec: SessionSpec) -> IntArray:
    most = min(spec.budget.n_items or USUAL_ITEMS, int(np.sum(~bank.calibration.is_degenerate)))
    powers = [2**k for k in range(most.bit_length()) if 2**k < most]
    return np.array([*powers, most], dtype=np.int64)


def _truth(bank: Bank, spec: SessionSpec) -> FloatArray:
    """Known scores of the calibration models, (n_models, n_targets); a custom target last, over what was answered."""
    scores = calibration_scores(bank)
    if isinstance(spec.target, str):
        return scores
    positions = bank.responses.item_indices(list(spec.target))
    weights = np.array(list(spec.target.values()))
    return np.column_stack([scores, weighted_means(bank.responses.of_items(positions), weights)])


def _sessions(bank: Bank, fold: Fold, spec: SessionSpec) -> dict[int, AdaptiveSession]:
    """Begin a session for each model to be tried that the fold leaves out, by its place among those left out."""
    pool = _fold_pool(fold, spec)
    if pool is None:
        return {}
    places = np.flatnonzero(np.isin(fold.held_out, _tried_models(bank, spec))).tolist()
    priors = {place: _prior_without_model(bank, spec.prior, int(fold.held_out[place])) for place in places}
    return {place: AdaptiveSession(pool, model_id=PAST_MODEL, prior=prior) for place, prior in priors.items()}


def _fold_pool(fold: Fold, spec: SessionSpec) -> SessionPool | None:
    """Make the pool of a fold's bank; None where it lacks what the spec names, as it may without some models."""
    try:
        return SessionPool.create(fold.bank, spec).with_factors(fold.bank)
    except (DataError, ParameterError):
        return None


def _tried_models(bank: Bank, spec: SessionSpec) -> IntArray:
    """Rows of the calibration models that are tried: of those whose scores are known."""
    rows, prior = bank.distinct_models, spec.prior
    if isinstance(prior, GroupPrior):
        rows = np.intersect1d(rows, group_rows(bank.responses.models, prior))
    if rows.size <= MOST_MODELS:
        return rows
    return np.sort(np.random.default_rng(SEED).choice(rows, MOST_MODELS, replace=False))


def _prior_without_model(bank: Bank, prior: PriorSpec, row: int) -> PriorSpec:
    """Return the prior as it would be given for a calibration model."""
    if not isinstance(prior, RegressionPrior):
        return prior
    record = bank.responses.models.select(prior.columns).fill_nan(None).row(row, named=True)
    known = {name: _plain_value(value) for name, value in record.items() if value is not None}
    return replace(prior, known=known)


def _plain_value(value: object) -> Known:
    """Return a value of the model table as a caller would give it for a new model: dates and the like as text."""
    return value if isinstance(value, str | int | float) else str(value)


def _record(bank: Bank, models: IntArray) -> Recorded:
    """Calibration models at these rows as those whose answers are recorded."""
    responses = bank.responses.take(models=models)
    return Recorded(
        tuple(responses.model_ids), np.arange(bank.n_items), responses.responses, responses.n_trials, costs={}
    )


def _on_the_way(
    bank: Bank, fold: Fold, sessions: Mapping[int, AdaptiveSession], checkpoints: IntArray, progress: ProgressCallback
) -> Iterator[dict[int, AdaptiveSession]]:
    """Run sessions; yield those that reach each number of answers when they are there."""
    recorded, reached, done = _record(bank, fold.held_out[list(sessions)]), dict(sessions), 0
    row_of = {place: row for row, place in enumerate(sessions)}
    for n_answers in checkpoints.tolist():
        progress("running sessions of calibration models left out", done / checkpoints[-1])
        rows = [row_of[place] for place in reached]
        answer_side_by_side(list(reached.values()), recorded, rows, n_answers=n_answers)
        reached = {place: session for place, session in reached.items() if session.n_items >= n_answers}
        find_abilities(list(reached.values()))
        yield reached
        done = n_answers
