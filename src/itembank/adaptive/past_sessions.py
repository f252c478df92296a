"""Run sessions of calibration models as if these were new, to learn the errors of such sessions.

Adaptive tests choose the items about which the item model is boldest, so that its own standard errors promise too much,
the more so the more items are asked. What sessions did for models that the bank had not seen says by how much.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from itembank.adaptive.limits import Budget, Stopping
from itembank.adaptive.past_errors import PastErrors
from itembank.adaptive.pool import SessionPool
from itembank.adaptive.prior_specs import BANK, GroupPrior, Known, PriorSpec, RegressionPrior
from itembank.adaptive.priors import group_rows
from itembank.adaptive.recorded import Recorded, answer_from_record
from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.session_spec import MODEL_BASED, SessionSpec
from itembank.crossfit.folds import MINIMUM_FOR_FOLDS, Fold
from itembank.crossfit.trials import run_trial
from itembank.data.bank_cache import cache_name
from itembank.data.banks import Bank
from itembank.errors import DataError, ParameterError
from itembank.estimation.point import calibration_scores, weighted_means
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.selection.constraints import Constraints

MOST_MODELS = 100
"""Calibration models that are tried; more would hardly change the errors' quantiles, and take time."""

USUAL_ITEMS = 128
"""Answers of a tried session where the budget does not say how many there will be."""

MOST_ITEMS = 512
SEED = 40
PAST_MODEL = "past model"


@one_blas_thread()
def past_errors(bank: Bank, spec: SessionSpec, *, progress: ProgressCallback = silent) -> PastErrors | None:
    """Run sessions of this spec for calibration models left out in turn; None where too few can be left out.

    Each model's items are chosen, and its answers scored, by the bank of a fold that has not seen it (`folds`). Its
    scores are estimated after 1, 2, 4, 8, ... answers, up to the budget's number of items (128 without one, 512 at
    most). Rules of stopping are left out, so that the errors are those at a number of answers. With a group's prior the
    group's own models are tried, if they are ten or more; with one by regression each model's own columns count.
    Kept in the bank's cache.

    Parameters
    ----------
    bank : Bank
    spec : SessionSpec
    progress : ProgressCallback
        Seconds the first time, a minute where the folds have not been fitted yet.
    """
    if bank.n_models < MINIMUM_FOR_FOLDS:
        return None
    tried = _tried_spec(bank, spec)
    checkpoints = _checkpoints(bank, tried)
    n_targets = len(bank.targets.names) + (not isinstance(spec.target, str))
    shape = (2, len(checkpoints), bank.n_models, n_targets)

    def try_fold(fold: Fold, progress: ProgressCallback) -> FloatArray:
        result = np.full((2, len(checkpoints), fold.held_out.size, n_targets), np.nan)
        for place, session in _sessions(bank, fold, tried, progress):
            reached = _scores_on_the_way(session, _record(bank), int(fold.held_out[place]), checkpoints)
            for number, scores in enumerate(reached):
                result[:, number, place] = scores
        return result

    name = cache_name("out-of-fold-sessions", json.dumps(tried.to_dict(), sort_keys=True), MOST_MODELS)
    value, error = run_trial(bank, name, try_fold, shape, progress=progress)
    n_reached = (~np.isnan(value).all(axis=2)).sum(axis=1)  # (n_checkpoints,)
    if not n_reached.any():
        return None
    # where a fold's bank has fewer items to ask, its sessions end early; a checkpoint that few models reach is left out
    n_kept = int(np.sum(n_reached >= 0.5 * n_reached.max()))
    return PastErrors(checkpoints[:n_kept], _truth(bank, spec), value[:n_kept], error[:n_kept])


def _tried_spec(bank: Bank, spec: SessionSpec) -> SessionSpec:
    """Return the spec without the choices that do not change the errors after a number of answers."""
    n_items, prior, constraints = spec.budget.n_items or USUAL_ITEMS, spec.prior, spec.constraints
    least = _least_items(bank, constraints)
    if least > MOST_ITEMS:  # sessions as long as that would take hours
        least, constraints = 0, replace(constraints, at_least=0)
    if isinstance(prior, RegressionPrior):
        prior = replace(prior, known={})
    elif isinstance(prior, GroupPrior) and group_rows(bank.responses.models, prior).size < MINIMUM_FOR_FOLDS:
        prior = BANK
    return replace(
        spec,
        stopping=Stopping(),
        budget=Budget(n_items=max(min(n_items, MOST_ITEMS), least)),
        constraints=constraints,
        prior=prior,
        seed=SEED,
        interval=MODEL_BASED,
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
    """Scores of the calibration models over what each answered, (n_models, n_targets); a custom target last."""
    scores = calibration_scores(bank)
    if isinstance(spec.target, str):
        return scores
    positions = bank.responses.item_indices(list(spec.target))
    weights = np.array(list(spec.target.values()))
    return np.column_stack([scores, weighted_means(bank.responses.responses[:, positions], weights)])


def _sessions(
    bank: Bank, fold: Fold, spec: SessionSpec, progress: ProgressCallback
) -> Iterator[tuple[int, AdaptiveSession]]:
    """Yield a session for each model to be tried that the fold leaves out, with its place among those left out."""
    pool = _fold_pool(fold, spec)
    if pool is None:
        return
    places = np.flatnonzero(np.isin(fold.held_out, _tried_models(bank, spec))).tolist()
    for number, place in enumerate(places):
        progress("running sessions of calibration models left out", number / len(places))
        prior = _prior_without_model(bank, spec.prior, int(fold.held_out[place]))
        yield place, AdaptiveSession(pool, model_id=PAST_MODEL, prior=prior)


def _fold_pool(fold: Fold, spec: SessionSpec) -> SessionPool | None:
    """Make the pool of a fold's bank; None where it lacks what the spec names, as it may without some models."""
    try:
        return SessionPool.create(fold.bank, spec)
    except (DataError, ParameterError):
        return None


def _tried_models(bank: Bank, spec: SessionSpec) -> IntArray:
    """Rows of the calibration models that are tried."""
    prior = spec.prior
    rows = group_rows(bank.responses.models, prior) if isinstance(prior, GroupPrior) else np.arange(bank.n_models)
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


def _record(bank: Bank) -> Recorded:
    """Calibration models as those whose answers are recorded."""
    responses = bank.responses
    return Recorded(
        tuple(responses.model_ids), np.arange(bank.n_items), responses.responses, responses.n_trials, costs={}
    )


def _scores_on_the_way(
    session: AdaptiveSession, recorded: Recorded, row: int, checkpoints: IntArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Run a session; yield values and standard errors, (n_targets,) each, after every number of answers it reaches."""
    for n_answers in checkpoints.tolist():
        answer_from_record(session, recorded, row, n_answers=n_answers)
        if session.n_items < n_answers:
            return
        scores = session.estimate().scores
        yield scores.value[0], scores.standard_error[0]
