"""The kernels of the methods without calibration scores, by hand and by brute force; names and specs."""

from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import (
    DEFAULT_MEMBERS,
    GPIRT,
    METHODS,
    PIRT,
    Auto,
    Factor,
    Ridge,
    Stacked,
    TaskMeanEB,
)
from itembank.estimation.model_abilities import answered_responses, estimate_abilities
from itembank.estimation.point_methods import estimated_factor, gp_irt, sample_share
from itembank.estimation.predictions import predicted_sums, scenario_items, scenario_sums
from itembank.estimation.response_summary import sample_mean, summarise_responses, weighted_mean
from itembank.irt.ability_specs import METHODS as SCORING
from itembank.irt.ability_specs import ExpectedAPosteriori
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank, with_family
from tests.estimation.simulated import new_models as of_bank
from tests.estimation.simulated import shared_bank

SCENARIO = np.array([0, 1, 0, 1, 1])
RESPONSES = np.array([[1.0, 0.5, 0.0, np.nan, 1.0], [np.nan, 0.25, np.nan, 0.75, 0.5]])


def random_parameters(rng, n_items, n_dims):
    lower, upper = rng.uniform(0.0, 0.3, n_items), rng.uniform(0.8, 1.0, n_items)
    return ItemParameters.create(rng.normal(size=(n_items, n_dims)), rng.normal(size=n_items), lower, upper)


def test_scenario_sums_add_up_each_scenarios_items(rng):
    values, index = rng.normal(size=(3, 7)), np.array([2, 0, 2, 0, 1, 2, 0])
    expected = np.column_stack([values[:, index == j].sum(axis=1) for j in range(4)])
    np.testing.assert_allclose(scenario_sums(values, index, 4), expected)
    assert [items.tolist() for items in scenario_items(index, 4)] == [[1, 3, 6], [4], [0, 2, 5], []]


def test_means_by_hand():
    np.testing.assert_allclose(sample_mean(RESPONSES, SCENARIO, 2), [[0.5, 0.75], [np.nan, 0.5]])
    weights = np.array([3.0, 1.0, 1.0, 2.0, 4.0])
    expected = [[0.75, (0.5 + 4.0) / 5.0], [np.nan, (0.25 + 1.5 + 2.0) / 7.0]]
    np.testing.assert_allclose(weighted_mean(RESPONSES, weights, SCENARIO, 2), expected)
    assert np.isnan(weighted_mean(RESPONSES, np.array([0.0, 1.0, 0.0, 1.0, 1.0]), SCENARIO, 2)[:, 0]).all()


def test_predicted_sums_equal_a_loop_and_their_gradient_finite_differences(rng):
    parameters, theta = random_parameters(rng, 5, 2), rng.normal(size=(2, 2))
    weights, mask = rng.random(5), rng.random((2, 5)) < 0.6
    found = predicted_sums(parameters, weights, SCENARIO, 2, theta, mask=mask)
    mean, noise = np.zeros((2, 2)), np.zeros((2, 2))
    for model, item in zip(*np.nonzero(mask), strict=True):
        x = parameters.loadings[item] @ theta[model] + parameters.intercept[item]
        low, high = parameters.lower_asymptote[item], parameters.upper_asymptote[item]
        p = low + (high - low) / (1.0 + np.exp(-x))
        mean[model, SCENARIO[item]] += weights[item] * p
        noise[model, SCENARIO[item]] += weights[item] ** 2 * p * (1.0 - p)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.noise, noise)
    whole = predicted_sums(parameters, weights, SCENARIO, 2, theta)
    for dim, step in enumerate(1e-6 * np.eye(2)):
        above, below = (predicted_sums(parameters, weights, SCENARIO, 2, theta + by).mean for by in (step, -step))
        np.testing.assert_allclose(whole.gradient[:, :, dim], (above - below) / 2e-6, rtol=1e-6, atol=1e-9)
    # all less the observed is the rest
    rest, expected = whole - found, predicted_sums(parameters, weights, SCENARIO, 2, theta, mask=~mask)
    for name in ("mean", "noise", "gradient"):
        np.testing.assert_allclose(getattr(rest, name), getattr(expected, name), atol=1e-15)


def test_p_irt_has_the_papers_two_forms(rng):
    """The sum with target weights is tinyBenchmarks eq. 4.3, there written with lambda-hat = n / N and means."""
    parameters, theta = random_parameters(rng, 5, 1), rng.normal(size=(1, 1))
    responses, weights, one = np.array([[1.0, np.nan, 0.0, np.nan, np.nan]]), np.full(5, 0.2), np.zeros(5, dtype=int)
    observed = ~np.isnan(responses)
    unseen = predicted_sums(parameters, weights, one, 1, theta, mask=~observed)
    found = scenario_sums(np.where(observed, responses, 0.0) * weights, one, 1) + unseen.mean
    x = theta[0, 0] * parameters.loadings[:, 0] + parameters.intercept
    p = parameters.lower_asymptote + (parameters.upper_asymptote - parameters.lower_asymptote) / (1 + np.exp(-x))
    assert found[0, 0] == pytest.approx(2 / 5 / 2 * (1.0 + 0.0) + (1 - 2 / 5) / 3 * p[[1, 3, 4]].sum())


def test_lambda_by_hand_and_at_its_limits():
    """b = 0.03, sigma^2 = 0.2: random n = 40 gives 0.0009 / (0.0009 + 0.005), anchors divide 0.005 by 4."""
    bias, variance, n = np.array([0.03]), np.array([0.2]), np.array([[40]])
    for factor, share in ((1.0, 0.0009 / 0.0059), (4.0, 0.0009 / 0.00215)):
        assert sample_share(bias, variance, n, np.array([factor]))[0, 0] == pytest.approx(share)
    bias, variance, n = np.array([0.0, 0.1, 0.1, 0.0]), np.array([0.2, 0.0, 0.2, 0.0]), np.array([[10, 10, 0, 10]])
    np.testing.assert_array_equal(sample_share(bias, variance, n, np.ones(4)), [[0.0, 1.0, 0.0, 0.0]])
    assert sample_share(np.array([0.1]), np.array([0.2]), np.array([[5]]), np.array([np.inf]))[0, 0] == 1.0


def test_lambda_minimises_the_expected_squared_error(rng):
    """With an unbiased estimate of variance v and a fixed one of bias b, no other mixture is better (Song 1988)."""
    bias, variance, grid = 0.04, 0.003, np.linspace(0.0, 1.0, 201)
    share = sample_share(np.array([bias]), np.array([variance * 50]), np.array([[50]]), np.ones(1))[0, 0]
    sampled = 0.6 + np.sqrt(variance) * rng.standard_normal(400_000)
    error = [np.mean((mix * sampled + (1 - mix) * (0.6 + bias) - 0.6) ** 2) for mix in grid]
    assert grid[np.argmin(error)] == pytest.approx(share, abs=0.02)


def test_gp_irt_and_the_estimated_factor_by_hand():
    weighted, predicted = np.array([[0.8, np.nan]]), np.array([[0.6, 0.3]])
    np.testing.assert_allclose(gp_irt(weighted, predicted, np.array([[0.25, 0.0]])), [[0.65, 0.3]])
    weighted = np.array([[0.5, 0.2], [0.7, np.nan], [0.4, 0.9]])
    scores = np.array([[0.6, 0.2], [0.7, 0.5], [0.6, 0.9]])
    factor = estimated_factor(weighted, scores, np.array([0.2, 0.2]), np.array([10, 5]))
    assert (factor[0], factor[1]) == (pytest.approx((0.2 / 10) / ((0.01 + 0.0 + 0.04) / 3)), np.inf)
    nothing = estimated_factor(np.full((2, 1), np.nan), np.zeros((2, 1)), np.array([0.2]), np.array([3]))
    np.testing.assert_array_equal(nothing, [1.0])


def test_names_stand_for_default_specs():
    names = {"gp-irt": GPIRT(4.0), "auto": Auto(), "stacked": Stacked(DEFAULT_MEMBERS)}
    assert {name: METHODS.resolve(name) for name in names} == names
    assert all(METHODS.name_of(METHODS.resolve(name)) == name for name in METHODS.kinds)
    with pytest.raises(ParameterError, match=r"must be one of 'mean', 'weighted', .*'stacked', 'auto'.*, got 'best'"):
        METHODS.resolve("best")


UNSTACKED = [(), (PIRT(),), (PIRT(), Stacked()), (PIRT(), Auto()), (PIRT(), "gp-irt")]


@pytest.mark.parametrize(
    ("kind", "choice", "said"),
    [
        *((GPIRT, {"anchor_variance_factor": one}, "factor must be") for one in (0.0, -1.0, np.inf, np.nan, "guess")),
        *((GPIRT, {"unmeasured_bias": one}, "unmeasured_bias must be") for one in (0.0, 1.5)),
        *((Stacked, {"members": one}, "two methods of estimation or more") for one in UNSTACKED),
        *((Stacked, {"prior_models": one}, "must be a finite number > 0") for one in (0.0, -1.0, np.inf, np.nan)),
        (TaskMeanEB, {"strength": 0.0}, "strength must be a finite number > 0, got 0.0"),
        (TaskMeanEB, {"strength": float("inf")}, "got inf"),
        (Ridge, {"penalty": "gcv"}, "penalty must be a finite number > 0 or 'leave-one-out', got 'gcv'"),
        (Ridge, {"penalty": float("nan")}, "got nan"),
        (Ridge, {"penalty": True}, "got True"),
        (Ridge, {"towards": "mean"}, "towards must be one of 'weights', 'zero', got 'mean'"),
        (Factor, {"n_factors": "all"}, "n_factors must be a whole number >= 1 or 'auto', got 'all'"),
    ],
)
def test_choices_outside_what_they_may_be_are_refused(kind, choice, said):
    with pytest.raises(ParameterError, match=said):
        kind(**choice)


def test_task_mean_is_the_mean_of_the_known_scores_for_everyone():
    bank = shared_bank()
    found = estimate(bank, of_bank(bank).take(items=np.arange(3)), method="task-mean", interval="model-based")
    np.testing.assert_allclose(found.value, np.tile(bank.known_scores.value.mean(axis=0), (6, 1)))


def new_models(bank, rng, columns, n_models=4):
    """Responses of new models to some of the bank's items, in the given order."""
    ids = [bank.item_ids[column] for column in columns]
    values = (rng.random((n_models, len(ids))) < 0.6).astype(float)
    return ResponseMatrix.create(values, model_ids=[f"new-{row}" for row in range(n_models)], item_ids=ids)


def test_items_are_matched_by_id(rng):
    bank, columns = make_bank(), np.array([20, 3, 11, 7, 29, 1])
    responses = new_models(bank, rng, columns)
    found = estimate_abilities(bank, responses)
    kernel = map_abilities(bank.parameters.take(columns), responses.responses, bank.calibration.prior)
    np.testing.assert_allclose(found.theta, kernel.theta, atol=1e-12)
    np.testing.assert_allclose(found.standard_errors, kernel.standard_errors, atol=1e-12)
    assert (found.model_ids, found.bank_id, found.method) == (tuple(f"new-{k}" for k in range(4)), bank.bank_id, "map")


@pytest.mark.parametrize("method", SCORING.kinds)
def test_every_method_has_its_short_name_and_a_spec_carries_its_choices(rng, method):
    bank = make_bank(n_dims=1)
    responses = new_models(bank, rng, np.arange(30))
    found = estimate_abilities(bank, responses, method)
    assert (found.method, found.theta.shape, found.converged.all()) == (method, (4, 1), True)
    assert not estimate_abilities(bank, responses, ExpectedAPosteriori(n_quadrature=3)).converged.any()


def test_unknown_items_and_methods_are_named(rng):
    bank, responses = make_bank(), ResponseMatrix.create(np.ones((1, 3)), item_ids=["math/0", "maths/3", "art/1"])
    with pytest.raises(DataError, match=r"2 of 3 are not: 'maths/3', 'art/1'"):
        estimate_abilities(bank, responses)
    with pytest.raises(ParameterError, match="scoring method"):
        estimate_abilities(bank, new_models(bank, rng, np.arange(3)), "mean")


def test_responses_are_made_binary_where_the_calibrations_were(rng):
    bank = make_bank()  # threshold 0.5 in 'math', none elsewhere
    ids, binary = ["math/0", "code/1", "math/3", "law/2"], np.array([[1.0, 0.7, 0.0, 0.2]])
    graded, expected = (ResponseMatrix.create(one, item_ids=ids) for one in (np.array([[0.7, 0.7, 0.2, 0.2]]), binary))
    columns, values = answered_responses(bank, graded)
    np.testing.assert_array_equal(columns, [0, 1, 3, 2])
    np.testing.assert_array_equal(values, binary)
    np.testing.assert_array_equal(*(estimate_abilities(bank, one).theta for one in (graded, expected)))


def test_unanswered_items_are_left_out_and_a_model_without_answers_has_the_prior(rng):
    bank = make_bank()
    responses = new_models(bank, rng, np.array([2, 4, 6, 8]))
    responses.responses[:, 2] = responses.responses[0, 0] = responses.responses[1] = np.nan
    np.testing.assert_array_equal(answered_responses(bank, responses)[0], [2, 4, 8])
    found = estimate_abilities(bank, responses)
    np.testing.assert_array_equal(found.n_answered, [2, 0, 3, 3])
    np.testing.assert_array_equal(found.theta[1], bank.calibration.prior.mean)
    np.testing.assert_allclose(found.covariance[1], bank.calibration.prior.covariance)
    assert not found.at_bound.any()


def new_responses(bank, *, n_models=5, seed=4):
    """Pass rates of new models on some items, with trials and missing cells, and the items out of order."""
    rng = np.random.default_rng(seed)
    items, trials = list(rng.permutation(bank.item_ids)[:18]), rng.integers(1, 15, (n_models, 18))
    values = rng.binomial(trials, 0.6) / trials
    values[rng.random(values.shape) < 0.2] = np.nan
    scenarios = bank.responses.items.select("item_id", "scenario")
    table = pl.DataFrame({"item_id": items}).join(scenarios, on="item_id", how="left", maintain_order="left")
    return ResponseMatrix.create(values, items=table, n_trials=np.where(np.isnan(values), 0, trials))


@pytest.mark.parametrize("family", ["bernoulli", "binomial", "beta", "beta-binomial"])
def test_ability_behind_estimates_is_that_of_scoring(family):
    bank = make_bank() if family == "bernoulli" else with_family(make_bank(), family)
    responses = new_responses(bank)
    found = estimate(bank, responses, method="p-irt", interval="model-based")
    np.testing.assert_allclose(found.abilities, estimate_abilities(bank, responses).theta, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("family", ["binomial", "beta-binomial"])
def test_calibration_models_bring_their_own_trials(family):
    bank = with_family(make_bank(), family)
    laid = Asked.of(bank, new_responses(bank), None).observations
    same, some = (laid.answered_by_calibration_models(bank, *rows) for rows in ((), (np.array([3, 1]),)))
    np.testing.assert_array_equal(same.n_trials, bank.responses.n_trials[:, laid.positions])
    np.testing.assert_array_equal(some.n_trials, same.n_trials[[3, 1]])
    np.testing.assert_array_equal(some.responses, same.responses[[3, 1]])
    two = same.take(models=np.array([1, 2]), columns=np.array([0, 4]))
    np.testing.assert_array_equal(two.n_trials, same.n_trials[np.ix_([1, 2], [0, 4])])
    all_of, two_of = (summarise_responses(bank, one).abilities for one in (same, some))
    np.testing.assert_allclose(two_of, all_of[[3, 1]], rtol=1e-10)
    for other in (make_bank(), with_family(make_bank(), "beta")):  # trials of other families are let be
        assert Asked.of(other, new_responses(other), None).observations.n_trials is None


def test_models_that_attempted_items_less_often_change_nothing_for_others():
    bank = with_family(make_bank(n_models=12, n_dims=1), "binomial")
    trials = np.stack([np.ones(bank.n_items, int), np.full(bank.n_items, 12)])
    values = np.random.default_rng(3).binomial(trials, 0.6) / trials
    values[:, 20:], trials[:, 20:] = np.nan, 0
    responses = ResponseMatrix.create(values, items=bank.responses.items, n_trials=trials)
    together = estimate(bank, responses, method="p-irt")
    assert together.interval_kind == "calibrated"
    for row in range(2):
        alone = estimate(bank, responses.take(models=np.array([row])), method="p-irt").scores
        np.testing.assert_allclose(np.array(alone)[:, 0], np.array(together.scores)[:, row], atol=1e-12)


@pytest.mark.parametrize("family", ["binomial", "beta"])
def test_design_based_estimates_count_trials_where_the_family_does(family):
    bank, rng, found = with_family(make_bank(n_items=60), family), np.random.default_rng(2), []
    selection, trials = select(bank, 30, method="random", rng=1), rng.integers(1, 30, (4, 60))
    values, columns = rng.binomial(trials, 0.6) / trials, bank.responses.item_indices(selection.item_ids)
    for counts in (trials[:, columns], None):
        table = bank.responses.items[columns].select("item_id", "scenario")
        responses = ResponseMatrix.create(values[:, columns], items=table, n_trials=counts)
        is_assumed = counts is None and family == "binomial"
        with pytest.warns(DataWarning, match="as those of past models do") if is_assumed else nullcontext():
            found.append(estimate(bank, responses, selection=selection, interval="design"))
    assert np.allclose(found[0].value, found[1].value, rtol=1e-12) == (family == "beta")
    # with a 60th of the items' noise left, both estimate the same score
    np.testing.assert_allclose(found[0].value, found[1].value, atol=0.05)
