"""Price levels: what a model costs beside past models, from simulated costs whose levels are known."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from itembank.sessions.prices import PastPrices


def simulated(rng, *, spread, noise, n_models, n_items=200):
    """Costs (n_models, n_items): lognormal levels of mean 1, expected costs of items, lognormal noise of mean 1."""
    items = np.exp(rng.normal(0.0, 0.7, n_items))
    levels = np.exp(rng.normal(-0.5 * spread, np.sqrt(spread), n_models))
    width = np.log1p(noise)
    return levels[:, None] * items * np.exp(rng.normal(-0.5 * width, np.sqrt(width), (n_models, n_items)))


@pytest.mark.parametrize(("spread", "noise", "n_past"), [(1.0, 0.5, 25), (0.3, 1.0, 12), (0.05, 0.2, 60)])
def test_the_expected_total_is_within_its_error_of_the_true_one(spread, noise, n_past):
    rng = np.random.default_rng(4)
    for n, least_gain in ((2, 0.0), (20, 0.2), (60, 0.4)):
        held, off, off_as_expected = [], [], []
        for _ in range(250):
            costs = simulated(rng, spread=spread, noise=noise, n_models=n_past + 1)
            past = PastPrices.of_costs(costs[1:])
            answered, rest = np.arange(n), np.arange(n, costs.shape[1])
            value, low, high = past.cost_of(past.level(answered, costs[0, answered]), rest)
            true = costs[0, rest].sum()
            held.append(low <= true <= high)
            off.append(abs(np.log(value / true)))
            off_as_expected.append(abs(np.log(past.expected[rest].sum() / true)))
        assert 0.88 < np.mean(held) <= 1.0
        assert np.mean(off) < (1.0 - least_gain) * np.mean(off_as_expected)


def test_what_past_models_paid_tells_how_far_levels_and_items_lie_apart():
    rng = np.random.default_rng(0)
    past = PastPrices.of_costs(simulated(rng, spread=0.6, noise=0.4, n_models=200, n_items=300))
    assert (past.spread, past.noise) == (pytest.approx(0.6, rel=0.25), pytest.approx(0.4, rel=0.25))


def test_before_the_first_answer_a_model_costs_what_is_expected():
    past = PastPrices.of_costs(simulated(np.random.default_rng(1), spread=1.0, noise=1.0, n_models=20))
    none = np.zeros(0, dtype=np.int64)
    assert past.level(none, np.zeros(0))[0] == 1.0
    value, low, high = past.cost_of(past.level(none, np.zeros(0)), np.arange(200))
    assert value == pytest.approx(past.expected.sum())
    assert low < value < high


def test_a_level_follows_the_ratio_the_more_the_more_answers_there_are():
    past = PastPrices.of_costs(simulated(np.random.default_rng(2), spread=0.5, noise=1.0, n_models=40))
    levels = [past.level(np.arange(n), 3.0 * past.expected[:n]) for n in (1, 5, 20, 200)]
    values, variances = zip(*levels, strict=True)
    assert values[0] > 1.0
    assert values[-1] == pytest.approx(3.0, rel=0.05)
    assert all(one > two for one, two in itertools.pairwise(variances))


def test_few_models_and_models_that_cost_alike_leave_room_for_others():
    alike = PastPrices.of_costs(np.ones((10, 5)))
    assert (alike.spread, alike.noise) == (0.04, 0.04)
    one = PastPrices.of_costs(np.ones((1, 5)))
    assert (one.spread, one.noise) == (1.0, 1.0)
    assert 2.0 * norm.sf(1.0 / np.sqrt([one.spread, one.noise])) == pytest.approx(
        1.0 / 3.0, abs=0.02
    )  # beyond a factor of e
    free, _ = PastPrices.of_costs(np.ones((10, 5))).level(np.arange(5), np.zeros(5))
    assert 0.0 < free < 0.5
    holes = np.ones((10, 5))
    holes[:, 2] = np.nan
    holes[:3, 0], holes[1:, 3] = 4.0, np.nan  # one is known of the fourth
    assert PastPrices.of_costs(holes).expected == pytest.approx([1.9, 1.0, 1.225, 1.0, 1.0])
