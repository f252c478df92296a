import dataclasses

import numpy as np
import pytest

from itembank.errors import DataError
from itembank_living import add_items
from itembank_living.changes.overlay import overlaid
from tests.living.living import measured_bank, named_bank
from tests.living.test_link_items import FEW, MOVED, linking

HALF, REST = np.arange(20), np.arange(10, 30)
"""Items of the two banks; ten are in both."""


def part(bank, items, models):
    """Cut a bank to some items and models; nothing is fitted."""
    old = bank.calibration
    parts = {name: getattr(old, name)[items] for name in ("item_covariance", "is_degenerate")}
    parts |= {name: getattr(old, name)[models] for name in ("abilities", "ability_covariance")}
    calibration = dataclasses.replace(old, parameters=old.parameters.take(items), **parts)
    responses = bank.responses.take(items=items, models=models)
    named = {"bank_id": f"{items[0]:06d}{models[0]:06d}", "targets": type(bank.targets).create(responses.items)}
    return dataclasses.replace(bank, responses=responses, calibration=calibration, **named)


@pytest.mark.parametrize("extras", [False, True])
def test_parts_of_a_bank_make_it_up_again(extras):
    bank = measured_bank(n_models=15, with_extras=extras)
    both = overlaid(part(bank, HALF, np.arange(10)), part(bank, REST, np.arange(5, 15)))
    assert (both.item_ids, both.responses.model_ids) == (bank.item_ids, bank.responses.model_ids)
    expected = bank.responses.responses.copy()
    expected[:5, 20:], expected[10:, :10] = np.nan, np.nan
    np.testing.assert_array_equal(both.responses.responses, expected)
    np.testing.assert_array_equal(both.parameters.loadings, bank.parameters.loadings)
    np.testing.assert_array_equal(both.calibration.abilities, bank.calibration.abilities)
    np.testing.assert_array_equal(both.targets.weights, bank.targets.weights)
    if extras:
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(both.responses.n_trials[kept], bank.responses.n_trials[kept])
        ours, theirs = (one.responses.costs["output_tokens"][kept] for one in (both, bank))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings(FEW)
@pytest.mark.filterwarnings(MOVED)
def test_what_contradicts_the_bank_is_not_added():
    bank = named_bank(n_models=20, n_items=40, n_dims=1)
    given, _ = linking(bank, n_models=20, theta=bank.calibration.abilities, ids=bank.responses.model_ids)
    with pytest.raises(DataError, match="must have answered an item as it did in the bank, and 20 did not in"):
        add_items(bank, given)
    new = given.items["item_id"].str.starts_with("new").to_numpy()
    agreeing = np.concatenate([bank.responses.responses, given.responses[:, new]], axis=1)
    given = dataclasses.replace(given, responses=agreeing)
    assert add_items(bank, given).n_items == 52
