import dataclasses

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.selection.select import select
from itembank.studies.comparison_study import item_costs, largest_within, prepare_fold, selection_cost
from itembank.studies.splits import make_folds
from tests.studies.simulated import make_responses, make_spec

COSTED = make_responses()
ONE_FOLD = make_folds(make_spec().splits[0], COSTED.models, 1, 3)[0]


@pytest.fixture(scope="module")
def bank():
    return prepare_fold(make_spec(), COSTED, ONE_FOLD).bank


def test_expected_costs_are_means_over_calibration_models(bank):
    expected = COSTED.costs["output_tokens"][ONE_FOLD.train].mean(axis=0)
    np.testing.assert_allclose(item_costs(bank, "output_tokens"), expected)
    assert not np.allclose(expected, COSTED.costs["output_tokens"].mean(axis=0))


@pytest.mark.parametrize("method", ["random", "anchor-irt"])
@pytest.mark.parametrize("amount", [100.0, 500.0, 1e6])
def test_the_largest_selection_within_the_amount(bank, method, amount):
    costs = item_costs(bank, "output_tokens")

    def choose(n_items):
        return select(bank, n_items, method=method, rng=5)

    found = largest_within(bank, choose, costs, amount)
    assert selection_cost(bank, found, costs) <= amount
    assert found.item_ids == choose(found.n_items).item_ids
    n_open = int((~bank.calibration.is_degenerate).sum())
    assert found.n_items == n_open or selection_cost(bank, choose(found.n_items + 1), costs) > amount


def test_too_small_an_amount_is_refused(bank):
    costs = item_costs(bank, "output_tokens")
    with pytest.raises(ParameterError, match="one item of each of 2 scenarios, which cost"):
        largest_within(bank, lambda n: select(bank, n, method="random", rng=0), costs, 1.0)


def test_a_cost_that_is_not_there_is_named(bank):
    with pytest.raises(DataError, match=r"cost 'cost_usd' needs that column.*'output_tokens'"):
        item_costs(bank, "cost_usd")


def test_tokens_are_a_unit_in_which_those_read_count_half(bank):
    written = bank.responses.costs["output_tokens"]
    costs = {"output_tokens": written, "input_tokens": np.full(written.shape, 10.0)}
    changed = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs=costs))
    np.testing.assert_allclose(item_costs(changed, "tokens"), item_costs(bank, "output_tokens") + 5.0)
