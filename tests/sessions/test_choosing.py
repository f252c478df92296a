import numpy as np
import pytest
from scipy.stats import norm

from itembank.irt.bernoulli import information_weights, probability
from itembank.irt.parameters import AbilityPrior
from itembank.selection.greedy import Constraints
from itembank.sessions.choosing import choose, start_abilities, with_pending
from itembank.sessions.events import Asked, Told
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.session_spec import SessionSpec
from itembank.sessions.state import fold
from tests.sessions.simulated import model_based, run, session_bank, true_answers

BANK = session_bank(n_items=150)
ANSWERS = true_answers(BANK)


def pool_of(bank=BANK, **choices):
    return SessionPool.create(bank, SessionSpec(**choices))


def test_pending_items_add_their_information():
    pool = pool_of()
    state = fold(pool.items, pool.positions, [Asked(tuple(BANK.item_ids[:4])), Told(BANK.item_ids[1], 1.0)])
    theta, covariance = np.array([0.3, -0.2]), np.array([[0.5, 0.1], [0.1, 0.4]])
    precision = np.linalg.inv(covariance)
    weights = information_weights(BANK.parameters, theta[None])[0]
    for item in (0, 2, 3):
        precision = precision + weights[item] * np.outer(BANK.parameters.loadings[item], BANK.parameters.loadings[item])
    np.testing.assert_allclose(with_pending(pool, state, theta, covariance), np.linalg.inv(precision))


def test_v_optimal_choice_is_brute_force_best():
    """The item whose answer leaves the target's items least uncertain, by direct inversion for every item."""
    pool = pool_of(target="law")
    session = model_based(BANK, target="law")
    run(session, ANSWERS, most=5)
    found = session.estimate()
    loadings = BANK.parameters.loadings
    law = pool.target_weights
    goal = (loadings.T * law) @ loadings
    weights = information_weights(BANK.parameters, found.theta[None])[0]
    left = [
        np.trace(goal @ np.linalg.inv(np.linalg.inv(found.covariance) + w * np.outer(a, a)))
        if item not in session.told
        else np.inf
        for item, w, a in zip(BANK.item_ids, weights, loadings, strict=True)
    ]
    assert session.ask() == (BANK.item_ids[int(np.argmin(left))],)


def test_starting_abilities_are_quantiles_of_the_score_they_foretell():
    """The starts are what ability is expected to be at quantiles of the target's score, to first order."""
    prior = AbilityPrior(np.array([0.2, -0.1]), np.array([[1.0, 0.5], [0.5, 2.0]]))
    pool = pool_of(n_start=5, target="law")
    starts = start_abilities(pool, prior)
    law = pool.target_weights
    step, gradient = 1e-5, np.empty(2)
    for d in range(2):
        shift = step * np.eye(2)[d]
        up, down = (probability(BANK.parameters, (prior.mean + s * shift)[None])[0] @ law for s in (1, -1))
        gradient[d] = (up - down) / (2 * step)
    direction = prior.covariance @ gradient / np.sqrt(gradient @ prior.covariance @ gradient)
    z = (starts - prior.mean) @ direction / (direction @ direction)
    np.testing.assert_allclose(np.sort(z), norm.ppf([0.1, 0.3, 0.5, 0.7, 0.9]), atol=1e-6)
    np.testing.assert_allclose(starts, prior.mean + z[:, None] * direction, atol=1e-9)
    assert abs(z[0]) < 1e-12  # the middle comes first
    assert start_abilities(pool_of(), prior).shape == (0, 2)


@pytest.mark.parametrize("n", [1, 6])
def test_a_cold_start_spreads_difficulty(n):
    bank = session_bank(n_items=300, n_dims=1, seed=4)
    difficulty = dict(zip(bank.item_ids, bank.parameters.difficulty.tolist(), strict=True))

    def first_six(**choices):
        session = model_based(bank, "fisher", **choices)
        return [difficulty[item] for _ in range(6 // n) for item in session.ask(n)]

    spread, plain = first_six(n_start=6), first_six()
    wanted = norm.ppf((np.arange(6) + 0.5) / 6)
    np.testing.assert_allclose(np.sort(spread), wanted, atol=0.5)
    assert np.ptp(plain) < 0.5 * np.ptp(spread)


def test_after_the_start_the_estimate_decides():
    start, plain = model_based(BANK, n_start=3), model_based(BANK)
    for item in run(start, ANSWERS, most=3):
        plain.tell(item, ANSWERS[item])
    assert start.ask() == plain.ask()


def test_a_batch_is_what_one_by_one_would_be():
    """With a cost budget that never binds, items are chosen one by one; together they must be the same."""
    rich = pool_of(criterion="d-optimal", budget=Budget(costs={"output_tokens": 1e6}))
    plain = pool_of(criterion="d-optimal")
    theta, covariance = np.array([0.2, 0.1]), 0.3 * np.eye(2)
    nothing = np.empty((0, 2))
    chosen = [
        choose(pool, fold(pool.items, pool.positions, []), theta, covariance, start=nothing, n=9)
        for pool in (rich, plain)
    ]
    np.testing.assert_array_equal(*chosen)
    assert len(set(chosen[0].tolist())) == 9


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("criterion", ["v-optimal", "random", "uniform", "min-cost"])
def test_constraints_hold(n, criterion):
    constraints = Constraints({"math": 4, "code": 3}, {"law": 2, "math": 6}, tuple(BANK.item_ids[:30]), randomesque=3)
    session = model_based(BANK, criterion, constraints=constraints, budget=Budget(12), seed=8)
    asked = run(session, ANSWERS, n=n)
    count = {name: sum(item.startswith(name) for item in asked) for name in ("math", "code", "law")}
    assert len(asked) == 12
    assert 4 <= count["math"] <= 6
    assert count["code"] >= 3
    assert count["law"] <= 2
    assert not set(asked) & set(BANK.item_ids[:30])


def test_what_is_told_without_being_asked_leaves_a_free_scenario_free():
    """Answers to excluded items count in their scenario, but do not close it."""
    law = [item for item in BANK.item_ids if item.startswith("law")]
    session = model_based(BANK, constraints=Constraints(excluded=tuple(law[:10])))
    for item in law[:10]:
        session.tell(item, 1.0)
    asked = run(session, ANSWERS)
    assert set(law[10:]) <= set(asked)
    limited = model_based(BANK, constraints=Constraints(at_most={"law": 12}, excluded=tuple(law[:10])))
    for item in law[:10]:
        limited.tell(item, 1.0)
    assert sum(item.startswith("law") for item in run(limited, ANSWERS)) == 2


def test_randomesque_asks_models_different_items_of_nearly_the_same_worth():
    orders = [
        tuple(run(model_based(BANK, constraints=Constraints(randomesque=5), seed=seed), ANSWERS, most=4))
        for seed in range(6)
    ]
    assert len(set(orders)) > 3
    (best,) = {model_based(BANK, seed=seed).ask() for seed in range(6)}
    scores = [order[0] for order in orders]
    assert len(set(scores)) <= 5
    assert best  # without it, all are asked the same
