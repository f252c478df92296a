"""Sessions that are kept in a journal: starting one, going on with it, looking at it, taking its answers."""

import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Self, TypeAlias

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_places import is_bank_name
from itembank.bank.bank_records import RECORD
from itembank.bank.bank_views import bank_for, whole_bank
from itembank.bank.banks import Bank
from itembank.bank.marks import ANSWERED_HOW
from itembank.errors import BankError, DataError, ParameterError, shown
from itembank.progress import ProgressCallback, silent
from itembank.responses.how_read import check_one_answer_each
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answers import way_of
from itembank.sessions.asking import check_model_id
from itembank.sessions.events import EXTENDED, Extended, Failed, Told, event_from_dict
from itembank.sessions.journal import Journal, JournalContent, check_absent, read_journal, warn_of_torn
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import prepare_sessions, ready_pool
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec

Given = ParamSpec("Given")
MODEL_ID = "model_id"
"""Stands in a journal's header, and among its settings."""


class _Block(AbstractContextManager[AdaptiveSession, bool | None]):
    """A session that is open inside of a `with` block."""

    def __init__(self, made: AbstractContextManager[AdaptiveSession, bool | None]) -> None:
        self._made = made

    def __enter__(self) -> AdaptiveSession:
        return self._made.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._made.__exit__(*error)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say how to get the session itself."""
            how = "with ib.start_session(path, bank) as session, or with ib.open_session(path) as session"
            raise AttributeError(f"a session is open inside of a block, got .{name} outside. Write {how}.")


def _in_a_block(function: Callable[Given, Iterator[AdaptiveSession]]) -> Callable[Given, _Block]:
    """Make a function that yields a session return it as the value of a `with` block."""

    @wraps(function)
    def call(*arguments: Given.args, **named: Given.kwargs) -> _Block:
        return _Block(contextmanager(function)(*arguments, **named))

    return call


@_in_a_block
def start_session(
    path: str | Path,
    bank: GivenBank,
    spec: SessionSpec | None = None,
    *,
    model_id: str = "model",
    bank_path: str | Path | None = None,
    progress: ProgressCallback = silent,
    **choices: Any,
) -> Iterator[AdaptiveSession]:
    """Start a session whose every event is kept in a new journal; nobody else can write to it within the block.

    Parameters
    ----------
    path : str or Path
        The journal; nothing may be there yet.
    bank : Bank or path
    spec : SessionSpec, optional
    model_id : str
    bank_path : str or Path, optional
        Where the bank lies, so that `open_session` finds it; by default the folder it was loaded from. A relative
        path is kept relative to the journal's folder, so that both can be moved together. Of a bank of the Hub the
        journal keeps the name and the commit.
    progress : ProgressCallback
        Of `prepare_sessions`.
    **choices
        As for `prepare_sessions`: `criterion`, `n_items`, `half_width`, ...

    Raises
    ------
    DataError, ParameterError
        For choices that do not fit the bank, or when `path` exists. No journal is made then.
    JournalError
        When the journal cannot be written.

    Examples
    --------
    >>> with start_session("run.jsonl", bank, n_items=100, model_id="new-model") as session:  # doctest: +SKIP
    ...     while items := session.ask():
    ...         session.tell(items[0], run(items[0]))
    """
    bank = as_bank(bank)
    check_absent(path)
    check_one_answer_each(bank.responses.items, "a session")
    pool = prepare_sessions(bank, spec, progress=progress, **choices)  # says what is wrong before there is a file
    place = bank.cache.source or (bank_path if bank_path is not None else bank.cache.folder)
    if place is not None and not (is_bank_name(place) or Path(place).is_absolute()):
        place = os.path.relpath(os.path.realpath(place), os.path.realpath(Path(path).parent))
    header = {
        "itembank_version": importlib.metadata.version("itembank"),
        "bank_id": bank.bank_id,
        "target": bank.target_id,
        "target_digest": bank.target_digest,
        "bank_path": None if place is None else str(place),
        MODEL_ID: check_model_id(model_id),
        "settings": {**pool.spec.to_dict(), MODEL_ID: model_id},
    }
    with Journal.create(path, header) as journal:
        yield AdaptiveSession(pool, model_id=model_id, journal=journal)


@_in_a_block
def open_session(
    path: str | Path, bank: GivenBank | None = None, *, wait: float = 0.0, progress: ProgressCallback = silent
) -> Iterator[AdaptiveSession]:
    """Go on with the session of a journal; it is what it was after the last event that was kept.

    Parameters
    ----------
    path : str or Path
    bank : Bank or path, optional
        The bank it was started with; by default it is loaded from where the journal says.
    wait : float
        Seconds to wait for another process that has the journal open.
    progress : ProgressCallback
        Of `prepare_sessions`: what that finds is made again if it is not kept any more.

    Raises
    ------
    DataError, IntegrityError, JournalError
        See `Journal.open`.
    BankError
        When the bank is not the one the session was started with, or is not found.

    Examples
    --------
    >>> with open_session("run.jsonl") as session:  # doctest: +SKIP
    ...     while items := session.pending or session.ask():
    ...         session.tell(items[0], run(items[0]))
    """
    kept = KeptSession.read(path)
    bank = kept.bank(bank)
    pool = kept.pool(bank, progress)  # made ready before the lock is taken: that may take a while
    with Journal.open(path, wait=wait) as journal:
        now = KeptSession(kept.path, journal.content)
        if now.settings != kept.settings:  # extended meanwhile
            pool = now.pool(bank, progress)
        yield now.session(pool, journal)


def extend_session(
    path: str | Path,  # As of `open_session`
    bank: GivenBank | None = None,
    *,
    n_items: int | None = None,  # Answers at most, those so far among them
    costs: Mapping[str, float] | None = None,  # Costs at most, what is spent among it, in units of the budget
    wait: float = 0.0,
    progress: ProgressCallback = silent,
) -> Budget:
    """Raise the budget of a session, also of one that is over, and return the new one; it goes on from there.

    Examples
    --------
    >>> extend_session("run.jsonl", n_items=140)  # doctest: +SKIP
    """
    kept = KeptSession.read(path)
    bank = kept.bank(bank)
    with Journal.open(path, wait=wait) as journal:
        kept = KeptSession(kept.path, journal.content)
        budget = raised(kept.spec.budget, n_items, costs or {})
        kept.pool(bank, progress, budget)
        journal.append(Extended(budget).to_dict())
    return budget


def raised(budget: Budget, n_items: int | None, costs: Mapping[str, float]) -> Budget:
    """Return a budget with these limits in place of lower ones; `ParameterError` says which is not raised."""
    now: dict[str, float | None] = {"items": budget.n_items, **budget.costs}
    given = {**({} if n_items is None else {"items": n_items}), **costs}
    for unit, amount in given.items():
        limit = now.get(unit)
        if limit is None:
            raise ParameterError(
                f"only a limit that the session has can be raised, got {amount:g} {unit}. It is limited by "
                f"{' and '.join(name for name, most in now.items() if most is not None) or 'nothing'}."
            )
        if not amount > limit:
            raise ParameterError(f"a session's budget must be raised above {limit:g} {unit}, got {amount:g}.")
    if not given:
        raise ParameterError("a session is extended by a larger budget, got none. Say how many items or what costs.")
    return Budget(budget.n_items if n_items is None else n_items, {**budget.costs, **costs})


def read_session(
    path: str | Path, bank: GivenBank | None = None, *, progress: ProgressCallback = silent
) -> AdaptiveSession:
    """Look at the session of a journal, also while another process has it open; answers to it are not kept.

    Raises
    ------
    DataError, IntegrityError, JournalError, BankError
        As `open_session`.
    """
    kept = KeptSession.read(path)
    warn_of_torn(kept.path, kept.content)  # torn, or being written at this moment by another process
    return kept.session(kept.pool(kept.bank(bank), progress), None)


def bank_of_session(path: str | Path, bank: GivenBank | None = None) -> Bank:
    """Load the bank of a journal's session, from where the journal says or from where it lies now."""
    return KeptSession.read(path).bank(bank)


class KeptSession(NamedTuple):
    """What a journal says of its session."""

    path: Path
    content: JournalContent

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a journal, also while another process writes it."""
        return cls(Path(path), read_journal(path))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in the header, those of the spec and the model's id, with the budget as it is now."""
        settings = self.content.header.get("settings")
        if not isinstance(settings, Mapping):
            raise DataError(f"{self.path}: the header must have settings, got {settings!r}.")
        extended = [one for one in self.content.events if one.get("event") == EXTENDED and "budget" in one]
        return {**settings, "budget": extended[-1]["budget"]} if extended else settings

    @property
    def spec(self) -> SessionSpec:
        """The spec among the settings."""
        settings = {name: value for name, value in self.settings.items() if name != MODEL_ID}
        with self._named():
            return SessionSpec.from_dict(settings)

    def bank(self, given: GivenBank | None) -> Bank:
        """Load the bank where none is given, and check that it is the session's."""
        path, header = self.path, self.content.header
        if given is None:
            kept = header.get("bank_path")
            if not isinstance(kept, str):
                raise BankError(f"{path} does not say where its bank lies. Give the bank (bank=, --bank).")
            given = Path(kept) if is_bank_name(kept) else path.parent / kept
            if not (is_bank_name(given) or (given / RECORD).is_file()):
                raise BankError(f"the bank of {path} is not at {given} any more. Say where it is now (bank=, --bank).")
        bank, wanted = as_bank(given), header.get("bank_id")
        fitting = bank_for(bank, str(wanted), str(header.get("target_digest", "")))
        if fitting is None:
            raise BankError(
                f"{path} must go on with the bank it was started with, {wanted}, or a later version of it that still "
                f"gives its score, got bank {bank.bank_id}. Give that bank (bank=, --bank), or start another session "
                "with this one."
            )
        return fitting

    def pool(self, bank: Bank, progress: ProgressCallback, budget: Budget | None = None) -> SessionPool:
        """Get the bank ready for the session, with another budget if one is given."""
        spec = self.spec if budget is None else replace(self.spec, budget=budget)
        with self._named():
            return ready_pool(bank, spec, progress=progress)

    def session(self, pool: SessionPool, journal: Journal | None) -> AdaptiveSession:
        """Make the session, which keeps further events in the journal."""
        with self._named():
            events = map(event_from_dict, self.content.events)
            return AdaptiveSession(pool, model_id=self.settings.get(MODEL_ID, ""), events=events, journal=journal)

    def answers(self) -> tuple[str, dict[str, float]]:
        """Return the model and its answers, in the order of answering."""
        name, found = self.settings.get(MODEL_ID), dict[str, float]()
        for event in map(event_from_dict, self.content.events):
            if isinstance(event, Told):
                found[event.item_id] = event.response
            elif isinstance(event, Failed):
                found.pop(event.item_id, None)
        if not found or not isinstance(name, str):
            raise DataError(f"{self.path}: a session must name its model and have an answer to be examined.")
        return name, found

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the journal in what is wrong with it."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from error


JournalAnswers: TypeAlias = tuple[ResponseMatrix, dict[str, list[str]], dict[str, SessionSpec]]


def journal_responses(bank: Bank, paths: Sequence[Path]) -> JournalAnswers:
    """Read the answers of sessions with this bank, also to items that it keeps aside by now.

    The last word on an item counts, in the place of the first answer to it.

    Returns responses, one model a journal, over all items that any was asked; and by model the items in the order of
    answering, and the session's spec.
    """
    journals = [KeptSession.read(path) for path in paths]
    for one in journals:
        warn_of_torn(one.path, one.content)
    answers, specs = [one.answers() for one in journals], [one.spec for one in journals]
    names = [name for name, _ in answers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"each journal must be of another model, got several of {shown(twice)}. Give one at a time.")
    told = {item for _, found in answers for item in found}
    whole = whole_bank(bank).responses
    asked = [item for item in whole.item_ids if item in told]
    unknown = sorted(told - set(asked))
    if unknown:
        raise DataError(
            f"every item of a session must be in bank {bank.bank_id}, got {len(unknown)} that are not: "
            f"{shown(unknown)}. Take the bank that the sessions were started with."
        )
    values = np.array([[found.get(item, np.nan) for item in asked] for _, found in answers])
    items = whole.items[whole.item_indices(asked)]
    models = pl.DataFrame({"model_id": names, ANSWERED_HOW: [way_of(spec.criterion) for spec in specs]})
    matrix = ResponseMatrix.create(values, items=items, models=models)
    order = {name: list(found) for name, found in answers}
    return matrix, order, dict(zip(names, specs, strict=True))


def bank_of_journals(bank: Bank, paths: Sequence[Path]) -> Bank:
    """Return the bank with the score that sessions were begun for where it can still give that, else the bank."""
    headers = [read_journal(path).header for path in paths]
    made_for = {(str(one.get("bank_id")), str(one.get("target_digest", ""))) for one in headers}
    found = {one.target_digest: one for pair in made_for if (one := bank_for(bank, *pair)) is not None}
    if len(found) > 1:
        raise DataError(
            f"sessions that are examined together must have been begun for one score, got several: "
            f"{shown(sorted(one.target_id for one in found.values()))}. Give one at a time."
        )
    return next(iter(found.values()), bank)
