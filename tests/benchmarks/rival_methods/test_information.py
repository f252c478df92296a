import dataclasses

import numpy as np
import pytest

from itembank.selection.pools import ScenarioPool
from itembank.selection.select import select
from itembank_rivals.information import choose_by_information
from tests.bank.banks import make_bank
from tests.irt.scores import item_information

pytestmark = pytest.mark.usefixtures("rival_methods")


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


def test_the_sign_and_rotation_of_ability_do_not_matter():
    bank = make_bank(n_models=24, n_items=60)
    turn = np.array([[0.6, 0.8], [0.8, -0.6]])
    turned = dataclasses.replace(
        bank,
        calibration=dataclasses.replace(
            bank.calibration,
            parameters=dataclasses.replace(bank.parameters, loadings=bank.parameters.loadings @ turn),
            abilities=bank.calibration.abilities @ turn,
        ),
    )
    mirrored = dataclasses.replace(
        bank,
        calibration=dataclasses.replace(
            bank.calibration,
            parameters=dataclasses.replace(bank.parameters, loadings=-bank.parameters.loadings),
            abilities=-bank.calibration.abilities,
        ),
    )
    one = select(bank, 15, method="information")
    assert one.item_ids == select(turned, 15, method="information").item_ids
    assert one.item_ids == select(mirrored, 15, method="information").item_ids


def test_items_without_any_mean_loading_are_no_trouble():
    bank = make_bank(n_models=24, n_items=60)
    loadings = bank.parameters.loadings.copy()
    loadings[0:3] = 0.0
    loadings[3::6], loadings[4::6], loadings[5::6] = -loadings[0::6], -loadings[1::6], -loadings[2::6]
    parameters = dataclasses.replace(bank.parameters, loadings=loadings)
    changed = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, parameters=parameters))
    assert select(changed, 15, method="information").n_items == 15
