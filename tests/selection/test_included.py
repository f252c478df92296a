import dataclasses
import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation.design_based import design_based_estimates
from itembank.estimation.estimate import estimate
from itembank.planning.select import select as select_or_auto
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.random_items import equal_counts
from itembank.selection.recipes import read_recipe
from itembank.selection.select import select, select_by_recipe
from itembank.selection.selector_specs import METHODS, OptimalDesign, Stratified, VOptimal
from itembank.selection.v_optimal import LinearModel, greedy_v_optimal
from tests.bank.banks import make_bank

ALL = pytest.mark.parametrize(
    "method", [*METHODS.builtin_names, VOptimal(allocation="equal"), Stratified("proportional")], ids=str
)
RANDOM = pytest.mark.parametrize("method", ["random", "stratified"])
IDS = ("math/0", "math/3", "law/2", "math/9")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


@ALL
@pytest.mark.parametrize("n_items", [6, 15, 60])
def test_every_method_chooses_them(bank, method, n_items):
    selection = select(bank, n_items, method=method, rng=3, included=IDS)
    assert set(IDS) <= set(selection.item_ids)
    assert selection.n_items == len(set(selection.item_ids)) == n_items
    scenario = np.array(selection.scenarios)
    for name in np.unique(scenario):
        assert_allclose(selection.weights[scenario == name].sum(), 1.0)


@ALL
def test_they_come_in_addition_to_what_the_recipe_of_others_says(bank, method):
    selection = select(bank, 12, method=method, rng=3, included=set(IDS))
    again = Selection.from_dict(json.loads(json.dumps(selection.to_dict())))
    recipe = read_recipe(again)
    assert recipe.included == tuple(sorted(IDS))
    fewer = dataclasses.replace(bank, responses=bank.responses.take(models=np.arange(15)))
    fewer = dataclasses.replace(
        fewer,
        calibration=dataclasses.replace(
            bank.calibration,
            abilities=bank.calibration.abilities[:15],
            ability_covariance=bank.calibration.ability_covariance[:15],
        ),
    )
    assert set(IDS) <= set(select_by_recipe(fewer, recipe, 0).item_ids)
    assert not again.is_random


def test_none_changes_nothing_and_auto_keeps_them(bank):
    assert "included" not in select(bank, 12, rng=0).to_dict()["recipe"]
    for method in METHODS.builtin_names:
        one, other = (select(bank, 12, method=method, rng=3, **more) for more in ({}, {"included": ()}))
        assert one.to_dict() == other.to_dict()
    selection = select_or_auto(bank, 12, included=IDS, rng=0)
    assert set(IDS) <= set(selection.item_ids)
    estimates = estimate(bank, bank.responses, selection=selection)
    assert np.isfinite(estimates.value).all()


@RANDOM
def test_probabilities_are_those_of_drawing_the_others(bank, method):
    """The others are drawn as from a benchmark without the items that come anyway."""
    selection = select(bank, 18, method=method, rng=5, included=IDS)
    probability = dict(zip(selection.item_ids, selection.inclusion_probabilities, strict=True))
    assert [probability[item] for item in IDS] == [1.0] * 4
    if method == "random":
        of_math = [probability[item] for item in selection.item_ids if item[:4] == "math" and item not in IDS]
        assert of_math == [3 / 17] * 3


@RANDOM
def test_estimates_from_the_design_have_the_expectation_of_the_score(bank, method):
    """The Horvitz-Thompson mean of all draws is the score, whatever is included."""
    truth, total, n_draws = bank.scenario_scores[0], np.zeros(3), 300
    rng = np.random.default_rng(8)
    weights = dict(zip(bank.item_ids, bank.targets.weights, strict=True))
    row = dict(zip(bank.item_ids, bank.responses.responses[0], strict=True))
    scenarios, draws = bank.targets.scenarios, []
    for _ in range(n_draws):
        selection = select(bank, 21, method=method, rng=rng, included=IDS)
        total = np.zeros(3)
        for item, scenario, p in zip(
            selection.item_ids, selection.scenarios, selection.inclusion_probabilities, strict=True
        ):
            total[scenarios.index(scenario)] += weights[item] * row[item] / p
        draws.append(total)
    error = np.std(draws, axis=0) / np.sqrt(n_draws)
    assert np.all(np.abs(np.mean(draws, axis=0) - truth) < 4.5 * error + 1e-12)


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
    loadings, noise = rng.normal(size=(8, 2)), rng.uniform(0.5, 1.0, 8)
    everything = {"is_candidate": np.ones(8, bool), "group": np.zeros(8, int)}
    bounds = {"at_least": np.array([0]), "at_most": np.array([8])}
    weights = np.full((8, 1), 1 / 8)
    first = np.arange(8) == 5
    chosen, _ = greedy_v_optimal(
        LinearModel(loadings, np.zeros((noise.size, 0)), noise),
        weights,
        np.ones(1),
        2,
        **everything,
        **bounds,
        first=first,
    )
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
    weights = bank.targets.weights.copy()
    weights[0] = 0.0
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
