"""Answers read from journals: their order, corrections, failures, and what is no journal."""

import numpy as np
import pytest

from itembank.banks import retire
from itembank.errors import DataError
from itembank.sessions.journal_sessions import bank_of_journals, is_journal, journal_responses, start_session
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank
from tests.living.living import named_bank

BANK = make_bank()
SPEC = SessionSpec(interval="model-based")


def played(path, name, told):
    """A journal in which these things were told: a response, or None for a failure."""
    with start_session(path, BANK, SPEC, model_id=name) as session:
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
    assert sessions == {"a": SPEC, "b": SPEC}
    assert order == {"a": ["law/5", "math/0"], "b": ["math/3", "math/0"]}
    assert matrix.item_ids == ["math/0", "math/3", "law/5"]  # the bank's order
    np.testing.assert_array_equal(matrix.responses, [[0.0, np.nan, 0.0], [1.0, 1.0, np.nan]])
    assert matrix.items["scenario"].to_list() == ["math", "math", "law"]


def test_journals_are_told_from_other_files(tmp_path):
    journal = played(tmp_path / "a.jsonl", "a", [("math/0", 1.0)])
    (tmp_path / "other.jsonl").write_text('{"model_id": "a"}\n')
    assert is_journal(journal)
    assert not is_journal(tmp_path / "other.jsonl")
    assert not is_journal(tmp_path)


def test_what_cannot_be_examined_is_refused(tmp_path):
    empty = played(tmp_path / "empty.jsonl", "a", [("math/0", None)])
    with pytest.raises(DataError, match="have been told an answer"):
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
        with start_session(tmp_path / name, one, SPEC, model_id=name) as session:
            session.tell("law/5", 1.0)
    assert bank_of_journals(clean, [tmp_path / "before"]).target_digest == bank.target_digest
    assert bank_of_journals(clean, [tmp_path / "after"]) is clean
    assert bank_of_journals(BANK, [tmp_path / "before"]) is BANK  # of strangers
    with pytest.raises(DataError, match="begun for one score, got several: 'quiz@1', 'quiz@2'"):
        bank_of_journals(clean, [tmp_path / "before", tmp_path / "after"])
    with start_session(tmp_path / "early", bank, SPEC, model_id="early") as session:
        session.tell("math/0", 1.0)
    assert journal_responses(clean, [tmp_path / "early"]).responses.item_ids == ["math/0"]
