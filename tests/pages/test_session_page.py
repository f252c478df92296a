import dataclasses
from importlib import import_module

import numpy as np
import pytest

import itembank as ib
from itembank.errors import RunError
from itembank.harnesses import drive
from itembank.irt.bernoulli import probability
from itembank.pages.session_page import session_page
from tests.pages.reading import answers, chart, column, holds, table, words


def answered(bank, n_answers, *, spec=None, model_id="new"):
    """A session of a model that answers every second item rightly, each for half a cent."""
    spec = spec or ib.SessionSpec(budget=ib.Budget(n_items=10), interval="model-based")
    session = ib.AdaptiveSession(ib.prepare_sessions(bank, spec), model_id=model_id)
    for k in range(n_answers):
        (item,) = session.ask()
        session.tell(item, float(k % 2), costs={"cost_usd": 0.005, "output_tokens": 100})
    return session


@pytest.fixture(scope="module")
def made(bank):
    session = answered(bank, 10)
    return session, session_page(session, bank)


def test_the_page_begins_with_the_estimate_and_lists_answers_by_how_far_they_moved_it(made):
    session, page = made
    row = session.estimate().scores.rows()[-1]
    score, state, spent = answers(page)
    assert (score.value, state.value) == (f"{100 * row['estimate']:.1f} points", "Ended")
    assert state.interval == session.conclusion
    assert state.interval.startswith("Stopped by the budget of 10 items: no precision was asked for, the half-width")
    assert (spent.value, spent.interval) == ("0.05 USD", "and 1,000 output tokens")
    page = made[1]
    moved = np.abs(column(page, "moved the estimate most", "moved"))
    assert moved.size == 10
    assert np.all(np.diff(moved) <= 0.0)
    assert column(page, "moved the estimate most", "cost")[0] <= 0.05
    assert [one.title for one in table(page, "moved the estimate most").columns][-1] == "USD so far"


def test_each_step_is_the_estimate_of_the_session_as_it_stood_then(made, bank):
    session, page = made
    data = chart(page, "After 10 answers").data[0].columns
    assert list(data["number"]) == list(range(11))
    again = ib.AdaptiveSession(session.pool, model_id="new")
    for k in range(11):
        estimate = again.estimate()
        scores = estimate.scores.rows()[-1]
        found = (data["estimate"][k], data["low"][k], data["high"][k])
        assert found == pytest.approx((scores["estimate"], scores["low"], scores["high"]))
        if k < 10:
            (item,) = again.ask()
            assert data["item"][k + 1] == item
            place = bank.parameters.take(np.array([bank.item_ids.index(item)]))
            expected = probability(place, estimate.theta[None, :])[0, 0]
            assert data["expected"][k + 1] == pytest.approx(expected)
            again.tell(item, float(k % 2))


def test_a_long_session_is_estimated_at_some_answers_and_says_so(bank, monkeypatch):
    monkeypatch.setattr(import_module("itembank.pages.session_page"), "MOST_STEPS", 4)
    page = session_page(answered(bank, 10), bank)
    data = chart(page, "After 10 answers").data[0].columns
    assert list(data["number"]) == [0, 2, 5, 8, 10]
    assert np.isnan(data["moved"]).all()
    assert "Of 10 answers, 4 are shown" in words(page)


def test_a_session_that_has_just_begun_or_has_a_pending_item_has_a_page(bank):
    page = session_page(answered(bank, 0), bank)
    assert "answered nothing yet" in page.summary
    assert (answers(page)[1].value, answers(page)[2].value) == ("Going on", "0 answers")
    session = answered(bank, 3)
    session.ask()
    assert "1 question asked and not answered yet" in answers(session_page(session, bank))[1].words
    spec = ib.SessionSpec(budget=ib.Budget(n_items=2), stopping=ib.Stopping(half_width=0.01), interval="model-based")
    page = session_page(answered(bank, 2, spec=spec), bank)
    assert "the goal of ±0.01 (1 points) was not reached" in answers(page)[1].interval


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_failure_counts_once_though_the_item_is_told_again_at_the_end_of_a_run(bank, retries):
    session = answered(bank, 2)
    with pytest.raises(RunError):
        drive(session, {}.__getitem__, 1, retries=retries, max_failures=4)
    assert "4 attempts failed." in answers(session_page(session, bank))[-1].words


def test_a_threshold_that_decides_is_drawn_and_weights_of_items_can_be_a_target(bank):
    rule = ib.Stopping(decision=ib.Decision(threshold=0.2), min_items=2)
    spec = ib.SessionSpec(target="code", stopping=dataclasses.replace(rule, decision=ib.Decision("code", 0.2)))
    spec = dataclasses.replace(spec, interval="model-based", budget=ib.Budget(n_items=3))
    page = session_page(answered(bank, 2, spec=spec), bank)
    drawn = chart(page, "After 2 answers")
    assert [one for one in drawn.spec["layer"] if one["encoding"] == {"y": {"datum": 0.2}}]
    assert "Dashed" in drawn.note
    assert answers(page)[0].label == "Code, new"
    target = {"math/0": 2.0, "code/1": 1.0}
    spec = ib.SessionSpec(target=target, budget=ib.Budget(n_items=2), interval="model-based")
    assert answers(session_page(answered(bank, 2, spec=spec), bank))[0].label == "Custom, new"


def test_costs_that_were_assumed_or_passed_are_said(bank):
    spec = ib.SessionSpec(budget=ib.Budget(costs={"cost_usd": 1.0}), interval="model-based")
    costs = {"cost_usd": np.full(bank.responses.responses.shape, 0.01)}
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs=costs))
    session = ib.AdaptiveSession(ib.prepare_sessions(bank, spec), model_id="new")
    first, second = session.ask(2)
    session.tell(first, 1.0)
    session.tell(second, 1.0, costs={"cost_usd": 1.25})
    (n_silent, assumed), passed = session.assumed_costs["cost_usd"], session.passed["cost_usd"]
    assert (n_silent, passed) == (1, pytest.approx(0.25 + assumed))
    told = answers(session_page(session, bank))[2].words
    holds(told, "No cost was reported 1 time:", "Left of the budget: 0 USD.", "The maximum was exceeded by")
    assert "The whole benchmark should cost" in told
