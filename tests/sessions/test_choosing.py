import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from itembank.bank.bank_views import with_target
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import information_weights
from itembank.selection.greedy import Constraints
from itembank.selection.select import select
from itembank.selection.selector_specs import VOptimal
from itembank.sessions.choosing import choose, probability_above, with_pending
from itembank.sessions.events import NOT_RECORDED, Asked, Told
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.pool import SessionPool
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import expected, model_based, run, session_bank, true_answers

BANK = session_bank(n_items=150)
ANSWERS, COST = true_answers(BANK), expected(BANK)


def pool_of(bank=BANK, **choices):
    return SessionPool.create(bank, SessionSpec(**choices))


def of(name, bank=BANK):
    """Items of a scenario."""
    return tuple(item for item in bank.item_ids if item.startswith(name))


def test_pending_items_add_their_information():
    pool = pool_of()
    state = pool.state_after([Asked(tuple(BANK.item_ids[:4])), Told(BANK.item_ids[1], 1.0)])
    theta, covariance = np.array([0.3, -0.2]), np.array([[0.5, 0.1], [0.1, 0.4]])
    precision = np.linalg.inv(covariance)
    weights = information_weights(BANK.parameters, theta[None])[0]
    for item in (0, 2, 3):
        precision = precision + weights[item] * np.outer(BANK.parameters.loadings[item], BANK.parameters.loadings[item])
    np.testing.assert_allclose(with_pending(pool, state, theta, covariance), np.linalg.inv(precision))


def test_v_optimal_choice_is_brute_force_best():
    """The item whose answer leaves the target's items least uncertain, by direct inversion for every item."""
    session = model_based(BANK, target="law", n_start=0)
    run(session, ANSWERS, most=5)
    found, loadings = session.estimate(), BANK.parameters.loadings
    goal = (loadings.T * pool_of(target="law").target_weights) @ loadings
    weights = information_weights(BANK.parameters, found.theta[None])[0]
    left = [
        np.trace(goal @ np.linalg.inv(np.linalg.inv(found.covariance) + w * np.outer(a, a)))
        for w, a in zip(weights, loadings, strict=True)
    ]
    is_told = [item in session.told for item in BANK.item_ids]
    assert session.ask() == (BANK.item_ids[int(np.argmin(np.where(is_told, np.inf, left)))],)


def leading(bank, n_items, **choices):
    return set(select(bank, n_items, method=VOptimal(**choices), rng=0).item_ids)


def test_two_thirds_of_the_items_are_those_of_a_selection_whatever_the_answers():
    for seed in (1, 2):
        told = run(model_based(BANK, budget=Budget(15)), true_answers(BANK, seed=seed))
        assert (set(told[:10]), len(set(told))) == (leading(BANK, 10), 15)
    assert set(run(model_based(BANK), ANSWERS, most=20)) == leading(BANK, 20)  # no budget says how many
    for_law = run(model_based(BANK, n_start=6, target="law"), ANSWERS, most=6)
    assert set(for_law) == leading(BANK, 6, target={"law": 1.0}, minimum_per_scenario=0)


LAW = of("law")


@pytest.mark.parametrize("rule", [{"excluded": LAW}, {"at_most": {"law": 0}}, {"excluded": LAW, "at_least": 2}])
def test_sessions_ask_nothing_of_a_scenario_that_is_excluded_from_the_first_item_on(rule):
    told = run(model_based(BANK, budget=Budget(12), target="law", constraints=Constraints(**rule)), ANSWERS)
    assert len(told) == 12
    assert not set(told) & set(LAW)
    if "excluded" in rule:
        about = {"target": {"law": 1.0}, "minimum_per_scenario": 0}
        assert set(told[:8]) == set(select(BANK, 8, method=VOptimal(**about), rng=0, excluded=LAW).item_ids)
    with pytest.raises(ParameterError, match=r"at_least is above .* in 'law \(1 > 0\)'"):
        pool_of(constraints=Constraints(**{**rule, "at_least": {"law": 1}}))


@pytest.mark.parametrize(
    "choices",
    [
        {"criterion": "d-optimal"},
        {"cost": "output_tokens"},
        {"budget": Budget(15, {"output_tokens": 50.0})},
        {"target": {BANK.item_ids[0]: 1.0}},
        {"n_start": 0},
    ],
    ids=["criterion", "cost", "budget", "custom", "none"],
)
def test_elsewhere_no_item_comes_first_unless_it_is_asked_for(choices):
    assert not pool_of(**choices).is_lead.any()
    assert pool_of(**{**choices, "n_start": 5}).is_lead.sum() == 5


def test_items_that_tell_nothing_of_past_models_and_excluded_ones_do_not_come_first():
    calibration = dataclasses.replace(BANK.calibration, is_degenerate=np.arange(150) < 40)
    bank = dataclasses.replace(BANK, calibration=calibration)
    first = run(model_based(bank, n_start=30), ANSWERS, most=60)
    assert not set(first) & set(bank.item_ids[:40])
    constraints = Constraints(excluded=tuple(first[:10]))
    assert not set(run(model_based(bank, n_start=30, constraints=constraints), ANSWERS, most=40)) & set(first[:10])


def test_limits_of_scenarios_and_failures_hold_among_the_first_items_too():
    told = run(model_based(BANK, n_start=12, constraints=Constraints(at_most=2), budget=Budget(12)), ANSWERS)
    assert max(Counter(item.split("/")[0] for item in told).values()) <= 2
    session = model_based(BANK, n_start=4)
    (failed,) = session.ask()
    session.tell_failed(failed)
    assert failed not in run(session, ANSWERS, most=6)


def test_after_the_start_the_estimate_decides():
    start, plain = model_based(BANK, n_start=3), model_based(BANK, n_start=0)
    for item in run(start, ANSWERS, most=3):
        plain.tell(item, ANSWERS[item])
    assert start.ask() == plain.ask()


def test_a_batch_is_what_one_by_one_would_be():
    """With a cost budget that never binds, items are chosen one by one; together they must be the same."""
    rich = pool_of(criterion="d-optimal", budget=Budget(costs={"output_tokens": 1e6}))
    plain = pool_of(criterion="d-optimal")
    theta, covariance = np.array([0.2, 0.1]), 0.3 * np.eye(2)
    chosen = [choose(pool, pool.state_after(), theta, covariance, n=9) for pool in (rich, plain)]
    np.testing.assert_array_equal(*chosen)
    assert len(set(chosen[0].tolist())) == 9


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("criterion", ["v-optimal", "random", "uniform", "min-cost"])
def test_constraints_hold(n, criterion):
    constraints = Constraints({"math": 4, "code": 3}, {"law": 2, "math": 6}, tuple(BANK.item_ids[:30]), randomesque=3)
    session = model_based(BANK, criterion, constraints=constraints, budget=Budget(12), seed=8)
    asked = run(session, ANSWERS, n=n)
    count = Counter(item.split("/")[0] for item in asked)
    assert (len(asked), 4 <= count["math"] <= 6, count["code"] >= 3, count["law"] <= 2) == (12, True, True, True)
    assert not set(asked) & set(BANK.item_ids[:30])


def test_what_is_told_without_being_asked_leaves_a_free_scenario_free():
    """Answers to excluded items count in their scenario, but do not close it."""
    for at_most, n_law in (({}, len(LAW) - 10), ({"law": 12}, 2)):
        session = model_based(BANK, constraints=Constraints(at_most=at_most, excluded=LAW[:10]))
        for item in LAW[:10]:
            session.tell(item, 1.0)
        assert len(set(run(session, ANSWERS)) & set(LAW[10:])) == n_law


def test_randomesque_asks_models_different_items_of_nearly_the_same_worth():
    sessions = [model_based(BANK, constraints=Constraints(randomesque=5), seed=seed) for seed in range(6)]
    orders = [tuple(run(session, ANSWERS, most=4)) for session in sessions]
    assert len(set(orders)) > 3
    assert len({order[0] for order in orders}) <= 5
    assert len({model_based(BANK, seed=seed).ask() for seed in range(6)}) == 1  # without it, all are asked the same


def first_time(holds, **choices):
    """Run a session without rules, and return after how many answers (one at least) a rule would have held."""
    session = model_based(BANK, **choices)
    while items := session.ask():
        session.tell(items[0], ANSWERS[items[0]])
        if holds(session.estimate()):
            return session.n_items
    return None


def stopped(stopping, **choices):
    session = model_based(BANK, stopping=stopping, **choices)
    run(session, ANSWERS)
    return session


def is_narrow(found):
    return found.scores.high[0, -1] - found.scores.low[0, -1] <= 2 * 0.05


def is_sure_of_ability(found):
    return np.all(found.standard_errors <= 0.6)


def is_sure_of(threshold):
    def decided(found):
        above = norm.cdf((found.scores.value[0, -1] - threshold) / found.scores.standard_error[0, -1])
        return max(above, 1.0 - above) >= 0.999

    return decided


def sure(threshold):
    return Stopping(decision=Decision(threshold=threshold, confidence=0.999))


@pytest.mark.parametrize(
    ("rule", "holds", "reason", "criterion"),
    [
        (Stopping(half_width={"overall": 0.05}), is_narrow, "half-width of overall", "v-optimal"),
        (Stopping(ability_error=0.6), is_sure_of_ability, "ability", "a-optimal"),
        (sure(0.02), is_sure_of(0.02), "decision: above 0.02", "v-optimal"),
        (sure(0.98), is_sure_of(0.98), "decision: below 0.98", "v-optimal"),
    ],
    ids=["half-width", "ability", "above", "below"],
)
def test_a_rule_stops_as_soon_as_it_holds_and_not_before(rule, holds, reason, criterion):
    session = stopped(rule, criterion=criterion)
    assert session.n_items == first_time(holds, criterion=criterion)
    assert (session.reason_stopped, session.is_precise, session.ask()) == (reason, True, ())


def test_all_named_scores_must_be_narrow_at_the_level_that_is_asked_for():
    one, both = (stopped(Stopping(half_width=rule)) for rule in ({"overall": 0.06}, {"overall": 0.06, "math": 0.06}))
    assert both.reason_stopped == "half-width of overall, math"
    assert both.n_items > one.n_items > stopped(Stopping(half_width=0.06, level=0.5)).n_items
    rows = {row["target"]: row for row in both.estimate().scores.rows()}
    assert all(rows[name]["high"] - rows[name]["low"] <= 0.12 for name in ("overall", "math"))


def test_a_decision_against_a_calibration_model_takes_its_score():
    overall, ids = BANK.targets.with_overall(BANK.scenario_scores)[:, -1], BANK.responses.model_ids
    worst, best = ids[int(np.argmin(overall))], ids[int(np.argmax(overall))]
    better = stopped(Stopping(decision=Decision(model=worst, confidence=0.9)))
    assert better.reason_stopped == f"decision: better than {worst}"
    against = stopped(Stopping(decision=Decision(model=best, confidence=0.9)))
    number = stopped(Stopping(decision=Decision(threshold=float(overall.max()), confidence=0.9)))
    assert against.history == number.history


def test_a_decision_on_win_rates_takes_that_of_the_model_and_on_a_scenario_its_score():
    bank, scores = with_target(BANK, "mean_win_rate"), BANK.scenario_scores
    others = np.delete(scores, 3, axis=0)
    rates = np.mean(scores[3] > others) + 0.5 * np.mean(scores[3] == others)
    for target, known in (("mean_win_rate", rates), ("math", scores[3, BANK.targets.scenarios.index("math")])):
        stopping = Stopping(decision=Decision(target, model=bank.responses.model_ids[3]))
        assert pool_of(bank, target="mean_win_rate", stopping=stopping).threshold == pytest.approx(known)


def test_a_score_that_is_known_decides_without_doubt():
    assert probability_above(0.5, 0.0, 0.4) == 1.0
    assert probability_above(0.5, 0.0, 0.5) == 0.0
    assert probability_above(0.5, 0.1, 0.5) == 0.5
    assert math.isclose(probability_above(0.6, 0.1, 0.5), norm.cdf(1.0))


def test_no_rule_holds_before_the_least_number_of_answers_and_it_is_the_reason_where_a_budget_ends_too():
    easy = {"overall": 0.9}
    assert [stopped(Stopping(half_width=easy, min_items=n)).n_items for n in (0, 7)] == [1, 7]
    assert stopped(Stopping(half_width=easy), budget=Budget(1)).reason_stopped == "half-width of overall"
    session = stopped(Stopping(half_width=easy), constraints=Constraints(at_least=2))
    counts = Counter(item.split("/")[0] for item in session.told)
    assert (len(counts), min(counts.values()) >= 2) == (3, True)


@pytest.mark.parametrize("budget", [Budget(), Budget(costs={"output_tokens": 200.0})])
def test_what_is_lacking_comes_next_once_the_rule_holds(budget):
    scarce = BANK.item_ids[2::30]  # the last that would be chosen, were it not for the constraint
    constraints = Constraints(at_least={"law": 4}, excluded=tuple(item for item in LAW if item not in scarce))
    rule = Stopping(half_width={"overall": 0.9})
    session = model_based(BANK, "a-optimal", stopping=rule, constraints=constraints, budget=budget)
    session.tell(BANK.item_ids[0], 1.0)
    assert set(session.ask(9)) <= set(scarce)
    assert (len(session.pending), session.reason_stopped) == (4, "half-width of overall")


@pytest.mark.parametrize("budget", [Budget(2), Budget(costs={"output_tokens": 14.0})])
def test_what_is_lacking_and_cannot_be_had_does_not_keep_a_session_going(budget):
    rule = Stopping(half_width={"overall": 0.9})
    session = model_based(BANK, stopping=rule, constraints=Constraints(at_least={"law": 2}), budget=budget)
    for item in of("math")[:2]:
        session.tell(item, 1.0, costs={"output_tokens": 7.0})
    assert (session.reason_stopped, session.is_precise) == ("half-width of overall", True)


def test_a_correction_can_set_a_session_going_again():
    session = stopped(Stopping(decision=Decision(threshold=0.02, confidence=0.99)))
    for item in session.told:
        session.tell(item, 0.0)
    assert session.reason_stopped is None
    assert session.ask() != ()


def test_a_budget_of_items_counts_what_is_in_hand():
    session = model_based(BANK, budget=Budget(10))
    assert len(session.ask(7)) == 7
    assert len(session.ask(7)) == 3
    assert session.reason_stopped == "budget: 10 items"
    session.tell_failed(session.pending[0])  # a failure makes room
    assert session.reason_stopped is None
    session.tell(next(item for item in BANK.item_ids if item not in session.pending), 1.0)
    assert session.reason_stopped == "budget: 10 items"


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("criterion", ["v-optimal", "random"])
def test_a_budget_of_costs_is_never_overrun(n, criterion):
    for amount in (3.0, 20.5, 61.0):
        session = model_based(BANK, criterion, budget=Budget(costs={"output_tokens": amount}))
        asked = run(session, ANSWERS, n=n)  # without costs told, the expected ones count
        left = amount - sum(COST[item] for item in asked)
        assert 0.0 <= left < min(COST[item] for item in BANK.item_ids if item not in asked)
        assert math.isclose(session.left["output_tokens"], left)
        assert session.reason_stopped == f"budget: {amount:g} output_tokens"


def test_what_is_told_of_costs_counts_instead_of_what_was_expected():
    session = model_based(BANK, budget=Budget(costs={"output_tokens": 30.0}))
    first, second = session.ask(2)
    assert math.isclose(session.left["output_tokens"], 30.0 - COST[first] - COST[second])
    session.tell(first, 1.0, costs={"output_tokens": 27.0})
    session.tell_failed(second, costs={"output_tokens": 2.0})
    assert math.isclose(session.left["output_tokens"], 1.0)
    assert session.reason_stopped == "budget: 30 output_tokens"  # an item costs this model more than 1 by now
    assert session.ask(5) == ()


def test_a_failed_attempt_that_tells_no_cost_counts_as_expected():
    session = model_based(BANK, budget=Budget(costs={"output_tokens": 60.0}))
    first, second = session.ask(2)
    session.tell_failed(first, again=True, reason="timeout")
    session.tell_failed(first, again=True, reason="timeout")  # words about what has failed already, no attempt
    session.tell(second, 1.0)
    session.tell_failed(second)  # its answer is taken back, and was paid for
    session.tell_failed(session.ask()[0], reason=NOT_RECORDED)
    assert session.left["output_tokens"] == pytest.approx(60.0 - COST[first] - COST[second])
    assert session.assumed_costs["output_tokens"] == (2, pytest.approx(COST[first] + COST[second]))


def test_the_last_item_may_pass_a_maximum_and_nothing_below_zero_is_left():
    session = model_based(BANK, budget=Budget(costs={"output_tokens": 30.0}))
    while items := session.ask():
        spent, cost = session.costs.get("output_tokens", 0.0), COST[items[0]]
        session.tell(items[0], 1.0, costs={"output_tokens": cost + 9.0 * (30.0 - spent - cost < 5.0)})
    assert session.costs["output_tokens"] > 30.0
    assert (session.left, session.reason_stopped) == ({"output_tokens": 0.0}, "budget: 30 output_tokens")


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_what_fits_a_budget_follows_what_the_model_costs(times):
    """Told to cost three times what past models paid, items fill the budget by what they will cost this model."""
    session = model_based(BANK, budget=Budget(costs={"output_tokens": 200.0}))
    while items := session.ask():
        cost = times * COST[items[0]]
        assert session.n_items <= 20 or cost <= 1.05 * (200.0 - session.costs["output_tokens"])
        session.tell(items[0], 1.0, costs={"output_tokens": cost})
    assert 200.0 - session.costs["output_tokens"] < times * max(COST.values())
    value, low, high = session.whole_costs["output_tokens"]
    assert low < times * sum(COST.values()) < high
    assert value == pytest.approx(times * sum(COST.values()), rel=0.1)
    rest, least, most = np.array([value, low, high]) - session.costs["output_tokens"]  # lognormal, of this mean
    variance = (0.5 * math.log(most / least) / norm.ppf(0.975)) ** 2
    assert math.sqrt(least * most) == pytest.approx(rest * math.exp(-0.5 * variance))


def test_tokens_count_input_by_half_or_as_the_cost_unit_says():
    session = model_based(BANK, budget=Budget(costs={"tokens": 100.0}))
    (item,) = session.ask()
    assert math.isclose(session.left["tokens"], 100.0 - COST[item] - 5.0)
    for costs, spent in (({"output_tokens": 7.0, "input_tokens": 4.0}, 9.0), ({"tokens": 3.0}, 3.0)):
        session.tell(item, 1.0, costs=costs)
        assert math.isclose(session.left["tokens"], 100.0 - spent)


def test_several_budgets_hold_together():
    session = model_based(BANK, budget=Budget(12, {"output_tokens": 40.0, "cost_usd": 2.0}))
    asked = run(session, ANSWERS)
    assert sum(COST[item] for item in asked) <= 20.0 + 1e-9  # cost_usd is a tenth of the tokens
    assert len(asked) <= 12
    assert session.reason_stopped in {"budget: 12 items", "budget: 2 cost_usd"}


def test_tenths_fill_a_budget_of_tenths():
    bank = session_bank(n_items=30)
    bank.responses.costs["cost_usd"][:] = 0.1
    assert len(run(model_based(bank, budget=Budget(costs={"cost_usd": 0.3})), true_answers(bank))) == 3


@pytest.mark.parametrize("n", [1, 3])
def test_a_cost_budget_leaves_enough_for_what_scenarios_must_have(n):
    names = ("math", "code", "law")
    needed = sum(sum(sorted(COST[item] for item in of(name))[:3]) for name in names)
    at_least = Constraints(at_least=dict.fromkeys(names, 3))
    for spare in (0.0, 4.0, 15.0):
        budget = Budget(costs={"output_tokens": needed + spare})
        asked = run(model_based(BANK, "d-optimal", budget=budget, constraints=at_least), ANSWERS, n=n)
        assert sum(COST[item] for item in asked) <= needed + spare
        assert all(len(set(asked) & set(of(name))) >= 3 for name in names)
    with pytest.raises(ParameterError, match="budget"):
        model_based(BANK, budget=Budget(costs={"output_tokens": needed - 0.5}), constraints=Constraints(at_least=3))


def test_items_that_turned_out_dear_leave_the_rest_to_scenarios_that_lack_some():
    budget = Budget(costs={"output_tokens": 16.0})
    session = model_based(BANK, budget=budget, constraints=Constraints(at_least={"law": 6}))
    session.tell(of("math")[0], 1.0, costs={"output_tokens": 14.0})
    assert COST[session.ask()[0]] <= 2.0
    assert session.pending[0].startswith("law")


def test_units_that_cannot_all_be_kept_back_do_not_end_a_session_without_a_reason():
    """What is cheap in one unit is dear in the other, so that no item leaves the least reserve of both."""
    is_cheap_in_x = np.arange(150) // 3 % 2 == 0
    costs = {
        unit: np.tile(np.where(is_cheap, 1.0, 10.0), (12, 1))
        for unit, is_cheap in (("x", is_cheap_in_x), ("y", ~is_cheap_in_x))
    }
    bank = dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, costs=costs))
    constraints = Constraints(at_least={"math": 1, "law": 1})
    session = model_based(bank, budget=Budget(costs={"x": 10.0, "y": 10.0}), constraints=constraints)
    assert len(session.ask()) == 1
    assert session.reason_stopped in {"budget: 10 x", "budget: 10 y"}


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"stopping": Stopping(half_width={"art": 0.1})}, ParameterError, "art"),
        ({"stopping": Stopping(decision=Decision("art", 0.5))}, ParameterError, "art"),
        ({"stopping": Stopping(decision=Decision(model="nobody"))}, DataError, "nobody"),
        ({"target": "art"}, ParameterError, "art"),
        ({"target": {"nothing": 1.0}}, DataError, "nothing"),
        ({"budget": Budget(costs={"yen": 1.0})}, DataError, "yen"),
        ({"cost": "yen"}, DataError, "yen"),
        ({"constraints": Constraints(excluded=tuple(BANK.item_ids))}, ParameterError, "empty"),
        ({"constraints": Constraints(excluded=("nothing",))}, DataError, "nothing"),
        ({"constraints": Constraints(at_least=9, at_most=2)}, ParameterError, "contradict"),
        ({"constraints": Constraints(at_least=9), "budget": Budget(5)}, ParameterError, "contradict"),
        ({"budget": Budget(costs={"output_tokens": 1e-3})}, ParameterError, "got 0.001 output_tokens, and the cheap"),
        ({"budget": Budget(5), "stopping": Stopping(0.1, min_items=6)}, ParameterError, "min_items .* got 6 and 5"),
    ],
)
def test_what_does_not_fit_the_bank_is_said_at_the_start(choices, error, message):
    with pytest.raises(error, match=message):
        model_based(BANK, **choices)


@pytest.mark.parametrize("target", ["law", {BANK.item_ids[2]: 1.0}])
def test_a_target_of_which_nothing_is_to_be_learnt_is_refused_by_what_it_would_steer(target):
    calibration = dataclasses.replace(BANK.calibration, is_degenerate=np.arange(150) % 3 == 2)
    bank = dataclasses.replace(BANK, calibration=calibration)
    with pytest.raises(ParameterError, match=r"needs a target with an item that tells models apart, and all .* alike"):
        model_based(bank, target=target)
    assert model_based(bank, "d-optimal", target=target).ask()
    assert model_based(bank, target="math").ask()


def test_a_model_without_answers_to_the_target_cannot_be_compared_with():
    bank = session_bank(n_items=30)
    responses = bank.responses.responses.copy()
    responses[0, [item.startswith("law") for item in bank.item_ids]] = np.nan
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=responses))
    name = bank.responses.model_ids[0]
    for target in ("law", "overall"):
        with pytest.raises(DataError, match="must have a score"):
            model_based(bank, stopping=Stopping(decision=Decision(target, model=name)))
    model_based(bank, stopping=Stopping(decision=Decision("math", model=name)))


def test_a_custom_score_can_be_decided_on():
    weights = dict.fromkeys(LAW, 1.0)
    law, of_math = (BANK.scenario_scores[:, BANK.targets.scenarios.index(name)] for name in ("law", "math"))
    worst = int(np.argmin(law))
    name = BANK.responses.model_ids[worst]
    session = stopped(Stopping(decision=Decision("custom", model=name, confidence=0.9)), target=weights)
    same = stopped(Stopping(decision=Decision("law", threshold=float(law.min()), confidence=0.9)), target=weights)
    assert (session.n_items, session.reason_stopped) == (same.n_items, f"decision: better than {name}")
    other = model_based(BANK, stopping=Stopping(decision=Decision("math", model=name)), target=weights)
    assert other.pool.threshold == pytest.approx(of_math[worst])


def test_one_sentence_says_whether_the_goal_was_reached():
    rules = {
        "one": [Stopping(half_width=half) for half in (0.9, 0.001)],
        "two": [Stopping(half_width={"overall": 0.9, "law": half}) for half in (0.9, 0.001)],
        "ability": [Stopping(ability_error=error) for error in (5.0, 0.001)],
        "decision": [
            Stopping(decision=Decision(threshold=0.01), min_items=8),
            Stopping(decision=Decision(threshold=0.5, confidence=0.99999999)),
        ],
    }
    said = {}
    for name, pair in rules.items():
        for is_met, stopping in zip((True, False), pair, strict=True):
            session = model_based(BANK, budget=Budget(9), stopping=stopping)
            assert session.conclusion == ""
            run(session, ANSWERS)
            assert session.is_precise is is_met
            said[name, is_met] = session.conclusion
            if (name, is_met) == ("one", False):
                overall = session.estimate().scores.rows()[-1]
    half = 50.0 * (overall["high"] - overall["low"])
    assert said["one", False] == (
        "Stopped by the budget of 9 items: the goal of ±0.001 (0.1 points) was not reached, the half-width is "
        f"{half:.1f} points."
    )
    assert said["one", True].startswith("Stopped: the goal of ±0.9 (90 points) was reached, the half-width is ")
    missed = "±0.9 (90 points) for overall and ±0.001 (0.1 points) for law was not reached, the half-widths are"
    assert missed in said["two", False]
    assert "a standard error of ability of 0.001 was not reached, the largest is" in said["ability", False]
    assert "a standard error of ability of 5 was reached" in said["ability", True]
    assert said["decision", True] == "Stopped: it is settled that the score is above 0.01."
    assert "certainty whether overall is above 0.5 was not reached, it is" in said["decision", False]
    for choices, end in (
        ({"budget": Budget(3)}, " by the budget of 3 items: no precision was asked for, the half-width of"),
        ({"constraints": Constraints(at_most=1)}, ", since no item is left: no precision was asked for"),
    ):
        session = model_based(BANK, **choices)
        run(session, ANSWERS)
        assert session.conclusion.startswith(f"Stopped{end}")
