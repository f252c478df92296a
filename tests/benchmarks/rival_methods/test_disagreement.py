import dataclasses

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from itembank.irt.bernoulli import probability
from itembank.selection.select import select
from itembank_rivals.disagreement import Disagreement, jensen_shannon, largest, predictive_diversity
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("rival_methods")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=25, n_items=60)


def outcomes(probabilities):
    return np.stack([probabilities, 1.0 - probabilities])


def test_divergence_of_two_models_is_that_of_scipy(rng):
    probabilities = rng.random((2, 8))
    expected = jensenshannon(*np.moveaxis(outcomes(probabilities), 1, 0)) ** 2
    np.testing.assert_allclose(jensen_shannon(probabilities), expected)


def test_divergence_of_binary_responses_orders_items_as_their_variance(rng):
    responses = (rng.random((25, 40)) < rng.random(40)).astype(float)
    by_variance, by_divergence = responses.var(axis=0), jensen_shannon(responses)
    np.testing.assert_array_equal(
        np.sign(np.round(by_variance[:, None] - by_variance, 12)),
        np.sign(np.round(by_divergence[:, None] - by_divergence, 12)),
    )


def test_predictive_diversity_is_the_sum_over_outcomes_of_the_largest_probability(rng):
    probabilities = rng.random((7, 9))
    np.testing.assert_allclose(predictive_diversity(probabilities), outcomes(probabilities).max(axis=1).sum(axis=0))


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
    gappy = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))
    filled = dataclasses.replace(
        bank, responses=dataclasses.replace(bank.responses, responses=np.where(np.isnan(values), fitted, values))
    )
    one, other = (select(each, 12, method="disagreement", rng=0) for each in (gappy, filled))
    assert one.item_ids == other.item_ids
    np.testing.assert_allclose(one.weights, other.weights)
