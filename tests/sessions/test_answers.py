"""Answers on standard input: read whole or refused whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.errors import DataError, JournalError
from itembank.sessions.answers import answer, parse_answers, session_responses, tell_all
from itembank.sessions.limits import Budget
from tests.bank.banks import make_bank
from tests.sessions.simulated import model_based, session_bank


def lines(*records):
    return "\n".join(json.dumps(record) for record in records) + "\n"


def test_reads_responses_counts_and_failures():
    text = lines(
        {"item_id": "a", "response": 1},
        {"item_id": "b", "n_correct": 3, "n_trials": 4, "costs": {"output_tokens": 912}},
        {"item_id": "c", "failed": True, "again": True, "reason": "timeout"},
    )
    assert parse_answers(text, "stdin") == (
        answer("a", response=1),
        answer("b", n_correct=3, n_trials=4, costs={"output_tokens": 912}),
        answer("c", failed=True, again=True, reason="timeout"),
    )


@given(st.text(min_size=1), st.floats(0.0, 1.0))
def test_reads_any_id_and_response_to_the_bit(item_id, response):
    for ensure_ascii in (True, False):
        text = json.dumps({"item_id": item_id, "response": response}, ensure_ascii=ensure_ascii)
        assert parse_answers(f"\r\n{text}\r\n\n", "stdin") == (answer(item_id, response=response),)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1,1", "JSON object"),
        ("[1]", "JSON object"),
        ("[" * 100_000, "JSON object"),
        ('{"response": 1}', "no item_id"),
        ('{"item_id": "a", "response": 1, "score": 2}', "'score' too"),
        ('{"item_id": 7, "response": 1}', "item_id must be text"),
        ('{"item_id": "a"}', "one of a response"),
        ('{"item_id": "a", "response": 1, "failed": true}', "one of a response"),
        ('{"item_id": "a", "response": 1, "n_correct": 1, "n_trials": 1}', "one of a response"),
        ('{"item_id": "a", "response": 1.5}', r"\[0, 1\]"),
        ('{"item_id": "a", "response": "1"}', r"\[0, 1\]"),
        ('{"item_id": "a", "n_correct": 1}', "n_correct <= n_trials"),
        ('{"item_id": "a", "response": 1, "costs": {"tokens": -1}}', "number from 0 to 1e\\+15"),
        ('{"item_id": "a", "response": 1, "costs": 3}', "costs must be"),
        ('{"item_id": "a", "failed": "yes"}', "true or false"),
        ('{"item_id": "a", "failed": true, "again": 1}', "true or false"),
        ('{"item_id": "a", "failed": true, "reason": 1}', "text"),
        ('{"item_id": "a", "response": 1, "again": true}', "belong to a failure"),
    ],
)
def test_a_bad_line_is_named_and_nothing_read(line, message):
    with pytest.raises(DataError, match=rf"stdin: line 2: .*{message}.* Nothing was told"):
        parse_answers(lines({"item_id": "ok", "response": 1}) + line, "stdin")


def test_what_is_read_whole_or_not_at_all():
    """An item twice, since one answer would be lost; nothing at all, so that loops end; more bad lines than five."""
    twice = lines({"item_id": "a", "response": 1}, {"item_id": "b", "response": 1}, {"item_id": "a", "response": 0})
    for text, message in (
        (twice, r"more often: 'a'.*n_correct, n_trials"),
        ("", "got no answer"),
        ("\n \n", "got no answer"),
        ("no\n" * 7, r"line 1: .*line 5: .*And 2 more"),
    ):
        with pytest.raises(DataError, match=message):
            parse_answers(text, "stdin")


def test_an_unknown_item_keeps_all_from_being_told():
    session = model_based(make_bank())
    with pytest.raises(DataError, match="unheard"):
        tell_all(session, [answer("math/0", response=1), answer("unheard", response=1)])
    assert session.history == ()


def test_says_how_many_were_kept_when_the_disk_is_full():
    class FullSoon:
        n_left = 1

        def append(self, event):
            if not self.n_left:
                raise JournalError("run.jsonl cannot be written: no space.")
            self.n_left -= 1

    bank = make_bank()
    session = model_based(bank, journal=FullSoon())
    answers = [answer(item, response=1) for item in bank.item_ids[:3]]
    with pytest.raises(JournalError, match=f"Of 3 answers the first 1 are kept.*{bank.item_ids[1]}"):
        tell_all(session, answers)
    assert [event.item_id for event in session.history] == bank.item_ids[:1]
    with pytest.raises(JournalError, match=f"Of 2 answers none is kept.*{bank.item_ids[1]}"):
        tell_all(session, answers[1:])


@pytest.mark.parametrize(("criterion", "way"), [("v-optimal", "adaptive"), ("random", "random"), ("uniform", "random")])
def test_answers_say_how_their_items_were_chosen(criterion, way):
    session = model_based(session_bank(n_dims=1), criterion, budget=Budget(n_items=3))
    for item in session.ask(3):
        session.tell(item, 1.0)
    assert session_responses(session).models["answered_how"].to_list() == [way]
