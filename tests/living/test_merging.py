import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.banks import Link, Operation, descendant, diff, merge, restore, retire, whole_bank
from itembank.errors import DataError
from itembank.irt.parameters import AbilityPrior
from tests.living.living import measured_bank, named_bank
from tests.living.test_descendants import with_intercepts, with_items, with_models

HALF, REST = np.arange(20), np.arange(10, 30)
"""Items of the two banks; ten are in both."""


def part(bank, items, models):
    """Cut a bank to some items and models; nothing is fitted."""
    old = bank.calibration
    calibration = dataclasses.replace(
        old,
        parameters=old.parameters.take(items),
        item_covariance=old.item_covariance[items],
        is_degenerate=old.is_degenerate[items],
        abilities=old.abilities[models],
        ability_covariance=old.ability_covariance[models],
    )
    responses = bank.responses.take(items=items, models=models)
    targets = type(bank.targets).create(responses.items)
    return dataclasses.replace(
        bank, bank_id=f"{items[0]:06d}{models[0]:06d}", responses=responses, calibration=calibration, targets=targets
    )


def halves(**changes):
    """Two banks of one: the first ten models with the first items, the last ten with the last items."""
    bank = measured_bank(n_models=15, **changes)
    return bank, part(bank, HALF, np.arange(10)), part(bank, REST, np.arange(5, 15))


@pytest.mark.parametrize("extras", [False, True])
def test_parts_of_a_bank_make_it_up_again(tmp_path, extras):
    bank, first, second = halves(with_extras=extras)
    save_bank(merge(first, second, note="both"), tmp_path / "both")
    both = load_bank(tmp_path / "both")
    assert both.item_ids == bank.item_ids
    assert both.responses.model_ids == bank.responses.model_ids
    expected = bank.responses.responses.copy()
    expected[:5, 20:], expected[10:, :10] = np.nan, np.nan
    np.testing.assert_array_equal(both.responses.responses, expected)
    np.testing.assert_array_equal(both.parameters.loadings, bank.parameters.loadings)
    np.testing.assert_array_equal(both.calibration.abilities, bank.calibration.abilities)
    np.testing.assert_array_equal(both.targets.weights, bank.targets.weights)
    if extras:
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(both.responses.n_trials[kept], bank.responses.n_trials[kept])
        np.testing.assert_array_equal(
            both.responses.costs["output_tokens"][kept], bank.responses.costs["output_tokens"][kept]
        )
    (change,) = both.history.changes
    assert (change.operation, change.note, change.version) == ("merge", "both", "2.0.0")
    assert change.parents == (first.bank_id, second.bank_id)
    assert (change.items_added.n, change.models_added.n) == (10, 5)


def test_what_either_retired_stays_so():
    _, first, second = halves()
    both = merge(retire(first, ["math/0"], reason="bad"), retire(second, ["code/28"], reason="bad"))
    assert not {"math/0", "code/28"} & set(both.item_ids)
    assert whole_bank(both).n_items == 30
    back = restore(both, ["math/0", "code/28"], reason="good")
    assert set(back.item_ids) == set(whole_bank(both).item_ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda bank: with_intercepts(bank, 0.1), "10 of 10 common items have other parameters, 'code/10'"),
        (
            lambda bank: dataclasses.replace(
                bank, calibration=dataclasses.replace(bank.calibration, prior=AbilityPrior(np.ones(2), np.eye(2)))
            ),
            "their priors of ability differ",
        ),
        (
            lambda bank: dataclasses.replace(
                bank, calibration=dataclasses.replace(bank.calibration, thresholds={"math": 0.7})
            ),
            "thresholds differ",
        ),
        (
            lambda bank: part(bank, np.arange(10, 20), np.arange(10)),
            "no item in common and no common ancestor",
        ),
    ],
)
def test_other_scales_are_refused(change, message):
    _, first, second = halves()
    with pytest.raises(DataError, match=rf"must be on one scale.*{message}.*Link one to the other first"):
        merge(first, change(second))


def test_banks_of_other_abilities_are_refused():
    with pytest.raises(DataError, match="they have 2 and 1 abilities"):
        merge(measured_bank(), measured_bank(n_dims=1))


def test_contradictions_are_refused():
    _, first, second = halves()
    turned = dataclasses.replace(second.responses, responses=1.0 - second.responses.responses)
    with pytest.raises(DataError, match="must have answered an item alike in both banks, and 5 did not in 50 cells"):
        merge(first, dataclasses.replace(second, responses=turned))
    items = second.responses.items.with_columns(scenario=pl.lit("elsewhere"))
    moved = dataclasses.replace(second, responses=dataclasses.replace(second.responses, items=items))
    with pytest.raises(DataError, match="an item must belong to one scenario, and 10 belong to another"):
        merge(first, dataclasses.replace(moved, targets=type(second.targets).create(items)))


def test_a_bank_merged_with_its_descendant_gains_nothing():
    bank = named_bank()
    assert merge(retire(bank, ["math/0"], reason="bad"), bank).version == "2.0.1"


def test_a_bank_does_not_differ_from_itself():
    bank = named_bank(with_extras=True)
    found = diff(bank, restore(retire(bank, ["math/0"], reason="bad"), ["math/0"], reason="good"))
    assert found.rows() == []
    assert (found.is_same_score, found.is_same_scale, found.is_descendant) == (True, True, True)


def test_without_common_items_nothing_says_that_scales_are_the_same():
    bank = measured_bank()
    assert not diff(*(part(bank, items, np.arange(5)) for items in (np.arange(10), REST))).is_same_scale


def test_every_kind_of_difference_is_named():
    bank = named_bank()
    whole = with_models(with_intercepts(with_items(bank, 2), 0.1), 1)
    content = pl.Series(["a"] * 3 + [None] * 29, dtype=pl.String)
    items = whole.responses.items.with_columns(content_hash=content)
    whole = dataclasses.replace(whole, responses=dataclasses.replace(whole.responses, items=items))
    other = retire(descendant(bank, whole, Operation("grow", link=Link("all", 1, 2))), ["math/3"], reason="bad")
    known = bank.responses.items.with_columns(content_hash=pl.lit("b"))
    first = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=known))
    found = diff(first, other)
    counts = {row["what"]: (row["n"], row["ids"][0]) for row in found.rows()}
    assert counts == {
        "items only in the second": (2, "new/0"),
        "items with another status": (1, "math/3"),
        "items with another content": (3, "math/0"),
        "items with other parameters": (30, "math/0"),
        "models only in the second": (1, "new-0"),
    }
    assert found.to_dict() == {
        "banks": [first.bank_id, other.bank_id],
        "versions": ["1.0.1", "3.0.0"],
        "targets": ["quiz@1", "quiz@3"],
        "is_same_score": False,
        "is_same_scale": False,
        "is_descendant": True,
    }
    assert {row["what"] for row in diff(other, first).rows()} >= {"items only in the first", "models only in the first"}
