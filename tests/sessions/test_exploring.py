"""Items drawn at random within sessions: their share, their sample, and estimates that rest on it."""

import dataclasses

import numpy as np
import pytest

from itembank.bank.bank_history import ANSWERED_HOW
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.selection.constraints import Constraints
from itembank.sessions.answer_table import random_part
from itembank.sessions.events import Asked, event_from_dict
from itembank.sessions.exploring import random_order
from itembank.sessions.limits import Budget
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import model_based, run, session_bank, true_answers

BANK = session_bank(n_items=60)
ANSWERS = true_answers(BANK)


def explored(session):
    return [item for event in session.history if isinstance(event, Asked) for item in event.explored]


@pytest.mark.parametrize("explore", [0.1, 0.25, 0.5, 0.9])
def test_the_share_of_random_items_is_kept_to_one(explore):
    session = model_based(BANK, budget=Budget(40), explore=explore, seed=3)
    run(session, ANSWERS)
    assert len(explored(session)) in {int(np.floor(explore * 40)), int(np.ceil(explore * 40))}
    assert session.n_items == 40


def test_nothing_changes_without_exploring():
    plain, other = (model_based(BANK, budget=Budget(20), **choices) for choices in ({}, {"explore": 0.0}))
    assert list(run(plain, ANSWERS)) == list(run(other, ANSWERS))
    assert "explore" not in SessionSpec().to_dict()
    assert SessionSpec.from_dict(SessionSpec().to_dict()) == SessionSpec()
    assert SessionSpec.from_dict(SessionSpec(explore=0.2).to_dict()).explore == 0.2


def test_the_sample_is_the_beginning_of_an_order_that_no_answer_changes():
    opposite = {item: 1.0 - answer for item, answer in ANSWERS.items()}
    sessions = [model_based(BANK, budget=Budget(30), explore=0.3, seed=7) for _ in range(2)]
    for session, answers in zip(sessions, (ANSWERS, opposite), strict=True):
        run(session, answers)
        sample, order = session.random_sample(), random_order(session.pool)
        assert list(sample.item_ids) == [BANK.item_ids[item] for item in order[: sample.n_items]]
        assert set(sample.item_ids) <= set(session.told)  # those passed over had been answered before
        assert set(explored(session)) <= set(sample.item_ids)
    shorter, longer = sorted((session.random_sample() for session in sessions), key=lambda one: one.n_items)
    assert longer.item_ids[: shorter.n_items] == shorter.item_ids


def test_every_item_of_a_scenario_is_as_likely():
    counts = np.zeros(BANK.n_items)
    pool = model_based(BANK, explore=0.2).pool
    for seed in range(600):
        counts[random_order(pool.with_spec(seed=seed))[:12]] += 1
    # four of twenty items in each of three scenarios
    np.testing.assert_allclose(counts / 600, 0.2, atol=5 * np.sqrt(0.16 / 600))


def test_the_random_part_says_how_it_was_drawn_and_gives_a_design_based_estimate():
    session = model_based(BANK, budget=Budget(40), explore=0.4, seed=1)
    run(session, ANSWERS)
    responses, sample = random_part(session)
    assert responses.models[ANSWERED_HOW].to_list() == ["random"]
    assert set(responses.item_ids) == set(sample.item_ids)
    n_each = np.array([sample.scenarios.count(name) for name in sample.scenarios])
    np.testing.assert_allclose(sample.inclusion_probabilities, n_each / 20)
    found = estimate(BANK, responses, selection=sample, interval="design")
    assert found.interval_kind == "design"


def test_a_session_goes_on_as_it_was_from_its_events():
    whole = model_based(BANK, budget=Budget(30), explore=0.3, seed=2)
    run(whole, ANSWERS)
    events = [event_from_dict(event.to_dict()) for event in whole.history]
    assert tuple(events) == whole.history
    half = AdaptiveSession(whole.pool, events=events[:30])
    assert list(run(half, ANSWERS)) == [event.item_ids[0] for event in whole.history[30::2]]


def test_batches_hold_their_share():
    session = model_based(BANK, budget=Budget(24), explore=0.25, seed=5)
    while asked := session.ask(8):
        assert len(set(asked)) == 8
        assert len(session.history[-1].explored) == 2
        for item in asked:
            session.tell(item, ANSWERS[item])
    assert len(explored(session)) == 6


@pytest.mark.parametrize(
    "choices",
    [
        {"budget": Budget(costs={"cost_usd": 1.0})},
        {"constraints": Constraints(at_least=1)},
        {"constraints": Constraints(at_most=3)},
        {"constraints": Constraints(excluded=("math/0",))},
    ],
)
def test_what_would_bind_the_draw_is_refused(choices):
    with pytest.raises(ParameterError, match="explore draws from all items that count"):
        SessionSpec(explore=0.1, **choices)


@pytest.mark.parametrize("wrong", [1.0, -0.1, "0.1", True, float("nan")])
def test_a_share_is_below_one(wrong):
    with pytest.raises(ParameterError, match="explore must be a share"):
        SessionSpec(explore=wrong)


def test_a_session_that_drew_nothing_has_no_random_part():
    session = model_based(BANK, budget=Budget(4))
    run(session, ANSWERS)
    with pytest.raises(DataError, match="must have answers to items drawn at random, got none"):
        random_part(session)
    with pytest.raises(DataError, match="explored items among its items"):
        event_from_dict({"event": "asked", "item_ids": ["a"], "explored": ["b"]})


@pytest.mark.slow
def test_design_based_estimates_of_the_random_part_are_unbiased():
    """Against the truth, while the items that the criterion chose are far from a random sample."""
    rng, errors = np.random.default_rng(0), []
    pool = model_based(BANK, budget=Budget(36), explore=0.4).pool
    truth = BANK.targets.with_overall(
        BANK.targets.scenario_means(np.array([[ANSWERS[item] for item in BANK.item_ids]]))
    )[0, -1]
    for seed in rng.integers(0, 10**6, 300).tolist():
        session = AdaptiveSession(dataclasses.replace(pool).with_spec(seed=seed))
        run(session, ANSWERS)
        responses, sample = random_part(session)
        values = dict(zip(responses.item_ids, responses.responses[0], strict=True))
        means = [
            np.average(
                [values[item] for item, where in zip(sample.item_ids, sample.scenarios, strict=True) if where == name]
            )
            for name in BANK.targets.scenarios
        ]
        errors.append(np.mean(means) - truth)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))
