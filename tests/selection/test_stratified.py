import numpy as np
import pytest

from itembank.selection.pools import ScenarioPool
from itembank.selection.random_items import choose_random, choose_stratified

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
    choice = choose_stratified(pool(weights), STRATA, n_items, rng, allocation=allocation)
    counts = np.bincount(STRATA[choice.chosen], minlength=4)
    assert counts.max() - counts.min() <= 1
    assert len(set(choice.chosen.tolist())) == n_items


@pytest.mark.parametrize("n_items", [2, 6, 8, 11])
def test_weights_are_one_over_n_for_a_macro_target(rng, n_items):
    choice = choose_stratified(pool(MACRO), STRATA, n_items, rng)
    np.testing.assert_allclose(choice.weights, 1.0 / n_items)


def test_a_subscenario_that_is_too_small_is_taken_whole(rng):
    choice = choose_stratified(pool(MACRO), STRATA, 30, rng)
    np.testing.assert_array_equal(np.bincount(STRATA[choice.chosen]), [3, 9, 9, 9])
    for stratum in range(4):
        assert choice.weights[STRATA[choice.chosen] == stratum].sum() == pytest.approx(0.25)


def test_proportional_counts_follow_the_weight_in_the_score(rng):
    choice = choose_stratified(pool(MICRO), STRATA, 39, rng, allocation="proportional")
    np.testing.assert_allclose(np.bincount(STRATA[choice.chosen]), SIZES / 2.0, atol=0.5)
    np.testing.assert_allclose(choice.weights, 1.0 / 39.0)


@pytest.mark.parametrize("allocation", ["equal", "proportional"])
@pytest.mark.parametrize("weights", [MICRO, MACRO], ids=["micro", "macro"])
def test_estimates_are_right_on_average(rng, allocation, weights):
    responses = rng.random(78) * np.repeat([0.2, 0.5, 0.8, 1.0], SIZES)
    estimates = []
    for _ in range(1500):
        choice = choose_stratified(pool(weights), STRATA, 12, rng, allocation=allocation)
        estimates.append(choice.weights @ responses[choice.chosen])
    # self-normalised weights are right up to a term of order 1/n, none where counts do not vary
    assert np.mean(estimates) == pytest.approx(weights @ responses, abs=4.0 * np.std(estimates) / 1500**0.5 + 0.002)


def test_random_weights_follow_the_target(rng):
    choice = choose_random(pool(MACRO), 20, rng)
    np.testing.assert_allclose(choice.weights, MACRO[choice.chosen] / MACRO[choice.chosen].sum())
    np.testing.assert_allclose(choose_random(pool(MICRO), 20, rng).weights, 0.05)


def test_random_draws_every_candidate_equally_often(rng):
    is_candidate = np.arange(78) % 3 > 0
    drawn = np.zeros(78)
    for _ in range(3000):
        drawn[choose_random(pool(MICRO, is_candidate), 10, rng).chosen] += 1
    share = drawn / 3000
    assert not drawn[~is_candidate].any()
    assert np.all(np.abs(share[is_candidate] - 10 / 52) < 4.5 * np.sqrt(10 / 52 * 42 / 52 / 3000))


def test_only_candidates_are_drawn(rng):
    is_candidate = STRATA != 1
    choice = choose_stratified(pool(MICRO, is_candidate), STRATA, 12, rng)
    np.testing.assert_array_equal(np.unique(STRATA[choice.chosen]), [0, 2, 3])
