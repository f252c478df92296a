"""Items for a linear Gaussian model, and the next ones of one model, against dense conditioning and integrals."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from itembank.bank.norms import bank_factor_model
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.irt.families import expected_curve
from itembank.irt.linear_gaussian import fit_factor_model
from itembank.irt.parameters import ItemParameters
from itembank.selection.later_stages import LocalDesign, LocalModel
from itembank.selection.recipes import read_recipe
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, VOptimal
from itembank.selection.v_optimal import LinearModel, greedy_v_optimal, wanted_scores
from itembank_living import without_responses
from tests.bank.banks import make_bank, with_family

pytestmark = pytest.mark.usefixtures("few_folds")


def problem(seed, n_items=14, n_factors=3, n_targets=2):
    """Random loadings, noise, target weights and importance."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_items, n_factors)) * rng.lognormal(size=n_factors),
        rng.lognormal(-1.0, 1.0, n_items),
        rng.dirichlet(np.ones(n_items), n_targets).T,
        rng.random(n_targets) + 0.1,
    )


def greedy(numbers, n_items, *, is_candidate=None, group=None, at_least=(0,), at_most=(1000,)):
    loadings, noise, target_weights, importance = numbers
    model = LinearModel(loadings[:, :-1], loadings[:, -1:], noise)  # the last as a shift
    choices = {
        "is_candidate": np.ones(noise.size, dtype=bool) if is_candidate is None else is_candidate,
        "group": np.zeros(noise.size, dtype=np.int64) if group is None else group,
    }
    limits = {"at_least": np.array(at_least), "at_most": np.array(at_most)}
    return greedy_v_optimal(model, target_weights, importance, n_items, **choices, **limits)


def dense_variances(loadings, noise, target_weights, chosen):
    """Posterior variance of each target by conditioning the joint normal distribution of all responses."""
    covariance = loadings @ loadings.T + np.diag(noise)
    chosen = list(chosen)
    within, across = covariance[np.ix_(chosen, chosen)], covariance[:, chosen]
    left = covariance - across @ np.linalg.solve(within, across.T) if chosen else covariance
    return np.einsum("it,ij,jt->t", target_weights, left, target_weights)


def left_after(loadings, noise, target_weights, importance, chosen):
    """Importance times variance of what is left after each other item."""
    others = set(range(noise.size)) - set(chosen)
    return {one: importance @ dense_variances(loadings, noise, target_weights, [*chosen, one]) for one in others}


@pytest.mark.parametrize("seed", range(8))
def test_every_step_is_the_best_and_its_variance_that_of_dense_conditioning(seed):
    numbers = problem(seed)
    loadings, noise, target_weights, importance = numbers
    order, variances = greedy(numbers, 14)
    assert_allclose(variances[0], dense_variances(loadings, noise, target_weights, []), rtol=1e-10)
    chosen = []
    for step, item in enumerate(order):
        objective = left_after(loadings, noise, target_weights, importance, chosen)
        assert item == min(objective, key=objective.get)
        chosen.append(item)
        expected = dense_variances(loadings, noise, target_weights, chosen)
        assert_allclose(variances[step + 1], expected, rtol=1e-10, atol=1e-13)
    assert_allclose(variances[-1], 0.0, atol=1e-12)  # nothing is left to know


def test_greedy_is_close_to_the_best_of_all_subsets():
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        loadings = rng.normal([0.3, 0.0, 0.0], 0.15, (12, 3))  # as of 0/1 responses with a common ability
        numbers = (loadings, 0.25 - np.sum(loadings**2, axis=1).clip(max=0.2), np.full((12, 1), 1 / 12), np.ones(1))
        loadings, noise, target_weights, _ = numbers
        best = min(dense_variances(loadings, noise, target_weights, subset)[0] for subset in combinations(range(12), 4))
        ratios.append(greedy(numbers, 4)[1][-1, 0] / best)
    assert 1.0 - 1e-9 <= min(ratios) <= max(ratios) < 1.08
    assert np.mean(ratios) < 1.02


def test_only_candidates_are_chosen_and_groups_get_their_least_and_most():
    is_candidate = np.arange(14) % 3 > 0
    order, _ = greedy(problem(3), 9, is_candidate=is_candidate)
    assert sorted(order) == np.flatnonzero(is_candidate).tolist()
    # its loadings are nil, but no other item says what it adds
    loadings, noise = np.array([[1.0], [1.0], [0.0]]), np.array([0.1, 0.1, 100.0])
    order, _ = greedy((loadings, noise, np.full((3, 1), 1 / 3), np.ones(1)), 1)
    assert order.tolist() == [2]
    # two items without noise of their own and of the same loadings: the second tells nothing
    loadings, noise = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.0, 0.5])
    order, variances = greedy((loadings, noise, np.full((3, 1), 1 / 3), np.ones(1)), 3)
    assert order[:2].tolist() == [0, 2]
    assert np.all(np.isfinite(variances))
    numbers = problem(5)
    group = np.repeat([0, 1, 2], [3, 5, 6])
    target_weights = np.where(group == 2, 1.0, 1e-6)[:, None]  # the last group is all that is wanted
    numbers = (numbers[0], numbers[1], target_weights, np.ones(1))
    for n_items, expected in ((4, [1, 1, 2]), (7, [1, 1, 5]), (12, [2, 5, 5])):
        order, _ = greedy(numbers, n_items, group=group, at_least=(1, 1, 1), at_most=(2, 5, 5))
        assert np.bincount(group[order], minlength=3).tolist() == expected


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=40, n_items=60)


def chosen_for(bank, target, n_items=9, **choices):
    return select(bank, n_items, method=VOptimal(target, **choices), rng=0)


def test_the_named_score_is_known_best_from_the_items_chosen_for_it(bank):
    model = fit_factor_model(bank.responses.responses)
    names = ("overall", *bank.targets.scenarios)
    left = np.empty((4, 4))
    for row, wanted in enumerate(names):
        positions = bank.responses.item_indices(chosen_for(bank, wanted).item_ids)
        weights = np.column_stack([bank.targets.target(name).weights for name in names])
        left[row] = dense_variances(model.loadings, model.noise, weights, positions)
    assert np.all(np.argmin(left, axis=0) == np.arange(4))


def test_free_allocation_follows_the_target_and_balanced_weighs_scenarios_by_the_square_of_their_share(bank):
    for minimum, counts in ((1, [10, 1, 1]), (3, [6, 3, 3])):  # code, law, math
        found = chosen_for(bank, "code", 12, minimum_per_scenario=minimum).scenarios
        assert np.unique(found, return_counts=True)[1].tolist() == counts
    with pytest.raises(ParameterError, match="n_items must be at least 15"):
        chosen_for(bank, "code", 12, minimum_per_scenario=5)
    selection = chosen_for(bank, "code", 6, minimum_per_scenario=0)
    assert set(selection.scenarios) == {"code"}
    assert selection.weights.sum() == pytest.approx(1.0)
    selection = select(bank, 4, method=VOptimal("code"), per_scenario=True)
    assert np.unique(selection.scenarios, return_counts=True)[1].tolist() == [4, 4, 4]
    named = {"overall": 1.0, **dict.fromkeys(bank.targets.scenarios, 1 / 9)}
    assert chosen_for(bank, "balanced").item_ids == chosen_for(bank, named).item_ids
    assert chosen_for(bank, {"overall": 2.0}).item_ids == chosen_for(bank, "overall").item_ids
    # var(sum t_j S_j) of independent scores is the sum of t_j^2 Var(S_j)
    targets = make_bank().targets
    shares = np.arange(1.0, 1.0 + len(targets.scenarios)) / 6.0
    weights, importance = wanted_scores(dataclasses.replace(targets, scenario_weights=shares), VOptimal())
    assert weights.shape == (targets.scenario_index.size, importance.size)
    assert importance == pytest.approx([1.0, *shares**2])
    assert METHODS.resolve("v-optimal") == VOptimal("balanced", "auto", "free", 1)


def test_weights_of_scenarios_take_the_place_of_those_of_the_overall_score_and_are_kept(bank):
    """All weight on one scenario is that scenario; the bank's own weights, in any unit, change nothing."""
    own = dict.fromkeys(bank.targets.scenarios, 5.0)
    assert chosen_for(bank, "balanced", scenario_weights=own).item_ids == chosen_for(bank, "balanced").item_ids
    assert chosen_for(bank, "overall", scenario_weights={"code": 0.2}).item_ids == chosen_for(bank, "code").item_ids
    with pytest.raises(ParameterError, match="'math', 'code', 'law', got 'physics'"):
        chosen_for(bank, "overall", scenario_weights={"physics": 1.0})
    weights = {"math": 1.0, "law": -0.25}
    assert read_recipe(chosen_for(bank, "balanced", scenario_weights=weights)).spec.scenario_weights == weights
    assert "scenario_weights" not in chosen_for(bank, "balanced").recipe["options"]


@pytest.mark.parametrize("dense_up_to", [0, 10**6])  # shifts as a sparse matrix, and as they are
def test_items_are_the_best_of_all_by_the_factor_model(dense_up_to, monkeypatch):
    """The criterion by itself, by enumeration."""
    monkeypatch.setattr("itembank.selection.v_optimal.DENSE_UP_TO", dense_up_to)
    bank = make_bank(n_models=30, n_items=24, seed=2)
    model = bank_factor_model(bank, discrepancy="auto")
    weights, importance = wanted_scores(bank.targets, VOptimal())
    chosen = []
    for _ in range(7):
        left = left_after(model.loadings, model.noise, weights, importance, chosen)
        chosen.append(min(left, key=left.get))
    found = select(bank, 7, method=VOptimal(minimum_per_scenario=0), rng=0)
    assert sorted(bank.responses.item_indices(found.item_ids).tolist()) == sorted(chosen)


def test_the_number_of_factors_can_be_held_down(bank, rng):
    values = 0.5 + 0.1 * rng.normal(size=(40, 3)) @ rng.normal(size=(3, 60)) + 0.1 * rng.normal(size=(40, 60))
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=np.clip(values, 0, 1)))
    one, two, auto = (chosen_for(bank, "overall", n_factors=number).item_ids for number in (1, 2, "auto"))
    assert one != two
    assert auto == chosen_for(bank, "overall", n_factors=50).item_ids


def test_missing_responses_and_two_models_are_enough_to_choose_something():
    gappy = make_bank(n_models=40, n_items=60, with_extras=True)
    assert np.isnan(gappy.responses.responses).any()
    assert chosen_for(gappy, "balanced", 12).n_items == 12
    assert chosen_for(make_bank(n_models=2, n_items=30), "balanced", 6).n_items == 6


@pytest.mark.parametrize(("target", "runs_again"), [("balanced", False), ("code", True)])
def test_fewer_items_begin_an_order_of_more_unless_some_scenario_would_get_too_few(monkeypatch, target, runs_again):
    sizes = (30, 24, 12)
    fresh = [chosen_for(make_bank(n_models=40, n_items=60), target, n_items).item_ids for n_items in sizes]
    runs = []

    def counted(*model, **choices):
        runs.append(model[-1])
        return greedy_v_optimal(*model, **choices)

    monkeypatch.setattr("itembank.selection.v_optimal.greedy_v_optimal", counted)
    bank = make_bank(n_models=40, n_items=60)
    assert [chosen_for(bank, target, n_items).item_ids for n_items in sizes] == fresh
    assert runs[0] == 30
    assert (len(runs) > 1) == runs_again  # whether at 24 already is the processor's: some items are nearly as good


@pytest.mark.parametrize("target", ["physics", {"overall": 1.0, "physics": 1.0}])
def test_an_unknown_target_names_the_known_ones(bank, target):
    with pytest.raises(ParameterError, match="'math', 'code', 'law', 'overall', got 'physics'"):
        chosen_for(bank, target)


THETA, COVARIANCE = np.array([0.6, -0.8]), np.array([[0.5, 0.1], [0.1, 0.8]])
ANSWERED = np.array([3, 10, 17])


@pytest.fixture(scope="module")
def small(few_folds):
    return make_bank(n_models=30, n_items=24)


def design_of(bank, **choices):
    return LocalDesign.of_bank(bank, VOptimal(**choices), ())


@pytest.mark.parametrize("target", ["balanced", "overall", "law"])
def test_each_item_is_the_best_of_all_by_dense_conditioning(small, target):
    design = design_of(small, target=target)
    model = design.local.at(THETA, COVARIANCE)
    found = design.next_items(THETA, COVARIANCE, ANSWERED, 6, asked=ANSWERED)
    chosen = ANSWERED.tolist()
    for item in found.tolist():
        left = left_after(model.loadings, model.noise, design.target_weights, design.importance, chosen)
        assert left[item] <= min(left.values()) * (1.0 + 1e-9)
        chosen.append(item)


def test_what_was_asked_is_not_asked_again_and_without_any_answer_items_are_chosen_as_well(small):
    asked = np.array([3, 10, 17, 5])  # 5 was not answered
    found = design_of(small).next_items(THETA, COVARIANCE, ANSWERED, 40, asked=asked)
    assert sorted([*found.tolist(), *asked.tolist()]) == list(range(24))
    nothing = np.zeros(0, dtype=np.int64)
    assert design_of(small).next_items(THETA, COVARIANCE, nothing, 4, asked=nothing).size == 4


def test_a_strong_model_is_asked_harder_items_than_a_weak_one(small):
    hardness = -small.parameters.intercept
    strong, weak = (
        design_of(small).next_items(sign * np.ones(2), 0.1 * np.eye(2), ANSWERED, 6, asked=ANSWERED)
        for sign in (1.5, -1.5)
    )
    assert hardness[strong].mean() > hardness[weak].mean() + 0.3


def test_excluded_items_and_those_that_tell_nothing_are_not_chosen_and_a_bank_needs_responses(small):
    calibration = dataclasses.replace(small.calibration, is_degenerate=np.arange(24) == 7)
    small = dataclasses.replace(small, calibration=calibration)
    design = LocalDesign.of_bank(small, VOptimal(), (small.item_ids[11],))
    found = design.next_items(THETA, COVARIANCE, ANSWERED, 40, asked=ANSWERED)
    assert sorted(found.tolist()) == sorted(set(range(24)) - {7, 11, *ANSWERED.tolist()})
    published = without_responses(small, selections=[select(small, 9, method="v-optimal")])
    with pytest.raises(DataError, match=r"next stage needs past models' responses.* published without them"):
        design_of(published)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (0.25, 0.95)])
def test_curves_are_integrals_over_ability(lower, upper):
    parameters = ItemParameters.create(np.array([[1.3]]), np.array([-0.4]), lower, upper)
    found = expected_curve(parameters, np.array([0.7]), np.array([0.9]))

    def mean(x):
        return lower + (upper - lower) / (1.0 + np.exp(-x))

    def slope(x):
        return (mean(x + 1e-5) - mean(x - 1e-5)) / 2e-5

    for one, function in zip(found, (mean, slope, lambda x: mean(x) * (1.0 - mean(x))), strict=True):
        expected, _ = quad(lambda x, of=function: of(x) * norm.pdf(x, 0.7, 0.9), -8.0, 9.0)
        assert_allclose(one[0], expected, rtol=1e-3)


@pytest.mark.parametrize("family", ["bernoulli", "binomial", "beta", "beta-binomial"])
def test_noise_is_the_variance_of_responses_at_an_ability(family):
    """Simulated with known truth: responses of many models of one ability, where past ones had all abilities."""
    past = make_bank(n_models=400, n_items=40, n_dims=1)
    alike = dataclasses.replace(past.calibration, abilities=np.full((400, 1), 1.5))
    past, new = (with_family(bank, family) for bank in (past, dataclasses.replace(past, calibration=alike)))
    model = design_of(past, discrepancy=0.0).local.at(np.array([1.5]), np.zeros((1, 1)))
    expected = np.sum(model.loadings[:, 1:] ** 2, axis=1) + model.noise
    actual, ordinary = new.responses.responses.var(axis=0), past.responses.responses.var(axis=0)
    assert_allclose(expected.mean(), actual.mean(), rtol=0.15)
    assert np.corrcoef(expected, actual)[0, 1] > 0.85
    assert expected.mean() < 0.7 * ordinary.mean()  # most items are easy for these models: they scatter less


def test_weights_are_those_of_the_nearest_chosen_item_and_sum_to_one_in_each_scenario(small):
    chosen = np.array([0, 1, 2, 3, 4, 5, 9])
    weights = design_of(small).weights_of(chosen)
    assert_allclose(np.bincount(small.targets.scenario_index[chosen], weights=weights), 1.0)
    assert design_of(small).weights_of(np.arange(24)) == pytest.approx(small.targets.weights)


def test_residuals_are_fitted_in_their_own_unit_missing_responses_filled_in(small):
    """A factor model of a linear function of responses is that function of their factor model."""
    found = LocalModel.of_bank(small, VOptimal()).residual
    direct = fit_factor_model(small.responses.responses - probability(small.parameters, small.calibration.abilities))
    assert_allclose(found.mean, direct.mean, atol=1e-12)
    assert_allclose(found.noise, direct.noise, rtol=1e-9)
    assert_allclose(found.loadings @ found.loadings.T, direct.loadings @ direct.loadings.T, atol=1e-9)
    responses = small.responses.responses.copy()
    responses[np.random.default_rng(0).random(responses.shape) < 0.2] = np.nan
    gaps = dataclasses.replace(small, responses=dataclasses.replace(small.responses, responses=responses))
    residual = design_of(gaps).local.residual
    assert np.all(np.isfinite(residual.loadings))
    assert_allclose(residual.noise.mean(), found.noise.mean(), rtol=0.25)
