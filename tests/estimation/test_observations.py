from dataclasses import replace

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


def test_a_selection_without_weight_in_a_scenario_is_refused():
    bank = make_bank()
    selection = select(bank, 6, rng=0)
    weights = np.where(np.array(selection.scenarios) == "code", 0.0, selection.weights)
    with pytest.raises(DataError, match="zero in a scenario, but are in 'code'"):
        estimate(bank, bank.responses, selection=replace(selection, weights=weights))


def test_a_selection_of_other_scenarios_is_refused():
    bank = make_bank()
    selection = select(bank, 6, rng=0)
    with pytest.raises(DataError, match="scenarios of the selection must be those of bank"):
        estimate(bank, bank.responses, selection=replace(selection, scenarios=("math",) * 6))


def test_the_plain_mean_of_items_that_weigh_unequally_is_warned_of():
    bank = make_bank()
    targets = ScoreTargets.create(bank.responses.items.with_columns(weight=np.arange(1.0, 31.0)), within="custom")
    with pytest.warns(DataWarning, match="method 'weighted'"):
        estimate(replace(bank, targets=targets), bank.responses, method="mean")


def test_unequal_weights_of_a_random_sample_count_as_fewer_items():
    bank = make_bank()
    selection = select(bank, 12, method="random", rng=0)
    new = bank.responses.take(items=bank.responses.item_indices(selection.item_ids))
    weights = selection.weights.copy()
    math = np.flatnonzero(np.array(selection.scenarios) == "math")
    weights[math] = np.array([0.7, 0.1, 0.1, 0.1])
    share = estimate(bank, new, selection=replace(selection, weights=weights), method="gp-irt").sample_share[0]
    b, v = bank.item_model_bias[0] ** 2, bank.response_variance[0] * np.sum(weights[math] ** 2)
    assert share[0] == pytest.approx(b / (b + v))
    equal = bank.item_model_bias[1] ** 2, bank.response_variance[1] / 4
    assert share[1] == pytest.approx(equal[0] / sum(equal))


def test_items_come_in_the_bank_s_order_whatever_the_file_s():
    bank = make_bank()
    order = np.random.default_rng(0).permutation(30)
    found = Asked.of(bank, bank.responses.take(items=order), None).observations
    np.testing.assert_array_equal(found.positions, np.arange(30))
    np.testing.assert_array_equal(found.responses, bank.responses.responses)


def test_answers_of_other_calibration_models_are_not_made_numbers(monkeypatch):
    """Of 2,000 models and 20,000 items those of a fifth are 64 MB, all are 320 MB."""
    bank, asked, plain = make_bank(), [], ResponseMatrix.of_items
    observations = Asked.of(bank, bank.responses.take(items=np.arange(3, 9)), None).observations

    def of_items(self, items, *, models=None):
        asked.append(models.tolist())
        return plain(self, items, models=models)

    monkeypatch.setattr(ResponseMatrix, "of_items", of_items)
    found = observations.answered_by_calibration_models(bank, np.array([7, 2])).responses
    assert asked == [[7, 2]]
    np.testing.assert_array_equal(found, bank.responses.responses[[7, 2], 3:9])
