import dataclasses

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist

from itembank.bank.banks import CONTENT_ORDER
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.anchors import correctness_features, irt_features, spread
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, AnchorCorrectness, AnchorIRT, Stratified, VOptimal
from tests.bank.banks import make_bank

FREE = ("drawn", "v-optimal", "optimal-design")
RANDOM = ("drawn", "random", "stratified")
ALL_METHODS = pytest.mark.parametrize("method", METHODS.builtin_names)
EQUAL_COUNTS = pytest.mark.parametrize(
    "method", [*(name for name in METHODS.builtin_names if name not in FREE), VOptimal(allocation="equal")]
)
ANCHORS = pytest.mark.parametrize("method", ["anchor-correctness", "anchor-irt"])
NOT_RANDOM = pytest.mark.parametrize("method", [name for name in METHODS.builtin_names if name not in RANDOM])


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


def with_degenerate(bank, items):
    """The bank with these items answered right by every model."""
    flags = np.zeros(bank.n_items, dtype=bool)
    flags[items] = True
    responses = bank.responses.responses.copy()
    responses[:, items] = 1.0
    loadings, intercept = bank.parameters.loadings.copy(), bank.parameters.intercept.copy()
    loadings[items], intercept[items] = 0.0, 4.0
    parameters = dataclasses.replace(bank.parameters, loadings=loadings, intercept=intercept)
    calibration = dataclasses.replace(bank.calibration, parameters=parameters, is_degenerate=flags)
    return dataclasses.replace(
        bank, responses=dataclasses.replace(bank.responses, responses=responses), calibration=calibration
    )


def with_weights(bank, weights):
    items = bank.responses.items.with_columns(weight=pl.Series(weights))
    responses = dataclasses.replace(bank.responses, items=items)
    return dataclasses.replace(bank, responses=responses, targets=ScoreTargets.create(items, within="custom"))


def scenario_sums(selection):
    names = np.array(selection.scenarios)
    return {name: selection.weights[names == name].sum() for name in dict.fromkeys(selection.scenarios)}


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


@EQUAL_COUNTS
@pytest.mark.parametrize("n_items", [3, 10, 31, 45])
def test_scenarios_get_equal_counts(bank, method, n_items):
    selection = select(bank, n_items, method=method, rng=3)
    counts = np.unique(selection.scenarios, return_counts=True)[1]
    assert counts.size == 3
    assert counts.max() - counts.min() <= 1


@ALL_METHODS
def test_the_seed_gives_the_same_items_again(bank, method):
    one, again = (select(bank, 12, method=method, rng=5) for _ in range(2))
    assert one.item_ids == again.item_ids
    assert_array_equal(one.weights, again.weights)
    generator = select(bank, 12, method=method, rng=np.random.default_rng(5))
    assert generator.item_ids == one.item_ids
    assert generator.seed is None


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
def test_a_small_scenario_gives_its_share_to_the_others(bank, method):
    scenarios = ["tiny"] * 2 + ["big"] * 30 + ["other"] * 28
    items = pl.DataFrame({"item_id": bank.item_ids, "scenario": scenarios, "subscenario": [None] * 60})
    responses = ResponseMatrix.create(bank.responses.responses, items=items, models=bank.responses.models)
    uneven = dataclasses.replace(bank, responses=responses, targets=ScoreTargets.create(responses.items))
    selection = select(uneven, 17, method=method, rng=0)
    assert dict(zip(*np.unique(selection.scenarios, return_counts=True), strict=True)) == {
        "big": 8,
        "other": 7,
        "tiny": 2,
    }


@ALL_METHODS
def test_per_scenario_counts(bank, method):
    selection = select(bank, 5, method=method, per_scenario=True, rng=0)
    assert np.unique(selection.scenarios, return_counts=True)[1].tolist() == [5, 5, 5]


@NOT_RANDOM
def test_degenerate_items_are_represented_and_a_scenario_of_them_alone_gets_its_items(bank, method):
    degenerate = np.arange(0, 24)
    changed = with_degenerate(bank, degenerate)
    selection = select(changed, 18, method=method, rng=0)
    assert not set(selection.item_ids) & {bank.item_ids[i] for i in degenerate}
    assert scenario_sums(selection) == pytest.approx(dict.fromkeys(bank.targets.scenarios, 1.0))
    changed = with_degenerate(bank, np.flatnonzero(bank.targets.scenario_index == 1))
    selection = select(changed, 9, method=method, rng=0)
    # one such item is all that methods need to know that choose from the benchmark as a whole
    assert list(selection.scenarios).count(bank.targets.scenarios[1]) == (1 if method in FREE else 3)


def test_items_everybody_gets_right_are_represented_by_easy_anchors(bank):
    degenerate = np.arange(0, 24)
    changed = with_degenerate(bank, degenerate)
    changed.cache.remember(CONTENT_ORDER, lambda: bank.content_order)  # in which centres of clusters begin
    plain = select(bank, 18, method="anchor-irt", rng=0, excluded=[bank.item_ids[i] for i in degenerate])
    selection = select(changed, 18, method="anchor-irt", rng=0)
    assert selection.item_ids == plain.item_ids  # the same clusters: only where the weight goes differs
    easiness = bank.parameters.intercept[bank.responses.item_indices(selection.item_ids)]
    assert selection.weights @ easiness > plain.weights @ easiness + 0.3


@pytest.mark.parametrize("spec", [AnchorCorrectness(allow_degenerate=True), AnchorIRT(allow_degenerate=True)])
def test_degenerate_items_stand_for_their_like_when_allowed(bank, spec):
    degenerate = np.arange(0, 24)
    changed = with_degenerate(bank, degenerate)
    selection = select(changed, 18, method=spec, rng=0)
    positions = bank.responses.item_indices(selection.item_ids)
    for scenario in range(3):
        own = bank.targets.scenario_index[positions] == scenario
        flags = np.isin(positions[own], degenerate)
        assert flags.sum() == 1  # one point, one cluster
        assert selection.weights[own][flags][0] >= 8 / 20 - 1e-12  # eight equal items of twenty, and any neighbours


def test_random_methods_may_choose_degenerate_items_and_an_unknown_excluded_one_is_an_error(bank):
    changed = with_degenerate(bank, np.arange(57))
    assert select(changed, 60, method="random", rng=0).n_items == 60
    with pytest.raises(DataError, match="'math/nope' are not"):
        select(bank, 5, excluded=["math/nope", bank.item_ids[0]])


def pool_of(bank, scenario=0):
    items = np.flatnonzero(bank.targets.scenario_index == scenario)
    return ScenarioPool(items, bank.targets.weights[items], np.arange(len(items)) != 3)


def test_missing_responses_are_filled_in_by_the_item_model():
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


def test_features_are_standardised_whatever_the_rotation_or_scale_of_ability(bank):
    pool = pool_of(bank)
    features = correctness_features(bank, pool, standardise=True)
    constant = np.ptp(bank.responses.responses[:, pool.items[pool.is_candidate]], axis=1) == 0.0
    assert 0 < constant.sum() < 20
    assert_allclose(spread(features, pool), np.where(constant, 0.0, 1.0), atol=1e-6)
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]]) * 5.0
    parameters = dataclasses.replace(bank.parameters, loadings=bank.parameters.loadings @ turn)
    turned = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, parameters=parameters))
    one, other = (irt_features(each, pool, standardise=True) for each in (bank, turned))
    assert_allclose(pdist(one), pdist(other))
    assert_allclose(np.sum(spread(one, pool) ** 2), 2.0)
    assert not np.allclose(*(pdist(irt_features(each, pool, standardise=False)) for each in (bank, turned)))


@NOT_RANDOM
@pytest.mark.parametrize("n_models", [1, 2, 4])
def test_very_few_models_and_items_that_none_answered_are_allowed(method, n_models):
    few = make_bank(n_models=n_models, n_items=30)
    values = few.responses.responses.copy()
    values[:, 7] = np.nan
    values[0, :5] = np.nan
    gappy = dataclasses.replace(few, responses=dataclasses.replace(few.responses, responses=values))
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


@pytest.mark.parametrize("spec", [AnchorIRT, AnchorCorrectness])
def test_specs_check_their_choices(spec):
    with pytest.raises(ParameterError, match="n_restarts must be a whole number >= 1"):
        spec(n_restarts=0)
    with pytest.raises(ParameterError, match="allocation must be one of 'equal', 'proportional'"):
        Stratified(allocation="best")
