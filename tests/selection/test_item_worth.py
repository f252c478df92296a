import dataclasses

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.irt.families import ResponseModel
from itembank.irt.parameters import ItemParameters
from itembank.responses.targets import ScoreTargets
from itembank.selection.criteria import CRITERIA, INFORMATION, criterion_of, uses_cost, uses_information
from itembank.selection.greedy import askable_items
from itembank.selection.item_worth import DesignItems, criterion_scores, goal_matrix, updated_covariance
from tests.bank.banks import make_bank
from tests.selection import designs

NO_COUNTS = np.zeros(3, dtype=np.int64)
ALL_KINDS = pytest.mark.parametrize("kind", designs.KINDS)


def scores(items, criterion, theta, covariance, *, goal=None, counts=NO_COUNTS, seed=0):
    spec = criterion_of(criterion) if isinstance(criterion, str) else criterion
    rng = np.random.default_rng(seed)
    return criterion_scores(items, spec, theta, covariance, goal=goal, counts=counts, rng=rng)


@ALL_KINDS
@pytest.mark.parametrize("n_dims", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_expected_hessian_and_gains_those_of_inverting_the_information_anew(kind, n_dims, seed):
    parameters = designs.make_parameters(n_dims, seed=seed, kind=kind)
    items = designs.make_items(parameters)
    theta, covariance = designs.make_posterior(n_dims, seed)
    weights = designs.expected_information(parameters, theta)
    assert_allclose(items.weights(theta), weights, atol=1e-6)
    root = np.random.default_rng(seed).normal(size=(n_dims, 2))
    goal = root @ root.T
    after = [designs.covariance_after(covariance, a, w) for a, w in zip(parameters.loadings, weights, strict=True)]
    expected = {
        "fisher": [w * np.trace(np.outer(a, a)) for a, w in zip(parameters.loadings, weights, strict=True)],
        "d-optimal": [np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(new)[1] for new in after],
        "a-optimal": [np.trace(covariance) - np.trace(new) for new in after],
        "v-optimal": [np.trace(goal @ covariance) - np.trace(goal @ new) for new in after],
    }
    for name, values in expected.items():
        assert_allclose(scores(items, name, theta, covariance, goal=goal), values, rtol=1e-4, atol=1e-6)


@ALL_KINDS
@pytest.mark.parametrize("seed", range(2))
def test_v_optimality_is_the_expected_fall_in_variance_over_both_answers(kind, seed):
    """Bayes' rule on a grid, for a posterior narrow enough that the likelihood is nearly straight on it.

    ``tr M Cov(theta) - E_y tr M Cov(theta | y) = sum_y p(y) |E(theta | y) - E theta|_M^2`` (law of total variance).
    """
    parameters = designs.make_parameters(2, seed=seed, kind=kind)
    theta, covariance = designs.make_posterior(2, seed)
    covariance *= 1e-4
    goal = np.array([[2.0, 0.5], [0.5, 1.0]])
    nodes, shares = np.polynomial.hermite_e.hermegauss(12)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(nodes, nodes)], axis=1) @ np.linalg.cholesky(covariance).T
    mass = np.outer(shares, shares).ravel() / shares.sum() ** 2
    right = probability(parameters, theta + grid)  # (n_quadrature, n_items)
    expected = 0.0
    for likelihood in (right, 1.0 - right):
        marginal = mass @ likelihood
        shift = (grid.T * mass) @ likelihood / marginal  # (n_dims, n_items)
        expected = expected + marginal * np.einsum("di,de,ei->i", shift, goal, shift)
    found = scores(designs.make_items(parameters), "v-optimal", theta, covariance, goal=goal)
    assert_allclose(found, expected, rtol=0.01)


def test_the_rank_one_update_and_the_goal_are_those_of_their_definitions():
    parameters = designs.make_parameters(4)
    theta, covariance = designs.make_posterior(4)
    weights = designs.make_items(parameters).weights(theta)
    updated = covariance
    for loading, weight in zip(parameters.loadings, weights, strict=True):
        updated = updated_covariance(updated, loading, float(weight))
    information = np.linalg.inv(covariance) + (parameters.loadings.T * weights) @ parameters.loadings
    assert_allclose(updated, np.linalg.inv(information), rtol=1e-10)
    parameters = designs.make_parameters()
    weights = np.random.default_rng(2).dirichlet(np.ones(parameters.n_items))
    a = parameters.loadings
    assert_allclose(goal_matrix(designs.make_items(parameters), weights), (a.T * weights) @ a, rtol=1e-12)
    is_degenerate, weights = np.arange(24) < 5, np.full(24, 1.0 / 24.0)
    left_out = goal_matrix(designs.make_items(parameters, is_degenerate=is_degenerate), weights)
    without = goal_matrix(designs.make_items(parameters), np.where(is_degenerate, 0.0, weights))
    assert_array_equal(left_out, without)


@ALL_KINDS
def test_criteria_are_finite_and_not_negative_for_hopeless_items(kind):
    parameters = ItemParameters.create([[3.0], [3.0], [0.0]], [900.0, -900.0, 0.0], *designs.KINDS[kind])
    items = designs.make_items(parameters)
    for name in INFORMATION:
        found = scores(items, name, np.zeros(1), np.eye(1), goal=np.eye(1))
        assert np.all((found >= 0.0) & (found < 1e-12))


@pytest.mark.parametrize("name", INFORMATION)
def test_information_is_divided_by_cost(name):
    cost = np.random.default_rng(0).lognormal(size=24)
    items = designs.make_items(designs.make_parameters(), cost=cost)
    theta, covariance = designs.make_posterior()
    divided = criterion_of(name, per_cost=True)
    plain, found = (scores(items, one, theta, covariance, goal=np.eye(3)) for one in (name, divided))
    assert_allclose(found, plain / cost)
    assert divided.per_cost
    assert uses_cost(divided)
    assert not uses_cost(criterion_of(name))
    assert criterion_of(divided, per_cost=False) == criterion_of(name)
    assert criterion_of(divided) is divided
    assert np.argmax(scores(items, "min-cost", *designs.make_posterior())) == np.argmin(cost)


def drawn(criterion, counts, *, n_draws=3000, n_items=24):
    """How often each item is the best."""
    items = designs.make_items(designs.make_parameters(n_items=n_items))
    theta, covariance = designs.make_posterior()
    best = [int(np.argmax(scores(items, criterion, theta, covariance, counts=counts, seed=s))) for s in range(n_draws)]
    return np.bincount(best, minlength=n_items)


def test_chance_is_uniform_over_items_and_uniform_over_scenarios_with_the_fewest_items():
    counts = drawn("random", NO_COUNTS)
    assert abs(np.sum((counts - 125.0) ** 2 / 125.0) - 23.0) < 5.0 * np.sqrt(2.0 * 23.0)
    items = designs.make_items(designs.make_parameters())
    for name in ("random", "uniform"):
        one, again, other = (scores(items, name, *designs.make_posterior(), seed=seed) for seed in (1, 1, 2))
        assert_array_equal(one, again)
        assert not np.array_equal(one, other)
    # 25 items: nine of the first scenario, eight of the others
    by_item = drawn("uniform", np.array([4, 2, 2]), n_items=25)
    by_scenario = np.bincount(np.arange(25) % 3, weights=by_item)
    assert by_scenario[0] == 0.0
    assert abs(by_scenario[1] - 1500.0) < 4.0 * np.sqrt(750.0)
    inside = by_item[1::3]
    expected = inside.sum() / 8.0
    assert abs(np.sum((inside - expected) ** 2 / expected) - 7.0) < 5.0 * np.sqrt(14.0)
    items = dataclasses.replace(
        designs.make_items(designs.make_parameters()), scenario_index=np.repeat([0, 1, 2], [20, 2, 2])
    )
    best = [np.argmax(scores(items, "uniform", *designs.make_posterior(), seed=seed)) for seed in range(3000)]
    best = items.scenario_index[best]
    assert np.all(np.abs(np.bincount(best) - 1000.0) < 4.0 * np.sqrt(3000.0 * 2.0 / 9.0))


@pytest.fixture(scope="module")
def bank():
    bank = make_bank(n_models=20, n_items=30, n_dims=3, with_extras=True)
    items = bank.responses.items.with_columns(weight=pl.Series(np.where(np.arange(30) == 7, 0.0, 1.0)))
    return dataclasses.replace(
        bank,
        calibration=dataclasses.replace(bank.calibration, is_degenerate=np.arange(30) == 4),
        responses=dataclasses.replace(bank.responses, items=items),
        targets=ScoreTargets.create(items, within="custom"),
    )


def test_a_bank_is_laid_out_in_its_order(bank):
    items = DesignItems.of_bank(bank, askable_items(bank, ["code/1", "law/2"]), cost="tokens")
    assert np.flatnonzero(~items.is_candidate).tolist() == [1, 2, 4, 7]
    assert np.flatnonzero(items.is_degenerate).tolist() == [4]
    assert (items.n_items, items.n_dims, items.n_scenarios, items.model.asymptotes) == (30, 3, 3, None)
    theta = np.array([0.3, -0.2, 1.0])
    p = probability(bank.parameters, theta[None, :])[0]
    assert_allclose(items.weights(theta), p * (1.0 - p), rtol=1e-12)
    cost = bank.responses.expected_costs()["output_tokens"]
    assert_array_equal(items.cost, np.where(items.is_candidate, cost, np.nan))
    assert np.isnan(DesignItems.of_bank(bank, items.is_candidate).cost).all()


def test_items_that_cannot_be_asked_are_refused(bank):
    with pytest.raises(ParameterError, match=r"candidate set must not be empty: 28 of 30 items .* excluding 30"):
        askable_items(bank, bank.item_ids)
    with pytest.raises(DataError, match=r"every excluded item must be in bank .*'math/999'"):
        askable_items(bank, ["math/999"])


def with_seconds(bank, items, value):
    """The bank at a second an item, but for some."""
    seconds = np.ones(bank.responses.responses.shape)
    seconds[:, items] = value
    return dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs={"seconds": seconds}))


def test_only_candidates_need_a_cost(bank):
    free = with_seconds(bank, 4, 0.0)  # an item that is not asked divides nothing
    items = DesignItems.of_bank(free, askable_items(free, ()), cost="seconds")
    specs = (criterion_of("d-optimal", per_cost=per_cost) for per_cost in (True, False))
    assert_array_equal(*(scores(items, one, np.zeros(3), np.eye(3))[items.is_candidate] for one in specs))
    unknown = with_seconds(bank, [1, 4], np.nan)
    with pytest.raises(DataError, match="unknown for every model for 1 of 28: 'code/1'"):
        DesignItems.of_bank(unknown, askable_items(unknown, ()), cost="seconds")
    items = DesignItems.of_bank(unknown, askable_items(unknown, ["code/1"]), cost="seconds")
    assert np.all(items.cost[items.is_candidate] == 1.0)


ALL = ("fisher", "d-optimal", "a-optimal", "v-optimal", "random", "uniform", "min-cost", "drawn")


def test_names_stand_for_specs_and_unknown_ones_are_refused():
    assert tuple(CRITERIA.kinds) == ALL
    for name in ALL:
        assert CRITERIA.name_of(criterion_of(name)) == name
    assert INFORMATION == tuple(name for name in ALL if uses_information(criterion_of(name))) == ALL[:4]
    with pytest.raises(ParameterError, match=r"must be one of 'fisher', .*'min-cost', 'drawn', got 'best'"):
        criterion_of("best")


@pytest.mark.parametrize("name", ALL[4:])
def test_what_is_not_information_cannot_be_divided(name):
    with pytest.raises(ParameterError, match=f"only information can be divided by cost, got criterion '{name}'"):
        criterion_of(name, per_cost=True)
    assert criterion_of(name, per_cost=False) == criterion_of(name)
    assert uses_cost(criterion_of(name)) == (name == "min-cost")


def with_family(parameters, family, precision):
    """The same items with responses of another family."""
    return dataclasses.replace(parameters, family=family, precision=np.full(parameters.n_items, precision))


def scores_in_family(items, name):
    """Worth of every item by a criterion, at a made-up posterior."""
    goal = goal_matrix(items, np.full(items.n_items, 1.0 / items.n_items))
    return scores(items, name, *designs.make_posterior(), goal=goal)


@pytest.mark.parametrize("name", ["d-optimal", "a-optimal", "v-optimal", "fisher"])
def test_counts_of_one_trial_are_worth_what_an_answer_is_and_precise_probabilities_more(name):
    plain = designs.make_parameters(kind="lower")
    expected = scores_in_family(designs.make_items(plain), name)
    binomial = dataclasses.replace(plain, family="binomial")
    for other in (binomial, with_family(plain, "beta-binomial", 2.0)):
        assert_array_equal(scores_in_family(designs.make_items(other), name), expected)
    plain = designs.make_parameters()
    worth = [
        scores_in_family(designs.make_items(with_family(plain, "beta", precision)), name) for precision in (5.0, 50.0)
    ]
    assert np.all(worth[1] > worth[0])
    assert np.all(worth[1] > scores_in_family(designs.make_items(plain), name))
    parameters = with_family(designs.make_parameters(kind="both"), "beta", 7.0)
    items, (theta, _) = designs.make_items(parameters), designs.make_posterior()
    assert_array_equal(items.weights(theta), ResponseModel.of(parameters).information_weights(items.logit(theta)))
