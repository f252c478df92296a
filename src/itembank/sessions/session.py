"""`AdaptiveSession`: ask, tell, estimate, for one model and one bank."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from itembank.checks import check_whole
from itembank.errors import DataWarning, ParameterError, quoted, shown, visible, warn
from itembank.estimation.if_answered import told_of_lost
from itembank.estimation.trials import Expectations
from itembank.irt.abilities import Abilities
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.lost_answers import LostAnswers
from itembank.selection.criteria import uses_information
from itembank.selection.item_worth import information_worth
from itembank.sessions.asking import Asking, EventLog, SessionState
from itembank.sessions.choosing import choose, conclusion, lacks_items, limit_reason, rule_that_holds
from itembank.sessions.estimates import (
    SessionEstimate,
    read_answers,
    session_abilities,
    session_ability,
    session_estimate,
)
from itembank.sessions.events import Asked, Event, Told
from itembank.sessions.pool import SessionPool
from itembank.sessions.prices import ROUNDING
from itembank.tables import plural


class AdaptiveSession(Asking):
    """One model answering items of a bank, each chosen by what its answers so far leave open.

    Ask for items, tell the answers in any order, and go on until nothing more is asked:

        while items := session.ask():
            for item in items:
                session.tell(item, response=run(item))

    Everything follows from the events (`history`) and the pool: the same events make the same session, bit for bit.
    An error changes nothing.

    Parameters
    ----------
    pool : SessionPool
        From `prepare_sessions`; sessions of many models may share it.
    model_id : str
    seed : int, optional
        Of all chance in this session; by default that of the pool's spec.
    events : iterable of Event
        What has happened in the session so far.
    journal : object with `append`, optional
        Is given every further event as plain data before it counts.

    Raises
    ------
    DataError
        When the events are not those of one session over this bank.
    ParameterError
        For an empty `model_id`.

    Examples
    --------
    >>> pool = prepare_sessions(bank, SessionSpec(budget=Budget(n_items=100)))  # doctest: +SKIP
    >>> session = AdaptiveSession(pool, model_id="new-model")  # doctest: +SKIP
    >>> session.ask()  # doctest: +SKIP
    ('gsm8k/17',)
    >>> session.tell("gsm8k/17", 1.0, costs={"output_tokens": 310})  # doctest: +SKIP
    >>> session.estimate().scores.rows()[-1]["estimate"]  # doctest: +SKIP
    """

    def __init__(
        self,
        pool: SessionPool,
        *,
        model_id: str = "model",
        seed: int | None = None,
        events: Iterable[Event] = (),
        journal: EventLog | None = None,
    ) -> None:
        if not isinstance(pool, SessionPool):
            raise ParameterError(
                f"a session needs what prepare_sessions returns, got {type(pool).__name__}: "
                "AdaptiveSession(prepare_sessions(bank, SessionSpec(...)), model_id=...)."
            )
        self._pool = pool if seed is None else pool.with_seed(seed)
        state = self._pool.state_after(events)
        super().__init__(model_id, state, self._pool.item_ids, units=self._pool.prices.recorded, journal=journal)
        self._forget()

    def __repr__(self) -> str:
        state = "ask() gives the next" if self.reason_stopped is None else f"stopped: {self.reason_stopped}"
        return f"Session of {visible(self.model_id)}: {plural(self.n_items, 'item')} answered; {state}"

    def _forget(self) -> None:
        """Drop what was derived from an earlier state."""
        self._abilities: Abilities | None = None
        self._worth: FloatArray | None = None
        self._estimate: SessionEstimate | None = None

    def ask(self, n: int = 1) -> tuple[str, ...]:
        """Choose up to n items to be answered next, none of them pending or answered.

        Returns
        -------
        tuple of item ids
            Fewer than n when a limit is reached, none when the session has stopped (`reason_stopped`).

        Raises
        ------
        ParameterError
            When n is not a whole number >= 1.
        """
        check_whole("the number of items to ask", n, least=1)
        if self.reason_stopped is not None:
            return ()
        abilities = self._ability()
        theta, covariance = abilities.theta[0], abilities.covariance[0]
        with one_blas_thread():
            chosen = choose(
                self._pool,
                self._state,
                theta,
                covariance,
                n=int(n),
                is_precise=self._rule_that_holds() is not None,
                worth=self._worth,
            )
        item_ids = tuple(self._item_ids[position] for position in chosen.tolist())
        if item_ids:
            self._record(Asked(item_ids))
        return item_ids

    def estimate(self) -> SessionEstimate:
        """Estimate ability and all scores from the answers so far; without any, they are the prior's."""
        if self._estimate is None:
            abilities, kinds = self._ability(), list(self._state.lost.values())
            with one_blas_thread():
                found = self._estimate_of(self._counted, abilities)
                if kinds:  # it says what it is if lost answers are wrong, and if they are right
                    states = [self._state.with_lost_as(value, self._item_ids) for value in (0.0, 1.0)]
                    ends = (self._estimate_of(one, session_ability(self._pool, one)).scores for one in states)
                    lost = LostAnswers(
                        np.ones((1, len(kinds)), dtype=np.int64), np.array([kinds]), self._pool.spec.errors or "missing"
                    )
                    scores = told_of_lost(found.scores, lost, np.zeros(1, dtype=np.int64), *ends)
                    found = replace(found, scores=scores)
                self._estimate = found
        return self._estimate

    def _estimate_of(self, state: SessionState, abilities: Abilities) -> SessionEstimate:
        level = self._pool.spec.stopping.level
        return session_estimate(self._pool, state, abilities, model_id=self._model_id, level=level)

    @property
    def _counted(self) -> SessionState:
        """The state that is estimated from: lost answers may count as wrong."""
        if self._pool.spec.errors == "wrong":
            return self._state.with_lost_as(0.0, self._item_ids)
        return self._state

    @property
    def pool(self) -> SessionPool:
        """The bank as it was made ready, and the spec; with the session's own seed."""
        return self._pool

    @property
    def askable(self) -> tuple[str, ...]:
        """All items but those that the spec excludes."""
        excluded = set(self._pool.spec.constraints.excluded or ())
        return tuple(item for item in self._item_ids if item not in excluded)

    @property
    def n_unasked(self) -> int:
        """Items that may still be asked, budgets apart."""
        return int(self._state.n_open.sum())

    @property
    def left(self) -> dict[str, float]:
        """The rest of each cost in the budget, at least 0; unknown and pending costs count as expected."""
        return {name: max(amount, 0.0) for name, amount in self._pool.prices.purse(self._state).left.items()}

    @property
    def passed(self) -> dict[str, float]:
        """By how much each cost in the budget was passed, where it was: the last items may cost more than expected."""
        budget = self._pool.spec.budget.costs
        return {
            name: -amount
            for name, amount in self._pool.prices.purse(self._state).left.items()
            if amount < -ROUNDING * budget[name]
        }

    @property
    def whole_costs(self) -> dict[str, tuple[float, float, float]]:
        """What the whole benchmark will have cost this model, by unit, and the ends of the 95 % interval of that.

        What past models paid for the items without a known cost counts at this model's price level: the ratio of what
        it has cost to what was expected, drawn to 1 while it has few answers.
        """
        return self._pool.prices.whole(self._state)

    @property
    def assumed_costs(self) -> dict[str, tuple[int, float]]:
        """By unit of the budget: answers and failed attempts without a reported cost, and what was assumed for all."""
        return self._pool.prices.assumed(self._state)

    @property
    def reason_stopped(self) -> str | None:
        """Why no more items are asked, None while they are; see `itembank.sessions.choosing` for the texts."""
        return self._precision_reason() or limit_reason(self._pool, self._state)

    @property
    def conclusion(self) -> str:
        """Why the session stopped and whether its goal was reached, in a sentence; '' while it goes on."""
        reason = self.reason_stopped
        if reason is None:
            return ""
        said = conclusion(self._pool, reason, self.estimate(), is_precise=self.is_precise)
        n_pending = len(self.pending)
        return f"{said} Asked and not answered yet: {n_pending}." if n_pending else said

    @property
    def is_precise(self) -> bool:
        """Whether a rule of precision holds."""
        return self._precision_reason() is not None

    def _record(self, event: Event) -> None:
        if isinstance(event, Told) and event.costs and (silent := self._pool.prices.silent_in(event.costs)):
            warn(
                f"the budget is in {shown(silent)}, and the reported costs of item {quoted(event.item_id)} are in "
                f"{shown(list(event.costs))}: the expected cost of the item is counted. Tell its cost in the unit of "
                "the budget.",
                DataWarning,
            )
        super()._record(event)
        if not isinstance(event, Asked):
            self._forget()

    def _ability(self) -> Abilities:
        if self._abilities is None:
            with one_blas_thread():
                self._abilities = session_ability(self._pool, self._counted)
        return self._abilities

    def _rule_that_holds(self) -> str | None:
        """Which rule of precision holds, whether or not items are lacking."""
        if not self._pool.spec.stopping.has_rules:
            return None
        return rule_that_holds(self._pool, self._state, self._ability().covariance[0], self.estimate)

    def _precision_reason(self) -> str | None:
        reason = self._rule_that_holds()
        return None if reason is None or lacks_items(self._pool, self._state) else reason


def find_abilities(sessions: Sequence[AdaptiveSession]) -> None:
    """Find the abilities of sessions over one bank together, as each would find its own when it needs it."""
    waiting = [session for session in sessions if session._abilities is None]
    if not waiting:
        return
    with one_blas_thread():
        found = session_abilities(waiting[0]._pool, [session._counted for session in waiting])
    for session, abilities in zip(waiting, found, strict=True):
        session._abilities = abilities


def find_worth(sessions: Sequence[AdaptiveSession]) -> None:
    """Find the worth of all items to sessions over one bank together, as each would when it chooses one.

    Their abilities must be found already; where items are not chosen by their information, nothing is done.
    """
    pool, criterion = sessions[0]._pool, sessions[0]._pool.criterion
    if not uses_information(criterion):
        return
    abilities = [session._ability() for session in sessions]
    weights = pool.items.weights(np.concatenate([one.theta for one in abilities]))
    covariance = np.concatenate([one.covariance for one in abilities])
    with one_blas_thread():
        worth = information_worth(pool.items, criterion, weights, covariance, goal=pool.goal)
    for session, row in zip(sessions, worth, strict=True):
        session._worth = row


def expectations_of(session: AdaptiveSession) -> Expectations | None:
    """Return what item and factor models expect of a session's scores; None where the item model is alone."""
    with one_blas_thread():
        return read_answers(session._pool, session._counted, session._ability())[-1]
