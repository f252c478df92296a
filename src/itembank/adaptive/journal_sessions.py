"""Sessions that are kept in a journal: starting one, going on with it, looking at it."""

import importlib.metadata
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from itembank.adaptive.events import event_from_dict
from itembank.adaptive.journal import Journal, read_journal, warn_of_torn
from itembank.adaptive.journal_lines import JournalContent
from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.settings import SessionSettings
from itembank.data.arguments import GivenBank, as_bank
from itembank.data.bank_files import RECORD
from itembank.data.banks import Bank
from itembank.errors import BankError, DataError


@contextmanager
def start_session(
    path: str | Path, bank: GivenBank, *, bank_path: str | Path | None = None, **choices: Any
) -> Iterator[AdaptiveSession]:
    """Start a session whose every event is kept in a new journal; nobody else can write to it within the block.

    Parameters
    ----------
    path : str or Path
        The journal; nothing may stand there.
    bank : Bank or path
    bank_path : str or Path, optional
        Where the bank lies, so that `open_session` finds it; by default the folder it was loaded from. A relative
        path is kept relative to the journal's folder, so that both can be moved together.
    **choices
        What `AdaptiveSession` takes: `criterion`, `stopping`, `budget`, `target`, `cost`, `constraints`, `prior`,
        `n_start`, `model_id`, `rng`, `interval`.

    Raises
    ------
    DataError, ParameterError
        For choices that do not fit the bank, or when something stands at `path`. No journal is made then.
    JournalError
        When the journal cannot be written.

    Examples
    --------
    >>> with start_session("run.jsonl", bank, budget=Budget(n_items=100)) as session:  # doctest: +SKIP
    ...     while items := session.ask():
    ...         session.tell(items[0], run(items[0]))
    """
    bank = as_bank(bank)
    settings = AdaptiveSession(bank, **choices).settings  # whatever is wrong is said before there is a file
    place = bank_path if bank_path is not None else bank.cache.folder
    header = {
        "itembank_version": importlib.metadata.version("itembank"),
        "bank_id": bank.bank_id,
        "bank_path": None if place is None else _kept_path(Path(place), Path(path).parent),
        "model_id": settings.model_id,
        "settings": settings.to_dict(),
    }
    with Journal.create(path, header) as journal:
        yield AdaptiveSession.resume(bank, settings, (), journal=journal)


@contextmanager
def open_session(path: str | Path, bank: GivenBank | None = None, *, wait: float = 0.0) -> Iterator[AdaptiveSession]:
    """Go on with the session of a journal; it is what it was after the last event that was kept.

    Parameters
    ----------
    path : str or Path
    bank : Bank or path, optional
        The bank it was started with; by default it is loaded from where the journal says.
    wait : float
        Seconds to wait for another process that has the journal open.

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
    bank = _bank_of(read_journal(path), Path(path), bank)  # loaded before the lock is taken: that may take a while
    with Journal.open(path, wait=wait) as journal:
        yield _resumed(bank, journal.content, Path(path), journal)


def read_session(path: str | Path, bank: GivenBank | None = None) -> AdaptiveSession:
    """Look at the session of a journal, also while another process has it open; what it is told is not kept.

    Raises
    ------
    DataError, IntegrityError, JournalError, BankError
        As `open_session`.
    """
    content = read_journal(path)
    warn_of_torn(Path(path), content)  # torn, or being written at this moment by another process
    return _resumed(_bank_of(content, Path(path), bank), content, Path(path), None)


def _bank_of(content: JournalContent, path: Path, bank: GivenBank | None) -> Bank:
    """Load the bank where none is given, and check that it is the session's."""
    if bank is None:
        place = _place_of_bank(content, path)
        if not (place / RECORD).is_file():
            raise BankError(f"the bank of {path} is not at {place} any more. Say where it is now (bank=, --bank).")
        bank = place
    bank = as_bank(bank)
    wanted = content.header.get("bank_id")
    if bank.bank_id != wanted:
        raise BankError(
            f"{path} must go on with the bank it was started with, {wanted}, got bank {bank.bank_id}. Give that bank "
            "(bank=, --bank), or start another session with this one."
        )
    return bank


def _place_of_bank(content: JournalContent, path: Path) -> Path:
    """Return where a journal says its bank lies."""
    kept = content.header.get("bank_path")
    if not isinstance(kept, str):
        raise BankError(f"{path} does not say where its bank lies. Give the bank (bank=, --bank).")
    return path.parent / kept


def _resumed(bank: Bank, content: JournalContent, path: Path, journal: Journal | None) -> AdaptiveSession:
    """Make the session of a journal's content."""
    try:
        settings = SessionSettings.from_dict(_mapping(content.header.get("settings")))
        events = [event_from_dict(event) for event in content.events]
        return AdaptiveSession.resume(bank, settings, events, journal=journal)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"the header must have settings, got {value!r}.")
    return value


def _kept_path(place: Path, folder: Path) -> str:
    """Return a path as a journal in `folder` keeps it."""
    return str(place) if place.is_absolute() else os.path.relpath(os.path.realpath(place), os.path.realpath(folder))
