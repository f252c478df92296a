"""One loop for functions, coroutines and commands: what is asked, told, asked again and left."""

import asyncio
import os
import signal
import threading

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError, RunError
from itembank.harnesses.drive import drive, drive_async
from itembank.sessions.answers import answer
from itembank.sessions.events import Failed
from itembank.sessions.limits import Budget
from tests.sessions.simulated import model_based, run, session_bank, true_answers

BANK = session_bank()
ANSWERS = true_answers(BANK)


def session_of(n_items=12, **choices):
    return model_based(BANK, budget=Budget(n_items), **choices)


def drive_awaited(session, run_item, n_jobs=4, **choices):
    """Drive a session by a coroutine that does what a function does."""

    async def run_later(item_id):
        await asyncio.sleep(0)
        return run_item(item_id)

    asyncio.run(drive_async(session, run_later, n_jobs, **choices))


WAYS = pytest.mark.parametrize("drive_session", [drive, drive_awaited], ids=["threads", "async"])


@WAYS
def test_items_are_answered_once_one_at_a_time_as_in_the_documentation_or_several_and_pending_ones_first(drive_session):
    driven, by_hand = session_of(), session_of()
    drive_session(driven, ANSWERS.get, 1)
    run(by_hand, ANSWERS)
    assert driven.history == by_hand.history
    np.testing.assert_array_equal(driven.estimate().theta, by_hand.estimate().theta)
    session, ran = session_of(30), []
    drive_session(session, lambda item: ran.append(item) or ANSWERS[item], 4)
    assert (session.n_items, session.pending, session.reason_stopped) == (30, (), "budget: 30 items")
    assert sorted(ran) == sorted(session.told)
    assert len(set(ran)) == 30
    session = session_of(8)
    pending = session.ask(3)
    session.tell(pending[1], 1.0)
    ran = []
    drive_session(session, lambda item: ran.append(item) or 0.0, 1)
    assert ran[:2] == [pending[0], pending[2]]
    assert pending[1] not in ran


@WAYS
def test_a_function_may_return_a_number_a_mapping_or_an_answer(drive_session):
    session = session_of(3)
    returned = iter([np.float64(0.5), {"n_correct": 1, "n_trials": 4, "costs": {"output_tokens": 7}}])
    drive_session(session, lambda item: next(returned, answer(item, 1.0, costs={"output_tokens": 2})), 1)
    assert sorted(told.response for told in session.told.values()) == [0.25, 0.5, 1.0]
    assert session.costs == {"output_tokens": 9.0}


def test_a_free_slot_is_filled_while_others_still_run():
    session, started, slow = session_of(6), threading.Semaphore(0), []

    def run_item(item):
        started.release()
        if not slow:
            slow.append(item)
            for _ in range(6):  # goes on when all six have begun, five of them beside it
                assert started.acquire(timeout=10)
        return 1.0

    drive(session, run_item, 2)
    assert list(session.history[-1].to_dict().items())[1] == ("item_id", slow[0])  # the first began, the last ended


@WAYS
@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ValueError("no\nkey\x1b[31m"), "ValueError: no key\\x1b[31m"),
        (SystemExit(3), "SystemExit: 3"),
        (2.0, "a response must be a number in"),
        (None, "an answer must be one of"),
        ({"reponse": 1}, "'reponse'"),
        ({"response": 1, "item_id": "another"}, "the answer must be to item"),
    ],
)
def test_what_goes_wrong_is_a_failure_and_no_wrong_answer(drive_session, outcome, words):
    if drive_session is drive_awaited and isinstance(outcome, SystemExit):
        pytest.skip("asyncio itself ends with SystemExit")
    session, calls = session_of(3), []
    bad = session.ask()[0]

    def run_item(item):
        if item != bad:
            return 1.0
        calls.append(item)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    drive_session(session, run_item, 1, retries=0)
    assert calls == [bad]
    assert bad not in session.told
    failed = [event for event in session.history if isinstance(event, Failed)]
    assert [(event.item_id, event.again) for event in failed] == [(bad, False)]
    assert words in failed[0].reason


@WAYS
def test_an_item_is_asked_again_as_often_as_wanted_and_then_skipped(drive_session):
    session, calls = session_of(5), []

    def run_item(item):
        calls.append(item)
        return {"failed": True, "again": True, "costs": {"output_tokens": 3}} if item == calls[0] else 1.0

    drive_session(session, run_item, 1, retries=2)
    failed = [event for event in session.history if isinstance(event, Failed)]
    assert [event.again for event in failed] == [True, True, False]
    assert calls.count(calls[0]) == 3
    assert session.costs == {"output_tokens": 9.0}
    assert session.n_items == 5


def test_a_failure_for_good_is_not_asked_again_and_unknown_units_end_the_run():
    session, outcomes = session_of(5), iter([{"failed": True, "reason": "refused"}, *[1.0] * 5])
    drive(session, lambda item: next(outcomes), 1, retries=5)
    assert [event.reason for event in session.history if isinstance(event, Failed)] == ["refused"]
    session = session_of(3)
    with pytest.raises(DataError, match="'joules'"):
        drive(session, lambda item: {"response": 1, "costs": {"joules": 3}}, 1)
    assert (session.n_items, len(session.pending)) == (0, 1)
    drive(session, lambda item: {"response": 1, "costs": {"joules": 3}}, 1, new_units=True)
    assert session.costs == {"joules": 9.0}


@WAYS
def test_many_failures_in_a_row_end_the_run_and_lose_no_item(drive_session):
    session, calls = session_of(20), []

    def run_item(item):
        calls.append(item)
        if not 1 < len(calls) <= 5:
            raise ConnectionError("provider is down")
        return 1.0

    with pytest.raises(RunError, match=r"5 attempts in a row failed.*provider is down\. Fix") as failed:
        drive_session(session, run_item, 1, retries=1, max_failures=5)
    assert f"The last was item '{calls[-1]}': " in str(failed.value)
    assert (len(calls), calls[0]) == (10, calls[1])  # the first failure was alone
    assert session.n_items == 4
    drive_session(session, ANSWERS.get, 3)
    assert session.n_items == 20
    assert set(calls) <= set(session.told)  # also those that had been skipped


def test_what_runs_when_the_run_ends_is_waited_for_and_told():
    """It was paid for."""
    session, has_failed, first = session_of(20), threading.Event(), []

    def run_item(item):
        if not first:
            first.append(item)
            assert has_failed.wait(10)
            return 1.0
        raise ConnectionError

    with pytest.raises(RunError):
        drive(session, run_item, 2, max_failures=3, on_interrupt=has_failed.set)
    assert list(session.told) == first


@pytest.fixture
def _listens():
    """Let SIGINT be heard: a shell starts what runs in its background with deaf ears."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_listens")
def test_ctrl_c_waits_for_what_runs_and_starts_nothing_more():
    session, is_hurried = session_of(20), threading.Event()

    def run_item(item):
        if session.n_items == 3:
            os.kill(os.getpid(), signal.SIGINT)
            assert is_hurried.wait(10)
        return 1.0

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        drive(session, run_item, 1, on_interrupt=is_hurried.set)
    assert (session.n_items, session.pending) == (4, ())
    assert signal.getsignal(signal.SIGINT) is before
    drive(session, ANSWERS.get, 1)
    assert session.n_items == 20


@pytest.mark.usefixtures("_listens")
def test_a_second_ctrl_c_does_not_wait():
    session, goes_on = session_of(20), threading.Event()
    presses = iter([lambda: os.kill(os.getpid(), signal.SIGINT), lambda: None])

    def run_item(item):
        os.kill(os.getpid(), signal.SIGINT)
        goes_on.wait(10)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        drive(session, run_item, 1, on_interrupt=lambda: next(presses)())  # noqa: PLW0108
    goes_on.set()
    assert (session.n_items, len(session.pending)) == (0, 1)


def test_failures_while_everything_stops_leave_the_item_pending():
    session = session_of(20)

    def run_item(item):
        if session.n_items == 2:
            raise KeyboardInterrupt
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        drive(session, run_item, 1)
    assert (session.n_items, len(session.pending)) == (2, 1)
    assert not any(isinstance(event, Failed) for event in session.history)


def test_cancelling_leaves_what_runs_pending():
    session = session_of(20)

    async def main():
        async def run_item(item):
            if session.n_items >= 3:
                task.cancel()
            await asyncio.sleep(0)
            return 1.0

        task = asyncio.ensure_future(drive_async(session, run_item, 2))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert 3 <= session.n_items < 20
    drive(session, ANSWERS.get)
    assert session.n_items == 20


@pytest.mark.parametrize(("name", "number"), [("n_jobs", 0), ("retries", -1), ("max_failures", 0)])
def test_numbers_are_checked(name, number):
    with pytest.raises(ParameterError, match=name):
        drive(session_of(), ANSWERS.get, **{name: number})
