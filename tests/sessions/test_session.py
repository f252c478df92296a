import dataclasses

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.selection.criteria import CRITERIA
from itembank.sessions.events import Asked, Failed, Told
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.pool import SessionPool
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank
from tests.sessions.simulated import begin, expected, model_based, run, session_bank, true_answers
from tests.sessions.test_estimates import as_responses

BANK = session_bank(n_items=40)
ANSWERS = true_answers(BANK)


class Log:
    """A journal that keeps plain events, or fails."""

    def __init__(self):
        self.events, self.is_full = [], False

    def append(self, event):
        if self.is_full:
            raise OSError("no space left")
        self.events.append(event)


def facts(session):
    """Everything a session says of itself, to the last bit; its history comes first."""
    found = session.estimate()
    arrays = (found.theta, found.covariance, found.scores.value, found.scores.low, found.scores.high)
    counts = (session.n_items, session.n_unasked, session.reason_stopped)
    return (session.history, *(array.tobytes() for array in arrays), session.pending, session.costs, *counts)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 4)),
        st.tuples(st.just("tell"), st.integers(0, 39), st.sampled_from([0.0, 0.3, 1.0])),
        st.tuples(st.just("trials"), st.integers(0, 39), st.integers(0, 4)),
        st.tuples(st.just("fail"), st.integers(0, 39), st.booleans()),
    ),
    max_size=25,
)


def take(session, step):
    match step:
        case ("ask", n):
            session.ask(n)
        case ("tell", item, response):
            session.tell(BANK.item_ids[item], response, costs={"output_tokens": 0.1 * item})
        case ("trials", item, n_correct):
            session.tell(BANK.item_ids[item], n_correct=n_correct, n_trials=4)
        case ("fail", item, again):
            session.tell_failed(BANK.item_ids[item], again=again, costs={"output_tokens": 0.7})


def make(journal=None):
    return model_based(
        BANK, budget=Budget(20, {"output_tokens": 80.0}), n_start=2, seed=5, criterion="d-optimal", journal=journal
    )


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_the_same_events_make_the_same_session(steps):
    session, log = make(), Log()
    for step in steps:
        take(session, step)
    again = AdaptiveSession(session.pool, events=session.history, journal=log)
    assert facts(again) == facts(session)
    assert again.ask(3) == session.ask(3)
    assert len(log.events) <= 1  # what had happened is not written again


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(range(40)), min_size=1, unique=True), st.randoms())
def test_the_order_of_answers_does_not_matter(items, random):
    def told(order):
        session = model_based(BANK)
        for position in order:
            session.tell(BANK.item_ids[position], ANSWERS[BANK.item_ids[position]], costs={"cost_usd": 0.1 * position})
        return session

    first, second = told(items), told(random.sample(items, len(items)))
    assert facts(first)[1:] == facts(second)[1:]
    assert first.ask() == second.ask()


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_only_new_items_are_asked_while_any_may_be(steps):
    session = make()
    for step in steps:
        known = {*session.pending, *session.told}
        n_before, reason = session.n_items + len(session.pending), session.reason_stopped
        if step[0] == "ask":
            items = session.ask(step[1])
            assert not known & set(items)
            assert len(set(items)) == len(items) <= step[1]
            assert bool(items) == (reason is None)
            assert not items or n_before + len(items) <= 20
        else:
            take(session, step)


def test_a_correction_and_an_answer_nobody_asked_for_count_and_are_flagged():
    session, straight = model_based(BANK), model_based(BANK)
    (item,) = session.ask()
    session.tell(item, 0.0)
    before = session.estimate().theta
    session.tell(item, 1.0)
    straight.tell(straight.ask()[0], 1.0)
    np.testing.assert_array_equal(session.estimate().theta, straight.estimate().theta)
    assert not np.array_equal(before, session.estimate().theta)
    other = next(one for one in BANK.item_ids if one != item)
    session.tell(other, 1.0)
    told = [(event.is_correction, event.was_asked) for event in session.history if isinstance(event, Told)]
    assert (told, session.n_items) == ([(False, True), (True, True), (False, False)], 2)
    assert other not in {new for _ in range(BANK.n_items) for new in session.ask()}


def test_a_failed_item_is_asked_again_or_skipped():
    session = model_based(BANK)
    (item,) = session.ask()
    session.tell_failed(item, again=True, reason="timeout")
    assert session.ask() == (item,)
    session.tell_failed(item)
    assert {new for _ in range(BANK.n_items) for new in session.ask()} == {*BANK.item_ids} - {item}
    assert session.history[1] == Failed(item, True, "timeout")
    session.tell(item, 1.0)  # an answer after all
    assert session.told[item].was_asked


def test_a_failure_takes_an_answer_back():
    session, four = model_based(BANK), model_based(BANK)
    for one, n in ((session, 5), (four, 4)):
        for item in BANK.item_ids[:n]:
            one.tell(item, 1.0)
    session.tell_failed(BANK.item_ids[4], again=True, reason="the grader was wrong")
    np.testing.assert_array_equal(session.estimate().theta, four.estimate().theta)
    assert (session.n_items, session.n_unasked) == (4, BANK.n_items - 4)


def test_items_in_hand_count_as_answered():
    """The second of two asked together is another than the first asked twice over, and than without it."""
    together = model_based(BANK, "d-optimal").ask(5)
    session = model_based(BANK, "d-optimal")
    assert tuple(item for _ in range(5) for item in session.ask()) == together
    assert session.pending == together


@pytest.mark.parametrize("criterion", CRITERIA.kinds)
def test_every_criterion_asks_every_item_once(criterion):
    session = begin(BANK, "drawn") if criterion == "drawn" else model_based(BANK, criterion, cost="tokens")
    assert sorted(run(session, ANSWERS, n=3)) == sorted(BANK.item_ids)
    assert (session.reason_stopped, session.is_precise) == ("exhausted", False)


@pytest.mark.parametrize("criterion", ["random", "uniform"])
def test_chance_follows_the_seed(criterion):
    first, same, other = (run(model_based(BANK, criterion, seed=seed), ANSWERS) for seed in (1, 1, 2))
    assert first == same != other


def test_a_unit_of_cost_divides_a_criterion_given_by_name():
    assert model_based(BANK, "fisher", cost="tokens").pool.spec.criterion.per_cost
    assert not model_based(BANK, CRITERIA.resolve("fisher"), cost="tokens").pool.spec.criterion.per_cost
    costs, sessions = expected(BANK), (model_based(BANK, cost="output_tokens"), model_based(BANK))
    divided, plain = (sum(costs[item] for item in run(session, ANSWERS, most=10)) for session in sessions)
    assert divided < plain


ITEM = BANK.item_ids[0]
BAD = [
    ("tell", ([ITEM], 1.0), {}),
    ("tell", ("no such item", 1.0), {}),
    ("tell", (ITEM, 1.5), {}),
    ("tell", (ITEM,), {}),
    ("tell", (ITEM, 1.0), {"n_correct": 1, "n_trials": 1}),
    ("tell", (ITEM,), {"n_correct": 1}),
    ("tell", (ITEM, 1.0), {"n_trials": 2}),
    ("tell", (ITEM, 1.0), {"costs": {"tokens": -1.0}}),
    ("tell", (ITEM, 1.0), {"costs": 3.0}),
    ("tell_failed", ("no such item",), {}),
    ("tell_failed", (ITEM,), {"costs": {"tokens": -1.0}}),
    ("check_items", (["no such item"],), {}),
]


@pytest.mark.parametrize(("verb", "arguments", "choices"), BAD)
def test_bad_input_changes_nothing(verb, arguments, choices):
    log = Log()
    session = make(log)
    run(session, ANSWERS, most=5)
    session.ask()
    before, kept = facts(session), list(log.events)
    with pytest.raises(DataError):
        getattr(session, verb)(*arguments, **choices)
    assert (facts(session), log.events) == (before, kept)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_only_whole_numbers_of_items_are_asked(n):
    session = make()
    with pytest.raises(ParameterError, match="whole number"):
        session.ask(n)
    assert session.history == ()


def test_what_the_journal_does_not_keep_has_not_happened():
    log = Log()
    session = make(log)
    run(session, ANSWERS, most=5)
    (item,) = session.ask()
    before = facts(session)
    log.is_full = True
    for act in (session.ask, lambda: session.tell(item, 1.0), lambda: session.tell_failed(item)):
        with pytest.raises(OSError, match="space"):
            act()
        assert facts(session) == before
    log.is_full = False
    session.tell(item, ANSWERS[item])
    assert [event.to_dict() for event in session.history] == log.events


def test_events_of_another_session_are_refused():
    plain = SessionPool.create(BANK, SessionSpec())
    for events, message in (
        ([Told("elsewhere", 1.0)], "in the bank"),
        ([Asked((ITEM,)), Asked((ITEM,))], "pending or answered"),
        ([Asked((ITEM, ITEM))], "pending or answered"),
    ):
        with pytest.raises(DataError, match=message):
            AdaptiveSession(plain, events=events)


def test_a_pool_serves_many_models_after_it_was_in_another_process_and_back():
    made = SessionPool.create(BANK, SessionSpec("random", budget=Budget(7), interval="model-based"))
    (travelled,) = joblib.Parallel(n_jobs=2)([joblib.delayed(dataclasses.replace)(made)])
    alone = model_based(BANK, "random", budget=Budget(7), seed=3, model_id="b")
    shared = AdaptiveSession(travelled, model_id="b", seed=3)
    assert shared.pool.spec == alone.pool.spec
    run(alone, ANSWERS), run(shared, ANSWERS)
    assert facts(shared) == facts(alone)
    assert shared.estimate().scores.model_ids == ("b",)


def ability_errors(bank, thetas, criteria, n_items):
    """Root mean square error of ability after so many items, over models of known ability, by criterion."""
    errors = {}
    for criterion in criteria:
        pool = SessionPool.create(bank, SessionSpec(criterion, budget=Budget(n_items), interval="model-based"))
        found = []
        for seed, theta in enumerate(thetas):
            session = AdaptiveSession(pool, seed=seed)
            run(session, true_answers(bank, seed=seed, theta=theta))
            found.append(session.estimate().theta)
        errors[criterion] = np.sqrt(np.mean((np.array(found) - thetas) ** 2))
    return errors


@pytest.mark.slow
def test_adaptive_choice_beats_chance_by_far():
    bank = session_bank(n_items=500, n_dims=2, seed=3)
    thetas = np.random.default_rng(0).multivariate_normal(np.zeros(2), np.eye(2), 200)
    errors = ability_errors(bank, thetas, ("random", "d-optimal", "v-optimal"), 20)
    assert errors["d-optimal"] < 0.85 * errors["random"]
    assert errors["v-optimal"] < errors["random"]


def test_adaptive_choice_beats_chance():
    """The same in one dimension on few models."""
    thetas = np.random.default_rng(0).normal(size=(40, 1))
    errors = ability_errors(session_bank(n_items=200, n_dims=1, seed=3), thetas, ("random", "fisher"), 15)
    assert errors["fisher"] < 0.85 * errors["random"]


def test_costs_are_summed_by_unit_and_what_an_answer_cost_stays_spent():
    session = model_based(BANK, budget=Budget(costs={"output_tokens": 1000.0}))
    item, other = session.ask(2)
    tokens = ({"output_tokens": 40.0}, 40.0), ({}, 40.0), ({"output_tokens": 50.0}, 50.0)
    for costs, spent in tokens:  # a correction replaces the cost, and may say nothing of costs
        session.tell(item, 1.0, costs=costs)
        assert session.costs == {"output_tokens": spent}
    session.tell_failed(item)
    assert session.costs == {"output_tokens": 50.0}
    assert session.left["output_tokens"] == 950.0 - expected(BANK)[other]
    session.tell(other, 1.0, costs={"output_tokens": 3.0, "seconds": 1.0})
    session.tell_failed(BANK.item_ids[2], costs={"seconds": 0.5})
    assert session.costs == {"output_tokens": 53.0, "seconds": 1.5}


def test_a_slip_in_a_unit_of_cost_is_refused_and_changes_nothing():
    session = model_based(BANK, budget=Budget(costs={"cost_usd": 5.0}))
    for tell, *answer in ((session.tell, 1.0), (session.tell_failed,)):
        with pytest.raises(DataError, match=r"got 'usd' for item .*Did you mean 'cost_usd'\?.*new_units=True"):
            tell(ITEM, *answer, costs={"usd": 0.3})
    assert session.history == ()
    session.tell(ITEM, 1.0, costs={"cost_usd": 0.3, "usd": 1.0}, new_units=True)
    assert (session.costs, session.left) == ({"cost_usd": 0.3, "usd": 1.0}, {"cost_usd": pytest.approx(4.7)})
    bare = model_based(make_bank())  # a bank without costs takes any unit
    bare.tell(bare.pool.item_ids[0], 1.0, costs={"yen": 30.0})
    assert bare.costs == {"yen": 30.0}


def test_costs_that_do_not_say_what_the_budget_is_in_are_told():
    session = model_based(BANK, budget=Budget(costs={"cost_usd": 5.0}))
    with pytest.warns(DataWarning, match="in 'cost_usd', and the reported costs of item .* in 'seconds'"):
        session.tell(ITEM, 1.0, costs={"seconds": 2.0})
    session.tell(BANK.item_ids[1], 1.0, costs={"seconds": 2.0, "cost_usd": 0.1})
    session.tell(BANK.item_ids[2], 1.0)  # nothing said: expected, as the documents say


def repeated(bank):
    """Give the bank's models four attempts at each item."""
    trials = np.full(bank.responses.responses.shape, 4)
    right = np.random.default_rng(1).binomial(trials, probability(bank.parameters, bank.calibration.abilities))
    responses = dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    return dataclasses.replace(bank, responses=responses)


@pytest.mark.parametrize("n_answers", [10, 40])
def test_intervals_are_those_of_estimate_on_the_same_answers(n_answers):
    bank = repeated(BANK)
    session = model_based(bank, estimand="repeated", budget=Budget(n_answers))
    answers = true_answers(bank)
    told = {item: answers[item] for item in run(session, answers)}
    found = session.estimate().scores
    other = estimate(bank, as_responses(bank, told), method="p-irt", interval="model-based", estimand="repeated")
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    assert found.estimand == "repeated"
    assert found.rows()[0]["estimand"] == "repeated"


def test_a_rule_of_precision_waits_for_the_score_that_is_meant():
    bank, rule = repeated(BANK), Stopping(half_width={"overall": 0.165})
    sessions = [model_based(bank, estimand=estimand, stopping=rule) for estimand in ("run", "repeated")]
    of_run, of_all = (len(run(session, true_answers(bank))) for session in sessions)
    assert of_run < of_all


def test_the_choice_is_kept_and_checked():
    spec = SessionSpec(estimand="repeated")
    assert SessionSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(ParameterError, match="estimand must be"):
        SessionSpec(estimand="always")
    with pytest.raises(DataError, match="repeated attempts"):
        model_based(BANK, estimand="repeated")


def test_a_custom_score_has_its_own_chance():
    bank, widths = repeated(BANK), {}
    custom, answers = dict.fromkeys(bank.item_ids[:10], 1.0), true_answers(bank)
    for estimand in ("run", "repeated"):
        session = model_based(bank, estimand=estimand, target=custom)
        for item in custom:
            session.tell(item, answers[item])
        found = session.estimate()
        widths[estimand] = found.scores.high[0, -1] - found.scores.low[0, -1]
    assert widths["run"] == pytest.approx(0.0, abs=1e-12)
    p = probability(bank.parameters, found.theta[None])[0, :10]
    assert widths["repeated"] == pytest.approx(2 * 1.96 * np.sqrt(np.sum(p * (1 - p)) / 100.0), rel=0.2)
