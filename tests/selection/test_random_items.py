import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import itembank as ib
from itembank.bank.norms import fitted_factor_model
from itembank.selection import random_items as draws
from itembank.selection.drawn import expected_answers, inclusion_probabilities, systematic_sample
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import select
from tests.bank.banks import make_bank

SIZES = np.array([3, 10, 25, 40])
STRATA = np.repeat(np.arange(4), SIZES)
MICRO = np.full(78, 1.0 / 78.0)
MACRO = 1.0 / (4.0 * SIZES[STRATA])


def pool(weights, is_candidate=None):
    return ScenarioPool(np.arange(78), weights, np.ones(78, dtype=bool) if is_candidate is None else is_candidate)


@pytest.mark.parametrize("n_items", [2, 4, 6, 11])
@pytest.mark.parametrize(
    ("weights", "allocation"),
    [(MACRO, "proportional"), (MACRO, "equal"), (MICRO, "equal")],
    ids=["macro", "macro equal", "micro equal"],
)
def test_counts_of_two_subscenarios_differ_by_at_most_one(rng, n_items, weights, allocation):
    choice = draws.choose_stratified(pool(weights), STRATA, n_items, rng, allocation=allocation)
    counts = np.bincount(STRATA[choice.chosen], minlength=4)
    assert counts.max() - counts.min() <= 1
    assert len(set(choice.chosen.tolist())) == n_items


def test_weights_are_one_over_n_for_a_macro_target_unless_a_subscenario_is_taken_whole(rng):
    for n_items in (2, 6, 8, 11):
        assert_allclose(draws.choose_stratified(pool(MACRO), STRATA, n_items, rng).weights, 1.0 / n_items)
    choice = draws.choose_stratified(pool(MACRO), STRATA, 30, rng)
    assert_array_equal(np.bincount(STRATA[choice.chosen]), [3, 9, 9, 9])
    for stratum in range(4):
        assert choice.weights[STRATA[choice.chosen] == stratum].sum() == pytest.approx(0.25)
    choice = draws.choose_stratified(pool(MICRO), STRATA, 39, rng, allocation="proportional")
    assert_allclose(np.bincount(STRATA[choice.chosen]), SIZES / 2.0, atol=0.5)
    assert_allclose(choice.weights, 1.0 / 39.0)
    is_candidate = STRATA != 1
    choice = draws.choose_stratified(pool(MICRO, is_candidate), STRATA, 12, rng)
    assert_array_equal(np.unique(STRATA[choice.chosen]), [0, 2, 3])


@pytest.mark.parametrize("allocation", ["equal", "proportional"])
@pytest.mark.parametrize("weights", [MICRO, MACRO], ids=["micro", "macro"])
def test_estimates_are_right_on_average(rng, allocation, weights):
    responses = rng.random(78) * np.repeat([0.2, 0.5, 0.8, 1.0], SIZES)
    estimates = []
    for _ in range(1500):
        choice = draws.choose_stratified(pool(weights), STRATA, 12, rng, allocation=allocation)
        estimates.append(choice.weights @ responses[choice.chosen])
    # self-normalised weights are right up to a term of order 1/n, none where counts do not vary
    assert np.mean(estimates) == pytest.approx(weights @ responses, abs=4.0 * np.std(estimates) / 1500**0.5 + 0.002)


def test_random_draws_every_candidate_equally_often_and_weighs_it_by_the_target(rng):
    choice = draws.choose_random(pool(MACRO), 20, rng)
    assert_allclose(choice.weights, MACRO[choice.chosen] / MACRO[choice.chosen].sum())
    assert_allclose(draws.choose_random(pool(MICRO), 20, rng).weights, 0.05)
    is_candidate = np.arange(78) % 3 > 0
    drawn = np.zeros(78)
    for _ in range(3000):
        drawn[draws.choose_random(pool(MICRO, is_candidate), 10, rng).chosen] += 1
    share = drawn / 3000
    assert not drawn[~is_candidate].any()
    assert np.all(np.abs(share[is_candidate] - 10 / 52) < 4.5 * np.sqrt(10 / 52 * 42 / 52 / 3000))


def test_counts_by_hand_and_the_means_of_random_ones(rng):
    expected = draws.expected_counts(20, np.ones(4), np.array([2, 100, 5, 100]))
    assert_allclose(expected, [2.0, 6.5, 5.0, 6.5])
    assert_allclose(draws.expected_counts(12, np.array([1.0, 2.0, 3.0]), np.array([50, 50, 50])), [2, 4, 6])
    capacities = np.array([10, 30, 20])
    assert_array_equal(draws.rounded_counts(draws.expected_counts(8, np.ones(3), capacities), capacities), [2, 3, 3])
    # what is left of 2.5 and 2.5 goes to the larger part, whatever the last digits say
    for rest in (0.0, 2e-7, -2e-7):
        counts = draws.rounded_counts(np.array([2.5 + rest, 2.5 - rest]), np.array([3, 10]))
        assert_array_equal(counts, [2, 3])
    expected = np.array([0.2, 1.7, 3.0, 0.6, 2.5])
    found = np.array([draws.random_counts(expected, rng) for _ in range(5000)])
    # a count is its floor plus a Bernoulli of the fraction: four standard errors
    error = np.sqrt((expected % 1.0) * (1.0 - expected % 1.0) / len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) <= 4.0 * error)


@st.composite
def allocations(draw):
    capacities = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any))
    shares = draw(st.lists(st.floats(0.05, 5.0), min_size=len(capacities), max_size=len(capacities)))
    return draw(st.integers(1, sum(capacities))), np.array(shares), np.array(capacities)


@given(allocations(), st.integers(0, 100))
def test_counts_add_up_and_fit_and_are_the_expected_ones_rounded(allocation, seed):
    n_items, shares, capacities = allocation
    expected = draws.expected_counts(n_items, shares, capacities)
    assert expected.sum() == pytest.approx(n_items)
    assert np.all(expected <= capacities)
    for counts in (
        draws.rounded_counts(expected, capacities),
        draws.random_counts(expected, np.random.default_rng(seed)),
    ):
        assert counts.sum() == n_items
        assert np.all((counts >= 0) & (counts <= capacities))
        assert np.all(np.abs(counts - expected) < 1.0 + 1e-6)


@given(st.integers(1, 40), st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_equal_shares_differ_by_at_most_one_unless_full(n_items, sizes):
    capacities = np.array(sizes)
    n_items = min(n_items, int(capacities.sum()))
    counts = draws.rounded_counts(draws.expected_counts(n_items, np.ones(len(sizes)), capacities), capacities)
    open_counts = counts[counts < capacities]
    assert counts.max() - (open_counts.min() if open_counts.size else counts.max()) <= 1


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


def test_random_selections_record_their_probabilities_and_anchors_have_none(bank):
    simple = select(bank, 15, method="random", rng=0)
    assert_allclose(simple.inclusion_probabilities, 5 / 20)
    assert simple.is_random
    assert select(bank, 15, method="anchor-irt", rng=0).inclusion_probabilities is None


def test_stratified_probabilities_are_those_of_the_draw(bank):
    counts, recorded, rng = np.zeros(60), np.full((500, 60), np.nan), np.random.default_rng(2)
    for draw in recorded:
        selection = select(bank, 9, method="stratified", rng=rng)
        draw[bank.responses.item_indices(selection.item_ids)] = selection.inclusion_probabilities
    pi, counts = np.nanmean(recorded, axis=0), np.sum(~np.isnan(recorded), axis=0)
    assert_allclose(np.nanmax(recorded, axis=0), np.nanmin(recorded, axis=0), rtol=1e-12)
    assert np.all(np.abs(counts / 500 - pi) < 4.5 * np.sqrt(pi * (1 - pi) / 500))


@pytest.mark.parametrize("method", ["random", "stratified"])
def test_no_probabilities_where_an_item_that_counts_cannot_come(bank, method):
    assert select(bank, 15, method=method, rng=0, excluded=[bank.item_ids[0]]).inclusion_probabilities is None
    weights = np.where(np.arange(60) < 6, 0.0, bank.targets.weights)
    targets = dataclasses.replace(bank.targets, weights=weights)  # items without weight do not count
    kept = select(dataclasses.replace(bank, targets=targets), 15, method=method, rng=0)
    assert kept.inclusion_probabilities is not None


@given(st.integers(5, 25), st.integers(0, 2**31))
def test_probabilities_are_those_of_the_draw(n_items, seed):
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 3, 30))
    group[[0, 1, 2]] = [0, 1, 2]
    shares, certain = rng.gamma(0.5, size=30) + 1e-3, np.arange(30) == 7
    pi = inclusion_probabilities(shares, group, n_items, certain=certain)
    assert pi.sum() == pytest.approx(n_items)
    assert pi[7] == 1.0
    assert np.all((pi > 0.0) & (pi <= 1.0))
    assert np.bincount(group, weights=pi).min() > 1.0 - 1e-9
    for scenario in range(3):  # in proportion to the shares, where these do not ask for more than one
        ours = (group == scenario) & (pi < 1.0 - 1e-9)
        if ours.any():
            assert_allclose(pi[ours] / shares[ours], (pi / shares)[ours].max(), rtol=1e-6)
    order = np.lexsort((rng.random(30), group))
    drawn = systematic_sample(pi, order, rng)
    assert drawn.size == n_items == np.unique(drawn).size
    assert set(group[drawn].tolist()) == {0, 1, 2}


def test_items_come_as_often_as_their_probabilities_say_and_neighbours_hardly_together(rng):
    pi = inclusion_probabilities(rng.random(12), np.repeat([0, 1], 6), 5, certain=np.zeros(12, bool))
    counts = np.zeros(12)
    for _ in range(4000):
        counts[systematic_sample(pi, np.arange(12), rng)] += 1.0
    assert np.all(np.abs(counts / 4000 - pi) < 4.5 * np.sqrt(pi * (1 - pi) / 4000) + 1e-12)
    # systematic sampling of equal probabilities draws one of each run of items along the order
    order = rng.permutation(40)
    for _ in range(20):
        drawn = systematic_sample(np.full(40, 0.25), order, rng)
        assert_array_equal(np.sort(np.argsort(order)[drawn]) // 4, np.arange(10))


def test_items_of_which_the_bank_is_unsure_come_more_often_whatever_the_order_of_past_models(bank, rng):
    mean, size = expected_answers(bank)
    assert_allclose(mean, bank.responses.responses.mean(axis=0))
    assert np.corrcoef(size, mean * (1.0 - mean))[0, 1] > 0.7
    # by hand: of the weakest third, of the strongest and of all
    ordered = bank.responses.responses[np.argsort(bank.responses.responses.mean(axis=1), kind="stable")]
    right = np.array([(some.sum(axis=0) + 1.0) / (len(some) + 2.0) for some in (ordered[:6], ordered[-6:], ordered)])
    spread = np.mean(right * (1.0 - right), axis=0)
    assert_allclose(size**2, (fitted_factor_model(bank).noise + spread) / 2.0)
    moved = bank.responses.take(models=rng.permutation(bank.n_models))
    others = dataclasses.replace(make_bank(n_models=20, n_items=60), responses=moved)
    assert_allclose(expected_answers(others), expected_answers(bank), atol=1e-9)


def test_a_selection_records_its_draw_and_gives_the_score_on_average(bank):
    truth = bank.targets.with_overall(bank.scenario_scores)[:, -1]
    found = []
    for seed in range(200):
        selection = select(bank, 12, method="drawn", rng=seed)
        assert selection.n_items == 12
        assert set(selection.scenarios) == set(bank.targets.scenarios)
        items = bank.responses.item_indices(selection.item_ids)
        weights = bank.targets.weights[items] / 3.0 / selection.inclusion_probabilities
        found.append(bank.responses.responses[:, items] @ weights)  # Horvitz and Thompson (1952)
    error = np.std(found, axis=0) / np.sqrt(200)
    assert np.all(np.abs(np.mean(found, axis=0) - truth) < 4.5 * error)


def test_included_items_are_certain_and_scenarios_can_get_as_many_each(bank):
    wanted = [bank.item_ids[3], bank.item_ids[41]]
    selection = select(bank, 12, method="drawn", rng=0, included=wanted)
    probability = dict(zip(selection.item_ids, selection.inclusion_probabilities, strict=True))
    assert [probability[item] for item in wanted] == [1.0, 1.0]
    assert selection.n_items == 12
    selection = select(bank, 5, method="drawn", rng=0, per_scenario=True)
    assert [selection.scenarios.count(name) for name in bank.targets.scenarios] == [5, 5, 5]


@pytest.mark.parametrize("n_models", [0, 1, 3, 6])
def test_any_number_of_past_models_will_do(bank, n_models):
    """With few past models, or none, it is a stratified sample, and its intervals hold."""
    past = bank.responses.take(models=np.arange(n_models)) if n_models else None
    few = ib.banks.start(bank.responses.items, past)
    new = bank.responses.take(models=np.arange(10, 20))
    truth, covered = bank.targets.with_overall(bank.scenario_scores)[10:, -1], []
    for seed in range(10):
        selection = ib.select(few, 20, method="drawn", rng=seed)
        found = ib.estimate(few, new, selection=selection)
        assert found.interval_kind == "design"
        covered.append((found.low[:, -1] <= truth) & (truth <= found.high[:, -1]))
    assert np.mean(covered) > 0.9
