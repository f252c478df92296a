"""Processes killed at any point: what was told stays told, and the session ends as if nothing had happened."""

import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import DataWarning
from itembank.selection.greedy import Constraints
from itembank.sessions.events import Told
from itembank.sessions.journal import read_journal
from itembank.sessions.journal_sessions import open_session, read_session, start_session
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank
from tests.sessions.session_worker import work
from tests.sessions.simulated import begin

WORKER = Path(__file__).with_name("session_worker.py")
CHOICES = {
    "criterion": "v-optimal",
    "budget": Budget(20),
    "stopping": Stopping(half_width={"overall": 0.001}),
    "constraints": Constraints(at_least=2, randomesque=3),
    "n_start": 3,
    "seed": 7,
    "interval": "model-based",
}


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crashes") / "bank"
    save_bank(make_bank(n_items=60, with_extras=True), folder)
    return load_bank(folder)


@pytest.fixture(scope="module")
def uninterrupted(bank):
    session = begin(bank, **CHOICES, model_id="new/model")
    work(session)
    assert session.n_items == 20
    return session


@pytest.fixture
def journal(tmp_path, bank):
    with start_session(tmp_path / "run.jsonl", bank, SessionSpec(**CHOICES), model_id="new/model"):
        return tmp_path / "run.jsonl"


def start_worker(journal, bank, kind, *seed):
    command = [sys.executable, str(WORKER), str(journal), str(bank.cache.folder), kind, *map(str, seed)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "ready\n"
    return worker


def assert_same(session, other):
    """Compare everything a session says, to the bit."""
    assert session.history == other.history
    estimate, expected = session.estimate(), other.estimate()
    for name in ("theta", "covariance", "standard_errors"):
        np.testing.assert_array_equal(getattr(estimate, name), getattr(expected, name), strict=True)
    for name in ("value", "standard_error", "low", "high", "n_items"):
        np.testing.assert_array_equal(getattr(estimate.scores, name), getattr(expected.scores, name), strict=True)
    assert (session.n_items, session.costs, session.pending) == (other.n_items, other.costs, other.pending)
    assert (session.reason_stopped, session.is_precise) == (other.reason_stopped, other.is_precise)


def survive(journal, bank, uninterrupted, *, n_kills, rng):
    """Kill workers on one session after random numbers of answers or within a write; then let it end."""
    confirmed, n_torn = [], 0
    for kill in range(n_kills):
        is_own_death = kill % 2 == 1
        with start_worker(journal, bank, "again", *([int(rng.integers(10**6))] if is_own_death else [])) as worker:
            if not is_own_death:
                confirmed += [line.strip() for line, _ in zip(worker.stdout, range(rng.integers(1, 4)), strict=False)]
                worker.kill()
            confirmed += [line.strip() for line in worker.stdout if line.endswith("\n")]
        assert worker.returncode in {0, -signal.SIGKILL}
        content = read_journal(journal)
        n_torn += content.n_torn > 0
        told = [event["item_id"] for event in content.events if event["event"] == "told"]
        assert set(confirmed) <= set(told)
        assert len(told) == len(set(told))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with open_session(journal, bank) as session:
            work(session)
    assert_same(session, uninterrupted)
    assert_same(read_session(journal, bank), uninterrupted)
    return n_torn


def test_killed_workers_lose_nothing(journal, bank, uninterrupted):
    assert survive(journal, bank, uninterrupted, n_kills=2, rng=np.random.default_rng(1)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_killed_workers_lose_nothing_many_times(journal, bank, uninterrupted, seed):
    survive(journal, bank, uninterrupted, n_kills=8, rng=np.random.default_rng(100 + seed))


def test_a_journal_cut_at_any_byte_ends_the_same(journal, bank, uninterrupted, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)
    with open_session(journal, bank) as session:
        work(session)
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    starts = np.cumsum([0, *map(len, lines)])
    for length in (int(starts[-3]), *range(int(starts[-2]), len(whole))):
        journal.write_bytes(whole[:length])
        n_events = int(np.searchsorted(starts, length, side="right")) - 2
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with open_session(journal, bank) as session:
                assert session.history == uninterrupted.history[:n_events]
                work(session)
        assert [warning.category for warning in caught] == [DataWarning] * int(length not in starts)
        assert_same(session, uninterrupted)
    assert_same(read_session(journal, bank), uninterrupted)


def test_workers_that_share_a_session_lose_nothing_and_ask_nothing_twice(tmp_path, bank):
    journal = tmp_path / "shared.jsonl"
    with start_session(journal, bank, SessionSpec(**(CHOICES | {"budget": Budget(6)})), model_id="new/model"):
        pass
    workers = [start_worker(journal, bank, "new") for _ in range(2)]
    confirmed = [line.strip() for worker in workers for line in worker.communicate()[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0]
    session = read_session(journal, bank)
    assert sorted(confirmed) == sorted(event.item_id for event in session.history if isinstance(event, Told))
    assert len(set(confirmed)) == len(confirmed) == 6
    assert session.pending == ()
