import dataclasses

import numpy as np
import pytest

from itembank.selection.select import select
from tests.bank.banks import make_bank


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=60)


def test_random_selections_record_their_probabilities(bank):
    simple = select(bank, 15, method="random", rng=0)
    np.testing.assert_allclose(simple.inclusion_probabilities, 5 / 20)
    assert simple.is_random


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


@pytest.mark.parametrize("method", ["random", "stratified"])
def test_no_probabilities_where_an_item_that_counts_cannot_come(bank, method):
    assert select(bank, 15, method=method, rng=0, excluded=[bank.item_ids[0]]).inclusion_probabilities is None
    weights = np.where(np.arange(60) < 6, 0.0, bank.targets.weights)
    targets = dataclasses.replace(bank.targets, weights=weights)  # items without weight do not count
    kept = select(dataclasses.replace(bank, targets=targets), 15, method=method, rng=0)
    assert kept.inclusion_probabilities is not None


def test_anchors_have_no_probabilities(bank):
    assert select(bank, 15, method="anchor-irt", rng=0).inclusion_probabilities is None
