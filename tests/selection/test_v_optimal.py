import dataclasses
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.bank.norms import bank_factor_model
from itembank.errors import ParameterError
from itembank.irt.linear_gaussian import fit_factor_model
from itembank.selection.recipes import read_recipe
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, VOptimal
from itembank.selection.v_optimal import LinearModel, greedy_v_optimal, wanted_scores
from tests.bank.banks import make_bank


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
    size = noise.shape[0]
    return greedy_v_optimal(
        LinearModel(loadings[:, :-1], loadings[:, -1:], noise),  # the last as a shift
        target_weights,
        importance,
        n_items,
        is_candidate=np.ones(size, dtype=bool) if is_candidate is None else is_candidate,
        group=np.zeros(size, dtype=np.int64) if group is None else group,
        at_least=np.array(at_least),
        at_most=np.array(at_most),
    )


def dense_variances(loadings, noise, target_weights, chosen):
    """Posterior variance of each target by conditioning the joint normal distribution of all responses."""
    covariance = loadings @ loadings.T + np.diag(noise)
    chosen = list(chosen)
    within, across = covariance[np.ix_(chosen, chosen)], covariance[:, chosen]
    left = covariance - across @ np.linalg.solve(within, across.T) if chosen else covariance
    return np.einsum("it,ij,jt->t", target_weights, left, target_weights)


@pytest.mark.parametrize("seed", range(8))
def test_every_step_is_the_best_and_its_variance_that_of_dense_conditioning(seed):
    numbers = problem(seed)
    loadings, noise, target_weights, importance = numbers
    order, variances = greedy(numbers, 14)
    assert_allclose(variances[0], dense_variances(loadings, noise, target_weights, []), rtol=1e-10)
    chosen = []
    for step, item in enumerate(order):
        objective = {
            candidate: importance @ dense_variances(loadings, noise, target_weights, [*chosen, candidate])
            for candidate in range(14)
            if candidate not in chosen
        }
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
    assert min(ratios) >= 1.0 - 1e-9
    assert np.mean(ratios) < 1.02
    assert max(ratios) < 1.08


def test_only_candidates_are_chosen_none_that_answers_equally_and_noise_for_its_own_part():
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


def test_groups_get_their_least_and_most():
    numbers = problem(5)
    group = np.repeat([0, 1, 2], [3, 5, 6])
    target_weights = np.where(group == 2, 1.0, 1e-6)[:, None]  # the last group is all that is wanted
    numbers = (numbers[0], numbers[1], target_weights, np.ones(1))
    for n_items, expected in ((4, [1, 1, 2]), (7, [1, 1, 5]), (12, [2, 5, 5])):
        order, _ = greedy(numbers, n_items, group=group, at_least=(1, 1, 1), at_most=(2, 5, 5))
        counts = np.bincount(group[order], minlength=3)
        assert counts.tolist() == expected


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


def test_free_allocation_follows_the_target_and_keeps_the_minimum(bank):
    counts = {
        minimum: np.unique(chosen_for(bank, "code", 12, minimum_per_scenario=minimum).scenarios, return_counts=True)[
            1
        ].tolist()
        for minimum in (1, 3)
    }
    assert counts == {1: [10, 1, 1], 3: [6, 3, 3]}  # code, law, math
    with pytest.raises(ParameterError, match="n_items must be at least 15"):
        chosen_for(bank, "code", 12, minimum_per_scenario=5)
    selection = chosen_for(bank, "code", 6, minimum_per_scenario=0)
    assert set(selection.scenarios) == {"code"}
    assert selection.weights.sum() == pytest.approx(1.0)
    selection = select(bank, 4, method=VOptimal("code"), per_scenario=True)
    assert np.unique(selection.scenarios, return_counts=True)[1].tolist() == [4, 4, 4]


def test_balanced_weighs_scenarios_by_the_square_of_their_share(bank):
    named = {"overall": 1.0, **dict.fromkeys(bank.targets.scenarios, 1 / 9)}
    assert chosen_for(bank, "balanced").item_ids == chosen_for(bank, named).item_ids
    assert chosen_for(bank, {"overall": 2.0}).item_ids == chosen_for(bank, "overall").item_ids
    # var(sum t_j S_j) of independent scores is the sum of t_j^2 Var(S_j)
    targets = make_bank().targets
    shares = np.arange(1.0, 1.0 + len(targets.scenarios))
    weights, importance = wanted_scores(
        dataclasses.replace(targets, scenario_weights=shares / shares.sum()), VOptimal()
    )
    assert weights.shape == (targets.scenario_index.size, importance.size)
    assert importance == pytest.approx([1.0, *(shares / shares.sum()) ** 2])
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
        left = {
            one: importance @ dense_variances(model.loadings, model.noise, weights, [*chosen, one])
            for one in set(range(24)) - set(chosen)
        }
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


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"allocation": "best"}, "allocation must be one of 'free', 'equal'"),
        ({"n_factors": 0}, "n_factors must be a whole number >= 1 or 'auto', got 0"),
        ({"n_factors": "many"}, "or 'auto', got 'many'"),
        ({"minimum_per_scenario": -1}, "must be a whole number >= 0, got -1"),
        ({"target": {}}, "finite numbers >= 0, not all zero"),
        ({"target": {"overall": -1.0}}, "finite numbers >= 0, not all zero"),
        ({"scenario_weights": {"code": 0.0}}, "scenario_weights must be finite, not all zero"),
        ({"scenario_weights": {"code": np.nan}}, "scenario_weights must be finite, not all zero"),
    ],
)
def test_choices_are_checked(choices, message):
    with pytest.raises(ParameterError, match=message):
        VOptimal(**choices)
