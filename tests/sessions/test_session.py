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
    """Everything a session says of itself, to the last bit."""
    found = session.estimate()
    arrays = (found.theta, found.covariance, found.scores.value, found.scores.low, found.scores.high)
    return (
        *(array.tobytes() for array in arrays),
        session.history,
        session.pending,
        session.costs,
        session.n_items,
        session.n_unasked,
        session.reason_stopped,
    )


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

    other = list(items)
    random.shuffle(other)
    first, second = told(items), told(other)
    assert [fact for k, fact in enumerate(facts(first)) if k != 5] == [
        fact for k, fact in enumerate(facts(second)) if k != 5
    ]
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


def test_a_correction_replaces_the_answer_and_is_flagged():
    session = model_based(BANK)
    (item,) = session.ask()
    session.tell(item, 0.0)
    before = session.estimate().theta
    session.tell(item, 1.0)
    straight = model_based(BANK)
    straight.tell(straight.ask()[0], 1.0)
    np.testing.assert_array_equal(session.estimate().theta, straight.estimate().theta)
    assert not np.array_equal(before, session.estimate().theta)
    assert [event.is_correction for event in session.history if isinstance(event, Told)] == [False, True]
    assert session.n_items == 1


def test_an_answer_nobody_asked_for_counts_and_is_flagged():
    session = model_based(BANK)
    item = BANK.item_ids[7]
    session.tell(item, 1.0)
    assert not session.history[0].was_asked
    assert session.n_items == 1
    assert item not in {new for _ in range(BANK.n_items) for new in session.ask()}


def test_a_failed_item_is_asked_again_or_skipped():
    session = model_based(BANK)
    (item,) = session.ask()
    session.tell_failed(item, again=True, reason="timeout")
    assert session.ask() == (item,)
    session.tell_failed(item)
    others = {new for _ in range(BANK.n_items) for new in session.ask()}
    assert item not in others
    assert len(others) == BANK.n_items - 1
    assert session.history[1] == Failed(item, True, "timeout")
    session.tell(item, 1.0)  # an answer after all
    assert session.told[item].was_asked


def test_a_failure_takes_an_answer_back():
    session = model_based(BANK)
    for item in BANK.item_ids[:5]:
        session.tell(item, 1.0)
    session.tell_failed(BANK.item_ids[4], again=True, reason="the grader was wrong")
    four = model_based(BANK)
    for item in BANK.item_ids[:4]:
        four.tell(item, 1.0)
    np.testing.assert_array_equal(session.estimate().theta, four.estimate().theta)
    assert session.n_items == 4
    assert session.n_unasked == BANK.n_items - 4


def test_items_in_hand_count_as_answered():
    """The second of two asked together is another than the first asked twice over, and than without it."""
    together = model_based(BANK, "d-optimal").ask(5)
    session = model_based(BANK, "d-optimal")
    assert tuple(item for _ in range(5) for item in session.ask()) == together
    assert session.pending == together


@pytest.mark.parametrize("criterion", CRITERIA.kinds)
def test_every_criterion_asks_every_item_once(criterion):
    session = begin(BANK, "drawn") if criterion == "drawn" else model_based(BANK, criterion, cost="tokens")
    asked = run(session, ANSWERS, n=3)
    assert sorted(asked) == sorted(BANK.item_ids)
    assert session.reason_stopped == "exhausted"
    assert not session.is_precise


@pytest.mark.parametrize("criterion", ["random", "uniform"])
def test_chance_follows_the_seed(criterion):
    first, same, other = (run(model_based(BANK, criterion, seed=seed), ANSWERS) for seed in (1, 1, 2))
    assert first == same
    assert first != other


def test_a_unit_of_cost_divides_a_criterion_given_by_name():
    assert model_based(BANK, "fisher", cost="tokens").pool.spec.criterion.per_cost
    assert not model_based(BANK, CRITERIA.resolve("fisher"), cost="tokens").pool.spec.criterion.per_cost
    plain, divided = model_based(BANK), model_based(BANK, cost="output_tokens")
    costs = dict(zip(BANK.item_ids, BANK.responses.costs["output_tokens"][0], strict=True))
    assert sum(costs[item] for item in run(divided, ANSWERS, most=10)) < sum(
        costs[item] for item in run(plain, ANSWERS, most=10)
    )


BAD = [
    lambda session: session.tell([BANK.item_ids[0]], 1.0),
    lambda session: session.tell(7, 1.0),
    lambda session: session.tell("no such item", 1.0),
    lambda session: session.tell(BANK.item_ids[0], 1.5),
    lambda session: session.tell(BANK.item_ids[0], float("nan")),
    lambda session: session.tell(BANK.item_ids[0]),
    lambda session: session.tell(BANK.item_ids[0], 1.0, n_correct=1, n_trials=1),
    lambda session: session.tell(BANK.item_ids[0], n_correct=1),
    lambda session: session.tell(BANK.item_ids[0], 1.0, n_trials=2),
    lambda session: session.tell(BANK.item_ids[0], n_correct=3, n_trials=2),
    lambda session: session.tell(BANK.item_ids[0], 1.0, costs={"tokens": float("nan")}),
    lambda session: session.tell(BANK.item_ids[0], 1.0, costs={"tokens": -1.0}),
    lambda session: session.tell(BANK.item_ids[0], 1.0, costs=3.0),
    lambda session: session.tell_failed("no such item"),
    lambda session: session.tell_failed(BANK.item_ids[0], costs={"tokens": -1.0}),
    lambda session: session.check_items(["no such item"]),
]


@pytest.mark.parametrize("act", BAD)
def test_bad_input_changes_nothing(act):
    log = Log()
    session = make(log)
    run(session, ANSWERS, most=5)
    session.ask()
    before, kept = facts(session), list(log.events)
    with pytest.raises(DataError):
        act(session)
    assert facts(session) == before
    assert log.events == kept


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
    with pytest.raises(DataError, match="in the bank"):
        AdaptiveSession(plain, events=[Told("elsewhere", 1.0)])
    with pytest.raises(DataError, match="pending or answered"):
        AdaptiveSession(plain, events=[Asked((BANK.item_ids[0],)), Asked((BANK.item_ids[0],))])
    with pytest.raises(DataError, match="pending or answered"):
        AdaptiveSession(plain, events=[Asked((BANK.item_ids[0],) * 2)])


def test_a_pool_serves_many_models(travelled_pool):
    alone = model_based(BANK, "random", budget=Budget(7), seed=3, model_id="b")
    shared = AdaptiveSession(travelled_pool, model_id="b", seed=3)
    assert shared.pool.spec == alone.pool.spec
    run(alone, ANSWERS), run(shared, ANSWERS)
    assert facts(shared) == facts(alone)
    assert shared.estimate().scores.model_ids == ("b",)


@pytest.fixture
def travelled_pool():
    """A pool that has been to another process and back."""
    made = SessionPool.create(BANK, SessionSpec("random", budget=Budget(7), interval="model-based"))
    return joblib.Parallel(n_jobs=2)([joblib.delayed(dataclasses.replace)(made)])[0]


def test_costs_are_summed_by_unit():
    session = model_based(BANK)
    session.tell(BANK.item_ids[0], 1.0, costs={"output_tokens": 3.0, "seconds": 1.0})
    session.tell(BANK.item_ids[1], 1.0, costs={"output_tokens": 4.0})
    session.tell(BANK.item_ids[1], 0.0, costs={"output_tokens": 5.0})  # a correction replaces the cost, too
    session.tell_failed(BANK.item_ids[2], costs={"seconds": 0.5})
    assert session.costs == {"output_tokens": 8.0, "seconds": 1.5}


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


def test_what_an_answer_cost_stays_spent():
    session = model_based(BANK, budget=Budget(costs={"output_tokens": 1000.0}))
    item, other = session.ask(2)
    session.tell(item, 1.0, costs={"output_tokens": 40.0})
    session.tell(item, 0.0)  # a correction that says nothing of costs
    assert session.costs == {"output_tokens": 40.0}
    session.tell(item, 0.0, costs={"output_tokens": 50.0})
    assert session.costs == {"output_tokens": 50.0}
    session.tell_failed(item)
    assert session.costs == {"output_tokens": 50.0}
    assert session.left["output_tokens"] == 950.0 - expected(BANK)[other]


def test_a_slip_in_a_unit_of_cost_is_refused_and_changes_nothing():
    session = model_based(BANK, budget=Budget(costs={"cost_usd": 5.0}))
    for tell in (session.tell, session.tell_failed):
        answer = () if tell == session.tell_failed else (1.0,)
        with pytest.raises(DataError, match=r"got 'usd' for item .*Did you mean 'cost_usd'\?.*new_units=True"):
            tell(BANK.item_ids[0], *answer, costs={"usd": 0.3})
    assert session.history == ()
    session.tell(BANK.item_ids[0], 1.0, costs={"cost_usd": 0.3, "usd": 1.0}, new_units=True)
    assert session.costs == {"cost_usd": 0.3, "usd": 1.0}
    assert session.left == {"cost_usd": pytest.approx(4.7)}


def test_a_bank_without_costs_takes_any_unit():
    session = model_based(make_bank())
    session.tell(session.pool.item_ids[0], 1.0, costs={"yen": 30.0})
    assert session.costs == {"yen": 30.0}


def test_costs_that_do_not_say_what_the_budget_is_in_are_told():
    session = model_based(BANK, budget=Budget(costs={"cost_usd": 5.0}))
    with pytest.warns(DataWarning, match="in 'cost_usd', and the reported costs of item .* in 'seconds'"):
        session.tell(BANK.item_ids[0], 1.0, costs={"seconds": 2.0})
    session.tell(BANK.item_ids[1], 1.0, costs={"seconds": 2.0, "cost_usd": 0.1})
    session.tell(BANK.item_ids[2], 1.0)  # nothing said: expected, as the documents say


LARGE_BANK = session_bank(n_items=40)


def repeated(bank):
    """Give the bank's models four attempts at each item."""
    trials = np.full(bank.responses.responses.shape, 4)
    right = np.random.default_rng(1).binomial(trials, probability(bank.parameters, bank.calibration.abilities))
    responses = dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    return dataclasses.replace(bank, responses=responses)


@pytest.mark.parametrize("n_answers", [10, 40])
def test_intervals_are_those_of_estimate_on_the_same_answers(n_answers):
    bank = repeated(LARGE_BANK)
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
    bank = repeated(LARGE_BANK)
    answers = true_answers(bank)
    n_asked = {}
    for estimand in ("run", "repeated"):
        session = model_based(bank, estimand=estimand, stopping=Stopping(half_width={"overall": 0.165}))
        n_asked[estimand] = len(run(session, answers))
    assert n_asked["run"] < n_asked["repeated"]


def test_the_choice_is_kept_and_checked():
    spec = SessionSpec(estimand="repeated")
    assert SessionSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(ParameterError, match="estimand must be"):
        SessionSpec(estimand="always")
    with pytest.raises(DataError, match="repeated attempts"):
        model_based(LARGE_BANK, estimand="repeated")


def test_a_custom_score_has_its_own_chance():
    bank = repeated(LARGE_BANK)
    custom = dict.fromkeys(bank.item_ids[:10], 1.0)
    widths = {}
    for estimand in ("run", "repeated"):
        session = model_based(bank, estimand=estimand, target=custom)
        answers = true_answers(bank)
        for item in custom:
            session.tell(item, answers[item])
        scores = session.estimate().scores
        widths[estimand] = scores.high[0, -1] - scores.low[0, -1]
        theta = session.estimate().theta
    assert widths["run"] == pytest.approx(0.0, abs=1e-12)
    p = probability(bank.parameters, theta[None])[0, :10]
    assert widths["repeated"] == pytest.approx(2 * 1.96 * np.sqrt(np.sum(p * (1 - p)) / 100.0), rel=0.2)
