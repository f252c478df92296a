from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from itembank.irt.bernoulli import probability
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import select
from itembank_rivals.disagreement import Disagreement, jensen_shannon, largest, predictive_diversity
from itembank_rivals.information import choose_by_information
from tests.bank.banks import make_bank
from tests.irt.scores import item_information

pytestmark = pytest.mark.usefixtures("rival_methods")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=25, n_items=60)


def outcomes(probabilities):
    return np.stack([probabilities, 1.0 - probabilities])


def test_divergence_and_diversity_are_their_definitions_and_order_binary_items_as_their_variance(rng):
    probabilities = rng.random((2, 8))
    expected = jensenshannon(*np.moveaxis(outcomes(probabilities), 1, 0)) ** 2
    np.testing.assert_allclose(jensen_shannon(probabilities), expected)
    probabilities = rng.random((7, 9))
    np.testing.assert_allclose(predictive_diversity(probabilities), outcomes(probabilities).max(axis=1).sum(axis=0))
    responses = (rng.random((25, 40)) < rng.random(40)).astype(float)
    orders = [
        np.sign(np.round(worth[:, None] - worth, 12)) for worth in (responses.var(axis=0), jensen_shannon(responses))
    ]
    np.testing.assert_array_equal(*orders)


def test_chance_decides_between_equals_only(rng):
    score = np.array([0.1, 0.3, 0.2, 0.2, 0.2, 0.0])
    found = np.array([largest(score, 3, rng) for _ in range(3000)])
    assert np.all(found[:, 0] == 1)
    counts = np.bincount(found[:, 1:].ravel(), minlength=6)
    assert counts[[0, 1, 5]].sum() == 0
    np.testing.assert_allclose(counts[2:5], 2000, atol=4 * np.sqrt(3000 * 2 / 9))


@pytest.mark.parametrize("measure", ["variance", "jensen-shannon", "predictive-diversity"])
def test_no_item_left_is_disagreed_on_more_than_one_taken(bank, measure):
    selection = select(bank, 12, method=Disagreement(measure), rng=0)
    if measure == "predictive-diversity":
        score = predictive_diversity(probability(bank.parameters, bank.calibration.abilities))
    else:
        score = bank.responses.responses.var(axis=0)
    taken = np.zeros(60, dtype=bool)
    taken[bank.responses.item_indices(selection.item_ids)] = True
    for scenario in range(3):
        own = bank.targets.scenario_index == scenario
        assert score[own & taken].min() >= score[own & ~taken].max() - 1e-9


def test_a_missing_response_counts_as_the_item_model_has_it(bank):
    values = bank.responses.responses.copy()
    fitted = probability(bank.parameters, bank.calibration.abilities)
    values[::2, :] = np.nan
    gappy, filled = (
        replace(bank, responses=replace(bank.responses, responses=made))
        for made in (values, np.where(np.isnan(values), fitted, values))
    )
    one, other = (select(each, 12, method="disagreement", rng=0) for each in (gappy, filled))
    assert one.item_ids == other.item_ids
    np.testing.assert_allclose(one.weights, other.weights)


def pool_of(bank, scenario=0):
    items = np.flatnonzero(bank.targets.scenario_index == scenario)
    return ScenarioPool(items, bank.targets.weights[items], np.ones(items.shape[0], dtype=bool))


@pytest.mark.parametrize(("n_models", "n_items"), [(24, 6), (24, 7), (5, 12)])
def test_each_step_of_ability_takes_its_most_informative_item(n_models, n_items):
    """In one dimension, item by item and group by group."""
    bank = make_bank(n_models=n_models, n_items=60, n_dims=1)
    pool = pool_of(bank)
    abilities = np.sort(bank.calibration.abilities, axis=0)
    information = item_information(bank.parameters.take(pool.items), abilities)
    expected = []
    for step in range(n_items):
        start, stop = step * n_models // n_items, (step + 1) * n_models // n_items
        best = information[start : max(stop, start + 1)].max(axis=0)
        expected.append(max((i for i in range(20) if i not in expected), key=best.__getitem__))
    assert choose_by_information(bank, pool, n_items).chosen.tolist() == expected


def test_signs_rotations_and_items_without_loading_are_no_trouble():
    bank = make_bank(n_models=24, n_items=60)
    one = select(bank, 15, method="information")
    for turn in (np.array([[0.6, 0.8], [0.8, -0.6]]), -np.eye(2)):
        parameters = replace(bank.parameters, loadings=bank.parameters.loadings @ turn)
        abilities = bank.calibration.abilities @ turn
        calibration = replace(bank.calibration, parameters=parameters, abilities=abilities)
        turned = replace(bank, calibration=calibration)
        assert one.item_ids == select(turned, 15, method="information").item_ids
    loadings = bank.parameters.loadings.copy()
    loadings[0:3] = 0.0
    loadings[3::6], loadings[4::6], loadings[5::6] = -loadings[0::6], -loadings[1::6], -loadings[2::6]
    parameters = replace(bank.parameters, loadings=loadings)
    changed = replace(bank, calibration=replace(bank.calibration, parameters=parameters))
    assert select(changed, 15, method="information").n_items == 15
