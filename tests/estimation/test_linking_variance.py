import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank import estimate
from itembank.bank.marks import BATCH, LINKING_ERROR, batches
from itembank.responses.responses import ResponseMatrix
from tests.living.living import measured_bank


def with_links(bank, n_first, n_second):
    """Say that the first items of a bank came in two batches, with errors of 2 and 3 points."""
    versions = [*["1.1.0"] * n_first, *["1.2.0"] * n_second, *[None] * (bank.n_items - n_first - n_second)]
    errors = [*[0.02] * n_first, *[0.03] * n_second, *[None] * (bank.n_items - n_first - n_second)]
    items = bank.responses.items.with_columns(
        pl.Series(BATCH, versions, dtype=pl.String), pl.Series(LINKING_ERROR, errors, dtype=pl.Float64)
    )
    return dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items))


def estimated(bank, answered, interval="model-based"):
    rng = np.random.default_rng(1)
    ids = [bank.item_ids[k] for k in answered]
    given = ResponseMatrix.create(rng.integers(0, 2, (2, len(ids))).astype(float), item_ids=ids)
    return estimate(bank, given, method="p-irt", interval=interval)


def test_the_variance_of_links_is_that_of_the_items_not_answered():
    bank = measured_bank(n_dims=1)
    answered = np.arange(3, 30, 2)
    plain, linked = estimated(bank, answered), estimated(with_links(bank, 6, 9), answered)
    np.testing.assert_array_equal(plain.value, linked.value)
    # of 30 items, every third in each of three scenarios that count alike: unanswered are 0, 1, 2 and 4; 6, 8, ..., 14
    added = (linked.standard_error**2 - plain.standard_error**2)[:, -1]
    expected = (0.02 * 4 / 30) ** 2 + (0.03 * 5 / 30) ** 2
    np.testing.assert_allclose(added, expected)
    assert (linked.high - linked.low >= plain.high - plain.low).all()


def test_a_full_run_has_no_linking_error():
    bank = measured_bank(n_dims=1)
    full = estimated(with_links(bank, 6, 9), np.arange(30))
    np.testing.assert_array_equal(full.standard_error, estimated(bank, np.arange(30)).standard_error)


def test_batches_are_told_by_their_version():
    bank = with_links(measured_bank(n_dims=1), 6, 9)
    found = [(int(members.sum()), error) for members, error in batches(bank.responses.items)]
    assert found == [(6, 0.02), (9, 0.03)]
    assert list(batches(measured_bank(n_dims=1).responses.items)) == []
    unknown = bank.responses.items.with_columns(pl.lit(None, dtype=pl.Float64).alias(LINKING_ERROR))
    assert list(batches(unknown)) == []


@pytest.mark.parametrize("column", [BATCH, LINKING_ERROR])
def test_one_column_alone_says_nothing(column):
    bank = with_links(measured_bank(n_dims=1), 6, 9)
    assert list(batches(bank.responses.items.drop(column))) == []
