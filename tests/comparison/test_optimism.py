import dataclasses

import numpy as np
import pytest

from itembank.comparison.compare import compare
from itembank.comparison.optimism import error_inflation
from itembank.data.responses import ResponseMatrix
from itembank.estimation.method_trials import sample_of
from itembank.estimation.specs import GPIRT, Weighted
from itembank.selection.select import select
from tests.data.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=40, n_items=150)


def inflation(bank, selection, spec):
    return error_inflation(bank, sample_of(bank, selection), selection, spec)


def test_items_chosen_by_chance_or_in_ways_unknown_need_no_factor(bank):
    drawn = select(bank, 20, method="random", rng=0)
    chosen = select(bank, 20, method="anchor-correctness", rng=0)
    assert error_inflation(bank, sample_of(bank, drawn), None, Weighted()) == 1.0
    assert inflation(bank, drawn, Weighted()) == 1.0
    assert inflation(bank, dataclasses.replace(chosen, recipe=None), Weighted()) == 1.0
    small = make_bank(n_models=8)
    assert inflation(small, select(small, 6, method="anchor-correctness", rng=0), Weighted()) == 1.0


def test_anchors_chosen_on_the_models_themselves_suit_them_too_well(bank):
    chosen = select(bank, 20, method="anchor-correctness", rng=0)
    assert 1.05 < inflation(bank, chosen, Weighted()) <= 1.5
    assert 1.0 <= inflation(bank, chosen, GPIRT()) <= 1.5


def test_the_factor_widens_the_intervals(bank):
    chosen = select(bank, 20, method="anchor-correctness", rng=0)
    items = bank.responses.items[bank.responses.item_indices(chosen.item_ids)]
    values = (np.random.default_rng(0).random((2, 20)) < 0.5).astype(float)
    matrix = ResponseMatrix.create(values, items=items)
    unknown = dataclasses.replace(chosen, recipe=None)
    widths = [
        (found.difference.high - found.difference.low)[0, 0]
        for found in (compare(bank, matrix, selection=one, method="paired") for one in (chosen, unknown))
    ]
    assert widths[0] / widths[1] == pytest.approx(inflation(bank, chosen, Weighted()))
