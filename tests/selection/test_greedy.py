import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from itembank.errors import ParameterError
from itembank.selection.criteria import CRITERIA, criterion_of
from itembank.selection.greedy import Bounds, Constraints, allowed_scenarios, next_items
from itembank.selection.item_worth import criterion_scores, goal_matrix
from tests.bank.banks import make_bank
from tests.selection.designs import covariance_after, make_items, make_parameters, make_posterior

N_ITEMS = 24
UNCOUNTED = {"counts": np.zeros(3, dtype=int), "rng": np.random.default_rng(0)}


def choose(items, criterion, n, *, theta=None, covariance=None, **changes):
    """Choose with nothing that binds, except for what is given."""
    ability, spread = make_posterior(items.n_dims)
    arguments = {
        "target_weights": np.full(items.n_items, 1.0 / items.n_items),
        "is_open": np.ones(items.n_items, dtype=bool),
        "counts": np.zeros(items.n_scenarios, dtype=np.int64),
        "bounds": free(items.n_scenarios),
        "n_left": n,
        "rng": np.random.default_rng(0),
        **changes,
    }
    criterion = criterion_of(criterion) if isinstance(criterion, str) else criterion
    theta = ability if theta is None else theta
    return next_items(items, criterion, theta, spread if covariance is None else covariance, n, **arguments)


def free(n_scenarios):
    return Bounds(np.zeros(n_scenarios, dtype=np.int64), np.full(n_scenarios, 10_000))


def bounds(at_least, at_most):
    return Bounds(np.array(at_least), np.array(at_most))


@pytest.mark.parametrize("kind", ["none", "both"])
@pytest.mark.parametrize("per_cost", [False, True])
@pytest.mark.parametrize("name", ["fisher", "d-optimal", "a-optimal", "v-optimal"])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_a_batch_is_what_inverting_anew_after_each_item_gives(name, per_cost, kind, n_dims):
    parameters = make_parameters(n_dims, kind=kind)
    items = make_items(parameters, cost=np.random.default_rng(5).lognormal(size=N_ITEMS))
    criterion = criterion_of(name, per_cost=per_cost)
    theta, covariance = make_posterior(n_dims)
    weights, target = items.weights(theta), np.random.default_rng(6).dirichlet(np.ones(N_ITEMS))
    goal = goal_matrix(items, target)
    expected, spread = [], covariance
    for _ in range(8):
        worth = criterion_scores(items, criterion, theta, spread, goal=goal, **UNCOUNTED)
        worth[expected] = -np.inf
        expected.append(int(np.argmax(worth)))
        spread = covariance_after(spread, parameters.loadings[expected[-1]], weights[expected[-1]])
    assert choose(items, criterion, 8, target_weights=target).tolist() == expected
    assert choose(items, criterion, 8, target_weights=np.zeros(N_ITEMS), goal=goal).tolist() == expected


@pytest.mark.parametrize("name", list(CRITERIA.kinds))
def test_closed_items_are_not_chosen_none_twice_and_arguments_left_as_they_are(name):
    items = make_items(make_parameters(1), cost=np.ones(N_ITEMS))
    is_open = np.arange(N_ITEMS) % 4 != 0
    chosen = choose(items, name, 30, is_open=is_open)
    assert sorted(chosen) == np.flatnonzero(is_open).tolist()  # all that are open, and no more
    is_open, counts, (theta, covariance) = np.ones(N_ITEMS, dtype=bool), np.zeros(3, dtype=np.int64), make_posterior(1)
    kept = theta.copy(), covariance.copy()
    choose(items, name, 6, is_open=is_open, counts=counts, theta=theta, covariance=covariance)
    assert is_open.all()
    assert not counts.any()
    assert_array_equal((theta, covariance[0]), (kept[0], kept[1][0]))


def test_items_asked_before_count_and_what_a_scenario_lacks_is_not_waited_for():
    items = make_items(make_parameters())
    chosen = choose(items, "d-optimal", 6, counts=np.array([2, 3, 0]), bounds=bounds([0, 0, 4], [3, 3, 8]))
    counts = np.bincount(chosen % 3, minlength=3)
    assert np.all((counts >= [0, 0, 4]) & (counts <= [1, 0, 8]))
    is_open = np.arange(N_ITEMS) % 3 != 1  # failed for good, say
    chosen = choose(items, "d-optimal", 6, is_open=is_open, bounds=bounds([2, 3, 2], [8, 8, 8]))
    counts = np.bincount(chosen % 3, minlength=3)
    assert counts.sum() == 6
    assert np.all((counts >= [2, 0, 2]) & (counts <= [8, 0, 8]))
    is_open, counts = np.ones(N_ITEMS, dtype=bool), np.zeros(3, dtype=np.int64)
    for n_left in range(9, 0, -1):
        asked = {"is_open": is_open, "counts": counts, "n_left": n_left}
        item = choose(items, "d-optimal", 1, bounds=bounds([3] * 3, [4] * 3), **asked)
        assert item.size == 1
        is_open[item], counts[item % 3] = False, counts[item % 3] + 1
    assert counts.tolist() == [3, 3, 3]
    items = make_items(make_parameters())
    for changes in ({"is_open": np.zeros(N_ITEMS, dtype=bool)}, {"n_left": 0}, {"bounds": bounds([0] * 3, [0] * 3)}):
        assert choose(items, "d-optimal", 3, **changes).size == 0
    at_least, at_most = np.array([0, 2, 1]), np.array([9, 9, 9])
    allowed = [allowed_scenarios(np.array([3, 0, 1]), at_least, at_most, n_left).tolist() for n_left in (3, 2, 1)]
    assert allowed == [[True, True, True], [False, True, False], [False, True, False]]
    assert allowed_scenarios(np.array([9, 2, 1]), at_least, at_most, 5).tolist() == [False, True, True]


@given(
    at_least=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    slack=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    extra=st.integers(0, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_bounds_that_can_be_kept_are_kept(at_least, slack, extra, seed):
    at_most = np.minimum(np.add(at_least, slack), 8)
    n_items = min(sum(at_least) + extra, int(at_most.sum()))
    items = make_items(make_parameters(2, seed=seed))
    for name in ("a-optimal", "d-optimal", "uniform", "random"):
        rng = np.random.default_rng(seed)
        chosen = choose(items, name, n_items, bounds=bounds(at_least, at_most), rng=rng)
        counts = np.bincount(chosen % 3, minlength=3)
        assert chosen.size == n_items
        assert np.all((counts >= at_least) & (counts <= at_most))


def test_uniform_spreads_items_over_scenarios_and_randomesque_draws_among_the_best():
    items = make_items(make_parameters())
    chosen = choose(items, "uniform", 11)
    assert sorted(np.bincount(chosen % 3)) == [3, 4, 4]
    small = choose(items, "uniform", 11, bounds=bounds([0] * 3, [1, 8, 8]))
    assert sorted(np.bincount(small % 3)) == [1, 5, 5]
    cost = np.random.default_rng(0).lognormal(size=N_ITEMS)
    items = make_items(make_parameters(), cost=cost)
    assert choose(items, "min-cost", 7).tolist() == np.argsort(cost)[:7].tolist()
    items = make_items(make_parameters())
    best = choose(items, "fisher", 4)  # no item changes what others are worth by this criterion
    drawn = [int(choose(items, "fisher", 1, randomesque=4, rng=np.random.default_rng(s))[0]) for s in range(2000)]
    assert set(drawn) == set(best.tolist())
    counts = np.array([drawn.count(item) for item in best])
    assert np.sum((counts - 500.0) ** 2 / 500.0) < 20.0
    assert choose(items, "fisher", 4, randomesque=1).tolist() == best.tolist()
    is_open = np.arange(N_ITEMS) < 3
    assert sorted(choose(items, "fisher", 5, randomesque=10, is_open=is_open)) == [0, 1, 2]


@pytest.fixture(scope="module")
def targets():
    """Ten items of each of the scenarios math, code and law."""
    return make_bank().targets


EVERY = np.ones(30, dtype=bool)


def laid_out(constraints, targets, n_items=12, is_candidate=EVERY):
    bounds = constraints.bounds(targets, is_candidate, n_items)
    return bounds.at_least.tolist(), bounds.at_most.tolist()


def test_bounds_are_what_there_is_and_what_was_asked_for(targets):
    assert laid_out(Constraints(), targets) == ([0, 0, 0], [10, 10, 10])
    is_candidate = np.arange(30) != 4  # an item of code
    assert laid_out(Constraints(at_most=10), targets, is_candidate=is_candidate) == ([0, 0, 0], [10, 9, 10])
    assert laid_out(Constraints(2, 5), targets) == ([2, 2, 2], [5, 5, 5])
    assert laid_out(Constraints({"law": 3}, {"math": 1, "code": 0}), targets) == ([0, 0, 3], [1, 0, 10])
    assert laid_out(Constraints(1, {"math": 4}), targets) == ([1, 1, 1], [4, 10, 10])
    assert laid_out(Constraints(4, 4), targets, n_items=12) == ([4, 4, 4], [4, 4, 4])
    assert laid_out(Constraints(10), targets, n_items=None) == ([10, 10, 10], [10, 10, 10])
    no_math = targets.scenario_index != 0
    assert laid_out(Constraints(1), targets, is_candidate=no_math) == ([0, 1, 1], [0, 10, 10])
    assert laid_out(Constraints(2, {"math": 0}), targets) == ([0, 2, 2], [0, 10, 10])
    with pytest.raises(ParameterError, match=r"above the number of items to choose from in 'math \(1 > 0\)'"):
        Constraints({"math": 1}).bounds(targets, no_math, 12)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(5), "at_least asks for 15 items in all, and 12 are to be chosen"),
        (Constraints({"law": 3}, 2), r"at_least is above at_most in 'law \(3 > 2\)'"),
        (Constraints(3, {"math": 1, "code": 2}), r"above at_most in 'math \(3 > 1\)', 'code \(3 > 2\)'"),
        (Constraints({"law": 11}), r"above the number of items to choose from in 'law \(11 > 10\)'"),
        (Constraints({"maths": 1}), "at_least must name scenarios of the bank, among 'math', .*, got 'maths'"),
        (Constraints(at_most={"art": 1}), "at_most must name scenarios of the bank, among .*, got 'art'"),
        (Constraints({"math": 1}, {"math": 0}), r"above at_most in 'math \(1 > 0\)'"),
        *(
            (Constraints({"law": 11, "math": 4}, {"math": 2}), words)  # all at once
            for words in (r"'math \(4 > 2\)'", r"'law \(11 > 10\)'", "asks for 15 items in all")
        ),
    ],
)
def test_contradictions_are_named(targets, constraints, message):
    with pytest.raises(ParameterError, match=message):
        constraints.bounds(targets, EVERY, 12)
