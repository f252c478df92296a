import dataclasses
import itertools
import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist

from itembank.bank.banks import CONTENT_ORDER
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation.design_based import design_based_estimates
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.planning.select import select as select_or_auto
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.anchors import correctness_features, irt_features, spread
from itembank.selection.greedy import Constraints
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.random_items import equal_counts
from itembank.selection.recipes import Recipe, n_items_asked, read_recipe
from itembank.selection.select import select, select_by_recipe
from itembank.selection.selector_specs import (
    METHODS,
    AnchorCorrectness,
    AnchorIRT,
    Drawn,
    OptimalDesign,
    Stratified,
    VOptimal,
)
from itembank.selection.v_optimal import LinearModel, greedy_v_optimal
from tests.bank.banks import make_bank

FREE = ("drawn", "v-optimal", "optimal-design")
RANDOM = ("drawn", "random", "stratified")
ALL_METHODS = pytest.mark.parametrize("method", METHODS.builtin_names)
EQUAL_COUNTS = pytest.mark.parametrize(
    "method", [*(name for name in METHODS.builtin_names if name not in FREE), VOptimal(allocation="equal")]
)
NOT_RANDOM = pytest.mark.parametrize("method", [name for name in METHODS.builtin_names if name not in RANDOM])


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


def with_responses(bank, values):
    return dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))


def with_parameters(bank, **changes):
    parameters = {name: changes.pop(name) for name in ("loadings", "intercept") if name in changes}
    changes["parameters"] = dataclasses.replace(bank.parameters, **parameters)
    return dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, **changes))


def with_degenerate(bank, items):
    """The bank with these items answered right by every model."""
    flags = np.isin(np.arange(bank.n_items), items)
    loadings = np.where(flags[:, None], 0.0, bank.parameters.loadings)
    intercept = np.where(flags, 4.0, bank.parameters.intercept)
    changed = with_responses(bank, np.where(flags, 1.0, bank.responses.responses))
    return with_parameters(changed, loadings=loadings, intercept=intercept, is_degenerate=flags)


def with_weights(bank, weights):
    items = bank.responses.items.with_columns(weight=pl.Series(weights))
    responses = dataclasses.replace(bank.responses, items=items)
    return dataclasses.replace(bank, responses=responses, targets=ScoreTargets.create(items, within="custom"))


def scenario_sums(selection):
    names = np.array(selection.scenarios)
    return {name: selection.weights[names == name].sum() for name in dict.fromkeys(selection.scenarios)}


def through_json(selection):
    return Selection.from_dict(json.loads(json.dumps(selection.to_dict())))


@ALL_METHODS
@pytest.mark.parametrize("n_items", [3, 10, 31, 45])
def test_every_method_keeps_the_contract(bank, method, n_items):
    selection = select(bank, n_items, method=method, rng=3)
    assert selection.n_items == n_items == len(set(selection.item_ids))
    assert scenario_sums(selection) == pytest.approx(dict.fromkeys(bank.targets.scenarios, 1.0))
    assert np.all(selection.weights > 0.0)
    positions = bank.responses.item_indices(selection.item_ids)
    by_scenario = bank.targets.scenario_index[positions]
    assert [bank.targets.scenarios[j] for j in by_scenario] == list(selection.scenarios)
    assert (selection.method, selection.bank, selection.seed) == (method, bank.bank_id, 3)


@ALL_METHODS
@pytest.mark.parametrize(("n_items", "per_scenario"), [(2, False), (11, False), (4, True)])
def test_a_scenario_that_is_excluded_is_asked_nothing(bank, method, n_items, per_scenario):
    law = np.flatnonzero(bank.targets.scenario_index == bank.targets.scenarios.index("law"))
    excluded = [bank.item_ids[item] for item in law.tolist()]
    selection = select(bank, n_items, method=method, rng=3, per_scenario=per_scenario, excluded=excluded)
    counts = {name: selection.scenarios.count(name) for name in ("math", "code")}
    assert selection.n_items == sum(counts.values()) == (2 * n_items if per_scenario else n_items)
    assert min(counts.values()) >= 1
    assert scenario_sums(selection) == pytest.approx(dict.fromkeys(counts, 1.0))
    assert selection.inclusion_probabilities is None
    with pytest.raises(ParameterError, match="every item is excluded"):
        select(bank, n_items, method=method, excluded=bank.item_ids)


@ALL_METHODS
def test_the_seed_gives_the_same_items_again_and_per_scenario_as_many_of_each(bank, method):
    one, again = (select(bank, 12, method=method, rng=5) for _ in range(2))
    assert one.item_ids == again.item_ids
    assert_array_equal(one.weights, again.weights)
    generator = select(bank, 12, method=method, rng=np.random.default_rng(5))
    assert (generator.item_ids, generator.seed) == (one.item_ids, None)
    selection = select(bank, 5, method=method, per_scenario=True, rng=0)
    assert np.unique(selection.scenarios, return_counts=True)[1].tolist() == [5, 5, 5]


@ALL_METHODS
def test_excluded_items_and_those_without_weight_are_not_chosen_and_all_items_weigh_as_in_the_score(bank, method):
    excluded = bank.item_ids[:30]
    selection = select(bank, 15, method=method, rng=0, excluded=excluded)
    assert not set(selection.item_ids) & set(excluded)
    assert scenario_sums(selection) == pytest.approx(dict.fromkeys(bank.targets.scenarios, 1.0))
    weighted = with_weights(bank, np.linspace(1.0, 4.0, bank.n_items))
    selection = select(weighted, bank.n_items, method=method, rng=0)
    positions = bank.responses.item_indices(selection.item_ids)
    assert_allclose(selection.weights, weighted.targets.weights[positions])
    weights = np.where(np.arange(bank.n_items) < 30, 0.0, 1.0)
    selection = select(with_weights(bank, weights), 30, method=method, rng=0)
    assert set(selection.item_ids) == set(bank.item_ids[30:])


@EQUAL_COUNTS
def test_scenarios_get_equal_counts_and_a_small_one_gives_its_share_to_the_others(bank, method):
    for n_items in (3, 10, 31, 45):
        counts = np.unique(select(bank, n_items, method=method, rng=3).scenarios, return_counts=True)[1]
        assert counts.size == 3
        assert counts.max() - counts.min() <= 1
    scenarios = ["tiny"] * 2 + ["big"] * 30 + ["other"] * 28
    items = pl.DataFrame({"item_id": bank.item_ids, "scenario": scenarios, "subscenario": [None] * 60})
    responses = ResponseMatrix.create(bank.responses.responses, items=items, models=bank.responses.models)
    uneven = dataclasses.replace(bank, responses=responses, targets=ScoreTargets.create(responses.items))
    found = select(uneven, 17, method=method, rng=0).scenarios
    assert [found.count(name) for name in ("big", "other", "tiny")] == [8, 7, 2]


@NOT_RANDOM
def test_degenerate_items_are_represented_and_a_scenario_of_them_alone_gets_its_items(bank, method):
    degenerate = np.arange(24)
    selection = select(with_degenerate(bank, degenerate), 18, method=method, rng=0)
    assert not set(selection.item_ids) & {bank.item_ids[i] for i in degenerate}
    assert scenario_sums(selection) == pytest.approx(dict.fromkeys(bank.targets.scenarios, 1.0))
    changed = with_degenerate(bank, np.flatnonzero(bank.targets.scenario_index == 1))
    selection = select(changed, 9, method=method, rng=0)
    # one such item is all that methods need to know that choose from the benchmark as a whole
    assert list(selection.scenarios).count(bank.targets.scenarios[1]) == (1 if method in FREE else 3)


def test_items_everybody_gets_right_are_represented_by_easy_anchors_and_chosen_by_chance(bank):
    degenerate = np.arange(24)
    changed = with_degenerate(bank, degenerate)
    changed.cache.remember(CONTENT_ORDER, lambda: bank.content_order)  # in which centres of clusters begin
    plain = select(bank, 18, method="anchor-irt", rng=0, excluded=[bank.item_ids[i] for i in degenerate])
    selection = select(changed, 18, method="anchor-irt", rng=0)
    assert selection.item_ids == plain.item_ids  # the same clusters: only where the weight goes differs
    easiness = bank.parameters.intercept[bank.responses.item_indices(selection.item_ids)]
    assert selection.weights @ easiness > plain.weights @ easiness + 0.3
    changed = with_degenerate(bank, np.arange(57))
    assert select(changed, 60, method="random", rng=0).n_items == 60
    with pytest.raises(DataError, match="'math/nope' are not"):
        select(bank, 5, excluded=["math/nope", bank.item_ids[0]])


@pytest.mark.parametrize("spec", [AnchorCorrectness(allow_degenerate=True), AnchorIRT(allow_degenerate=True)])
def test_degenerate_items_stand_for_their_like_when_allowed(bank, spec):
    selection = select(with_degenerate(bank, np.arange(24)), 18, method=spec, rng=0)
    positions = bank.responses.item_indices(selection.item_ids)
    for scenario in range(3):
        own = bank.targets.scenario_index[positions] == scenario
        flags = positions[own] < 24
        assert flags.sum() == 1  # one point, one cluster
        assert selection.weights[own][flags][0] >= 8 / 20 - 1e-12  # eight equal items of twenty, and any neighbours


def pool_of(bank, scenario=0):
    items = np.flatnonzero(bank.targets.scenario_index == scenario)
    return ScenarioPool(items, bank.targets.weights[items], np.arange(len(items)) != 3)


def test_features_are_standardised_in_any_rotation_or_scale_and_filled_in_by_the_item_model(bank):
    pool = pool_of(bank)
    features = correctness_features(bank, pool, standardise=True)
    constant = np.ptp(bank.responses.responses[:, pool.items[pool.is_candidate]], axis=1) == 0.0
    assert 0 < constant.sum() < 20
    assert_allclose(spread(features, pool), np.where(constant, 0.0, 1.0), atol=1e-6)
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]]) * 5.0
    turned = with_parameters(bank, loadings=bank.parameters.loadings @ turn)
    one, other = (irt_features(each, pool, standardise=True) for each in (bank, turned))
    assert_allclose(pdist(one), pdist(other))
    assert_allclose(np.sum(spread(one, pool) ** 2), 2.0)
    assert not np.allclose(*(pdist(irt_features(each, pool, standardise=False)) for each in (bank, turned)))
    gappy = make_bank(n_models=20, n_items=60, with_extras=True)
    pool = pool_of(gappy)
    features = correctness_features(gappy, pool, standardise=False)
    given = gappy.responses.responses[:, pool.items].T
    missing = np.isnan(given)
    assert missing.any()
    assert_array_equal(features[~missing], given[~missing])
    expected = probability(gappy.parameters, gappy.calibration.abilities)[:, pool.items].T
    assert_allclose(features[missing], expected[missing], rtol=1e-6)
    assert select(gappy, 12, method="anchor-correctness", rng=0).n_items == 12


@NOT_RANDOM
@pytest.mark.parametrize("n_models", [1, 2, 4])
def test_very_few_models_and_items_that_none_answered_are_allowed(method, n_models):
    few = make_bank(n_models=n_models, n_items=30)
    values = few.responses.responses.copy()
    values[:, 7], values[0, :5] = np.nan, np.nan
    gappy = with_responses(few, values)
    for n_items in (3, 11, 30):
        selection = select(gappy, n_items, method=method, rng=0)
        assert selection.n_items == n_items
        assert scenario_sums(selection) == pytest.approx(dict.fromkeys(few.targets.scenarios, 1.0))


@pytest.mark.parametrize(
    ("n_items", "choices", "said"),
    [
        (2, {}, "from 3"),
        (61, {}, "to 60"),
        (0, {}, "from 3"),
        (21, {"per_scenario": True}, r"from 1 to 20, got 21; fewer to choose from in 'math \(20\)'"),
        (5, {"method": "best"}, "'random', 'stratified', 'anchor-correctness', 'anchor-irt'"),
    ],
)
def test_what_cannot_be_chosen_says_what_is_possible(bank, n_items, choices, said):
    with pytest.raises(ParameterError, match=said):
        select(bank, n_items, rng=0, **choices)


@pytest.mark.parametrize(
    ("kind", "choices", "message"),
    [
        (Constraints, {"at_least": -1}, "at_least must be a whole number >= 0"),
        (Constraints, {"at_least": 1.5}, "at_least must be a whole number >= 0"),
        (Constraints, {"at_least": True}, "at_least must be a whole number >= 0"),
        (Constraints, {"at_most": {"math": -2}}, "at_most must be a whole number >= 0"),
        (Constraints, {"randomesque": 0}, "randomesque must be a whole number >= 1"),
        (Constraints, {"excluded": "math/1"}, "excluded must be a tuple of item ids"),
        (OptimalDesign, {"criterion": "best"}, "criterion method must be one of"),
        (OptimalDesign, {"criterion": "random", "per_cost": True}, "only information can be divided by cost"),
        (OptimalDesign, {"at_least": -1}, "at_least must be a whole number >= 0"),
        (OptimalDesign, {"randomesque": 0}, "randomesque must be a whole number >= 1"),
        (OptimalDesign, {"input_weight": -1.0}, "input_weight must be a finite number"),
        (VOptimal, {"allocation": "best"}, "allocation must be one of 'free', 'equal'"),
        (VOptimal, {"n_factors": 0}, "n_factors must be a whole number >= 1 or 'auto', got 0"),
        (VOptimal, {"n_factors": "many"}, "or 'auto', got 'many'"),
        (VOptimal, {"minimum_per_scenario": -1}, "must be a whole number >= 0, got -1"),
        (VOptimal, {"target": {}}, "finite numbers >= 0, not all zero"),
        (VOptimal, {"target": {"overall": -1.0}}, "finite numbers >= 0, not all zero"),
        (VOptimal, {"scenario_weights": {"code": 0.0}}, "scenario_weights must be finite, not all zero"),
        (VOptimal, {"scenario_weights": {"code": np.nan}}, "scenario_weights must be finite, not all zero"),
        (AnchorIRT, {"n_restarts": 0}, "n_restarts must be a whole number >= 1"),
        (AnchorCorrectness, {"n_restarts": 0}, "n_restarts must be a whole number >= 1"),
        (Stratified, {"allocation": "best"}, "allocation must be one of 'equal', 'proportional'"),
        (Drawn, {"flat": -0.1}, "flat"),
        (Drawn, {"flat": 1.5}, "flat"),
    ],
)
def test_specs_check_their_choices(kind, choices, message):
    with pytest.raises(ParameterError, match=message):
        kind(**choices)


WITH_VARIANTS = pytest.mark.parametrize(
    "method", [*METHODS.builtin_names, VOptimal(allocation="equal"), Stratified("proportional")], ids=str
)
BY_DESIGN = pytest.mark.parametrize("method", ["random", "stratified"])
IDS = ("math/0", "math/3", "law/2", "math/9")


@WITH_VARIANTS
@pytest.mark.parametrize("n_items", [6, 15, 60])
def test_every_method_chooses_them(bank, method, n_items):
    selection = select(bank, n_items, method=method, rng=3, included=IDS)
    assert set(IDS) <= set(selection.item_ids)
    assert selection.n_items == len(set(selection.item_ids)) == n_items
    assert scenario_sums(selection) == pytest.approx(dict.fromkeys(selection.scenarios, 1.0))


@WITH_VARIANTS
def test_they_come_in_addition_to_what_the_recipe_of_others_says(bank, method):
    selection = select(bank, 12, method=method, rng=3, included=set(IDS))
    again, past = through_json(selection), bank.calibration
    recipe = read_recipe(again)
    assert recipe.included == tuple(sorted(IDS))
    fewer = dataclasses.replace(bank, responses=bank.responses.take(models=np.arange(15)))
    fewer = with_parameters(fewer, abilities=past.abilities[:15], ability_covariance=past.ability_covariance[:15])
    assert set(IDS) <= set(select_by_recipe(fewer, recipe, 0).item_ids)
    assert not again.is_random


def test_none_changes_nothing_and_auto_keeps_them(bank):
    assert "included" not in select(bank, 12, rng=0).to_dict()["recipe"]
    for method in METHODS.builtin_names:
        one, other = (select(bank, 12, method=method, rng=3, **more) for more in ({}, {"included": ()}))
        assert one.to_dict() == other.to_dict()
    selection = select_or_auto(bank, 12, included=IDS, rng=0)
    assert set(IDS) <= set(selection.item_ids)
    assert np.isfinite(estimate(bank, bank.responses, selection=selection).value).all()


@BY_DESIGN
def test_probabilities_are_those_of_drawing_the_others(bank, method):
    """The others are drawn as from a benchmark without the items that come anyway."""
    selection = select(bank, 18, method=method, rng=5, included=IDS)
    probability = dict(zip(selection.item_ids, selection.inclusion_probabilities, strict=True))
    assert [probability[item] for item in IDS] == [1.0] * 4
    if method == "random":
        of_math = [probability[item] for item in selection.item_ids if item[:4] == "math" and item not in IDS]
        assert of_math == [3 / 17] * 3


@BY_DESIGN
def test_estimates_from_the_design_have_the_expectation_of_the_score(bank, method):
    """The Horvitz-Thompson mean of all draws is the score, whatever is included."""
    rng, draws = np.random.default_rng(8), []
    worth = bank.targets.weights * bank.responses.responses[0]
    for _ in range(300):
        selection = select(bank, 21, method=method, rng=rng, included=IDS)
        items = bank.responses.item_indices(selection.item_ids)
        parts = worth[items] / selection.inclusion_probabilities
        draws.append(np.bincount(bank.targets.scenario_index[items], weights=parts, minlength=3))
    error = np.std(draws, axis=0) / np.sqrt(300)
    assert np.all(np.abs(np.mean(draws, axis=0) - bank.scenario_scores[0]) < 4.5 * error + 1e-12)


def test_the_weighted_mean_of_random_items_is_unbiased_by_enumeration():
    """Of every possible draw of one item beside the included one, in a scenario of equal weights."""
    pool = ScenarioPool(np.arange(5), np.full(5, 0.2), np.ones(5, bool), np.array([1]))
    responses = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    means = []
    for other in (0, 2, 3, 4):
        pools = ItemPools(None, (pool,), np.array([2]), False, None)
        (choice,) = pools.each(lambda rest, n, other=other: Choice(np.flatnonzero(rest.items == other), np.ones(n)))
        assert_allclose(sorted(choice.weights), [0.2, 0.8])
        means.append(choice.weights @ responses[pool.items[choice.chosen]])
    assert_allclose(np.mean(means), responses.mean())


def test_intervals_from_the_design_take_them_but_no_scenario_of_nothing_else(bank):
    selection = select(bank, 21, method="random", rng=1, included=IDS)
    value, error, low, high = design_based_estimates(bank, bank.responses, selection)
    assert np.all((low <= value) & (value <= high) & (error > 0.0))
    everything = select(bank, 60, method="random", rng=1, included=IDS)
    value, error, _, _ = design_based_estimates(bank, bank.responses, everything)
    assert_allclose(value, bank.targets.with_overall(bank.scenario_scores))
    assert_allclose(error, 0.0, atol=1e-12)
    laws = [item for item in bank.item_ids if item.startswith("law")][:4]
    assert select(bank, 6, method="random", rng=1, included=laws).inclusion_probabilities is None


def test_greedy_choice_knows_what_they_tell(bank):
    """Given the included item, the best other one is found by trying them all."""
    rng = np.random.default_rng(0)
    loadings, noise, weights = rng.normal(size=(8, 2)), rng.uniform(0.5, 1.0, 8), np.full((8, 1), 1 / 8)
    everything = {"is_candidate": np.ones(8, bool), "group": np.zeros(8, int), "first": np.arange(8) == 5}
    bounds = {"at_least": np.array([0]), "at_most": np.array([8])}
    model = LinearModel(loadings, np.zeros((8, 0)), noise)
    chosen, _ = greedy_v_optimal(model, weights, np.ones(1), 2, **everything, **bounds)
    covariance = loadings @ loadings.T + np.diag(noise)

    def variance(items):
        inner, cross = covariance[np.ix_(items, items)], weights[:, 0] @ covariance[:, items]
        return weights[:, 0] @ covariance @ weights[:, 0] - cross @ np.linalg.solve(inner, cross)

    assert chosen[0] == 5
    assert chosen[1] == min((item for item in range(8) if item != 5), key=lambda item: variance([5, item]))


@pytest.mark.parametrize(
    ("choices", "error", "words"),
    [
        ({"included": ["math/0", "math/1"]}, DataError, "every included item must be in bank .*'math/1'"),
        ({"included": IDS, "excluded": ["law/2"]}, ParameterError, "both included and excluded, got 1 .*'law/2'"),
        ({"included": IDS, "n_items": 4}, ParameterError, r"from 5 \(with the 4 that must be included"),
        ({"included": IDS, "n_items": 2, "per_scenario": True}, ParameterError, "at least 3, what must be included"),
        ({"included": IDS, "method": OptimalDesign(at_most=2)}, ParameterError, "at_most is below .* 'math'"),
        ({"included": IDS, "method": OptimalDesign(at_least=3), "n_items": 8}, ParameterError, "contradict"),
        ({"included": IDS, "method": VOptimal(minimum_per_scenario=3), "n_items": 8}, ParameterError, "at least 9"),
    ],
)
def test_what_cannot_be_is_refused_by_name(bank, choices, error, words):
    with pytest.raises(error, match=words):
        select(bank, **{"n_items": 12, "method": "random", **choices})


def test_an_item_without_weight_is_refused(bank):
    weights = np.where(np.arange(60) == 0, 0.0, bank.targets.weights)
    idle = dataclasses.replace(bank, targets=dataclasses.replace(bank.targets, weights=weights))
    with pytest.raises(ParameterError, match="'math/0' have no weight"):
        select(idle, 12, method="random", included=["math/0"])


def test_counts_keep_to_bounds_and_differ_as_little_as_these_allow():
    """Against every way to divide a few items among three parts."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        capacities = rng.integers(1, 7, 3)
        at_least = np.array([rng.integers(0, top + 1) for top in capacities])
        n_items = int(rng.integers(at_least.sum(), capacities.sum() + 1))
        counts = equal_counts(n_items, capacities, at_least)
        ways = itertools.product(*(range(low, top + 1) for low, top in zip(at_least, capacities, strict=True)))
        spread = min(sum(count**2 for count in way) for way in ways if sum(way) == n_items)
        assert counts.sum() == n_items
        assert np.all((at_least <= counts) & (counts <= capacities))
        assert (counts**2).sum() == spread


SPECS = [
    *(METHODS.kinds[name]() for name in METHODS.builtin_names),
    VOptimal(target={"overall": 1.0, "law": 0.5}, n_factors=3, allocation="equal", discrepancy=0.1),
    VOptimal(target="math", minimum_per_scenario=0),
    AnchorIRT(n_restarts=2, standardise=False, allow_degenerate=True),
    Stratified("proportional"),
    OptimalDesign("d-optimal", per_cost=True, cost="output_tokens", at_least={"law": 3}, at_most=5, randomesque=2),
    OptimalDesign(target="math", input_weight=0.1, at_least=0, randomesque=3),
]


@pytest.fixture(scope="module")
def extra_bank():
    return make_bank(with_extras=True)


@pytest.mark.parametrize("spec", SPECS, ids=METHODS.label)
def test_a_recipe_comes_back_from_a_file(extra_bank, spec, tmp_path):
    chosen = select(extra_bank, 12, method=spec, rng=7, excluded=("math/0", "law/2"))
    chosen.save(tmp_path / "s.json")
    found = read_recipe(Selection.load(tmp_path / "s.json"))
    assert found == Recipe(spec, 12, False, ("law/2", "math/0"))  # in order, whatever came
    again = select(extra_bank, found.n_items, method=found.spec, rng=7, excluded=found.excluded)
    assert again.item_ids == chosen.item_ids


def test_the_order_of_what_is_excluded_does_not_matter_and_numbers_for_each_scenario_come_back(extra_bank):
    names = ["math/0", "law/2", "code/1"]
    first, second = (select(extra_bank, 12, method="v-optimal", excluded=one, rng=0) for one in (names, names[::-1]))
    assert first.to_dict() == second.to_dict()
    assert first.to_dict() == select(extra_bank, 12, method="v-optimal", excluded=set(names), rng=0).to_dict()
    found = read_recipe(through_json(select(extra_bank, 3, method="anchor-irt", per_scenario=True, rng=0)))
    assert (found.n_items, found.per_scenario) == (3, True)
    wanted = read_recipe(through_json(select(extra_bank, 3, method="v-optimal", per_scenario=True, rng=0)))
    assert wanted.spec == VOptimal(allocation="equal")


@pytest.mark.parametrize("per_scenario", [False, True])
def test_the_recipe_of_a_selection_that_was_cut_asks_for_what_is_left(extra_bank, per_scenario):
    content = select(
        extra_bank, 5 if per_scenario else 15, method="anchor-irt", per_scenario=per_scenario, rng=0
    ).to_dict()
    content["items"] = content["items"][::2]
    cut = Selection.from_dict(content)
    found = read_recipe(cut)
    assert (found.n_items, found.per_scenario) == (8, False)
    assert (n_items_asked(cut), cut.n_items) == (15, 8)
    assert n_items_asked(Selection.from_dict({**content, "recipe": None})) is None


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": None},
        {"method": "of a later release"},
        {"recipe": {"options": {"n_restarts": 5, "of_a_later_release": 1}}},
        {"recipe": {"options": {"n_restarts": 0}}},
        {"recipe": {"options": None}},
        {"recipe": {"n_items": "many"}},
        {"recipe": {"excluded": None}},
        *({"without": name} for name in ("n_items", "per_scenario", "options", "excluded")),
    ],
    ids=str,
)
def test_what_this_release_cannot_follow_is_ignored(extra_bank, change):
    chosen = select(extra_bank, 12, method="anchor-irt", rng=0)
    if change.get("recipe") or "without" in change:
        recipe = {**chosen.recipe, **change.get("recipe", {})}
        change = {"recipe": {key: value for key, value in recipe.items() if key != change.get("without")}}
    assert read_recipe(dataclasses.replace(chosen, **change)) is None
