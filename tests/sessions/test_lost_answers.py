"""Items that fail in a session: what they count as, and what its estimate says of them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.sessions.answers import session_responses
from itembank.sessions.events import NOT_RECORDED
from itembank.sessions.limits import Stopping
from tests.sessions.simulated import begin, session_bank, true_answers

LOST = 3


@pytest.fixture(scope="module")
def bank():
    return session_bank(n_models=12, n_items=60)


def told(bank, *, errors="missing", value=None):
    """Give a session the answers to twelve items, of which three fail, or get a value instead."""
    session, answers = begin(bank, errors=errors, interval="model-based"), true_answers(bank)
    for number, item in enumerate(bank.item_ids[:12]):
        if number < LOST and value is None:
            session.tell_failed(item, reason="timed out")
        else:
            session.tell(item, value if number < LOST else answers[item])
    return session


def test_the_policies_are_what_answers_told_by_hand_give(bank):
    wrong, right = (told(bank, value=value).estimate().scores for value in (0.0, 1.0))
    for errors in ("missing", "wrong", "bounds"):
        found = told(bank, errors=errors).estimate().scores
        np.testing.assert_allclose(found.lost.if_wrong, wrong.value)
        np.testing.assert_allclose(found.lost.if_right, right.value)
        assert (found.lost.n.tolist(), found.lost.in_words) == ([LOST], ("3 time-outs",))
    np.testing.assert_allclose(told(bank, errors="wrong").estimate().scores.scores, wrong.scores)
    plain, bounds = (told(bank, errors=errors).estimate().scores for errors in ("missing", "bounds"))
    np.testing.assert_array_equal(bounds.value, plain.value)
    np.testing.assert_allclose(bounds.low, np.minimum(plain.low, np.minimum(wrong.low, right.low)))
    np.testing.assert_allclose(bounds.high, np.maximum(plain.high, np.maximum(wrong.high, right.high)))


def test_a_session_counts_them_as_the_bank_does_unless_it_is_told(bank):
    items = bank.responses.items.with_columns(pl.lit("wrong").alias("lost_as"))
    strict = replace(bank, responses=replace(bank.responses, items=items))
    for given, errors, expected in ((bank, None, "missing"), (strict, None, "wrong"), (strict, "bounds", "bounds")):
        session = told(given, errors=errors)
        assert session.pool.spec.errors == session.estimate().scores.lost.errors == expected
    found, by_hand = (told(strict, errors=errors).estimate().scores for errors in (None, "wrong"))
    np.testing.assert_array_equal(found.value, by_hand.value)


def test_what_may_be_asked_again_was_answered_later_or_never_recorded_is_not_lost(bank):
    session = begin(bank, errors="wrong", interval="model-based")
    first, second, third = bank.item_ids[:3]
    session.tell_failed(first, again=True, reason="429")
    session.tell_failed(second, reason="crash")
    session.tell_failed(third, reason=NOT_RECORDED)
    assert list(session.lost) == [second]
    session.tell(second, 1.0)
    assert session.estimate().scores.lost is None


def test_responses_of_a_session_keep_them_and_the_policy(bank):
    for errors, responses in (("missing", np.nan), ("wrong", 0.0)):
        matrix = session_responses(told(bank, errors=errors))
        assert (matrix.lost.n.sum(), matrix.lost.errors) == (LOST, errors)
        np.testing.assert_array_equal(matrix.responses[0, :LOST], [responses] * LOST)


def test_bounds_hold_a_session_open_until_they_are_narrow(bank):
    """A rule of precision looks at the interval that is reported."""
    sessions = {errors: told(bank, errors=errors) for errors in ("missing", "bounds")}
    rows = [session.estimate().scores.rows()[-1] for session in sessions.values()]
    between = sum(row["high"] - row["low"] for row in rows) / 4.0
    for errors, is_over in (("missing", True), ("bounds", False)):
        session = begin(bank, errors=errors, interval="model-based", stopping=Stopping(half_width={"overall": between}))
        for event in sessions[errors].history:
            session._record(event)
        assert session.is_precise == is_over
