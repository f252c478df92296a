import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import itembank as ib
from itembank.bank.norms import fitted_factor_model
from itembank.errors import ParameterError
from itembank.selection.drawn import expected_answers, inclusion_probabilities, systematic_sample
from itembank.selection.select import select
from itembank.selection.selector_specs import Drawn
from tests.bank.banks import make_bank


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


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
    for flat in (-0.1, 1.5):
        with pytest.raises(ParameterError, match="flat"):
            Drawn(flat=flat)


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
