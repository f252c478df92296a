"""Sessions with a journal: started, gone on with, looked at."""

import dataclasses
import errno
import json
import os
import shutil

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import BankError, DataError, JournalError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.sessions.answers import session_responses
from itembank.sessions.journal import Journal, is_journal, read_journal
from itembank.sessions.journal_sessions import (
    bank_of_journals,
    extend_session,
    journal_responses,
    open_session,
    read_session,
    start_session,
)
from itembank.sessions.limits import Budget
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_living import retire
from tests.bank.banks import make_bank
from tests.living.living import named_bank
from tests.sessions.session_worker import response_to, work
from tests.sessions.simulated import begin

SPEC = SessionSpec(budget=Budget(8), interval="model-based", n_start=4)
BANK, CHANCE_SPEC = make_bank(), SessionSpec(interval="model-based")


@pytest.fixture
def bank(tmp_path):
    save_bank(make_bank(with_extras=True), tmp_path / "bank")
    return load_bank(tmp_path / "bank")


@pytest.fixture
def journal(tmp_path, bank):
    with start_session(tmp_path / "run.jsonl", bank, SPEC, model_id="m") as session:
        first = session.ask(2)
        session.tell(first[0], 1.0)
    return tmp_path / "run.jsonl"


def uninterrupted(bank, spec):
    """The session of the journal, had it been worked on in one go."""
    whole = AdaptiveSession(prepare_sessions(bank, spec), model_id="m")
    whole.tell(whole.ask(2)[0], 1.0)
    work(whole)
    return whole


@pytest.mark.parametrize("give_bank", [True, False])
def test_goes_on_where_it_ended(journal, bank, give_bank):
    header = read_journal(journal).header
    assert (header["bank_id"], header["model_id"]) == (bank.bank_id, "m")
    assert header["settings"]["budget"] == {"n_items": 8, "costs": {}}
    assert header["itembank_version"]
    before = journal.read_bytes()
    work(read_session(journal, bank))  # which keeps nothing
    assert journal.read_bytes() == before
    with open_session(journal, bank if give_bank else None) as session:
        assert (session.n_items, len(session.pending)) == (1, 1)
        work(session)
    whole, looked_at = uninterrupted(bank, SPEC), read_session(journal)
    assert looked_at.history == session.history == whole.history
    np.testing.assert_array_equal(looked_at.estimate().theta, whole.estimate().theta, strict=True)
    np.testing.assert_array_equal(looked_at.estimate().scores.low, whole.estimate().scores.low, strict=True)


def test_every_kind_of_event_is_the_same_after_reading(journal, bank):
    with open_session(journal, bank) as session:
        session.tell(session.pending[0], n_correct=1, n_trials=3, costs={"cost_usd": 0.1 + 0.2, "seconds": 1e-17})
        session.tell(bank.item_ids[0], np.float64(1 / 3))
        session.tell(bank.item_ids[0], 0.25)
        session.tell_failed(bank.item_ids[1], again=True, reason="tim\u00e9out\n\ud800", costs={"seconds": 2})
        session.tell_failed(bank.item_ids[2])
        session.ask(np.int64(1))
    assert read_session(journal, bank).history == session.history
    assert read_session(journal, bank).costs == session.costs


def test_choices_that_do_not_fit_leave_no_journal(tmp_path, bank):
    spec = SessionSpec(target="physics")
    with pytest.raises(ParameterError, match="'physics'"), start_session(tmp_path / "j", bank, spec):
        pass
    assert not (tmp_path / "j").exists()


def test_the_journal_is_free_after_the_block_or_an_error_and_the_session_takes_no_more(journal, bank):
    with open_session(journal, bank) as session, pytest.raises(JournalError, match="another process"):
        open_session(journal, bank).__enter__()
    with pytest.raises(RuntimeError), open_session(journal, bank):
        raise RuntimeError
    with open_session(journal, bank):
        before = session.history
    with pytest.raises(JournalError, match="closed"):
        session.ask()
    assert session.history == before


def test_bank_and_journal_move_together_and_a_linked_folder_finds_its_bank(tmp_path, bank, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "runs" / "deep")
    for place in ("runs/one.jsonl", "linked/one.jsonl"):
        with start_session(place, load_bank("bank")):
            pass
        assert read_session(place).pool.bank_id == bank.bank_id
    assert read_journal("runs/one.jsonl").header["bank_path"] == os.path.join("..", "bank")  # noqa: PTH118
    (tmp_path / "new").mkdir()
    for name in ("bank", "runs"):
        shutil.move(name, f"new/{name}")
    monkeypatch.chdir("/")
    assert read_session(tmp_path / "new" / "runs" / "one.jsonl").pool.bank_id == bank.bank_id


def test_a_bank_that_is_gone_or_was_never_said_is_asked_for(journal, bank, tmp_path):
    shutil.rmtree(tmp_path / "bank")
    with pytest.raises(BankError, match=r"not at .*bank any more.*bank=, --bank"):
        read_session(journal)
    assert read_session(journal, bank).n_items == 1
    in_memory = make_bank()
    with start_session(tmp_path / "other.jsonl", in_memory):
        pass
    with pytest.raises(BankError, match="does not say where its bank lies"):
        read_session(tmp_path / "other.jsonl")
    assert read_session(tmp_path / "other.jsonl", in_memory).n_items == 0


def test_another_bank_is_refused(journal):
    other, before = make_bank(seed=3), journal.read_bytes()
    for opening in (read_session, lambda *what: open_session(*what).__enter__()):
        with pytest.raises(BankError, match=f"started with, .*got bank {other.bank_id}"):
            opening(journal, other)
    assert journal.read_bytes() == before


def test_a_later_version_of_the_bank_goes_on_while_it_gives_the_score(journal, bank):
    asked = read_session(journal).history
    header = read_journal(journal).header
    assert (header["target"], header["target_digest"]) == (bank.target_id, bank.target_digest)
    pending = read_session(journal).pending[0]
    clean = retire(bank, [pending], reason="wrong key")
    with open_session(journal, clean) as session:  # for the score that it was started for
        assert (session.history, session.pool.target_id) == (asked, bank.target_id)
        session.tell(pending, 0.0)
        assert session.estimate().scores.target_id == bank.target_id
    assert read_session(journal).n_items == 2
    stranger = dataclasses.replace(clean, history=None)
    with pytest.raises(BankError, match="or a later version of it that still gives its score"):
        read_session(journal, stranger)


def test_a_full_disk_changes_nothing_and_the_session_goes_on(journal, bank, monkeypatch):
    def refuse(handle, content, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    def state():
        return session.history, session.pending, session.n_items, session.estimate().theta.tolist()

    with open_session(journal, bank) as session:
        before = state()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refuse)
            for verb, *arguments in ((session.tell, session.pending[0], 1.0), (session.ask,)):
                with pytest.raises(JournalError, match="No space left"):
                    verb(*arguments)
        assert state() == before
        work(session)
    assert read_session(journal, bank).history == session.history


@pytest.mark.parametrize(
    ("change", "message"),
    [({"settings": None}, "settings"), ({"settings": {"seed": 1}}, "settings of a session must have the fields")],
)
def test_a_header_that_is_not_ours_is_refused_and_named(tmp_path, journal, bank, change, message):
    header = dict(read_journal(journal).header) | change
    Journal.create(tmp_path / "odd.jsonl", header).close()
    with pytest.raises(DataError, match=rf"odd\.jsonl: .*{message}"):
        read_session(tmp_path / "odd.jsonl", bank)


@pytest.mark.parametrize("event", [{"event": "danced"}, {"event": "asked", "item_ids": ["unheard"]}])
def test_events_that_are_not_ours_are_refused_and_named(journal, bank, event):
    with Journal.open(journal) as opened:
        opened.append(event)
    with pytest.raises(DataError, match=r"run\.jsonl: "):
        read_session(journal, bank)


def test_answers_become_responses_in_the_order_of_the_bank(bank):
    session = begin(bank, model_id="new")
    for item in reversed(bank.item_ids[:4]):
        session.tell(item, response_to(item), costs={"seconds": 2.0} if item == bank.item_ids[1] else None)
    session.tell(bank.item_ids[2], n_correct=1, n_trials=4)
    session.tell_failed(bank.item_ids[3])
    responses = session_responses(session)
    assert responses.item_ids == bank.item_ids[:4]
    told = [response_to(bank.item_ids[0]), response_to(bank.item_ids[1]), 0.25]
    assert responses.responses[0].tolist() == pytest.approx([*told, np.nan], nan_ok=True)
    assert (responses.n_trials.tolist(), responses.lost.n.tolist()) == ([[1, 1, 4, 0]], [[0, 0, 0, 1]])
    assert json.dumps(responses.costs["seconds"].tolist()) == "[[NaN, 2.0, NaN, NaN]]"
    assert responses.items.equals(bank.responses.items[:4])


def test_a_session_that_is_over_goes_on_with_a_larger_budget(journal, bank):
    """It ends with the answers of one that had the larger budget from the start, and the same first items."""
    with open_session(journal, bank) as session:
        work(session)
        assert session.reason_stopped == "budget: 8 items"
    assert extend_session(journal, n_items=12) == Budget(12)
    assert read_session(journal).reason_stopped is None
    with open_session(journal) as session:
        assert session.n_items == 8
        work(session)
        assert session.reason_stopped == "budget: 12 items"
        found = session.estimate().scores.rows()
    whole = uninterrupted(bank, dataclasses.replace(SPEC, budget=Budget(12)))
    assert list(session.told) == list(whole.told)
    np.testing.assert_equal(found, whole.estimate().scores.rows())


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"n_items": 8}, "raised above 8 items, got 8"), ({"costs": {"tokens": 5}}, "limited by items"), ({}, "got none")],
)
def test_a_budget_that_is_not_raised_is_refused(journal, limits, message):
    before = journal.read_bytes()
    with pytest.raises(ParameterError, match=message):
        extend_session(journal, **limits)
    assert journal.read_bytes() == before


def test_costs_may_be_raised_too(tmp_path, bank):
    spec = SessionSpec(budget=Budget(costs={"output_tokens": 200.0}), interval="model-based")

    def answer_all(session):
        while items := session.ask():
            session.tell(items[0], 1.0)
        return session.n_items

    with start_session(tmp_path / "run.jsonl", bank, spec) as session:
        n_items = answer_all(session)
    more = Budget(costs={"output_tokens": 500.0})
    assert extend_session(tmp_path / "run.jsonl", costs={"output_tokens": 500}) == more
    with open_session(tmp_path / "run.jsonl") as session:
        assert session.left["output_tokens"] > 300
        assert answer_all(session) > n_items


def played(path, name, told):
    """A journal in which these things were told: a response, or None for a failure."""
    with start_session(path, BANK, CHANCE_SPEC, model_id=name) as session:
        for item, response in told:
            if response is None:
                session.tell_failed(item, reason="lost")
            else:
                session.tell(item, response)
    return path


def test_answers_stand_in_the_order_of_the_first_answer_with_the_last_word(tmp_path):
    told = [("law/5", 1.0), ("math/0", 0.0), ("code/1", 1.0), ("law/5", 0.0), ("code/1", None)]
    first = played(tmp_path / "a.jsonl", "a", told)
    second = played(tmp_path / "b.jsonl", "b", [("math/3", 1.0), ("math/0", 1.0)])
    matrix, order, sessions = journal_responses(BANK, [first, second])
    told_spec = dataclasses.replace(CHANCE_SPEC, errors="missing")  # as the bank counts lost answers
    assert sessions == {"a": told_spec, "b": told_spec}
    assert order == {"a": ["law/5", "math/0"], "b": ["math/3", "math/0"]}
    assert matrix.item_ids == ["math/0", "math/3", "law/5"]  # the bank's order
    np.testing.assert_array_equal(matrix.responses, [[0.0, np.nan, 0.0], [1.0, 1.0, np.nan]])
    assert matrix.items["scenario"].to_list() == ["math", "math", "law"]


def test_an_estimate_names_the_session_that_chose_the_items(tmp_path):
    journal = played(tmp_path / "a.jsonl", "a", [("law/5", 1.0), ("math/0", 0.0), ("code/1", 1.0)])
    matrix, *_ = journal_responses(BANK, [journal])
    notes = {one.kind: one for one in estimate(BANK, matrix, interval="model-based").notes}
    assert (notes["session"].models, "own-mean" in notes) == (("a",), False)
    assert "session.estimate()" in notes["session"].text
    (tmp_path / "other.jsonl").write_text('{"model_id": "a"}\n')
    assert [is_journal(one) for one in (journal, tmp_path / "other.jsonl", tmp_path)] == [True, False, False]


def test_what_cannot_be_examined_is_refused(tmp_path):
    empty = played(tmp_path / "empty.jsonl", "a", [("math/0", None)])
    with pytest.raises(DataError, match="have an answer to be examined"):
        journal_responses(BANK, [empty])
    journal = played(tmp_path / "a.jsonl", "a", [("math/0", 1.0), ("law/29", 1.0)])
    with pytest.raises(DataError, match="another model, got several of 'a'"):
        journal_responses(BANK, [journal, journal])
    with pytest.raises(DataError, match="1 that are not: 'law/29'"):
        journal_responses(make_bank(n_items=15), [journal])


def test_sessions_go_with_the_score_that_they_were_begun_for(tmp_path):
    bank = named_bank()
    clean = retire(bank, ["math/0"], reason="wrong key")
    for name, one in (("before", bank), ("after", clean)):
        with start_session(tmp_path / name, one, CHANCE_SPEC, model_id=name) as session:
            session.tell("law/5", 1.0)
    assert bank_of_journals(clean, [tmp_path / "before"]).target_digest == bank.target_digest
    assert bank_of_journals(clean, [tmp_path / "after"]) is clean
    assert bank_of_journals(BANK, [tmp_path / "before"]) is BANK  # of strangers
    with pytest.raises(DataError, match="begun for one score, got several: 'quiz@1', 'quiz@2'"):
        bank_of_journals(clean, [tmp_path / "before", tmp_path / "after"])
    with start_session(tmp_path / "early", bank, CHANCE_SPEC, model_id="early") as session:
        session.tell("math/0", 1.0)
    assert journal_responses(clean, [tmp_path / "early"])[0].item_ids == ["math/0"]
