"""Getting a bank ready: the slow work behind calibrated intervals, done once, in the open, and kept."""

from dataclasses import replace

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import asked_for
from itembank.bank.banks import Bank
from itembank.estimation.estimate import check_headline
from itembank.estimation.folds import folds
from itembank.progress import ProgressCallback, silent
from itembank.responses.score_names import OVERALL
from itembank.sessions.past_sessions import past_sessions
from itembank.sessions.pool import SessionPool
from itembank.sessions.priors import warn_of_unheard_values
from itembank.sessions.session_spec import CALIBRATED, SessionSpec


def prepare(bank: GivenBank, *, keep_in_bank: bool = False, progress: ProgressCallback = silent) -> Bank:
    """Get a bank ready for calibrated estimates: fit its items without each group of its models.

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
        The bank, loaded where a path was given.

    Raises
    ------
    ParameterError
        When it is to be kept in the bank's folder, and there is none, or nothing can be written there.
    """
    bank = as_bank(bank)
    bank.check_responses("To be got ready, a bank needs")
    folds(bank, progress=progress)
    if keep_in_bank:
        bank.cache.keep_in_bank()
    return bank


def prepare_sessions(
    bank: GivenBank,
    spec: SessionSpec | None = None,
    *,
    keep_in_bank: bool = False,
    progress: ProgressCallback = silent,
) -> SessionPool:
    """Get a bank ready for sessions of one kind; `AdaptiveSession` takes what this returns.

    The weights of a session's estimates and the width of their intervals rest on such sessions of calibration models
    left out in turn (`past_sessions`): these are run here, and only here. It takes seconds to minutes once for a bank
    and a spec; what was found is kept in the user's cache folder.

    Parameters
    ----------
    bank : Bank or path
    spec : SessionSpec, optional
    keep_in_bank : bool
        Keep it in the bank's own folder too, so that it goes with the bank wherever the bank goes.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When an item, column, model or cost that the spec names is not in the bank.
    ParameterError
        When nothing may be asked, constraints contradict each other, a score is unknown, or the criterion does not fit
        the bank; or when it is to be kept in the bank's folder, and there is none, or nothing can be written there.

    Examples
    --------
    >>> pool = prepare_sessions(bank, SessionSpec(budget=Budget(n_items=100)))  # doctest: +SKIP
    >>> sessions = [AdaptiveSession(pool, model_id=model_id) for model_id in new_models]  # doctest: +SKIP
    """
    bank, spec = as_bank(bank), SessionSpec() if spec is None else spec
    pool = ready_pool(bank, spec, progress=progress)
    warn_of_unheard_values(bank.responses.models, spec.prior)
    if keep_in_bank:
        bank.cache.keep_in_bank()
    return pool


def _asked_for(bank: Bank, spec: SessionSpec) -> tuple[Bank, SessionSpec]:
    """Return the bank that gives a headline score, where one is wanted, and the spec whose rules are of that score."""
    if isinstance(spec.target, str):
        bank = asked_for(bank, spec.target)
    if bank.headline is None:
        return bank, spec
    last, stopping = bank.targets.last, spec.stopping
    target = last if spec.target == OVERALL else spec.target
    widths = {last if name == OVERALL else name: width for name, width in stopping.half_widths.items()}
    decision = stopping.decision
    if decision is not None and decision.target == OVERALL:
        decision = replace(decision, target=last)
    return bank, replace(spec, target=target, stopping=replace(stopping, half_width=widths, decision=decision))


def ready_pool(bank: Bank, spec: SessionSpec, *, progress: ProgressCallback = silent) -> SessionPool:
    """Return the pool for a session that goes on, without repeating the warnings about its spec."""
    bank, spec = _asked_for(bank, spec)
    if bank.headline is not None:
        check_headline(bank, spec.interval, spec.estimand, (), progress)
    pool = SessionPool.create(bank, spec)
    if spec.interval != CALIBRATED:
        return pool
    past = past_sessions(bank, spec, progress=progress)
    return pool if past is None else replace(pool.with_factors(bank), past=past)
