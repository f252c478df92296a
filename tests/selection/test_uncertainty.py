import dataclasses

import numpy as np
import pytest
from scipy.stats import chisquare

from itembank.errors import ParameterError
from itembank.irt.bernoulli import probability
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import select
from itembank.selection.selector_specs import Uncertainty
from itembank.selection.uncertainty import choose_by_uncertainty, inclusion_probabilities, response_spread
from tests.bank.banks import make_bank

OMEGA = np.array([1.0, 1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0]) / 12.0
SPREAD = np.array([0.5, 0.1, 0.3, 0.4, 0.5, 0.2, 0.45, 0.05])
POOL = ScenarioPool(np.arange(8), OMEGA, np.ones(8, dtype=bool))


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


@pytest.mark.parametrize("n_items", [1, 3, 6, 8])
@pytest.mark.parametrize("mixture", [0.1, 0.5, 1.0])
def test_inclusion_probabilities_sum_to_the_sample_size_and_stay_in_range(n_items, mixture):
    pi = inclusion_probabilities(OMEGA, SPREAD, n_items, mixture=mixture)
    np.testing.assert_allclose(pi.sum(), n_items)
    assert np.all((pi > 0.0) & (pi <= 1.0))
    # no response counts more than the mixture allows, but for those that come for certain
    assert np.all(OMEGA / pi <= np.maximum(1.0 / (mixture * n_items), OMEGA) + 1e-12)
    if n_items == 8:
        np.testing.assert_array_equal(pi, 1.0)


def test_inclusion_probabilities_mix_uncertainty_with_the_weights():
    size = OMEGA * SPREAD
    pi = inclusion_probabilities(OMEGA, SPREAD, 2, mixture=0.25)
    np.testing.assert_allclose(pi, 2 * (0.75 * size / size.sum() + 0.25 * OMEGA))
    np.testing.assert_allclose(inclusion_probabilities(OMEGA, SPREAD, 2, mixture=1.0), 2 * OMEGA)
    np.testing.assert_allclose(inclusion_probabilities(OMEGA, np.zeros(8), 2, mixture=0.25), 2 * OMEGA)


def test_items_come_as_often_as_they_should_and_every_pair_can():
    rng, n_draws, n_items = np.random.default_rng(4), 5000, 4
    pi = inclusion_probabilities(OMEGA, SPREAD, n_items, mixture=0.5)
    chosen = np.zeros((n_draws, 8))
    for draw in range(n_draws):
        choice = choose_by_uncertainty(POOL, SPREAD, n_items, rng, mixture=0.5)
        chosen[draw, choice.chosen] = 1.0
    np.testing.assert_array_equal(chosen.sum(axis=1), n_items)
    np.testing.assert_array_less(np.abs(chosen.mean(axis=0) - pi), 4.5 * np.sqrt(pi * (1 - pi) / n_draws) + 1e-12)
    assert np.all(chosen.T @ chosen > 0)


def test_equal_probabilities_are_simple_random_sampling():
    rng = np.random.default_rng(5)
    pool = ScenarioPool(np.arange(5), np.full(5, 0.2), np.ones(5, dtype=bool))
    draws = [tuple(np.sort(choose_by_uncertainty(pool, np.ones(5), 2, rng, mixture=0.5).chosen)) for _ in range(2000)]
    _, counts = np.unique(draws, axis=0, return_counts=True)
    assert counts.shape == (10,)
    assert chisquare(counts).pvalue > 1e-4


def test_weights_are_those_of_the_ratio_estimator():
    choice = choose_by_uncertainty(POOL, SPREAD, 3, np.random.default_rng(0), mixture=0.5)
    expected = OMEGA[choice.chosen] / choice.inclusion_probabilities
    np.testing.assert_allclose(choice.weights, expected / expected.sum())


def test_spread_is_the_mean_binomial_variance_over_calibration_models(bank):
    pool = ScenarioPool(np.array([3, 7, 50]), np.full(3, 1 / 3), np.ones(3, dtype=bool))
    p = probability(bank.parameters, bank.calibration.abilities)[:, [3, 7, 50]]
    np.testing.assert_allclose(response_spread(bank, pool), np.sqrt((p * (1 - p)).mean(axis=0)))


def test_random_selections_record_their_probabilities(bank):
    simple = select(bank, 15, method="random", rng=0)
    np.testing.assert_allclose(simple.inclusion_probabilities, 5 / 20)
    unequal = select(bank, 15, method="uncertainty", rng=0)
    items = np.flatnonzero(bank.targets.scenario_index == 0)
    pool = ScenarioPool(items, bank.targets.weights[items], np.ones(20, dtype=bool))
    pi = inclusion_probabilities(pool.weights, response_spread(bank, pool), 5, mixture=0.5)
    chosen = [list(items).index(i) for i in bank.responses.item_indices(unequal.item_ids) if i in items]
    np.testing.assert_allclose(unequal.inclusion_probabilities[: len(chosen)], pi[chosen])
    assert unequal.is_random


def test_stratified_probabilities_are_those_of_the_draw(bank):
    n_draws, counts, recorded = 500, {}, {}
    rng = np.random.default_rng(2)
    for _ in range(n_draws):
        selection = select(bank, 9, method="stratified", rng=rng)
        for item, pi in zip(selection.item_ids, selection.inclusion_probabilities, strict=True):
            counts[item] = counts.get(item, 0) + 1
            recorded.setdefault(item, set()).add(round(pi, 12))
    assert set(counts) == set(bank.item_ids)
    for item, values in recorded.items():
        (pi,) = values
        assert abs(counts[item] / n_draws - pi) < 4.5 * np.sqrt(pi * (1 - pi) / n_draws)


@pytest.mark.parametrize("method", ["random", "stratified", "uncertainty"])
def test_no_probabilities_where_an_item_that_counts_cannot_come(bank, method):
    assert select(bank, 15, method=method, rng=0, excluded=[bank.item_ids[0]]).inclusion_probabilities is None
    weights = np.where(np.arange(60) < 6, 0.0, bank.targets.weights)
    targets = dataclasses.replace(bank.targets, weights=weights)  # items without weight do not count
    kept = select(dataclasses.replace(bank, targets=targets), 15, method=method, rng=0)
    assert kept.inclusion_probabilities is not None


def test_anchors_have_no_probabilities(bank):
    assert select(bank, 15, method="anchor-irt", rng=0).inclusion_probabilities is None


@pytest.mark.parametrize("mixture", [0.0, -1.0, 1.1, float("nan")])
def test_mixture_outside_its_range_is_refused(mixture):
    with pytest.raises(ParameterError, match="mixture must be above 0 and at most 1"):
        Uncertainty(mixture)
