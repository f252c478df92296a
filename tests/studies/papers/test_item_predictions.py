import dataclasses

import numpy as np
import pytest

from itembank.errors import DataError
from itembank.estimation.folds import folds
from itembank.estimation.model_abilities import estimate_abilities
from itembank.irt.bernoulli import probability
from itembank.readers.compute import training_compute
from itembank.studies.papers.item_predictions import item_predictions
from itembank.studies.papers.law_predictions import law_predictions
from tests.auditing import panels
from tests.scaling.simulated_suite import simulated_suite


@pytest.fixture(scope="module")
def found():
    return item_predictions(panels.bank(), rng=5)


def test_predictions_are_those_of_fits_and_abilities_that_know_nothing_of_the_response(found):
    bank = panels.bank()
    half = np.random.default_rng(5).permutation(bank.n_items) % 2
    asked = np.flatnonzero(half == 0)
    expected, seen = [], []
    for fold in folds(bank):
        answers = bank.responses.take(models=fold.held_out)
        theta = estimate_abilities(fold.bank, answers.take(items=np.flatnonzero(half == 1))).theta
        expected.append(probability(fold.bank.parameters.take(asked), theta))
        seen.append(answers.responses[:, asked])
    every = found.scenarios[-1]
    assert every.scenario == "all items"
    assert every.predicted.size == bank.responses.observed.sum()
    for ours, parts in ((every.predicted, expected), (every.observed, seen)):
        by_hand = np.sort(np.concatenate([part.ravel() for part in parts]))
        known = np.sort(ours)
        nearest = known[np.clip(np.searchsorted(known, by_hand), 0, known.size - 1)]
        np.testing.assert_allclose(nearest, by_hand, rtol=1e-9)


def test_predictions_of_the_right_item_model_are_right(found):
    every = found.scenarios[-1]
    assert every.association.slope == pytest.approx(1.0, abs=0.1)
    assert every.association.correlation > every.item_means.correlation + 0.02
    assert abs(every.row()["bias"]) < 0.02
    assert every.bins.calibration_error < 0.03


def test_a_row_a_scenario_and_one_for_all(found):
    assert [row["scenario"] for row in found.rows()] == [*panels.bank().targets.scenarios, "all items"]
    assert sum(row["n_cells"] for row in found.bin_rows()) == 2 * found.scenarios[-1].predicted.size
    assert sum(row["n_items"] for row in found.rows()[:-1]) == found.rows()[-1]["n_items"]


def test_few_models_cannot_be_left_out():
    bank = panels.bank()
    few = dataclasses.replace(bank, responses=bank.responses.take(models=np.arange(8)))
    with pytest.raises(DataError, match=r"takes at least 10, and bank .* has 8"):
        item_predictions(few)


@pytest.fixture(scope="module")
def suite():
    return simulated_suite(np.random.default_rng(3), n_items=40, n_sizes=4, n_checkpoints=1, residual_sd=0.02)


def test_laws_predict_responses_of_larger_models(suite):
    compute = training_compute(suite.models)
    sizes = np.unique(np.round(np.log(compute.flops[compute.is_final]), 6))
    found = law_predictions(suite.probability, compute, largest_flops=float(np.exp(sizes[-2] + 0.01)))
    every = found.scenarios[-1]
    assert found.family == "beta"
    assert every.association.slope == pytest.approx(1.0, abs=0.2)
    assert every.association.correlation > 0.7
    truth = suite.probability.responses
    assert every.observed.mean() == pytest.approx(truth[compute.flops > np.exp(sizes[-2] + 0.01)].mean())


def test_laws_need_larger_models_to_predict(suite):
    with pytest.raises(DataError, match="must be left to predict, got none"):
        law_predictions(suite.probability, training_compute(suite.models), largest_flops=1e30)
